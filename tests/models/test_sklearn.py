"""scikit-learn's own checks, and the estimators against a loop written out by hand."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import setpoint as sp
from setpoint.errors import InputError
from setpoint.models.sklearn import IntervalRegressor, SetClassifier


@parametrize_with_checks(
    [
        IntervalRegressor(Ridge()),
        IntervalRegressor(make_pipeline(StandardScaler(), SGDRegressor(random_state=0))),
        SetClassifier(GaussianNB()),
        SetClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    ]
)
def test_the_checks_of_scikit_learn_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def regression(rows: int = 600, seed: int = 0, shift: int | None = None) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3))
    y = X @ [1.0, -2.0, 0.5] + random.normal(size=rows)
    if shift is not None:
        y[shift:] = 5.0 - 2.0 * y[shift:]
    return X, y


def classes(rows: int = 900, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 2))
    y = np.array(["calm", "storm", "wind"])[
        np.digitize(X[:, 0] + random.normal(size=rows), [-0.5, 0.8])
    ]
    return X, y


def covered(shown: Any, y: Any) -> float:
    return float(np.mean((shown[:, 0] <= y) & (y <= shown[:, 1])))


def test_fit_predicts_each_row_before_it_learns_it() -> None:
    X, y = regression()
    made = IntervalRegressor(SGDRegressor(random_state=0), initial=200).fit(X, y)

    model = SGDRegressor(random_state=0).fit(X[:200], y[:200])
    stream = sp.Stream(sp.intervals(coverage=0.9))
    shown = []
    for row, label in zip(X[200:], y[200:], strict=True):
        (point,) = model.predict(row[None]).tolist()
        shown.append(tuple(stream.predict(point)))
        stream.update(label)
        model.partial_fit(row[None], [label])

    np.testing.assert_allclose(made.shown_, shown, rtol=1e-12)
    np.testing.assert_allclose(made.predict(X), model.predict(X))
    wanted = [tuple(stream.peek(point)) for point in model.predict(X[:5]).tolist()]
    np.testing.assert_allclose(made.predict_interval(X[:5]), wanted)
    assert made.stream_.theta == pytest.approx(stream.theta)


def test_partial_fit_in_pieces_is_partial_fit_at_once() -> None:
    X, y = regression()
    at_once = IntervalRegressor(SGDRegressor(random_state=0)).fit(X[:300], y[:300])
    pieces = clone(at_once).fit(X[:300], y[:300])
    at_once.partial_fit(X[300:], y[300:])
    shown = []
    for start in range(300, 600, 7):
        ahead = pieces.predict_interval(X[start : start + 1])
        pieces.partial_fit(X[start : start + 7], y[start : start + 7])
        np.testing.assert_array_equal(ahead, pieces.shown_[:1])  # what was promised is judged
        shown.append(pieces.shown_)
    np.testing.assert_array_equal(np.concatenate(shown), at_once.shown_)
    np.testing.assert_array_equal(pieces.predict_interval(X), at_once.predict_interval(X))


def test_a_chunk_is_predicted_before_any_of_its_rows_is_learnt() -> None:
    X, y = regression(300)
    made = IntervalRegressor(SGDRegressor(random_state=0), initial=100, chunk=30).fit(X, y)
    model = SGDRegressor(random_state=0).fit(X[:100], y[:100])
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for start in range(100, 300, 30):
        rows = slice(start, min(start + 30, 300))
        for point, label in zip(model.predict(X[rows]).tolist(), y[rows], strict=True):
            stream.predict(point)
            stream.update(label)
        model.partial_fit(X[rows], y[rows])
    assert made.stream_.theta == pytest.approx(stream.theta)
    np.testing.assert_allclose(made.predict(X), model.predict(X))


def test_an_estimator_without_partial_fit_is_judged_as_fitted_and_then_sees_every_row() -> None:
    X, y = regression()
    made = IntervalRegressor(Ridge(), initial=0.25).fit(X, y)
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for point, label in zip(Ridge().fit(X[:150], y[:150]).predict(X[150:]), y[150:], strict=True):
        stream.predict(point)
        stream.update(label)
    assert made.stream_.theta == pytest.approx(stream.theta)
    np.testing.assert_allclose(made.predict(X), Ridge().fit(X, y).predict(X))
    coefficients = made.estimator_.coef_.copy()
    made.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(made.estimator_.coef_, coefficients)
    assert len(made.shown_) == 50


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_refits_see_the_last_rows(kind: Any) -> None:
    X, y = regression(400)
    given = kind(X)
    made = IntervalRegressor(Ridge(), initial=100, refit=40, window=90).fit(given[:100], y[:100])
    rows = given.iloc if hasattr(given, "iloc") else given
    for start in range(100, 400, 25):
        made.partial_fit(rows[start : start + 25], y[start : start + 25])
    # Labels 101 to 400 are 300; the last of the refits after every 40 came at label 380.
    wanted = Ridge().fit(kind(X[290:380]), y[290:380])
    np.testing.assert_allclose(made.estimator_.coef_, wanted.coef_, rtol=1e-6)


def test_a_pipeline_learns_row_by_row() -> None:
    X, y = regression()
    X = 1000.0 + 50.0 * X
    made = IntervalRegressor(
        make_pipeline(StandardScaler(), SGDRegressor(random_state=0)), initial=300
    ).fit(X, y)
    scaler = StandardScaler().fit(X[:300])
    model = SGDRegressor(random_state=0).fit(scaler.transform(X[:300]), y[:300])
    for row, label in zip(X[300:], y[300:], strict=True):
        scaler.partial_fit(row[None])
        model.partial_fit(scaler.transform(row[None]), [label])
    np.testing.assert_allclose(made.predict(X), model.predict(scaler.transform(X)))
    assert covered(made.shown_, y[300:]) == pytest.approx(0.9, abs=0.03)


def test_frames_reach_pipelines_by_their_names() -> None:
    X, y = regression()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(day=np.resize(["mo", "tu"], len(y)))
    y = y + 3.0 * (frame["day"] == "mo")
    steps = make_column_transformer(
        (OneHotEncoder(), ["day"]), (StandardScaler(), ["a", "b", "c"]), remainder="drop"
    )
    made = IntervalRegressor(make_pipeline(steps, Ridge())).fit(frame, y)
    assert made.score(frame, y) > 0.8
    assert list(made.feature_names_in_) == ["a", "b", "c", "day"]
    assert made.predict_interval(frame[:4]).shape == (4, 2)
    with pytest.raises(ValueError, match="feature names"):
        made.predict(frame.rename(columns={"a": "z"}))


def test_at_the_end_of_a_pipeline_and_in_a_search_it_is_an_estimator_like_any_other() -> None:
    X, y = regression()
    pipeline = make_pipeline(StandardScaler(), IntervalRegressor(Ridge()))
    assert pipeline.fit(X, y).score(X, y) > 0.7
    assert pipeline[-1].predict_interval(pipeline[:-1].transform(X)).shape == (600, 2)
    search = GridSearchCV(IntervalRegressor(Ridge()), {"estimator__alpha": [0.1, 1e4]}, cv=3)
    assert search.fit(X, y).best_params_ == {"estimator__alpha": 0.1}
    assert cross_val_score(SetClassifier(LogisticRegression()), *classes(), cv=3).min() > 0.5


def test_a_fitted_model_can_be_kept_as_it_is() -> None:
    X, y = regression()
    fitted = Ridge().fit(X[:100], y[:100])
    made = IntervalRegressor(FrozenEstimator(fitted), initial=0).fit(X[100:], y[100:])
    np.testing.assert_array_equal(made.predict(X), fitted.predict(X))
    assert len(made.shown_) == 500
    assert covered(made.shown_, y[100:]) == pytest.approx(0.9, abs=0.02)


def test_a_controller_of_ones_own_is_used_as_it_is() -> None:
    X, y = regression()
    risk = sp.Risk(sp.losses.MiscoverageCounter(cap=8.0), 0.25, sp.steps.Fixed(0.2))
    controller = sp.Controller(sp.sets.Widen(), risk)
    made = IntervalRegressor(Ridge(), controller=controller).fit(X, y)
    assert made.stream_.controller == controller
    lengths = np.diff(made.predict_interval(X[:50]), axis=1)
    assert np.ptp(lengths) < 1e-9  # points widened by one λ
    assert lengths[0, 0] == pytest.approx(2.0 * made.stream_.lam)


def held(family: Any, *levels: float, step: float = 0.2, bounds: Any = (-9.0, 9.0)) -> Any:
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(step), bounds=bounds)
        for level in levels or (0.1,)
    ]
    return sp.Controller(family, risks)


def constant(value: float) -> Any:
    return FrozenEstimator(DummyRegressor(strategy="constant", constant=value).fit([[0.0]], [0.0]))


HANDED = [
    (sp.sets.Widen(), (1.0, 6.0)),  # of the quantiles 2 and 5 at λ = 1
    (sp.sets.Scale(), (2.0, 5.0)),  # the centre 3, 1 below and 2 above
    (sp.sets.Upper(), (-np.inf, 6.0)),
    (sp.sets.Lower(support=(-50.0, 50.0)), (1.0, 50.0)),
]


@pytest.mark.parametrize(
    ("family", "wanted", "nested"),
    [
        (sp.sets.TwoSided(), (1.0, 6.0), False),
        *((*each, nested) for each in HANDED for nested in (False, True)),
    ],
)
def test_every_family_of_intervals_is_handed_what_it_reads(
    family: Any, wanted: Any, nested: bool
) -> None:
    X, y = np.zeros((30, 1)), np.full(30, 3.0)
    several = nested or isinstance(family, sp.sets.TwoSided)
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1e-9), start=start, bounds=(-9, 9))
        for level, start in ((0.2, 1.0), (0.05, 1.0 + nested))
    ]
    controller = sp.Controller(
        sp.sets.Nested(family) if nested else family, risks if several else risks[:1]
    )
    made = IntervalRegressor(
        constant(3.0), lower=constant(2.0), upper=constant(5.0), controller=controller, initial=0
    ).fit(X, y)
    found = made.predict_interval(X[:3])
    assert found.shape == ((3, 2, 2) if nested else (3, 2))
    assert made.shown_.shape == ((30, 2, 2) if nested else (30, 2))
    for row in found:
        np.testing.assert_allclose(row[:, 0] if nested else row, wanted, atol=1e-6)
    if nested:
        inner, outer = found[0].T
        assert outer[0] < inner[0] or inner[0] == -np.inf
        assert outer[1] > inner[1] or inner[1] == 50.0
    alone = IntervalRegressor(constant(3.0), controller=controller, initial=0)
    if isinstance(family, sp.sets.Scale):  # a point alone has no scale
        with pytest.raises(InputError, match="Scale where quantiles are given"):
            alone.fit(X, y)
    else:
        assert np.isfinite(alone.fit(X, y + 1.0).predict_interval(X[:1])).any()


def test_nested_intervals_hold_their_levels() -> None:
    X, y = regression(3000)
    controller = held(sp.sets.Nested(sp.sets.Widen()), 0.3, 0.1, step=0.1, bounds=(0.0, 20.0))
    made = IntervalRegressor(SGDRegressor(random_state=0), controller=controller, chunk=10)
    made.fit(X, y)
    assert covered(made.shown_[:, :, 0], y[1500:]) == pytest.approx(0.7, abs=0.02)
    assert covered(made.shown_[:, :, 1], y[1500:]) == pytest.approx(0.9, abs=0.02)
    assert (made.shown_[:, 0, 1] <= made.shown_[:, 0, 0]).all()
    assert made.partial_fit(X[:1], y[:1]).shown_.shape == (1, 2, 2)


@pytest.mark.parametrize(
    "family",
    [
        sp.sets.QuantileScale(levels=(0.1, 0.5, 0.9)),
        sp.sets.Threshold(),
        sp.sets.Nested(sp.sets.QuantileScale(levels=(0.1, 0.5, 0.9))),
        sp.sets.ScoreWindow(sp.sets.Threshold()),
    ],
)
def test_a_family_that_cannot_read_a_point_is_refused_in_fit(family: Any) -> None:
    X, y = regression(50)
    levels = (0.2, 0.1) if isinstance(family, sp.sets.Nested) else (0.1,)
    made = IntervalRegressor(Ridge(), controller=held(family, *levels, bounds=(-1.0, 0.0)))
    with pytest.raises(InputError, match="needs a family that reads a point or two"):
        made.fit(X, y)


@pytest.mark.parametrize(
    "family",
    [sp.sets.Widen(), sp.sets.Multilabel(), sp.sets.ScoreWindow(), sp.sets.Nested()],
)
def test_a_family_without_label_sets_is_refused_in_fit(family: Any) -> None:
    levels = (0.2, 0.1) if isinstance(family, sp.sets.Nested) else (0.1,)
    made = SetClassifier(GaussianNB(), controller=held(family, *levels, bounds=(-1.0, 0.0)))
    with pytest.raises(InputError, match=r"needs a family of label sets for one label \(sets.Thr"):
        made.fit(*classes(60))


def test_rows_are_learnt_while_others_wait_for_late_labels() -> None:
    X, y = regression(200)
    made = IntervalRegressor(Ridge()).fit(X, y)
    judged = made.certificate().risks[0].judged
    made.stream_.predict(1.0, id="late-7")
    made.partial_fit(X[:3], y[:3])
    assert list(made.stream_.pending) == ["late-7"]
    made.stream_.update(1.5, id="late-7")
    assert made.certificate().risks[0].judged == judged + 4

    A, b = classes(200)
    sets = SetClassifier(GaussianNB()).fit(A, b)
    judged = sets.certificate().risks[0].judged
    sets.stream_.predict({"calm": 0.6, "wind": 0.4}, id="late-7")
    sets.partial_fit(A[:3], b[:3])
    assert list(sets.stream_.pending) == ["late-7"]
    assert sets.certificate().risks[0].judged == judged + 3


def test_a_label_that_is_refused_leaves_nothing_waiting() -> None:
    X, y = regression(200)
    controller = held(sp.sets.Widen(support=(-100.0, 100.0)))
    made = IntervalRegressor(Ridge(), controller=controller).fit(X, y)
    before = made.certificate()
    with pytest.raises(InputError, match="support"):
        made.partial_fit(X[:1], [1000.0])
    assert made.certificate() == before
    made.partial_fit(X[:1], y[:1])
    assert made.certificate().risks[0].judged == before.risks[0].judged + 1


class Silent(Ridge):
    """Says nothing of rows whose first feature is far above its mean."""

    def predict(self, X: Any) -> Any:
        return np.where(X[:, 0] > 1.5, np.nan, super().predict(X))


def test_rows_shown_in_full_are_counted() -> None:
    X, y = regression(100)
    made = IntervalRegressor(Silent(), initial=20).fit(X, y)
    silent = int(np.sum(X[20:, 0] > 1.5))
    assert made.unjudged_ == silent > 0
    assert made.certificate().risks[0].judged == 80 - silent
    assert made.fit(X, y).unjudged_ == silent  # anew
    A, b = classes(300)
    sets = SetClassifier(GaussianNB()).partial_fit(A[:1], b[:1], classes=np.unique(b))
    sets.partial_fit(A[1:], b[1:])
    assert sets.unjudged_ + sets.certificate().risks[0].judged == 299
    assert sets.unjudged_ == sets.shown_.all(axis=1)[: sets.unjudged_].sum() > 0


def test_predicting_changes_nothing() -> None:
    X, y = regression()
    made = IntervalRegressor(SGDRegressor(random_state=0)).fit(X, y)
    before = pickle.dumps(made)
    made.predict(X)
    made.predict_interval(X)
    str(made.certificate())
    assert pickle.dumps(made) == before
    A, b = classes()
    sets = SetClassifier(GaussianNB()).fit(A, b)
    before = pickle.dumps(sets)
    sets.predict_set(A)
    sets.predict_proba(A)
    assert pickle.dumps(sets) == before


def test_coverage_survives_a_change_of_the_world_and_the_certificate_says_so() -> None:
    X, y = regression(4000, shift=2500)
    made = IntervalRegressor(SGDRegressor(random_state=0), initial=500, chunk=5).fit(X, y)
    (risk,) = made.certificate().risks
    assert risk.judged == 3500
    assert risk.within
    assert risk.upper is not None
    assert risk.upper < 0.06
    assert covered(made.shown_, y[500:]) == pytest.approx(0.9, abs=0.01)


# Classifiers


def test_label_sets_are_those_of_a_stream_by_hand() -> None:
    X, y = classes()
    made = SetClassifier(LogisticRegression(), initial=300).fit(X, y)
    inner = LogisticRegression().fit(X[:300], y[:300])
    stream = sp.Stream(sp.label_sets(coverage=0.9))
    for p, label in zip(inner.predict_proba(X[300:]), y[300:], strict=True):
        stream.predict(dict(zip(inner.classes_.tolist(), p.tolist(), strict=True)))
        stream.update(str(label))
    assert made.stream_.theta == pytest.approx(stream.theta)
    held = made.shown_[y[300:, None] == made.classes_].mean()
    assert held == pytest.approx(0.9, abs=0.02)
    final = LogisticRegression().fit(X, y)
    named = [dict(zip(made.classes_.tolist(), p, strict=True)) for p in final.predict_proba(X)]
    wanted = np.array([stream.peek(row).mask for row in named])
    np.testing.assert_array_equal(made.predict_set(X), wanted)
    assert made.certificate().risks[0].within


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(loss="log_loss", random_state=0),
        GaussianNB(),
        RandomForestClassifier(20, random_state=0),
        make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
    ],
)
def test_sorted_labels_do_not_break_the_sets(estimator: Any) -> None:
    X, y = classes(400)
    order = np.argsort(y, kind="stable")
    made = SetClassifier(estimator, initial=0.1, chunk=4)
    if isinstance(estimator, RandomForestClassifier):
        made.partial_fit(X[order], y[order], classes=np.unique(y))
    else:
        made.fit(X[order], y[order])
    assert made.shown_.shape[1] == 3
    assert made.certificate().risks[0].within
    np.testing.assert_allclose(made.predict_proba(X).sum(1), 1.0)


def test_the_first_partial_fit_needs_classes_and_one_row_is_enough_later() -> None:
    X, y = classes(300)
    made = SetClassifier(GaussianNB())
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        made.partial_fit(X, y)
    made.partial_fit(X[:1], y[:1], classes=["wind", "calm", "storm"])
    for row, label in zip(X[1:], y[1:], strict=True):
        made.partial_fit(row[None], [label])
        assert made.shown_.shape == (1, 3)
    assert made.classes_.tolist() == ["calm", "storm", "wind"]
    # Until every class had two rows, naive Bayes had no opinion: those rows were not judged.
    assert 250 < made.certificate().risks[0].judged < 299
    with pytest.raises(InputError, match=r"y must hold the classes .* got \['fog'\]"):
        made.partial_fit(X[:1], ["fog"])
    with pytest.raises(InputError, match="classes must be those of the first call"):
        made.partial_fit(X[:1], y[:1], classes=["calm", "wind"])


@pytest.mark.parametrize("labels", [[0, 1, 2], [1.0, 2.0, 5.0], [True, False, True]])
def test_labels_of_every_type_are_held(labels: list[Any]) -> None:
    X, y = classes()
    y = np.array(labels)[np.searchsorted(["calm", "storm", "wind"], y)]
    made = SetClassifier(
        LogisticRegression(),
        controller=sp.Controller(
            sp.sets.Cumulative(), sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.05))
        ),
    ).fit(X, y)
    rows = len(made.shown_)
    held = made.shown_[y[-rows:, None] == made.classes_].mean()
    assert held == pytest.approx(0.8, abs=0.02)
    assert made.certificate().risks[0].mean == pytest.approx(1.0 - held)


def test_each_row_of_a_question_has_its_own_chance_and_keeps_it() -> None:
    X, y = classes()
    family = sp.sets.Cumulative(randomised=True, seed=3)
    made = SetClassifier(GaussianNB(), controller=held(family, 0.2, step=0.05, bounds=(-1.0, 0.0)))
    made.fit(X, y)
    same = np.repeat(X[:1], 500, axis=0)
    found = made.predict_set(same)
    (p,) = made.predict_proba(X[:1])
    order = np.argsort(-p)
    before = np.empty(3)
    before[order] = np.cumsum(p[order]) - p[order]
    # A class is in if the mass before it and its chance of its own mass are at most 1 + λ.
    wanted = np.clip((1.0 + made.stream_.lam - before) / p, 0.0, 1.0)
    np.testing.assert_allclose(found.mean(axis=0), wanted, atol=0.07)
    assert len(np.unique(found, axis=0)) > 1
    np.testing.assert_array_equal(made.predict_set(same), found)
    np.testing.assert_array_equal(made.predict_set(same[:9]), found[:9])
    ahead = made.predict_set(X[5:6])
    np.testing.assert_array_equal(made.partial_fit(X[5:6], y[5:6]).shown_, ahead)


def test_nested_label_sets_lie_within_each_other() -> None:
    X, y = classes(1500)
    controller = held(sp.sets.Nested(sp.sets.Threshold()), 0.3, 0.1, step=0.05, bounds=(-1.0, 0.0))
    made = SetClassifier(LogisticRegression(), controller=controller, initial=500).fit(X, y)
    assert made.shown_.shape == (1000, 3, 2)
    truth = y[500:, None] == made.classes_
    assert made.shown_[:, :, 0][truth].mean() == pytest.approx(0.7, abs=0.03)
    assert made.shown_[:, :, 1][truth].mean() == pytest.approx(0.9, abs=0.03)
    found = made.predict_set(X[:50])
    assert found.shape == (50, 3, 2)
    assert (found[:, :, 0] <= found[:, :, 1]).all()


# Errors


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (IntervalRegressor(Ridge(), initial=0), "initial=0 needs estimators with partial_fit"),
        (IntervalRegressor(Ridge(), initial=1.5), "a share from 0 to 1, or whole, got 1.5"),
        (IntervalRegressor(Ridge(), initial="half"), "initial must be a share .* got 'half'"),
        (IntervalRegressor(Ridge(), coverage=90), "strictly between 0 and 1, got 90"),
        (IntervalRegressor(Ridge(), lower=Ridge()), "lower and upper must be given together"),
        (IntervalRegressor(Ridge(), chunk=0), "chunk must be a whole number of at least 1"),
        (IntervalRegressor(Ridge(), refit=5), "refit needs window"),
        (SetClassifier(LinearSVC()), "needs an estimator with predict_proba"),
    ],
)
def test_what_cannot_be_is_refused_in_fit(estimator: Any, message: str) -> None:
    X, y = regression(50)
    with pytest.raises(InputError, match=message):
        estimator.fit(X, y > 0)


def test_nothing_is_predicted_before_fit() -> None:
    for method in ("predict", "predict_interval"):
        with pytest.raises(NotFittedError):
            getattr(IntervalRegressor(Ridge()), method)([[1.0]])
    with pytest.raises(NotFittedError):
        SetClassifier(GaussianNB()).predict_set([[1.0]])
    with pytest.raises(NotFittedError):
        IntervalRegressor(Ridge()).certificate()
