"""The safeguard: θ is never clipped, because a clipped θ forgets, and the bound is lost."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import Miscoverage
from setpoint.steps import Fixed

HIGH = 1.0


def clipped(gamma: float, level: float, steps: int, *, full: bool) -> float:
    """Σ(l − r) of a loop with θ clipped to at most M, against an adversary that misses at will.

    With `full` it shows the full set at M, without it leaves even that to the set at M.
    """
    theta, total = 0.0, 0.0
    for _ in range(steps):
        loss = 0.0 if full and theta >= HIGH else 1.0
        total += loss - level
        theta = min(theta + gamma * (loss - level), HIGH)
    return total


def held(gamma: float, level: float, steps: int) -> tuple[float, float]:
    """Σ(l − r) of the library against the same adversary, and its bound."""
    risk = sp.Risk(Miscoverage(), level, Fixed(gamma), 0.0, (-HIGH, HIGH))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    total = 0.0
    for _ in range(steps):
        stream.predict((0.0, 0.0))
        total += stream.update(1e300) - level
    return total, stream.certificate().risks[0].constant_upper


@pytest.mark.parametrize("full", [True, False])
@given(gamma=st.floats(0.05, 2.0), level=st.floats(0.05, 0.4))
def test_a_clipped_theta_breaks_the_bound_that_the_library_keeps(
    full: bool, gamma: float, level: float
) -> None:
    constant = (HIGH + gamma * (1.0 - level)) / gamma
    # Half of the steps are missed once θ has come to M, whatever the level.
    steps = int(4.0 * (constant + 1.0) / (0.5 - level))
    total, bound = held(gamma, level, steps)
    assert bound == pytest.approx(constant)
    assert total <= constant + 1e-9
    assert clipped(gamma, level, steps, full=full) > constant + 1.0


@given(gamma=st.floats(0.05, 2.0), level=st.floats(0.0, 0.9))
def test_theta_goes_beyond_its_bound_by_what_the_last_loss_adds(gamma: float, level: float) -> None:
    risk = sp.Risk(Miscoverage(), level, Fixed(gamma), HIGH, (-HIGH, HIGH))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    stream.predict((0.0, 0.0))
    stream.update(1e300)
    assert stream.theta == HIGH + gamma * (1.0 - level)
    assert stream.lam == inf


@given(
    st.sampled_from([sp.sets.Widen(), sp.sets.Scale(), sp.sets.Widen((0.0, inf))]),
    st.floats(-4.0, 4.0),
)
def test_beyond_its_bounds_theta_shows_the_full_set_or_the_empty_one_and_within_them_neither(
    sets: object, start: float
) -> None:
    """A start is refused outside the bounds; a change of bounds leaves θ where it is."""
    risk = sp.Risk(Miscoverage(), 0.1, Fixed(0.1), start, (-5.0, 5.0))
    stream = sp.Stream(sp.Controller(sets, risk))
    stream.change(bounds=(-1.0, 2.0))
    assert stream.theta == start
    assert (stream.lam == inf) == (start > 2.0)
    assert (stream.lam == -inf) == (start < -1.0)
    shown = stream.predict((1.0, 2.0) if isinstance(sets, sp.sets.Widen) else (1.0, 0.0, 0.0))
    if start > 2.0:
        assert tuple(shown) == sets.support
    if start < -1.0:
        assert shown.empty


@pytest.mark.parametrize(("gamma", "size"), [(1e-8, 1e9), (1e-300, 1.0), (0.05, 1e18)])
def test_a_step_too_small_to_move_theta_is_refused_or_promises_nothing(
    gamma: float, size: float
) -> None:
    """At M the next float may be further away than γ(l − r): θ then stays, whatever is missed."""
    risk = sp.Risk(Miscoverage(), 0.1, Fixed(gamma), size, (-size, size))
    try:
        stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    except InputError:
        return
    for _ in range(50):
        stream.predict((0.0, 0.0))
        stream.update(1e300)
    (claim,) = stream.certificate().risks
    assert claim.upper is None or claim.mean - claim.level <= claim.upper + 1e-9
