"""The miscoverage counter: it is bounded by the rule itself, and holds miscoverage as well."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Interval
from setpoint.steps import Fixed
from tests.laws.adversary import Adversary, adversaries
from tests.laws.ledger import Ledger, longest_streak
from tests.laws.parts import families, risks, stretches


@st.composite
def counters(draw: Any, cap: float | None = None) -> sp.Controller:
    level = draw(st.floats(0.0, 1.0) | st.sampled_from([0.1, 1 / 9, 0.25]))
    risk = draw(risks(MiscoverageCounter(cap), level=level))
    return sp.Controller(draw(families()), risk, draw(stretches()))


def streak(risk: sp.Risk, stretch: Any = None) -> tuple[sp.Stream, float]:
    """The longest streak: covered until θ has fallen below m, then missed until it is above M."""
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch))
    low, high = risk.bounds
    count = 0.0
    falling = True
    for _ in range(10_000):
        falling = falling and stream.theta >= low
        if not falling and stream.theta > high:
            return stream, count
        shown = stream.predict((-1e100, 1e100) if falling else (0.0, 0.0))
        count = stream.update(min(max(0.0, shown.lower), shown.upper) if falling else 1e300)
    return pytest.fail("θ never fell below m and rose above M")


@given(counters(), adversaries(), st.integers(1, 150))
def test_the_counter_never_exceeds_its_derived_bound(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    stream, (risk,), (low, high) = sp.Stream(controller), controller.risks, controller.bounds[0]
    player = Adversary(controller, *adversary)
    bound = longest_streak(risk.level, high - low, risk.step.gamma)
    for _ in range(steps):
        shown = stream.predict(player.prediction())
        assert stream.update(player.label(stream, shown)) <= bound


@given(st.floats(0.05, 2.5).flatmap(lambda r: risks(MiscoverageCounter(), level=r)), stretches())
def test_the_longest_streak_stays_within_the_derived_bound_and_near_it(
    risk: sp.Risk, stretch: Any
) -> None:
    low, high = risk.bounds
    gamma = max(risk.step.gamma, (high - low) / 40.0)
    bound = longest_streak(risk.level, high - low, gamma)
    stream, count = streak(replace(risk, step=Fixed(gamma)), stretch)
    assert bound - 1.0 - risk.level <= count <= bound
    assert "BROKEN" not in stream.certificate().risks[0].verdict


@pytest.mark.parametrize(
    ("level", "gamma", "span", "most"),
    [(0.5, 0.5, 6.0, 6.0), (0.25, 0.5, 2.5, 4.0), (0.5, 1.0, 199.5, 21.0), (0.125, 0.25, 9.0, 9.0)],
)
def test_the_derived_bound_is_attained(
    level: float, gamma: float, span: float, most: float
) -> None:
    assert MiscoverageCounter().most(level, room=span / gamma) == most
    risk = sp.Risk(MiscoverageCounter(), level, Fixed(gamma), -1.0, (-1.0, span - 1.0))
    assert streak(risk)[1] == most


@given(st.integers(3, 40), st.integers(1, 90), st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.3, 1.0]))
def test_a_streak_that_ends_on_the_very_bound_stays_within_it(
    length: int, percent: int, gamma: float
) -> None:
    """With these numbers a streak ends on M but for rounding, which must not break the bound."""
    level = percent / 100
    high = round(gamma * (length * length - length * (1.0 + 2.0 * level)) / 4.0, 12)
    risk = sp.Risk(MiscoverageCounter(), level, Fixed(gamma), -high, (-high, high))
    stream, count = streak(risk)
    assert count <= longest_streak(level, 2.0 * high, gamma)
    assert "BROKEN" not in stream.certificate().risks[0].verdict


@given(st.sampled_from([None, 1.0, 4.0]))
def test_without_bounds_the_certificate_of_a_counter_claims_nothing(cap: float | None) -> None:
    risk = sp.Risk(MiscoverageCounter(cap), 0.1, Fixed(0.05))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    for y in (5.0, 5.0, 0.0):
        stream.predict((0.0, 0.0))
        stream.update(y)
    (claim,) = stream.certificate().risks
    assert (claim.lower, claim.upper, claim.window) == (None, None, None)
    assert claim.identity == pytest.approx(claim.mean)


# Proposition 1: a mean counter of at most α means a miscoverage of at most α.


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([inf, 1.0, 2.0, 5.5]))
def test_miscoverage_is_never_above_the_mean_counter(misses: list[bool], cap: float) -> None:
    counter, plain = MiscoverageCounter(None if cap == inf else cap), Miscoverage()
    memory, counted, missed = counter.init(), 0.0, 0.0
    run = 0
    for miss in misses:
        shown, y = Interval(0.0, 1.0), 2.0 if miss else 0.5
        loss, memory = counter.update(memory, shown, y)
        run = run + 1 if miss else 0
        assert loss == min(run, cap)
        counted, missed = counted + loss, missed + plain(shown, y)
        assert missed <= counted


@given(counters() | counters(cap=3.0), adversaries(), st.integers(1, 150))
def test_holding_the_counter_holds_miscoverage(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    stream = sp.Stream(controller)
    player, ledger = Adversary(controller, *adversary), Ledger(stream)
    missed = 0
    for step in range(1, steps + 1):
        shown = stream.predict(player.prediction())
        y = player.label(stream, shown)
        ledger.note(stream.update(y))
        missed += not shown.contains(y)
        (claim,) = stream.certificate().risks
        assert missed / step <= claim.mean + 1e-12
        assert missed / step - claim.level <= claim.upper + ledger.rounding(0)
