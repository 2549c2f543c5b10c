"""River's own checks, its evaluation with delayed labels, and receipts found by the value of x."""

import copy
import datetime as dt
import pickle
from collections import deque
from typing import Any

import numpy as np
import pytest
from river import (
    base,
    checks,
    compose,
    conf,
    datasets,
    dummy,
    evaluate,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    stats,
    tree,
)

import setpoint as sp
from setpoint.errors import InputError, LabelError
from setpoint.models.river import Coverage, IntervalRegressor, SetClassifier


def river_checks() -> list[Any]:
    found = []
    for wrapper in (IntervalRegressor, SetClassifier):
        for place, options in enumerate(wrapper._unit_test_params()):
            for number, check in enumerate(checks.yield_checks(wrapper(**options))):
                name = f"{wrapper.__name__}{place}-{check.__name__}-{number}"
                found.append(pytest.param(wrapper, place, check, id=name))
    return found


@pytest.mark.parametrize(("wrapper", "place", "check"), river_checks())
def test_the_checks_of_river_pass(wrapper: Any, place: int, check: Any) -> None:
    check(wrapper(**list(wrapper._unit_test_params())[place]))


def rows(count: int = 500, seed: int = 0) -> list[tuple[dict[str, float], float]]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 2))
    y = 3.0 * X[:, 0] - X[:, 1] + random.normal(size=count)
    return [({"a": a, "b": b}, label) for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]


def linear() -> Any:
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


def by_hand(data: Any, delay: int) -> tuple[sp.Stream, list[Any]]:
    """A loop of its own: every label comes `delay` questions later, in order."""
    held, model = sp.Stream(sp.intervals(coverage=0.9)), linear()
    waiting: deque[Any] = deque()
    shown = []

    def answer() -> None:
        x, y, id = waiting.popleft()
        held.update(y, id=id)
        model.learn_one(x, y)

    for x, y in data:
        receipt = held.issue(model.predict_one(x))
        shown.append(tuple(receipt.shown))
        waiting.append((x, y, receipt.id))
        if len(waiting) > delay:
            answer()
    while waiting:
        answer()
    return held, shown


@pytest.mark.parametrize("delay", [0, 1, 20])
def test_a_late_label_is_judged_on_the_interval_that_was_shown(delay: int) -> None:
    data = rows()
    wanted, intervals = by_hand(data, delay)
    model, shown = IntervalRegressor(linear()), []
    for number, (x, _) in enumerate(data):
        interval = model.predict_one(x, with_interval=True)
        assert isinstance(interval, conf.Interval)
        shown.append((interval.lower, interval.upper))
        if number >= delay:
            model.learn_one(*data[number - delay])
    for x, y in data[len(data) - delay :]:
        model.learn_one(x, y)
    np.testing.assert_allclose(shown, intervals, rtol=1e-12)
    assert model.stream.theta == pytest.approx(wanted.theta)
    assert model.certificate().pending == 0
    assert model.certificate().most_pending <= delay + 1


@pytest.mark.parametrize("delay", [None, 30])
def test_the_evaluation_of_river_runs_with_delays(delay: int | None) -> None:
    data = rows()
    moment = None if delay is None else "t"
    timed = [({**x, "t": number}, y) for number, (x, y) in enumerate(data)]
    model = IntervalRegressor(compose.Discard("t") | linear())
    found = evaluate.progressive_val_score(timed, model, metrics.MAE(), moment=moment, delay=delay)
    # Labels that are due come before the question of the same moment.
    wanted, _ = by_hand(data, 0 if delay is None else delay - 1)
    assert 0.5 < found.get() < 1.5
    assert model.stream.theta == pytest.approx(wanted.theta)
    (risk,) = model.certificate().risks
    assert risk.within
    assert risk.judged == len(data)


def test_coverage_is_a_metric_of_river() -> None:
    data = rows()
    _, intervals = by_hand(data, 14)
    hits = [low <= y <= high for (low, high), (_, y) in zip(intervals, data, strict=True)]
    timed = [({**x, "t": n}, y, {"with_interval": True}) for n, (x, y) in enumerate(data)]
    model = IntervalRegressor(compose.Discard("t") | linear())
    found = evaluate.progressive_val_score(timed, model, Coverage(), moment="t", delay=15)
    assert found.get() == pytest.approx(np.mean(hits))
    found.update(1.0, conf.Interval(2.0, 3.0))
    found.revert(1.0, conf.Interval(2.0, 3.0))
    assert found.get() == pytest.approx(np.mean(hits))
    assert found > Coverage()

    named = [(x, y, {"with_set": True}) for x, y in datasets.Phishing().take(800)]
    sets = SetClassifier(linear_model.LogisticRegression())
    assert evaluate.progressive_val_score(named, sets, Coverage()).get() > 0.87
    assert not Coverage().works_with(preprocessing.StandardScaler())


def test_one_row_may_be_asked_for_in_several_ways() -> None:
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()))
    x = {"day": "mo"}
    model.learn_one(x, 10.0)
    model.learn_one(x, 12.0)
    first = model.predict_one(x, with_interval=True)
    model.learn_one({"day": "tu", "hour": 3}, 100.0)  # nobody asked for it
    assert model.predict_one(x) == 11.0  # as it was when the row was first asked for
    assert len(model.stream.pending) == 1
    again = model.predict_one(x, with_interval=True)  # a second row
    assert len(model.stream.pending) == 2
    assert again.width > first.width


def test_a_row_nobody_asked_for_answers_no_other_once_labels_are_found_by_value() -> None:
    data = rows(20)
    model = IntervalRegressor(linear())
    for x, y in data:
        model.predict_one(x)
        model.learn_one(x, y)
    model.predict_one({"a": 0.5, "b": 0.5})
    judged = model.certificate().risks[0].judged
    model.learn_one({"a": 0.6, "b": 0.5}, 1.0)
    assert model.certificate().risks[0].judged == judged + 1
    assert len(model.stream.pending) == 1


def test_of_two_rows_with_equal_features_the_older_is_answered() -> None:
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()))
    x = {"day": "mo"}
    model.learn_one(x, 10.0)
    narrow = model.predict_one(x, with_interval=True)
    model.learn_one(x, 10.5)
    model.predict_one(x, with_interval=True)
    assert len(model.stream.pending) == 1
    for _ in range(2):
        model.predict_one(dict(x), with_interval=True)
    older, *_ = model.stream.pending.values()
    assert len(model.stream.pending) == 3
    model.learn_one(x, 11.0)
    assert model.stream.info is not None
    assert model.stream.info.id == older.id
    assert narrow.lower < 10.0


def test_ids_tell_rows_apart_even_behind_a_transformer_that_learns() -> None:
    data = rows(300)
    inside = IntervalRegressor(linear_model.LinearRegression())
    model = preprocessing.StandardScaler() | inside
    late = [(x, y, {"id": number}) for number, (x, y) in enumerate(data)]
    timed = [({**x, "t": float(number)}, y, k) for number, (x, y, k) in enumerate(late)]
    evaluate.progressive_val_score(
        timed, compose.Discard("t") | model, metrics.MAE(), moment="t", delay=25
    )
    held = inside.certificate()
    assert held.pending == 0
    assert held.most_pending == 25
    assert held.risks[0].judged == len(data)
    assert held.risks[0].within


def test_at_the_end_of_a_pipeline_the_only_row_that_waits_is_meant() -> None:
    inside = IntervalRegressor(linear_model.LinearRegression())
    model = preprocessing.StandardScaler() | inside
    coverage = Coverage()
    for x, y in rows():
        coverage.update(y, model.predict_one(x, with_interval=True))
        model.learn_one(x, y)
    held = inside.certificate()
    assert (held.pending, held.most_pending, held.risks[0].judged) == (0, 1, 500)
    assert coverage.get() == pytest.approx(0.9, abs=0.03)


def test_a_pipeline_with_late_labels_and_no_ids_is_told_when_rows_are_given_up() -> None:
    inside = IntervalRegressor(linear_model.LinearRegression(), max_pending=40)
    model = preprocessing.StandardScaler() | inside
    data = rows(100)

    def run() -> None:
        for number, (x, _) in enumerate(data):
            model.predict_one(x)
            if number >= 5:
                model.learn_one(*data[number - 5])

    with pytest.warns(RuntimeWarning, match="give an id"):
        run()
    held = inside.certificate()
    assert held.pending <= 40
    assert held.dropped > 0


def test_features_are_compared_by_value() -> None:
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()))
    model.learn_one({}, 1.0)
    asked: list[dict[str, Any]] = [
        {"a": float("nan"), "b": 1},
        {"a": np.float64(2.0), "b": [1, 2]},
        {"a": np.array([1.0, 2.0]), "b": {"c": 1}},
        {"a": dt.date(2024, 1, 1), "b": {1, 2}},
    ]
    for x in asked:
        model.predict_one(x, with_interval=True)
    ids = list(model.stream.pending)
    again = [
        {"b": True, "a": float("nan")},
        {"b": (1, 2), "a": 2},
        {"b": {"c": 1.0}, "a": np.array([1.0, 2.0])},
        {"b": {2, 1}, "a": dt.date(2024, 1, 1)},
    ]
    for id, x in zip(reversed(ids), reversed(again), strict=True):
        model.learn_one(x, 1.0)
        assert model.stream.info is not None
        assert model.stream.info.id == id


def test_rows_beyond_max_pending_are_given_up_oldest_first() -> None:
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()), max_pending=3)
    model.learn_one({"a": -1}, 0.0)
    for a in range(3):
        model.predict_one({"a": a})
    with pytest.warns(RuntimeWarning, match="3 rows wait for their label"):
        model.predict_one({"a": 3})
    model.predict_one({"a": 4})  # said once
    assert len(model.stream.pending) == 3
    model.learn_one({"a": 0, "b": 0}, 1.0)  # given up: predicted anew, though all places are taken
    assert len(model.stream.pending) == 3
    model.learn_one({"a": 2}, 1.0)
    assert model.certificate().dropped == 2
    assert model.certificate().pending == 2


def test_the_first_interval_is_the_whole_line_and_a_missing_label_is_not_learnt() -> None:
    model = IntervalRegressor(linear())
    first = model.predict_one({"a": 1.0}, with_interval=True)
    assert (first.lower, first.upper) == (-np.inf, np.inf)
    model.learn_one({"a": 1.0}, float("nan"))
    model.learn_one({"a": 1.0}, 2.0)
    model.predict_one({"a": 3.0})
    model.learn_one({"a": 3.0}, None)
    assert model.certificate().pending == 0
    assert model.certificate().dropped == 2


def test_copies_and_pickles_go_on_alike_and_clones_begin_anew() -> None:
    data = rows(200)
    model = IntervalRegressor(linear())
    for x, y in data[:100]:
        model.predict_one(x)
        model.learn_one(x, y)
    model.predict_one(data[100][0], with_interval=True)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for x, y in data[100:]:
        model.learn_one(x, y)
        for other in others:
            other.learn_one(x, y)
    assert all(other.stream.theta == model.stream.theta for other in others)
    assert model.clone().certificate().risks[0].judged == 0


def test_a_controller_of_ones_own_is_used_as_it_is() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.3))
    controller = sp.Controller(sp.sets.Widen(support=(0.0, 100.0)), risk)
    model = IntervalRegressor(tree.HoeffdingTreeRegressor(), controller=controller)
    coverage = Coverage()
    for x, y in datasets.TrumpApproval().take(1000):
        coverage.update(y, model.predict_one(x, with_interval=True))
        model.learn_one(x, y)
    assert model.stream.controller == controller
    # λ starts at 0 and has to reach the errors first: the certificate's own constant.
    assert coverage.get() == pytest.approx(0.8, abs=0.05)


def nested(family: Any, step: float, bounds: tuple[float, float]) -> sp.Controller:
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(step), bounds=bounds)
        for level in (0.3, 0.1)
    ]
    return sp.Controller(sp.sets.Nested(family), risks)


def test_nested_intervals_come_as_a_tuple_the_smallest_first() -> None:
    controller = nested(sp.sets.Widen(), 0.1, (0.0, 20.0))
    model = IntervalRegressor(linear(), controller=controller)
    inner_hits, outer = [], Coverage()
    for x, y in rows(2000):
        first, second = shown = model.predict_one(x, with_interval=True)
        assert second.lower <= first.lower
        assert second.upper >= first.upper
        inner_hits.append(y in first)
        outer.update(y, shown)
        model.learn_one(x, y)
    assert np.mean(inner_hits) == pytest.approx(0.7, abs=0.02)
    assert outer.get() == pytest.approx(0.9, abs=0.02)


def test_a_question_without_a_label_to_come_leaves_no_trace() -> None:
    data = rows(300)
    quiet, asked = IntervalRegressor(linear()), IntervalRegressor(linear())
    for x, y in data:
        wanted = quiet.predict_one(x, with_interval=True)
        quiet.learn_one(x, y)
        for a in (-1.0, 0.0, 1.0):
            asked.peek_one({**x, "a": a})
        assert asked.peek_one(x, with_interval=True) == wanted
        point = asked.peek_one(x)
        assert asked.predict_one(x, with_interval=True) == wanted
        assert asked.predict_one(x) == point
        asked.learn_one(x, y)
    assert asked.certificate() == quiet.certificate()
    assert asked.certificate().most_pending == 1

    classifier = SetClassifier(Votes())
    assert classifier.peek_one({"a": 1}) is None
    assert classifier.peek_one({"a": 1}, with_set=True).full
    classifier.learn_one({"a": 1}, "x")
    assert classifier.peek_one({"a": 1}) == "x"
    assert classifier.peek_one({"a": 1}, with_set=True).labels == ("x",)
    assert classifier.certificate().pending == 0


def test_a_label_that_is_refused_leaves_its_row_waiting() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.3))
    controller = sp.Controller(sp.sets.Widen(support=(0.0, 100.0)), risk)
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()), controller=controller)
    for day in ("mo", "tu"):
        model.learn_one({"day": day}, 10.0)
    model.predict_one({"day": "we"}, with_interval=True)
    before = model.certificate()
    for wrong in (1000.0, "high", float("inf")):
        for day in ("we", "th"):  # a row that waits, and one nobody asked for
            with pytest.raises(LabelError):
                model.learn_one({"day": day, **({} if day == "we" else {"hour": 1})}, wrong)
    assert model.certificate() == before
    (id,) = model.stream.pending
    model.learn_one({"day": "we"}, 12.0)
    assert model.stream.info is not None
    assert model.stream.info.id == id
    assert model.certificate().pending == 0

    sets = SetClassifier(Votes())
    sets.predict_one({"a": 1}, with_set=True)
    with pytest.raises(LabelError):
        sets.learn_one({"a": 1}, ["x", "y"])
    assert sets.classifier.counts == {}
    assert sets.unjudged == 0
    sets.learn_one({"a": 1}, "x")
    assert sets.unjudged == 1


class Silent(dummy.StatisticRegressor):
    """Says nothing of Mondays."""

    def predict_one(self, x: Any) -> Any:
        return float("nan") if x["day"] == "mo" else super().predict_one(x)


def test_rows_shown_in_full_are_counted() -> None:
    model = IntervalRegressor(Silent(stats.Mean()))
    for number in range(14):
        day = {"day": "mo" if number % 7 == 0 else number}
        shown = model.predict_one(day, with_interval=True)
        assert number % 7 or shown.upper == np.inf
        model.learn_one(day, 1.0)
    assert (model.unjudged, model.certificate().risks[0].judged) == (2, 12)
    model.learn_one({"day": "mo"}, None)
    assert model.unjudged == 2
    model.learn_one({"day": "mo"}, 1.0)  # nobody asked
    assert model.unjudged == 3
    every = IntervalRegressor(linear())  # the default begins with the whole line, and judges it
    every.learn_one({"a": 1.0, "b": 0.0}, 1.0)
    assert (every.unjudged, every.certificate().risks[0].judged) == (0, 1)


# Classifiers


def test_classifiers_are_scored_by_label_and_by_probability_with_delays() -> None:
    data = [({**x, "t": n}, y) for n, (x, y) in enumerate(datasets.Phishing().take(600))]
    for metric in (metrics.Accuracy(), metrics.LogLoss()):
        plain = compose.Discard("t") | linear_model.LogisticRegression()
        model = SetClassifier(plain.clone())
        other = metric.clone()
        options: Any = {"moment": "t", "delay": 12}
        evaluate.progressive_val_score(data, model, metric, **options)
        evaluate.progressive_val_score(data, plain, other, **options)
        assert metric.get() == pytest.approx(other.get())  # the wrapper changes no prediction
        held = model.certificate()
        assert (held.pending, held.most_pending) == (0, 12)
        assert held.risks[0].within
        assert held.risks[0].mean == pytest.approx(0.1, abs=0.03)


class Votes(base.Classifier):
    """Counts of labels, not shares: River does not ask for a sum of 1."""

    def __init__(self) -> None:
        self.counts: dict[Any, float] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Any, y: Any) -> None:
        self.counts[y] = self.counts.get(y, 0.0) + 1.0

    def predict_proba_one(self, x: Any, **_: Any) -> dict[Any, float]:
        return dict(self.counts)


def test_before_the_first_label_every_label_is_in_the_set() -> None:
    model = SetClassifier(Votes())
    first = model.predict_one({"a": 1}, with_set=True)
    assert "anything" in first
    assert first.full
    model.learn_one({"a": 1}, "x")
    assert model.certificate().risks[0].judged == 0
    for label in ("x", "x", "y"):
        model.predict_one({"a": 2}, with_set=True)
        model.learn_one({"a": 2}, label)
    assert model.certificate().risks[0].judged == 3
    assert model.predict_proba_one({"a": 3}) == {"x": 3.0, "y": 1.0}
    assert model.predict_one({"a": 3}, with_set=True).labels == ("x", "y")


class Shy(Votes):
    """Has an opinion where the feature is positive."""

    def predict_proba_one(self, x: Any, **_: Any) -> dict[Any, float]:
        return dict(self.counts) if x["a"] > 0 else {}


@pytest.mark.parametrize("levels", [1, 2])
def test_a_full_set_counts_the_labels_learnt_so_far(levels: int) -> None:
    controller = nested(sp.sets.Threshold(), 0.05, (-1.0, 0.0)) if levels == 2 else None
    model = SetClassifier(Shy(), controller=controller)

    def shown(a: float) -> Any:
        found = model.peek_one({"a": a}, with_set=True)
        if levels == 1:
            return found
        assert len(found) == 2
        return found[1]

    assert shown(-1.0).full
    assert len(shown(-1.0)) == 0
    for label in ("x", "y", "z", "x"):
        model.learn_one({"a": 1}, label)
    everything = shown(-1.0)
    assert set(everything.labels) == {"x", "y", "z"}
    assert everything.full
    assert "never seen" in everything
    model.learn_one({"a": -1}, "w")
    assert model.unjudged == 2
    assert len(shown(-1.0)) == 4


def test_a_classifier_that_only_names_labels_is_taken_at_its_word() -> None:
    model = SetClassifier(dummy.NoChangeClassifier())
    assert model.predict_one({"a": 1}) is None
    labels = np.random.default_rng(0).choice(["x", "y"], p=[0.8, 0.2], size=300).tolist()
    for number, label in enumerate(labels):
        model.predict_one({"a": number}, with_set=True)
        model.learn_one({"a": number}, label)
    assert model.certificate().risks[0].within


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 0.0}, "strictly between 0 and 1, got 0.0"),
        ({"max_pending": 0}, "max_pending must be a whole number of at least 1, got 0"),
        ({"controller": "aci"}, "a stream runs a Controller, such as .*; got 'aci'"),
    ],
)
def test_what_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        IntervalRegressor(linear(), **options)
    with pytest.raises(InputError, match=message):
        SetClassifier(naive_bayes.GaussianNB(), **options)
