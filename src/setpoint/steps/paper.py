"""The paper's rule, and the account that the budget keeps."""

from dataclasses import dataclass
from math import inf

from setpoint._check import number, positive
from setpoint.steps.claims import Claim, Memory, Premise, Within, bound, swallowed

__all__ = ["Account", "Fixed", "account", "account_least", "fixed"]


def fixed(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + γ(l − r)."""
    return theta + params[0] * excess, memory


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
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), 0.9, 0.0)
    >>> theta
    0.045000000000000005
    >>> claim = step.claim(Within(low=-1.0, high=1.0, start=0.0, fall=-0.1, rise=0.9), (), 0)
    >>> round(claim.lower, 9), round(claim.upper, 9)
    (-20.1, 20.9)

    References
    ----------
    Feldman et al. 2023, Algorithm 1 and Theorem 1.
    """

    gamma: float

    rule = staticmethod(fixed)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))

    @property
    def params(self) -> Memory:
        return (self.gamma,)

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Theorem 1: θ moves by γ(l − r), and cannot move far beyond its bounds."""
        gamma = self.gamma
        low, high = within.reach(gamma * within.fall, gamma * within.rise)
        premises = (
            Premise(f"the step size is fixed at γ = {gamma:g}", True),
            *swallowed(within, gamma),
        )
        base = low if within.floor == -inf else within.floor  # of several risks, lifts alone hold θ
        return Claim(
            lower=(low - within.start) / gamma,
            upper=(high - within.start) / gamma,
            window=(bound((low - high) / gamma), bound((high - base) / gamma)),
            window_needs_lower=within.floor == -inf,
            identity=(within.theta - within.start - within.lifted) / gamma,
            reach=(low, high),
            room=(within.high - within.low) / gamma,
            rounding=within.grain / gamma,
            premises=premises,
        )


def account(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + (l − r): the account of what was lost beyond what was asked."""
    return theta + excess, memory


def account_least(params: Memory, waited: float) -> float:
    """−(F + d): thrift beyond it is forgotten."""
    return -(params[0] + waited)


@dataclass(frozen=True, slots=True)
class Account:
    """θ is the account itself, S ← S + (l − r), and never below a floor.

    With the stretch `Barrier` it is the budget: the full set is shown where S reaches the limit K,
    so that Σ(l − r) ≤ K + P(l_max − r) at every time, whatever the data, the model and the units.

    Parameters
    ----------
    floor
        F: S is lifted to −F where it falls below, so that old thrift does not pay for new losses,
        and the bound holds on every window with F added. With d other predictions waiting it is
        F + d. `inf` keeps the whole account; then the bound is two-sided if the stretch is.

    Examples
    --------
    >>> step = Account(floor=10.0)
    >>> step.rule(step.params, 2.0, step.init(), 0.9, 0.0)[0]
    2.9
    >>> within = Within(low=-inf, high=10.0, start=0.0, fall=-0.1, rise=0.9)
    >>> claim = step.claim(within, (), 0)
    >>> claim.upper, claim.window[1]
    (10.9, 20.9)
    """

    floor: float = 10.0

    rule = staticmethod(account)
    least = staticmethod(account_least)

    def __post_init__(self) -> None:
        floor = number(self.floor, "floor")
        object.__setattr__(self, "floor", floor if floor == inf else positive(floor, "floor"))

    @property
    def params(self) -> Memory:
        return (self.floor,)

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Theorem 1 with γ = 1: S cannot climb beyond the limit by more than what still waits."""
        low, high = within.reach(within.fall, within.rise)
        floor = max(-self.params[0] - within.waited, within.floor)
        whole = self.floor == inf  # else thrift is forgotten, and sums may fall without end
        base = low if floor == -inf else min(floor, within.start)
        return Claim(
            lower=bound(low - within.start) if whole else None,
            upper=bound(high - within.start),
            window=(bound(low - high) if whole else None, bound(high - base)),
            window_needs_lower=floor == -inf,
            identity=within.theta - within.start - within.lifted,
            reach=(base, high),
            room=within.high - max(within.low, floor),
            counted=True,
            premises=(Premise("θ is the account Σ(loss − level) itself", True),),
        )
