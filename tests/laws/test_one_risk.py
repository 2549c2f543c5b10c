"""One risk, a fixed step: no adversary leaves the range of θ or a bound, at any time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import Miscoverage, declaration
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import play
from tests.laws.ledger import Ledger
from tests.laws.parts import (
    anywhere,
    bounded_losses,
    families,
    of_shares,
    risks,
    single,
    stretches,
)


def hold_the_theorem(controller: sp.Controller, adversary: tuple[str, int], steps: int) -> None:
    ledger = play(controller, adversary, steps, Ledger.hold_one)
    (risk,) = ledger.stream.certificate().risks
    (low, high), gamma = ledger.reach(0), controller.risks[0].step.gamma
    below, above = (low - ledger.begin[0]) / gamma, (high - ledger.begin[0]) / gamma
    if declaration(controller.risks[0].loss).grows:
        below, above = -above, -below
    assert risk.constant_lower == pytest.approx(below, rel=1e-12)
    assert risk.constant_upper == pytest.approx(above, rel=1e-12)
    assert risk.window == pytest.approx((high - low) / gamma, rel=1e-12)
    assert risk.window_sided == "both"
    assert all(premise.holds for premise in risk.premises)


@given(single(), adversaries(), st.integers(1, 120))
def test_theta_the_mean_and_every_window_stay_within_their_bounds(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, steps)


@settings(max_examples=150)
@given(of_shares(), adversaries(), st.integers(1, 60))
def test_no_adversary_breaks_the_guarantee_of_labels_quantiles_and_windows(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, steps)


@pytest.mark.slow
@given(single(), adversaries(), st.integers(100, 1000))
def test_theta_the_mean_and_every_window_stay_within_their_bounds_for_long(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, steps)


@st.composite
def lopsided(draw: Any) -> sp.Controller:
    """A controller whose level may lie beyond what its loss promises at an end of the family."""
    sets = draw(families())
    loss = draw(bounded_losses(sets.support, may_grow=True))
    return sp.Controller(sets, draw(risks(loss, level=draw(anywhere(loss)))), draw(stretches()))


@given(lopsided(), adversaries(), st.integers(1, 120))
def test_only_the_side_whose_premise_holds_is_claimed_and_it_is_true(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    ledger = play(controller, adversary, steps)
    (risk,), (held,) = ledger.certificate.risks, controller.risks
    promise = declaration(held.loss)
    above, below = promise.full <= held.level, promise.empty >= held.level
    if promise.grows:
        above, below = promise.empty <= held.level, promise.full >= held.level
    assert (risk.upper is not None, risk.lower is not None) == (above, below)
    assert (risk.window is not None) == (above and below)


def dyadic(
    gamma: float, level: float, bounds: tuple[float, float], start: float, stretch: Any = None
) -> sp.Stream:
    """A stream whose θ is never rounded, so that a bound can be met to the bit."""
    risk = sp.Risk(Miscoverage(), level, sp.steps.Fixed(gamma), start, bounds)
    return sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch))


STRETCHES = [
    sp.stretches.Identity(),
    sp.stretches.Exponential(),
    sp.stretches.ScoreAdaptive(0.3, -1.0, 1.0, reading="authors"),
    sp.stretches.ErrorAdaptive(0.3, 0.5, -1.0, 1.0, inner=sp.stretches.Exponential()),
]


def miss(stream: sp.Stream) -> None:
    stream.predict((0.0, 1.0))
    assert stream.update(1e300) == 1.0


def cover(stream: sp.Stream) -> None:
    shown = stream.predict((-1000.0, 1000.0))
    assert stream.update(min(max(0.0, shown.lower), shown.upper)) == 0.0


@pytest.mark.parametrize("stretch", STRETCHES, ids=repr)
def test_the_upper_bound_is_attained(stretch: Any) -> None:
    stream = dyadic(gamma=0.5, level=0.25, bounds=(-3.0, 3.0), start=0.0, stretch=stretch)
    for _ in range(8):
        miss(stream)
    assert stream.theta == 3.0  # not above M: one more miss is possible
    miss(stream)
    (risk,) = stream.certificate().risks
    assert stream.theta == 3.375
    assert risk.mean - risk.level == risk.upper
    assert stream.lam == float("inf")


@pytest.mark.parametrize("stretch", STRETCHES, ids=repr)
def test_the_lower_bound_is_attained(stretch: Any) -> None:
    stream = dyadic(gamma=0.5, level=0.25, bounds=(-3.0, 3.0), start=0.0, stretch=stretch)
    for _ in range(25):
        cover(stream)
    (risk,) = stream.certificate().risks
    assert stream.theta == -3.125
    assert risk.mean - risk.level == risk.lower
    assert stream.lam == -float("inf")


def test_the_constant_of_every_window_is_attained() -> None:
    stream = dyadic(gamma=0.5, level=0.25, bounds=(0.0, 1.0), start=0.0)
    cover(stream)
    ledger = Ledger(stream)
    for _ in range(4):
        stream.predict((0.0, 1.0))
        ledger.note(stream.update(1e300))
    assert stream.certificate().risks[0].window == 3.0
    assert ledger.extremes(0)[0] == 3.0


@given(
    st.sampled_from([sp.sets.Widen(), sp.sets.Scale()]),
    st.floats(0.05, 0.95).flatmap(lambda level: risks(Miscoverage(), level=level)),
    stretches(),
    st.sampled_from(["up", "down"]),
    st.integers(0, 2**32 - 1),
)
def test_a_greedy_adversary_comes_within_a_step_of_the_bound(
    sets: Any, risk: sp.Risk, stretch: Any, policy: str, seed: int
) -> None:
    low, high = risk.bounds
    risk = replace(risk, step=sp.steps.Fixed(max(risk.step.gamma, (high - low) / 40.0)))
    stream = sp.Stream(sp.Controller(sets, risk, stretch))
    adversary, ledger = Adversary(stream.controller, policy, seed), Ledger(stream)
    wide = (-1e100, 1e100) if isinstance(sets, sp.sets.Widen) else (0.0, 0.0, 0.0)
    while low <= stream.theta <= high:
        shown = stream.predict(wide)
        ledger.note(stream.update(adversary.label(stream, shown)))
        assert len(ledger.sums[0]) < 1000
    (claim,) = stream.certificate().risks
    ledger.hold_claims()
    total, slack = ledger.sums[0][-1], ledger.rounding(0)
    if policy == "up":
        assert total >= claim.constant_upper - (1.0 - risk.level) - slack
    else:
        assert total <= claim.constant_lower + risk.level + slack
