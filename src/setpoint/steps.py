"""Step rules: how θ moves once the loss is known.

A step rule has `params`, a memory (`init()`, a tuple of floats) and

    rule(params, theta, memory, excess, critical, curve) -> (theta, memory)

a pure function of floats. `excess` is l − r, turned for a loss that grows with the set. `needs`
names what else the rule wants: "excess" for nothing more, "critical" for the smallest θ that would
have kept the loss at its level (±inf if all or none would), "curve" for the excess as a function of
θ, the safeguard included; both under φ as it is when the label arrives. `bound` is what the rule
guarantees, if anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from setpoint._check import positive
from setpoint.parts import ours

__all__ = ["Fixed", "Range", "Step", "fixed"]

Memory = tuple[float, ...]
Curve = Callable[[float], float]


class Range(NamedTuple):
    """What a step rule needs to know of its surroundings to say what it guarantees.

    `low` and `high` are the bounds m and M of θ, `start` is its first value, `fall` and `rise`
    are the least and the most the excess can be (l_min − r and l_max − r), `pending` is the
    largest number of labels awaited at once, and `inherited` how many were awaited at the start.
    """

    low: float
    high: float
    start: float
    fall: float
    rise: float
    pending: int = 1
    inherited: int = 0


class Step(Protocol):
    """What the controller asks of a step rule."""

    @property
    def params(self) -> Memory: ...
    @property
    def rule(self) -> Any: ...
    @property
    def needs(self) -> str: ...
    def init(self) -> Memory: ...


def fixed(
    params: Memory,
    theta: float,
    memory: Memory,
    excess: float,
    critical: float,
    curve: Any,
) -> tuple[float, Memory]:
    """θ + γ(l − r)."""
    return theta + params[0] * excess, memory


@ours
@dataclass(frozen=True, slots=True)
class Fixed:
    """The paper's rule: θ ← θ + γ(l − r).

    Parameters
    ----------
    gamma
        The step size γ > 0, in units of θ for one unit of loss. Larger follows faster and makes
        the sets less even; the guarantee holds for every γ.

    Examples
    --------
    >>> step = Fixed(0.05)
    >>> theta, memory = step.update(0.0, step.init(), 0.9)
    >>> theta
    0.045000000000000005

    References
    ----------
    Feldman et al. 2023, Algorithm 1; Gibbs and Candès 2021.
    """

    gamma: float

    rule = staticmethod(fixed)
    needs = "excess"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))

    @property
    def params(self) -> Memory:
        return (self.gamma,)

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def update(
        self,
        theta: float,
        memory: Memory,
        excess: float,
        critical: float | None = None,
        curve: Curve | None = None,
    ) -> tuple[float, Memory]:
        """The next θ."""
        return fixed(self.params, theta, memory, excess, 0.0, None)

    def reach(self, within: Range) -> tuple[float, float]:
        """The least and the greatest value θ can ever take.

        Beyond M the full set is shown and θ cannot rise, but up to `pending` smaller sets may
        still be waiting for their labels; below m likewise. A start outside the bounds, after a
        change in mid-stream, can be pushed further only by what was awaited then.
        """
        gamma = self.gamma
        low = within.low + within.pending * gamma * within.fall
        high = within.high + within.pending * gamma * within.rise
        if within.start < within.low:
            low = min(low, within.start + within.inherited * gamma * within.fall)
        if within.start > within.high:
            high = max(high, within.start + within.inherited * gamma * within.rise)
        return low, high

    def bound(self, within: Range) -> tuple[float, float]:
        """Constants (a, b) such that a ≤ Σ(l − r) ≤ b at every time, for every stream."""
        low, high = self.reach(within)
        return (low - within.start) / self.gamma, (high - within.start) / self.gamma

    def window(self, within: Range) -> float:
        """A constant C such that |Σ(l − r)| ≤ C on every window of the stream."""
        low, high = self.reach(within)
        return (high - low) / self.gamma
