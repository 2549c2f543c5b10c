"""The correction of label sets: against a loop in plain Python, in every mode, and its size."""

from array import array
from math import exp, inf, log
from pathlib import Path
from sys import getsizeof
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.correction import Labels
from setpoint.correction import classes as plain
from setpoint.correction import labels as rules
from setpoint.correction.classes import Classes
from setpoint.correction.labels import rank, remember
from setpoint.errors import InputError, LabelError, PredictionError, StateError
from setpoint.losses import FalseNegatives, Miscoverage
from setpoint.sets import Cumulative, Multilabel, Threshold
from setpoint.steps import Account, Fixed
from tests.laws.bulk import assert_same_state

NAMES = ("cat", "dog", "owl", "fox", "bee")


def world(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are too sure, of a world whose frequent classes change."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, 1.5, (rows, classes))
    drift = np.sin(np.arange(rows)[:, None] / 60 + np.arange(classes))
    truth, sure = np.exp(scores + drift), np.exp(2.0 * scores)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=classes - 1)
    return sure / sure.sum(axis=1, keepdims=True), y


# The rule, written a second time.


def quantile(window: list[float], a: float) -> float:
    """What a of n + 1 values lie above: linear between ranks, an exponential tail beyond them."""
    n = len(window)
    if a >= 1.0:
        place = min(max(n - a, 0.0), n - 1.0)
        low = int(place)
        high = min(low + 1, n - 1)
        return window[low] + (place - low) * (window[high] - window[low])
    if n == 1:
        return window[0] - log(a)
    tail = min(n - 1, n // 10 + 3)
    excess = sum(window[n - tail :]) / tail - window[n - 1 - tail]
    return window[-1] - max(excess, 1e-3) * log(a)


def by_hand(
    p: np.ndarray, y: np.ndarray, delay: int, size: int, level: float = 0.1
) -> list[set[int]]:
    """The sets of `sp.label_sets`: experts, offsets, lead, a quantile for the account's λ."""
    k = p.shape[1]
    step: Any = Account(10.0, 0.4, share=2.0, ease=5.0, ahead=2.0, wall=2)
    params = (*step.params, 1.0 - level, level / 2.0)
    prior = [1.0 / 2.6, 1.0 / 2.6, 0.5 / 2.6, 0.1 / 2.6]
    w, beta, curve, bias, offset = list(prior), 1.0, 5.0, [0.0] * k, [0.0] * k
    often, past, book, account = [1.0 / k] * k, list[float](), step.init(), 0.0
    mean, last, lead, spread, labels = 0.0, 0.0, 0.0, 1.0, 0
    held, shown = list[Any](), list[set[int]]()
    for t in range(len(y)):
        logs = [log(max(each, 1e-12)) for each in p[t]]
        top = max(beta * each + b for each, b in zip(logs, bias, strict=True))
        guess = [exp(beta * each + b - top) for each, b in zip(logs, bias, strict=True)]
        total = sum(guess)
        guess = [each / total for each in guess]
        experts = [max(float(each), 1e-12) for each in p[t]], guess, list(often), [1.0 / k] * k
        scores = [
            -log(max(sum(w[j] * experts[j][c] for j in range(4)), 1e-12)) - offset[c]
            for c in range(k)
        ]
        kick = last - mean
        book, lam, habit = step.ask(params, account, book)
        window = sorted(past[-size:])
        full = lam == inf
        if full or not window:
            inside, missed = set(range(k)), set[int]()
        else:
            asked = level * (len(window) + 1)
            ends = [quantile(window, asked * exp(-each)) for each in (lam, 0.0)]
            inside = {c for c in range(k) if scores[c] - lead * kick <= ends[0]}
            missed = {c for c in range(k) if scores[c] - lead * kick > ends[1]}
        if exp(-lam) * level * (len(window) + 1) > len(window):  # below every score: empty
            inside = set(range(k)) if not window else set()
        shown.append(inside)
        book = step.opened(book, full)
        held.append((logs, experts, scores, kick, lead, habit, inside, missed, full))
        if t < delay:
            continue
        logs, experts, scores, kick, led, habit, inside, missed, full = held[t - delay]
        c = int(y[t - delay])
        excess = (0.0 if c in inside else 1.0) - level
        account = max(account + excess, step.least(params, habit))
        book = step.settled(book, excess, full, habit)
        moved = offset[c] + 0.15 / (1.0 + habit / 20.0) * ((1.0 if c in missed else 0.0) - level)
        offset[c] = min(max(moved, -3.0), 3.0)
        power = 1.0 / (1.0 + habit / 30.0)
        w = [each * max(experts[j][c], 1e-12) ** power for j, each in enumerate(w)]
        w = [0.99 * each / sum(w) + 0.01 * prior[j] for j, each in enumerate(w)]
        rate = max(0.1 / (1.0 + habit / 3.0), 1.0 / (labels + 10.0))
        guess = experts[1]
        centre = sum(g * each for g, each in zip(guess, logs, strict=True))
        square = sum(g * each * each for g, each in zip(guess, logs, strict=True))
        curve += 0.2 * rate * (square - centre * centre - curve)
        move = 0.2 * rate * (logs[c] - centre) / (curve + 0.1)
        beta = min(max(beta + min(max(move, -0.1), 0.1), 0.05), 4.0)
        bias = [b * (1.0 - 0.02 * rate) - rate * g for b, g in zip(bias, guess, strict=True)]
        bias[c] += rate
        recent = 0.05 / (1.0 + habit)
        often = [each + recent * (0.1 / k - each) for each in often]
        often[c] += recent * 0.9
        score = scores[c]
        past.append(score - led * kick)
        rate, mean = max(0.02, 1.0 / (labels + 2.0)), score if labels == 0 else mean
        spread += rate * (kick * kick - spread)
        lead += 0.5 * rate * (score - mean - led * kick) * kick / (spread + 0.1)
        lead = min(max(lead, -1.0), 1.0)
        mean, last, labels = mean + rate * (score - mean), score, labels + 1
    return shown


@pytest.mark.parametrize("delay", [0, 1, 12])
@pytest.mark.parametrize("classes", [2, 6])
def test_sets_are_those_of_the_rule_written_by_hand(classes: int, delay: int) -> None:
    p, y = world(900, classes, seed=classes)
    names = [f"p{place}" for place in range(classes)]
    tape = sp.Tape.from_arrays(p, y.astype(float), names=names, delay=delay)
    trace = sp.replay(sp.label_sets(0.9), tape)
    wanted = by_hand(p, y, delay, 500)
    assert [set(shown) for shown in trace.shown or ()] == wanted
    assert {len(shown) for shown in wanted} >= set(range(1, min(classes, 4)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-40, 40).map(lambda k: k / 8), min_size=1, max_size=60),
    st.integers(-24, 40).map(lambda k: k / 8),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_a_score_is_in_from_the_quantile_on_that_its_rank_asks_for(
    past: list[float], lam: float, level: float
) -> None:
    size, n = 80, len(past)
    table = [0.0] * (2 * size)
    for count, score in enumerate(past):
        remember(table, size, count, score)
    window, scores = np.array(table[size : size + n]), np.arange(-60, 61) / 8.0
    assert window.tolist() == sorted(past)
    tail = min(n - 1, n // 10 + 3)
    excess = sum(window[n - tail :]) / tail - window[n - 1 - tail] if n > 1 else 1.0
    enters = [rank(table, size, n, level, max(excess, 1e-3), score) for score in scores.tolist()]
    enters = np.array(enters)
    assert (np.diff(enters) >= 0.0).all()
    a = level * (len(past) + 1) * exp(-lam)
    if a <= len(past):
        end = quantile(window.tolist(), a)
        sure = np.abs(scores - end) > 1e-9
        assert ((enters <= lam) == (scores <= end))[sure].all()
    else:
        assert (enters > lam).all()


# Every mode.


def rows_of(kind: str, rows: int = 160) -> list[tuple[Any, Any]]:
    """Predictions and labels: arrays, names that come and go, labels never named, several."""
    p, y = world(rows, 5, seed=3)
    rng = np.random.default_rng(1)
    pairs: list[tuple[Any, Any]] = []
    for t in range(rows):
        if kind == "array":
            pairs.append((p[t], int(y[t])))
        elif kind == "names":
            known = min(2 + t // 30, 5)  # the model learns classes one by one
            order = rng.permutation(known).tolist()
            share = p[t, :known] / p[t, :known].sum()
            pairs.append(({NAMES[place]: float(share[place]) for place in order}, NAMES[y[t]]))
        else:
            true = rng.random(5) < p[t]
            pairs.append((p[t], true if t % 3 else {NAMES[k] for k in np.flatnonzero(true)}))
    return pairs


def controller_of(kind: str) -> sp.Controller:
    if kind == "several":
        return sp.label_sets(
            sets=Multilabel(classes=NAMES), risk=sp.Risk(FalseNegatives(), 0.2), limit=3.0
        )
    return sp.label_sets(0.8, limit=4.0)


KINDS = ("array", "names", "several")


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("classes", [1, 2, plain.FEW - 1, plain.FEW, 70])
def test_rows_of_classes_are_the_rule_one_after_the_other_to_the_bit(
    classes: int, several: bool
) -> None:
    part, rows = Labels(size=40, several=several), 200
    p, y = world(rows, classes, seed=classes)
    p[::9] = np.where(p[::9] > 0.2, p[::9], 0.0)  # exact zeros, and one class that is certain
    p[::17] = np.eye(classes)[y[::17]]
    params, waiting = part.params, 0.0
    mine, theirs = part.kept(), [0.0] * part.sizes(classes)[0]
    memory = after = part.init()
    mine.numbers = array("d", theirs)
    for t in range(rows):
        waiting = float(t % 5)
        memory, made = mine.predict(params, memory, None, p[t], waiting)
        base = [0.0] * part.sizes(classes)[1]
        after = rules.predict(params, after, theirs, (), p[t].tolist(), waiting, base)
        assert made.tolist() == base
        assert memory == after
        place = -1 if t % 13 == 0 else int(y[t])
        memory = mine.learn(params, memory, None, made, place)
        after = rules.learn(params, after, theirs, (), base, float(place))
        assert mine.numbers.tolist() == theirs
        assert memory == after


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [0, 7])
def test_saved_copied_and_stored_streams_go_on_to_the_bit(
    kind: str, late: int, tmp_path: Path
) -> None:
    controller, pairs = controller_of(kind), rows_of(kind)
    plain, saved = sp.Stream(controller), sp.Stream(controller)
    store = sp.Store(tmp_path / "labels.sqlite", controller)
    for t, (prediction, _) in enumerate(pairs):
        if t % 23 == 11:
            saved.save(tmp_path / "labels.zip")
            saved = sp.Stream.load(tmp_path / "labels.zip")
        if t % 40 == 20:
            kept = saved.content()
            saved.predict(prediction, "gone")
            saved.restore(kept)
        if t % 23 == 17:
            store.close()
            store = sp.Store(tmp_path / "labels.sqlite")
        shown = store.stream("labels").predict(prediction, t)
        assert plain.predict(prediction, t) == saved.predict(prediction, t) == shown
        if t >= late:
            prediction, y = pairs[t - late]
            if isinstance(prediction, dict) and y not in prediction:
                with pytest.raises(LabelError, match="must be one of the classes"):
                    store.stream("labels").update(y, t - late)
                y = next(iter(prediction))  # a store takes no class that nobody named
            loss = store.stream("labels").update(y, t - late)
            assert plain.update(y, t - late) == saved.update(y, t - late) == loss
    store.close()
    assert_same_state(saved.state, plain.state, exact=True)
    assert plain.certificate().risks[0].within


FAMILIES = (
    sp.label_sets(0.8, limit=4.0), sp.label_sets(sets=Threshold(classes=NAMES), never_empty=True),
    sp.label_sets(sets=Cumulative()),
    sp.Controller(Cumulative(penalty=0.05, classes=5), sp.Risk(Miscoverage(), 0.2, Fixed(0.1))),
    sp.label_sets(sets=Multilabel(classes=NAMES), risk=sp.Risk(FalseNegatives(), 0.2), limit=3.0),
    sp.label_sets(sets=Multilabel(), risk=sp.Risk(Miscoverage(), 0.2)),
    sp.label_sets(
        sets=Multilabel(), risk=[sp.Risk(FalseNegatives(), 0.1), sp.Risk(Miscoverage(), 0.3)]
    ),
)  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(FAMILIES), st.sampled_from(["0", "1"]), st.integers(0, 3), st.integers(0, 99)
)
def test_fleets_and_tapes_of_label_sets_are_live_streams_to_the_bit(
    controller: sp.Controller, plain: str, late: int, seed: int
) -> None:
    steps, names = 60, controller.sets.classes
    worlds = [world(steps, 5, seed + place) for place in range(3)]
    p, y = (np.stack(column, axis=1) for column in zip(*worlds, strict=True))
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(y.shape) < 0.1, np.nan, y)
    told: Any = [[None if k != k else names[int(k)] if isinstance(names, tuple) else int(k)
                  for k in row] for row in y.tolist()]  # fmt: skip
    if isinstance(controller.sets, Multilabel):
        y = np.where(np.isnan(y)[..., None], np.nan, rng.random(p.shape) < p)
        told = [[None if np.isnan(row).any() else row for row in rows] for rows in y]
    live = [sp.Stream(controller, missing="skip") for _ in range(3)]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SETPOINT_PLAIN", plain)
        fleet, run = sp.Fleet(controller, 3), sp.Fleet(controller, 3)
        sets = run.run(p, y, delay=late)
        days = np.repeat(np.arange(3), steps)
        flat = p.swapaxes(0, 1).reshape(-1, 5)
        labels = y.swapaxes(0, 1).reshape(-1, *y.shape[2:])
        tape = sp.Tape.from_arrays(
            dict(zip("abcde", flat.T, strict=True)), labels, series=days, delay=late
        )
        trace = sp.replay(controller, tape)
        for t in range(steps + late):
            if t < steps:
                shown = fleet.predict(p[t], batch=t)
                for place, stream in enumerate(live):
                    one = stream.predict(p[t, place], t)
                    assert one == shown[place] == sets[t][place]
                    assert one == (trace.shown or ())[place * steps + t]
                    assert one.mask.tolist() == sets.mask[t, place].tolist()
            if t >= late:
                fleet.update(y[t - late], batch=t - late)
                for place, stream in enumerate(live):
                    stream.update(told[t - late][place], t - late)
    for place, stream in enumerate(live):
        for state in (fleet.state(place), run.state(place), trace.states[place]):
            assert_same_state(state, stream.state, exact=True)
    grown = sp.Fleet(controller, 0)
    grown.add(range(3), [stream.state for stream in live])
    grown.add(["new"])
    assert list(grown.predict(p[0, [0, 1, 2, 0]]))[:3] == [
        s.predict(r) for s, r in zip(live, p[0], strict=False)
    ]


def test_a_fleet_of_label_sets_is_saved_and_refuses_what_is_no_class(tmp_path: Path) -> None:
    fleet, (p, y) = sp.Fleet(sp.label_sets(), ["a", "b"]), world(30, 4)
    for t in range(30):
        shown = fleet.predict(np.array([p[t], p[t - 1]]))
        assert shown.classes == (0, 1, 2, 3)
        assert shown.sizes.tolist() == [len(one) for one in shown]
        if t == 20:
            fleet.save(tmp_path / "fleet.zip")
            fleet = sp.Fleet.load(tmp_path / "fleet.zip")
        fleet.update([y[t], y[t - 1]])
    frame = {k: np.full(2, 0.25) for k in range(4)}
    assert fleet.peek(frame, ["a", "b"]) == fleet.peek(np.full((2, 4), 0.25), ["a", "b"])
    for wrong, message in (
        (np.full((2, 5), 0.2), "has predictions of 4 classes, got 5"),
        (np.full((2, 4), 0.3), "stream 'a': the probabilities of the classes must sum to 1"),
        (np.full(4, 0.25), r"must be an array of shape \(2, classes\)"),
    ):
        with pytest.raises(PredictionError, match=message):
            fleet.predict(wrong)
    fleet.predict(np.full((2, 4), 0.25))
    with pytest.raises(LabelError, match="stream 'b': on a tape a label must be the number"):
        fleet.update([0.0, 1.5])
    stranger = sp.Stream(sp.label_sets())
    stranger.predict({"cat": 0.5, "dog": 0.5})
    stranger.update("cat")
    with pytest.raises(InputError, match=r"name them in sets\.Threshold"):
        fleet.add(["c"], [stranger.state])


def test_the_order_of_names_changes_nothing() -> None:
    p, y = world(200, 4)
    straight, turned = sp.Stream(sp.label_sets()), sp.Stream(sp.label_sets())
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        named = dict(zip("abcd", row, strict=True))
        first = straight.predict(named)
        second = turned.predict(dict(reversed(named.items())))
        assert set(first) == set(second)
        straight.update("abcd"[label])
        turned.update("abcd"[label])


def test_what_fails_changes_nothing_and_a_reset_forgets() -> None:
    stream = sp.Stream(sp.label_sets(0.9))
    p, y = world(60, 3)
    for row, label in zip(p, y.tolist(), strict=True):
        stream.predict(row)
        stream.update(label)
    stream.predict(p[0])
    before = stream.state
    with pytest.raises(sp.errors.LabelError):
        stream.update("cat")
    with pytest.raises(sp.errors.PredictionError):
        stream.predict([0.5, 0.1], "bad")
    assert_same_state(stream.state, before, exact=True)
    stream.update(0)
    stream.reset()
    assert stream.state.table == Labels().kept()
    assert stream.predict(p[0]).full


# What it needs, and what it refuses.


def test_a_thousand_classes_are_remembered_in_33_kilobytes() -> None:
    stream = sp.Stream(sp.label_sets())
    p, y = world(20, 1000)
    for row, label in zip(p, y.tolist(), strict=True):
        stream.predict(row)
        stream.update(label)
    state = stream.state
    assert getsizeof(state.table.numbers) + 32 * len(state.memory) < 33_000
    assert len(state.table) == 1000


def test_the_form_follows_from_the_family_and_the_risk() -> None:
    missed = sp.Risk(FalseNegatives(), 0.2)
    assert sp.label_sets(0.8).correction == Labels(0.2)
    assert sp.label_sets(risk=missed).correction == Labels(0.2, several=True)
    assert sp.label_sets(risk=missed).sets == Multilabel()
    for other in (Cumulative(), sp.sets.ScoreWindow(Threshold()), sp.sets.Widen()):
        controller = sp.label_sets(sets=other)
        assert (controller.correction, controller.stretch) == (None, sp.stretches.Tracking())
    with pytest.raises(InputError, match=r"goes with sets\.Multilabel, got Threshold"):
        sp.Controller(Threshold(), missed, correction=Labels(several=True))
    with pytest.raises(InputError, match=r"Labels\.level must lie between 0 and 1, got 2"):
        Labels(2.0)
    toml = sp.spec.to_toml(sp.label_sets(0.8))
    assert sp.spec.from_toml(toml) == sp.label_sets(0.8)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numbers", np.zeros(999)),
        ("numbers", np.full(1003, np.nan)),
        ("names", ["a", "a"]),
        ("numbers", np.arange(1003.0)),
    ],
)
def test_a_damaged_table_is_refused(name: str, value: Any) -> None:
    content = Labels().kept().content() | {name: value}
    with pytest.raises(StateError):
        Classes.restored(content, 500)
