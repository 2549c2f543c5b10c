"""Step rules: the paper's rule by hand, and what it guarantees."""

from dataclasses import dataclass
from typing import Any

import pytest

import setpoint as sp
from setpoint.guarantee import Status
from setpoint.steps import Claim, Fixed, Within


@pytest.mark.parametrize(
    ("gamma", "theta", "excess", "wanted"),
    [(0.05, 0.0, 0.9, 0.045), (0.5, 1.0, -0.1, 0.95), (2.0, -3.0, 0.0, -3.0), (1.0, 0.0, 4.9, 4.9)],
)
def test_a_fixed_step_moves_theta_by_gamma_times_the_excess(
    gamma: float, theta: float, excess: float, wanted: float
) -> None:
    step = Fixed(gamma)
    assert step.rule(step.params, theta, (), excess, 0.0) == (pytest.approx(wanted), ())


WITHIN = Within(low=-2.0, high=3.0, start=1.0, fall=-0.1, rise=0.9)


def claimed(**changes: Any) -> Claim:
    return Fixed(0.5).claim(WITHIN._replace(**changes), (), 0)


def test_the_reach_of_theta_is_its_bounds_and_one_step_beyond() -> None:
    assert claimed().reach == (pytest.approx(-2.05), pytest.approx(3.45))


def test_the_bound_is_the_reach_seen_from_the_start() -> None:
    claim = claimed()
    # −(θ_1 − m + γ(r − l_min))/γ and (M + γ(l_max − r) − θ_1)/γ
    assert claim.lower == pytest.approx(-(1.0 + 2.0 + 0.5 * 0.1) / 0.5)
    assert claim.upper == pytest.approx((3.0 + 0.5 * 0.9 - 1.0) / 0.5)
    # (M − m + γ(l_max − l_min))/γ, both ways
    width = pytest.approx((5.0 + 0.5) / 0.5)
    assert (-claim.window[0], claim.window[1]) == (width, width)
    assert claim.room == 10.0


def test_the_identity_is_the_path_of_theta_without_its_lifts() -> None:
    assert claimed(theta=2.5, lifted=1.0).identity == (2.5 - 1.0 - 1.0) / 0.5


def test_labels_awaited_together_widen_the_bound() -> None:
    claim = claimed(pending=4)
    assert claim.lower == pytest.approx(-(1.0 + 2.0 + 4 * 0.5 * 0.1) / 0.5)
    assert claim.upper == pytest.approx((3.0 + 4 * 0.5 * 0.9 - 1.0) / 0.5)


def test_a_start_outside_the_bounds_is_pushed_on_only_by_what_was_awaited() -> None:
    assert claimed(start=10.0).reach == (pytest.approx(-2.05), 10.0)
    assert claimed(start=10.0, inherited=2).reach[1] == pytest.approx(10.0 + 2 * 0.45)
    assert claimed(start=-10.0, inherited=3).reach[0] == pytest.approx(-10.0 - 3 * 0.05)


def test_a_floor_that_theta_never_leaves_narrows_the_window() -> None:
    claim = claimed(floor=0.0)
    assert claim.window[1] == pytest.approx(3.45 / 0.5)
    assert not claim.window_needs_lower


# Rules of the users' own


@dataclass(frozen=True)
class Sluggish:
    """γ shrinks as 1/t, and a step is at most `most`: a user's rule with memory."""

    gamma: float
    most: float

    @property
    def params(self) -> tuple[float, ...]:
        return (self.gamma, self.most)

    @staticmethod
    def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
        gamma, most = params
        count = memory[0] + 1.0
        return theta + min(gamma * excess / count, most), (count,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def claim(self, within: Within, memory: Any, T: int) -> Claim:
        return Claim()


def test_a_rule_that_claims_nothing_gets_no_guarantee() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, Sluggish(1.0, 0.5), bounds=(-5.0, 5.0))
    certificate = sp.Stream(sp.Controller(sp.sets.Widen(), risk)).certificate()
    assert certificate.risks[0].status is Status.NO_GUARANTEE
    told = "no guarantee, because a premise fails: the step rule Sluggish states a bound"
    assert certificate.risks[0].verdict == told
    assert "✗ the step rule Sluggish states a bound" in str(certificate)
