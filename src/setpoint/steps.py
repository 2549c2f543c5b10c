"""Step rules: how θ moves once the loss is known, and what each rule guarantees.

A step rule has `params`, a memory (`init()`, a tuple of floats) and

    rule(params, theta, memory, excess, critical) -> (theta, memory)
    claim(within, memory, T) -> Claim

`rule` is a pure function of floats. `excess` is l − r, turned for a loss that grows with the set.
`critical` is the smallest λ that would have kept the loss at its level, for a rule that asks for it
(`Scored`), else 0. `claim` says what the rule guarantees about Σ(l − r) after T labels. The
certificate, the alarms and the reports ask for the claim and know no rule by name.
"""

from dataclasses import dataclass
from math import inf, isfinite, ulp
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setpoint._check import number, positive
from setpoint.parts import Capability, ours

__all__ = [
    "Account",
    "Claim",
    "Fixed",
    "Floored",
    "Heeds",
    "Premise",
    "Scored",
    "Step",
    "Within",
    "account",
    "account_heed",
    "account_least",
    "fixed",
]

Memory = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Premise:
    """One condition of the guarantee, and whether it holds here.

    `needed` says for what: for θ to stay within "both" ends of its range, the "upper" or the
    "lower" one, or for nothing ("note"). The upper end of θ keeps a loss down; one that grows with
    the set, it keeps up.
    """

    text: str
    holds: bool
    needed: str = "both"


class Within(NamedTuple):
    """What a step rule must know of its surroundings to say what it guarantees.

    `low` and `high` are the bounds m and M of θ, `start` its first value and `theta` its value
    now. `fall` and `rise` are the least and the most the excess can be (l_min − r, l_max − r).
    `pending` is the largest number of labels awaited at once, `inherited` how many were awaited
    at the start. `lifted` says how far anti-windup raised θ in all, and `floor` below which value
    it never lets θ stay.
    """

    low: float
    high: float
    start: float
    fall: float
    rise: float
    pending: int = 1
    inherited: int = 0
    theta: float = 0.0
    lifted: float = 0.0
    floor: float = -inf


class Claim(NamedTuple):
    """What a step rule guarantees about Σ(l − r), for every stream.

    Parameters
    ----------
    lower, upper
        The sum from the start lies between them; None where nothing is said.
    window
        The sum over any window lies between these two; None where nothing is said.
    window_needs_lower
        Whether the upper end of `window` also rests on what keeps θ from falling.
    identity
        The sum, computed from where θ began and where it is; None for a rule without an identity.
    reach
        The least and the greatest value θ can take.
    room
        How far the sum can climb before the full set is shown.
    rounding
        How far rounding may take the mean from its bound.
    premises
        What the claim rests on, as far as the rule knows it.
    """

    lower: float | None = None
    upper: float | None = None
    window: tuple[float | None, float | None] = (None, None)
    window_needs_lower: bool = True
    identity: float | None = None
    reach: tuple[float, float] = (-inf, inf)
    room: float = inf
    rounding: float = 0.0
    premises: tuple[Premise, ...] = ()


@runtime_checkable
class Step(Protocol, metaclass=Capability):
    """What the controller asks of a step rule."""

    @property
    def params(self) -> Memory: ...
    @property
    def rule(self) -> Any: ...
    def init(self) -> Memory: ...
    def claim(self, within: Within, memory: Memory, T: int) -> Claim: ...


@runtime_checkable
class Floored(Protocol, metaclass=Capability):
    """A step rule that keeps θ from falling without end.

    `least(params, memory)` is a pure function: what θ is lifted to where it is lower.
    """

    @property
    def least(self) -> Any: ...


@runtime_checkable
class Heeds(Protocol, metaclass=Capability):
    """A part that wants to know how many other predictions wait when a set is made.

    `heed(params, memory, others)` is a pure function that returns the next memory.
    """

    @property
    def heed(self) -> Any: ...


@runtime_checkable
class Scored(Protocol, metaclass=Capability):
    """A step rule or a stretch that asks for the critical value of y, if `scored` is true.

    The value is in units of λ, so a step rule that asks runs where θ is λ: without stretching.
    """

    @property
    def scored(self) -> bool: ...


def fixed(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
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
        """Theorem 1: θ moves by γ(l − r), and cannot move far beyond its bounds.

        Beyond M the full set is shown and θ cannot rise, but up to `pending` smaller sets may
        still wait for their labels; below m likewise. A start outside the bounds, after a change
        in mid-stream, can be pushed further only by what was awaited then.
        """
        gamma = self.gamma
        low = within.low + within.pending * gamma * within.fall
        high = within.high + within.pending * gamma * within.rise
        if within.start < within.low:
            low = min(low, within.start + within.inherited * gamma * within.fall)
        if within.start > within.high:
            high = max(high, within.start + within.inherited * gamma * within.rise)
        ends = [abs(end) for end in (within.low, within.high, within.start) if isfinite(end)]
        grain = ulp(max(ends))
        premises = [Premise(f"the step size is fixed at γ = {gamma:g}", True)]
        if grain > 1e-6 * gamma:
            text = (
                f"θ can move by γ = {gamma:g} (it cannot: near {max(ends):g} floats are too coarse)"
            )
            premises.append(Premise(text, False))
        base = low if within.floor == -inf else within.floor  # of several risks, lifts alone hold θ
        return Claim(
            lower=(low - within.start) / gamma,
            upper=(high - within.start) / gamma,
            window=(_finite((low - high) / gamma), _finite((high - base) / gamma)),
            window_needs_lower=within.floor == -inf,
            identity=(within.theta - within.start - within.lifted) / gamma,
            reach=(low, high),
            room=(within.high - within.low) / gamma,
            rounding=grain / gamma,
            premises=tuple(premises),
        )


def account(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + (l − r): the account of what was lost beyond what was asked."""
    return theta + excess, memory


def account_least(params: Memory, memory: Memory) -> float:
    """−(F + d): thrift beyond it is forgotten."""
    return -(params[0] + memory[0])


def account_heed(params: Memory, memory: Memory, others: float) -> Memory:
    """d, the most other predictions that waited when a set was made."""
    return (others if others > memory[0] else memory[0],)


@ours
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
    >>> claim = step.claim(within, (0.0,), 0)
    >>> claim.upper, claim.window[1]
    (10.9, 20.9)
    """

    floor: float = 10.0

    rule = staticmethod(account)
    heed = staticmethod(account_heed)
    least = staticmethod(account_least)

    def __post_init__(self) -> None:
        floor = number(self.floor, "floor")
        object.__setattr__(self, "floor", floor if floor == inf else positive(floor, "floor"))

    @property
    def params(self) -> Memory:
        return (self.floor,)

    def init(self) -> Memory:
        """No other prediction has waited yet."""
        return (0.0,)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Theorem 1 with γ = 1: S cannot climb beyond the limit by more than what still waits."""
        high = within.high + within.pending * within.rise
        low = within.low + within.pending * within.fall
        if within.start > within.high:
            high = max(high, within.start + within.inherited * within.rise)
        if within.start < within.low:
            low = min(low, within.start + within.inherited * within.fall)
        floor = max(-self.params[0] - memory[0], within.floor)
        return Claim(
            lower=_finite(low - within.start) if self.floor == inf else None,
            upper=_finite(high - within.start),
            window=(_finite(low - high), _finite(high - max(low, floor))),
            window_needs_lower=floor == -inf,
            identity=within.theta - within.start - within.lifted,
            reach=(max(low, floor), high),
            room=within.high - max(within.low, floor),
            premises=(Premise("θ is the account Σ(loss − level) itself", True),),
        )


def _finite(constant: float) -> float | None:
    return constant if isfinite(constant) else None
