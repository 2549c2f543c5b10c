"""Nested families: a larger λ gives a larger set, and the critical value is where y enters it."""

from math import inf, isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import Custom, Miscoverage, MiscoverageCounter
from setpoint.sets import Scale, Widen
from tests.laws.parts import REAL, SUPPORTS, Outside, Relapse, Shortfall, Size, reaches_above
from tests.laws.parts import stretches as any_stretch

EPSILON = 2.0**-52

# Eighths, and scales that are powers of two: nothing is rounded, and ties are ties.
eighths = st.integers(-80, 80).map(lambda k: k / 8)
powers = st.sampled_from([0.0, 0.25, 1.0, 2.0, 8.0])
ends = eighths | st.sampled_from([inf, -inf])
exact_widen = st.tuples(st.sampled_from(SUPPORTS).map(Widen), st.tuples(ends, ends))
exact_scale = st.tuples(st.sampled_from(SUPPORTS).map(Scale), st.tuples(eighths, powers, powers))

floats = st.floats(-1e6, 1e6)
scales = st.just(0.0) | st.floats(1e-6, 1e6)
rough_widen = st.tuples(st.sampled_from(SUPPORTS).map(Widen), st.tuples(floats, floats))
rough_scale = st.tuples(st.sampled_from(SUPPORTS).map(Scale), st.tuples(floats, scales, scales))

lams = st.floats(allow_nan=False) | eighths


def inside(sets: Any, y: float) -> float:
    """The label, moved into the support."""
    return min(max(y, sets.support[0]), sets.support[1])


@given(exact_widen | exact_scale, eighths, eighths)
def test_y_is_in_the_set_exactly_from_its_critical_value_on(
    family: tuple[Any, Any], y: float, lam: float
) -> None:
    sets, prediction = family
    y = inside(sets, y)
    critical = sets.critical(prediction, y)
    assert sets.at(prediction, lam).contains(y) == (critical <= lam)
    if isfinite(critical):
        assert sets.at(prediction, critical).contains(y)
        assert not sets.at(prediction, critical - 0.125).contains(y)


@given(exact_widen | exact_scale | rough_widen | rough_scale, floats)
def test_infinite_lam_gives_the_full_set_and_the_empty_one(
    family: tuple[Any, Any], y: float
) -> None:
    sets, prediction = family
    assert tuple(sets.at(prediction, inf)) == sets.support
    assert sets.at(prediction, inf).contains(inside(sets, y))
    assert sets.at(prediction, -inf).empty
    assert not sets.at(prediction, -inf).contains(inside(sets, y))


@given(rough_widen | rough_scale, floats)
def test_the_critical_value_is_right_but_for_the_last_bits(
    family: tuple[Any, Any], y: float
) -> None:
    sets, prediction = family
    y = inside(sets, y)
    critical = sets.critical(prediction, y)
    if critical == inf:
        assert not sets.at(prediction, 1e300).contains(y)
    elif critical == -inf:
        assert sets.at(prediction, -1e300).contains(y)
    else:
        # The subtraction, and for Scale a product and a quotient, each to the last bit.
        size = max(map(abs, (*prediction, y)))
        unit = min((s for s in prediction[1:] if s > 0.0), default=1.0)
        slack = 8.0 * EPSILON * (size / (unit if isinstance(sets, Scale) else 1.0) + abs(critical))
        assert sets.at(prediction, critical + slack).contains(y)
        assert not sets.at(prediction, critical - slack - 5e-324).contains(y)


@given(exact_widen | exact_scale | rough_widen | rough_scale, lams, lams)
def test_a_larger_lam_gives_a_larger_set(
    family: tuple[Any, Any], first: float, second: float
) -> None:
    sets, prediction = family
    small, large = (sets.at(prediction, lam) for lam in sorted((first, second)))
    assert small.empty or large.lower <= small.lower <= small.upper <= large.upper
    assert small.length <= large.length


LOSSES = [
    Miscoverage(),
    MiscoverageCounter(),
    MiscoverageCounter(cap=2.0),
    Shortfall(),
    Outside(),
    Relapse(),
    Custom(reaches_above),
]


def cost(loss: Any, shown: Any, y: float, memory: Any) -> float:
    return loss.update(memory, shown, y)[0] if hasattr(loss, "init") else loss(shown, y)


@given(
    exact_widen | exact_scale | rough_widen | rough_scale,
    lams,
    lams,
    eighths | floats,
    st.sampled_from([0.0, 1.0]),
)
def test_a_larger_lam_never_raises_a_monotone_loss(
    family: tuple[Any, Any], first: float, second: float, y: float, before: float
) -> None:
    sets, prediction = family
    y = inside(sets, y)
    small, large = (sets.at(prediction, lam) for lam in sorted((first, second)))
    for loss in LOSSES:
        assert cost(loss, large, y, (before,)) <= cost(loss, small, y, (before,))
    growing = Size(3.0, 1.0)
    assert growing(large, y) >= growing(small, y)


@given(any_stretch(), st.floats(-800.0, 800.0), st.floats(-800.0, 800.0), st.floats(-3.0, 3.0))
def test_a_larger_theta_never_gives_a_smaller_lam(
    stretch: Any, first: float, second: float, offset: float
) -> None:
    memory = (offset,) if stretch.init() else ()
    low, high = sorted((first, second))
    found = [stretch.phi(stretch.params, memory, theta) for theta in (low, high)]
    assert -inf < found[0] <= found[1] < inf


@pytest.mark.parametrize("sets", [Widen(), Scale()])
def test_what_is_shown_decides_and_not_the_critical_value(sets: Any) -> None:
    """The ends are rounded; a label on the very end that was shown is covered."""
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(0.1), 0.1, (-5.0, 5.0))
    for shift in range(1, 200):
        stream = sp.Stream(sp.Controller(sets, risk))
        place = shift / 7.0
        shown = stream.predict((place, place) if sets == Widen(REAL) else (place, 0.3, 0.7))
        assert stream.update(shown.upper if shift % 2 else shown.lower) == 0.0
