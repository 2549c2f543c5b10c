"""Combinations: one λ from each risk's λ, and what keeps the risks together.

Each has `rule`, a pure function of the tuple of λ's, `covers_each`, whether the λ it gives is never
below that of a risk, and two options that only matter when several risks are held at once:

    anti_windup   δ: after each step no θ is left further than δ below the largest one. A risk
                  that is easily kept would otherwise drift away from the others, and when the
                  world turns, be violated until it is back.
    empty_if      "every": show the empty set when every θ is below its lower bound (default);
                  "some": when one is, as Theorem 3 of the paper asks, which forces empty sets
                  whenever one risk is slack.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from setpoint._check import choice, not_negative
from setpoint.parts import Capability

__all__ = ["Max", "Mean"]


@runtime_checkable
class Combine(Protocol, metaclass=Capability):
    """The interface of a combination."""

    @property
    def rule(self) -> Any: ...
    @property
    def anti_windup(self) -> float | None: ...
    @property
    def empty_if(self) -> str: ...
    @property
    def covers_each(self) -> bool: ...


def largest(lams: tuple[float, ...]) -> float:
    """The largest λ: the set every risk asks for at least."""
    found = lams[0]
    for lam in lams:
        if lam > found:
            found = lam
    return found


def average(lams: tuple[float, ...]) -> float:
    """The mean λ."""
    total = 0.0
    for lam in lams:
        total += lam
    mean = total / len(lams)
    if mean - mean != 0.0:  # the sum of huge λ's overflows, their mean does not
        mean = 0.0
        for lam in lams:
            mean += lam / len(lams)
    return mean


def _check(part: "Max | Mean") -> None:
    choice(part.empty_if, "empty_if", ("every", "some"))
    if part.anti_windup is not None:
        object.__setattr__(part, "anti_windup", not_negative(part.anti_windup, "anti_windup"))


@dataclass(frozen=True, slots=True)
class Max:
    """λ is the largest of the risks' own: every risk is kept at its level or below.

    >>> Max(anti_windup=1.0).rule((0.5, 2.0))
    2.0
    """

    anti_windup: float | None = None
    empty_if: str = "every"

    rule = staticmethod(largest)
    covers_each = True

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Mean:
    """λ is the mean of the risks' own.

    By itself it holds nothing but a weighted sum of the risks, while one θ runs to its upper
    bound and another to −∞: use it with `anti_windup`. Without, it is here to repeat the paper.

    >>> Mean(anti_windup=1.0).rule((0.5, 2.0))
    1.25
    """

    anti_windup: float | None = None
    empty_if: str = "every"

    rule = staticmethod(average)
    covers_each = False

    def __post_init__(self) -> None:
        _check(self)
