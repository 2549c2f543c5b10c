"""The paper's rule, and one that holds nothing and counts."""

from dataclasses import dataclass
from math import inf

from setpoint._check import positive
from setpoint.steps.claims import Claim, Memory, Premise, Within, bound, swallowed


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


def measured(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ as it was."""
    return theta, memory


@dataclass(frozen=True, slots=True)
class Measure:
    """Holds nothing: θ stays where it is, losses are counted, and the certificate says so.

    For levels of `sets.Fan` that are shown and not guarded.

    >>> Measure().rule((), 0.0, (), 0.9, 0.0)
    (0.0, ())
    """

    rule = staticmethod(measured)

    @property
    def params(self) -> Memory:
        return ()

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing."""
        return Claim(measured=True)
