"""What the library asks of a step rule, what one guarantees, and the simplest: the paper's."""

from dataclasses import dataclass
from math import inf, isfinite, ulp
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setpoint._check import not_negative, positive
from setpoint.parts import Capability

Memory = tuple[float, ...]
"""What a rule remembers from one step to the next."""


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
    """The context of a step rule, from which it derives its guarantee."""

    low: float  # the bounds m and M of θ
    high: float
    start: float  # the first θ
    fall: float  # the least and the most the excess can be, l_min − r and l_max − r
    rise: float
    pending: int = 1  # the largest number of labels awaited at once
    inherited: int = 0  # how many were awaited at the start
    theta: float = 0.0  # now
    lifted: float = 0.0  # how far anti-windup raised θ in all
    floor: float = -inf  # below which it never lets θ stay
    pace: float = 0.0  # half of what a full set is sure to lower the sum by

    def reach(self, fall: float, rise: float) -> tuple[float, float]:
        """The least and the greatest θ, if a label moves it by `fall` to `rise`.

        Beyond M the full set is shown and θ cannot rise, but up to `pending` smaller sets may
        still wait for their labels; below m likewise. A start outside the bounds, after a change
        in mid-stream, can be pushed further only by what was awaited then.
        """
        low, high = self.low + self.pending * fall, self.high + self.pending * rise
        if self.start < self.low:
            low = min(low, self.start + self.inherited * fall)
        if self.start > self.high:
            high = max(high, self.start + self.inherited * rise)
        return low, high

    @property
    def grain(self) -> float:
        """The largest rounding error of θ in one step."""
        return ulp(max(abs(end) for end in (self.low, self.high, self.start) if isfinite(end)))


class Claim(NamedTuple):
    """What a step rule guarantees about Σ(l − r), for every stream; None where nothing is said."""

    lower: float | None = None  # the sum from the start lies between these two
    upper: float | None = None
    window: tuple[float | None, float | None] = (None, None)  # and over any window between these
    window_needs_lower: bool = True  # whether its upper end rests on what keeps θ from falling too
    identity: float | None = None  # the sum, computed from where θ began and where it is
    reach: tuple[float, float] = (-inf, inf)  # the least and the greatest value θ can take
    room: float = inf  # how far the sum can climb before the full set is shown
    joint: bool = False  # whether each end also rests on what keeps θ from the other end
    growth: float = 0.0  # the ends grow with T to this power
    rounding: float = 0.0  # how far rounding may take the mean from its bound
    counted: bool = False  # whether people are told the ends as counts in units of the loss
    bounded: bool = False  # whether the rule shows the full set by itself, whatever the bounds
    now: float | None = None  # of such a rule: what the sum will not exceed from now on …
    habit: float = 0.0  # … as long as no more others wait when a set is made
    worst: float | None = None  # where θ would be if all that waits should miss
    premises: tuple[Premise, ...] = ()  # what it rests on, as far as the rule knows it
    measured: bool = False  # whether the rule means to hold nothing


@runtime_checkable
class Step(Protocol, metaclass=Capability):
    """The interface of a step rule."""

    @property
    def params(self) -> Memory: ...
    @property
    def rule(self) -> Any: ...
    def init(self) -> Memory: ...
    def claim(self, within: Within, memory: Memory, T: int) -> Claim: ...


@runtime_checkable
class Accounts(Step, Protocol, metaclass=Capability):
    """A step rule that keeps a book of what waits, and says itself how large a set must be.

    Pure functions; `params` are those of the part, then the most a label can raise θ by, and half
    of what a full set is sure to lower it by. The first two numbers of the book are how many
    predictions wait and how many of those have a set that is not full: a drop lowers the first by
    one, the second too if its set was not full, and changes nothing else.

        ask(params, theta, book) -> (book, press, habit)    before a set is made: press is what the
                                                            stretch takes in place of θ, ±inf for
                                                            the full and the empty set
        opened(book, full) -> book                          once it is shown
        settled(book, excess, full, habit) -> book          once its label is judged
        dropped(book, full) -> book                         or if it never will be
        begun(params, theta, book) -> book                  where a segment begins
        least(params, habit) -> float                       what θ is lifted to after a label

    While nothing waits sets are full from θ = `limit` on, and empty from −limit on if `two_sided`.
    """

    @property
    def ask(self) -> Any: ...
    @property
    def opened(self) -> Any: ...
    @property
    def settled(self) -> Any: ...
    @property
    def dropped(self) -> Any: ...
    @property
    def begun(self) -> Any: ...
    @property
    def least(self) -> Any: ...
    @property
    def limit(self) -> float: ...
    @property
    def two_sided(self) -> bool: ...


@runtime_checkable
class Grouped(Protocol, metaclass=Capability):
    """A step rule with numbers of its own in the groups that a row belongs to."""

    @property
    def group_params(self) -> Memory: ...


@runtime_checkable
class Scored(Protocol, metaclass=Capability):
    """A step rule or a stretch that asks for the critical value of y, if `scored` is true.

    The value is in units of λ, so a step rule that asks runs where θ is λ: without stretching.
    """

    @property
    def scored(self) -> bool: ...


def bound(constant: float) -> float | None:
    """A constant as an end of a claim: None where it is infinite, which says nothing."""
    return constant if isfinite(constant) else None


def swallowed(within: Within, size: float) -> tuple[Premise, ...]:
    """The premise that fails where rounding swallows steps of this size."""
    if within.grain <= 1e-6 * size:
        return ()
    ends = [abs(end) for end in (within.low, within.high, within.start) if isfinite(end)]
    text = f"θ can move by γ = {size:g} (it cannot: near {max(ends):g} floats are too coarse)"
    return (Premise(text, False),)


def nothing(premise: str) -> Claim:
    """The claim of a rule that guarantees nothing, and the premise that fails."""
    return Claim(premises=(Premise(premise, False),))


def make_positive(part: Any, *names: str, zero: bool = False) -> None:
    """Makes options of a frozen part floats above zero, or not below it."""
    for name in names:
        check = not_negative if zero else positive
        value = check(getattr(part, name), f"{type(part).__name__}.{name}")
        object.__setattr__(part, name, value)


# The paper's rule, and one that holds nothing


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
    """Controls nothing: θ stays put, losses are counted; the certificate says so.

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
