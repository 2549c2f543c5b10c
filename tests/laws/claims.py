"""Step rules as users may write them: one with a claim that grows like √T, one that asks for s."""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from setpoint.steps import Claim, Within
from setpoint.steps.claims import Premise


def shrinking(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
    """θ + γ/√t · (l − r), t the number of labels until now."""
    count = memory[0] + 1.0
    return theta + params[0] / sqrt(count) * excess, (count,)


@dataclass(frozen=True)
class Shrinking:
    """Steps γ/√t: θ stays within one first step of its bounds, so |Σ(l − r)| ≤ width·√T/γ.

    Summed by parts, since 1/γ_t never falls: Σ (θ_{t+1} − θ_t)/γ_t is at most the width of what θ
    can reach, divided by the last step size; likewise on every window until now.
    """

    gamma: float
    rule = staticmethod(shrinking)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.gamma,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def claim(self, within: Within, memory: Any, T: int) -> Claim:
        low = within.low + within.pending * self.gamma * within.fall
        high = within.high + within.pending * self.gamma * within.rise
        most = (high - low) * sqrt(max(memory[0], 1.0)) / self.gamma
        if not isfinite(most):
            return Claim(reach=(low, high))
        return Claim(
            lower=-most,
            upper=most,
            window=(-most, most),
            reach=(low, high),
            rounding=1e-9,
            premises=(Premise(f"steps shrink as {self.gamma:g}/√t", True),),
        )


def toward(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
    """A share of the way to the critical value, at most 1, and the paper's step besides."""
    away = critical - theta
    away = -1.0 if away < -1.0 else 1.0 if away > 1.0 else away
    return theta + params[0] * (excess + 0.1 * away), (critical,)


@dataclass(frozen=True)
class Toward:
    """A rule that asks for the critical value of y, and keeps the last one."""

    share: float
    scored: bool = True
    rule = staticmethod(toward)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.share,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def claim(self, within: Within, memory: Any, T: int) -> Claim:
        return Claim()
