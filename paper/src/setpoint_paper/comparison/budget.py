"""The budget around another rule: its sets, widened or narrowed as the account of misses asks."""

from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import setpoint as sp
from setpoint.sets import Interval, Scale

__all__ = ["Multiplied", "around"]

Floats = tuple[float, ...]


def _ends(prediction: Floats, lam: float) -> tuple[float, float]:
    """Ends of [centre − low·e^λ, centre + high·e^λ]."""
    centre, low, high = prediction
    factor = exp(lam if lam < 700.0 else 700.0)
    return centre - low * factor, centre + high * factor


def _score(prediction: Floats, y: float) -> float:
    """The λ at which an end reaches y."""
    centre, low, high = prediction
    distance = y - centre if y > centre else centre - y
    reach = high if y > centre else low
    if distance == 0.0:
        return -inf
    return log(distance / reach) if reach > 0.0 else inf


def _sound(columns: Floats) -> bool:
    """Whether the centre is a number, and the two sides are at least 0."""
    centre, low, high = columns
    return (-inf < centre < inf) & (0.0 <= low < inf) & (0.0 <= high < inf)


@dataclass(frozen=True, slots=True)
class Multiplied:
    """[centre − low·e^λ, centre + high·e^λ]: as `Scale`, with the factor e^λ in place of λ.

    >>> Multiplied().at((1.0, 2.0, 2.0), 0.0)
    Interval(-1.0, 3.0)
    """

    columns = ("centre", "low", "high")
    support = (-inf, inf)
    shows = Interval
    ends = staticmethod(_ends)
    score = staticmethod(_score)
    sound = staticmethod(_sound)

    def read(self, prediction: Any) -> Floats:
        """As `Scale` reads it."""
        return Scale().read(prediction)

    def label(self, y: Any) -> float:
        """As `Scale` reads it."""
        return Scale().label(y)

    def at(self, prediction: Floats, lam: float) -> Interval:
        """The interval at λ; all numbers at +inf, none at −inf."""
        if -inf < lam < inf:
            return Interval(*_ends(prediction, lam))
        return Interval(-lam, lam)

    def critical(self, prediction: Floats, y: float) -> float:
        """The smallest λ whose interval contains y."""
        return _score(prediction, y)

    def start(self, level: float) -> float:
        """λ = 0: the set as the other rule shows it."""
        return 0.0

    def bounds(self) -> None:
        """None are needed: the account has a limit."""

    def unit(self, prediction: Any) -> float:
        """1: λ is a logarithm."""
        return 1.0


def around(level: float, limit: float = 20.0) -> sp.Controller:
    """The budget on the sets of another rule, given as (centre, half, half)."""
    risk = sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Account(10.0), start=0.0)
    return sp.Controller(Multiplied(), risk, sp.stretches.Barrier(limit))
