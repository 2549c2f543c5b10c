"""Step rules: the paper's rule by hand, and what it guarantees."""

from dataclasses import dataclass
from typing import Any

import pytest

import setpoint as sp
from setpoint.steps import Fixed, Range


@pytest.mark.parametrize(
    ("gamma", "theta", "excess", "wanted"),
    [(0.05, 0.0, 0.9, 0.045), (0.5, 1.0, -0.1, 0.95), (2.0, -3.0, 0.0, -3.0), (1.0, 0.0, 4.9, 4.9)],
)
def test_a_fixed_step_moves_theta_by_gamma_times_the_excess(
    gamma: float, theta: float, excess: float, wanted: float
) -> None:
    assert Fixed(gamma).update(theta, (), excess) == (pytest.approx(wanted), ())
    assert Fixed.rule((gamma,), theta, (), excess, 0.0, None) == (pytest.approx(wanted), ())


def test_options_are_kept_as_floats() -> None:
    assert Fixed(1) == Fixed(1.0)
    assert Fixed(1).params == (1.0,)
    assert type(Fixed(1).gamma) is float
    assert Fixed(0.1).init() == ()
    assert Fixed(0.1).needs == "excess"


WITHIN = Range(low=-2.0, high=3.0, start=1.0, fall=-0.1, rise=0.9)


def test_the_reach_of_theta_is_its_bounds_and_one_step_beyond() -> None:
    low, high = Fixed(0.5).reach(WITHIN)
    assert (low, high) == (pytest.approx(-2.05), pytest.approx(3.45))


def test_the_bound_is_the_reach_seen_from_the_start() -> None:
    least, most = Fixed(0.5).bound(WITHIN)
    # −(θ_1 − m + γ(r − l_min))/γ and (M + γ(l_max − r) − θ_1)/γ
    assert least == pytest.approx(-(1.0 + 2.0 + 0.5 * 0.1) / 0.5)
    assert most == pytest.approx((3.0 + 0.5 * 0.9 - 1.0) / 0.5)
    # (M − m + γ(l_max − l_min))/γ
    assert Fixed(0.5).window(WITHIN) == pytest.approx((5.0 + 0.5) / 0.5)


def test_labels_awaited_together_widen_the_bound() -> None:
    least, most = Fixed(0.5).bound(WITHIN._replace(pending=4))
    assert least == pytest.approx(-(1.0 + 2.0 + 4 * 0.5 * 0.1) / 0.5)
    assert most == pytest.approx((3.0 + 4 * 0.5 * 0.9 - 1.0) / 0.5)


def test_a_start_outside_the_bounds_is_pushed_on_only_by_what_was_awaited() -> None:
    above = WITHIN._replace(start=10.0)
    assert Fixed(0.5).reach(above) == (pytest.approx(-2.05), 10.0)
    assert Fixed(0.5).reach(above._replace(inherited=2))[1] == pytest.approx(10.0 + 2 * 0.45)
    below = WITHIN._replace(start=-10.0, inherited=3)
    assert Fixed(0.5).reach(below)[0] == pytest.approx(-10.0 - 3 * 0.05)


# Rules of the users' own


def sluggish(
    params: Any, theta: float, memory: Any, excess: float, critical: float, curve: Any
) -> Any:
    gamma, most = params
    count = memory[0] + 1.0
    move = gamma * excess / count
    if move > most:
        move = most
    return theta + move, (count,)


@dataclass(frozen=True)
class Sluggish:
    """γ shrinks as 1/t, and a step is at most `most`: a user's rule with memory."""

    gamma: float
    most: float

    rule = staticmethod(sluggish)
    needs = "excess"

    @property
    def params(self) -> tuple[float, ...]:
        return (self.gamma, self.most)

    def init(self) -> tuple[float, ...]:
        return (0.0,)


def test_a_users_rule_with_memory_runs_live() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, Sluggish(1.0, 0.5), bounds=(-5.0, 5.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    thetas = []
    for y in (9.0, 9.0, 0.5, 9.0):
        stream.predict((0.0, 1.0))
        stream.update(y)
        thetas.append(stream.theta)
    assert thetas == pytest.approx([0.5, 0.95, 0.95 - 0.1 / 3, 0.95 - 0.1 / 3 + 0.225])
    assert stream._own.step == (4.0,)
    verdict = stream.certificate().risks[0].verdict
    assert verdict.startswith("no guarantee, because this does not hold: the step rule Sluggish")


def curious(
    params: Any, theta: float, memory: Any, excess: float, critical: float, curve: Any
) -> Any:
    return critical, (curve(critical), curve(critical - 0.5))


@dataclass(frozen=True)
class Curious:
    """Moves to the critical θ, and remembers the excess there and a little below."""

    needs: str = "curve"

    rule = staticmethod(curious)
    params = ()

    def init(self) -> tuple[float, ...]:
        return (0.0, 0.0)


@pytest.mark.parametrize(
    "stretch",
    [sp.stretches.Identity(), sp.stretches.Exponential(), sp.stretches.ScoreAdaptive(0.1, -1, 1)],
)
def test_a_rule_that_asks_for_more_is_told_the_critical_theta_and_the_curve(stretch: Any) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, Curious(), bounds=(-50.0, 50.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch))
    stream.predict((0.0, 1.0))
    stream.update(4.0)
    assert stream.theta == pytest.approx(stretch.inverse(3.0, stretch.init()))
    assert stream._own.step == (-0.1, 0.9)
