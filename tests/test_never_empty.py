"""Label sets that always hold the likeliest class: live, replayed, windowed; what is guaranteed."""

from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.testing import check

INF = float("inf")
FAMILIES: dict[str, Any] = {
    "threshold": sp.sets.Threshold(classes=("a", "b", "c")),
    "cumulative": sp.sets.Cumulative(classes=("a", "b", "c")),
    "randomised": sp.sets.Cumulative(classes=("a", "b", "c"), randomised=True),
    "penalised": sp.sets.Cumulative(classes=("a", "b", "c"), penalty=0.1),
    "window": sp.sets.ScoreWindow(sp.sets.Threshold(classes=("a", "b", "c"))),
}


def world(rows: int = 600) -> tuple[np.ndarray, list[str]]:
    """Probabilities of a classifier that is right 97 times in 100, more than is asked."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], rows)
    right = p.argmax(axis=1)
    places = np.where(rng.random(rows) < 0.97, right, (right + 1) % 3)
    return p, [("a", "b", "c")[place] for place in places.tolist()]


@pytest.mark.parametrize("name", FAMILIES)
def test_no_set_is_empty_and_the_likeliest_class_is_in_every_one(name: str) -> None:
    p, labels = world()
    plain = sp.Stream(sp.label_sets(0.7, sets=FAMILIES[name]))
    kept = sp.Stream(sp.label_sets(0.7, sets=FAMILIES[name], never_empty=True))
    sizes = []
    for row, y in zip(p, labels, strict=True):
        sizes.append(plain.predict(row).size)
        shown = kept.predict(row)
        if name != "threshold":  # there it is the likeliest once the probabilities are corrected
            assert ("a", "b", "c")[int(row.argmax())] in shown
        assert not shown.empty
        assert shown.size > 0
        plain.update(y)
        kept.update(y)
    assert min(sizes) == 0  # without the option some are
    assert kept.certificate().risks[0].within
    assert kept.coverage is not None
    assert kept.coverage >= 0.9  # about what the likeliest class alone covers


@pytest.mark.parametrize("name", ["threshold", "cumulative", "window"])
def test_a_replay_shows_the_same(name: str) -> None:
    p, labels = world(200)
    places = [("a", "b", "c").index(label) for label in labels]
    controller = sp.label_sets(0.7, sets=FAMILIES[name], never_empty=True)
    columns = dict(zip(("a", "b", "c"), p.T, strict=True))
    trace = sp.replay(controller, sp.Tape.from_arrays(columns, np.array(places, float)))
    stream = sp.Stream(controller)
    for row, y, shown in zip(p, labels, trace.shown or (), strict=True):
        assert stream.predict(row) == shown
        stream.update(y)
    assert trace.summary().empty == 0.0
    assert sp.spec.from_toml(sp.spec.to_toml(controller)) == controller


@pytest.mark.parametrize("name", ["threshold", "cumulative"])
def test_more_labels_never_make_more_misses(name: str) -> None:
    family = FAMILIES[name]
    kept = sp.label_sets(sets=family, never_empty=True).sets
    p, labels = world(100)
    for row, y in zip(p, labels, strict=True):
        for lam in (-INF, -1.0, -0.9, -0.5, -0.1, 0.0, INF):
            small, large = family.at(family.read(row), lam), kept.at(kept.read(row), lam)
            assert set(small.labels) <= set(large.labels)
            assert (y in small) <= (y in large)
            assert (y in large) == (kept.critical(kept.read(row), y) <= max(lam, -1.0))


def test_the_certificate_says_that_the_risk_may_stay_below() -> None:
    p, labels = world()
    risk = sp.Risk(sp.losses.Miscoverage(), 0.3, sp.steps.Fixed(0.05))
    family = sp.sets.Threshold(classes=("a", "b", "c"), never_empty=True)
    for sets, sides in (
        (family, "guaranteed: not too many misses"),
        (FAMILIES["threshold"], "guaranteed on both sides"),
    ):
        stream = sp.Stream(sp.Controller(sets, risk))
        for row, y in zip(p, labels, strict=True):
            stream.predict(row)
            stream.update(y)
        (certified,) = stream.certificate().risks
        assert str(certified.status) == sides
        assert certified.within
    assert "the likeliest label is always in" not in str(stream.certificate())


def test_an_own_loss_is_not_asked_to_be_large_on_a_set_that_is_not_empty() -> None:
    class Own:
        low, high, full, empty, monotone, grows = 0.0, 1.0, 0.0, 1.0, True, False

        def __call__(self, shown: Any, y: Any) -> float:
            return 0.0 if y in shown else 1.0

    risk = sp.Risk(Own(), 0.3, sp.steps.Fixed(0.5))  # type: ignore[arg-type]
    stream = sp.Stream(sp.Controller(sp.sets.Threshold(never_empty=True), risk))
    for _ in range(50):
        stream.predict([0.8, 0.2])
        assert stream.update(0) == 0.0
    assert stream.lam == -INF


@pytest.mark.parametrize("name", ["threshold", "cumulative", "penalised"])
def test_such_a_family_keeps_the_other_promises(name: str) -> None:
    kept = sp.label_sets(sets=FAMILIES[name], never_empty=True).sets
    check(kept, [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], ["a", "b", "c"])


def test_only_label_families_have_a_likeliest_class() -> None:
    with pytest.raises(InputError, match="never_empty is for families of labels"):
        sp.label_sets(sets=sp.sets.Widen(), never_empty=True)
    with pytest.raises(InputError, match="never_empty must be True or False, got 1"):
        sp.sets.Threshold(never_empty=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("cap", [3.0, None])
def test_a_streak_of_misses_has_no_limit_of_its_own_where_no_set_is_empty(
    cap: float | None,
) -> None:
    risk = sp.Risk(sp.losses.MiscoverageCounter(cap), 0.3, sp.steps.Fixed(3.0))
    stream = sp.Stream(sp.Controller(sp.sets.Threshold(never_empty=True), risk))
    for right in [True] * 40 + [False] * 12:  # θ falls without end, and then the model dies
        stream.predict([1.0, 0.0, 0.0])
        stream.update(0 if right else 2)
        (held,) = stream.certificate().risks
        excess = (held.mean - 0.3) * held.judged
        assert held.constant_upper is None if cap is None else held.constant_upper >= excess - 1e-9
    assert held.constant_upper == (None if cap is None else pytest.approx(2.8, abs=0.2))
