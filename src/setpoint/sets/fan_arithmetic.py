"""Ends of several quantiles, their critical values, and how they are kept from crossing."""

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, log, log1p
from typing import Any

from setpoint.sets.multiplied import _grid_down, _grid_up, fitted

Floats = tuple[float, ...]
Mark = Callable[[Any], Any]
COMMON = ("least", "most", "cut", "grid", "near")
"""What all members share: where labels end, as for `Multiplied`, and the scale of errors."""


def growth(lam: float) -> float:
    """e^λ − 1, of which both ends of an interval take their share."""
    return exp(lam if lam < 700.0 else 700.0) - 1.0


def reach(side: float, near: float, grown: float) -> float:
    """How far an end lies from the centre at λ, which is `side` at λ = 0."""
    base = near if (grown > 0.0) & (side < near) else side if side > 0.0 else 0.0
    return side + base * grown


def distance(side: float, near: float, away: float) -> float:
    """The λ at which an end reaches `away` from the centre; ±inf where none or any does."""
    if away <= side:
        if (away <= 0.0) | (side <= 0.0):
            return -inf
        lam = log(away / side)
    else:
        base = side if side > near else near
        if base <= 0.0:
            return inf
        lam = log1p((away - side) / base)
    return lam + 1e-15 * (2.0 + abs(lam))  # so that rounding does not leave y outside


@lru_cache(maxsize=256)
def pair(at: int) -> tuple[Any, Any]:
    """Ends and critical value of a central interval whose numbers begin at a place."""

    def ends(reading: Floats, lam: float) -> tuple[float, float]:
        centre, low, high, near = reading[at], reading[at + 1], reading[at + 2], reading[4]
        grown = growth(lam)
        lower = centre - reach(low, near, grown) if low < inf else -inf
        upper = centre + reach(high, near, grown) if high < inf else inf
        return fitted(centre, lower, upper, reading[0], reading[1], reading[2], reading[3])

    def critical(reading: Floats, y: float) -> float:
        centre, low, high, near = reading[at], reading[at + 1], reading[at + 2], reading[4]
        cut, grid = reading[2], reading[3]
        if ((y < reading[0]) & ((cut == 1.0) | (cut == 3.0))) | ((y > reading[1]) & (cut > 1.0)):
            return inf
        if grid > 0.0:
            if y == _grid_down(centre + 0.5 * grid, grid):
                return -inf
            y = _grid_up(y, grid) if y > centre else _grid_down(y, grid)
        if y > centre:
            return distance(high, near, y - centre)
        return distance(low, near, centre - y)

    return ends, critical


@lru_cache(maxsize=256)
def lone(at: int, upward: bool) -> tuple[Any, Any]:
    """Ends and critical value of the half-line up to a quantile, or from it on."""

    def ends(reading: Floats, lam: float) -> tuple[float, float]:
        centre, near = reading[at], reading[4]
        least, most, cut, grid = reading[0], reading[1], reading[2], reading[3]
        side, end = reading[at + 2] if upward else reading[at + 1], inf
        if side < inf:
            end = reach(side, near, growth(lam))
            end = centre + end if upward else centre - end
            end = least if (end < least) & ((cut == 1.0) | (cut == 3.0)) else end
            end = most if (end > most) & (cut > 1.0) else end
        elif not upward:
            end = -inf
        if upward:
            return -inf, _grid_down(end, grid) if grid > 0.0 else end
        return _grid_up(end, grid) if grid > 0.0 else end, inf

    def critical(reading: Floats, y: float) -> float:
        centre, near, cut, grid = reading[at], reading[4], reading[2], reading[3]
        if upward:
            y = _grid_up(y, grid) if grid > 0.0 else y
            if (y > reading[1]) & (cut > 1.0):
                return inf
            return distance(reading[at + 2], near, y - centre)
        y = _grid_down(y, grid) if grid > 0.0 else y
        if (y < reading[0]) & ((cut == 1.0) | (cut == 3.0)):
            return inf
        return distance(reading[at + 1], near, centre - y)

    return ends, critical


# Ends side by side. A member is on both sides (0), or below (−1) or above (1) what lies inside it.


def apart(
    order: tuple[int, ...], free: tuple[bool, ...], mark: Mark = lambda closure: closure
) -> Any:
    """A function of the lower and the upper ends of all members that puts them in order."""
    walls: Any = None
    settle: Any = None
    for side, loose in zip(reversed(order), reversed(free), strict=True):
        walls = mark(_walling(side, loose, walls))
        settle = mark(_settling(side, loose, settle))
    if not any(free):

        def guarded(lowers: Any, uppers: Any) -> Any:
            lowers, uppers, _, _ = walls(lowers, uppers, inf, -inf)
            return lowers, uppers

        return mark(guarded)

    def ordered(lowers: Any, uppers: Any) -> Any:
        lows, highs, _, _ = walls(lowers, uppers, inf, -inf)
        return settle(lowers, uppers, lows, highs, inf, -inf)

    return mark(ordered)


def _walling(side: int, loose: bool, rest: Any) -> Any:
    """Guarded members, each beyond those inside it; for a free one the guarded ends around it."""

    def walls(lowers: Any, uppers: Any, low: float, high: float) -> Any:
        lower, upper = lowers[0], uppers[0]
        if not loose:
            lower, upper, low, high = _beyond(side, lower, upper, low, high)
        if rest is None:
            if loose:
                return (-inf,), (inf,), -inf, inf
            return (lower,), (upper,), lower if side <= 0 else -inf, upper if side >= 0 else inf
        lows, highs, below, above = rest(lowers[1:], uppers[1:], low, high)
        if loose:
            lower, upper = below, above
        else:
            below, above = lower if side <= 0 else below, upper if side >= 0 else above
        return (lower,) + lows, (upper,) + highs, below, above  # noqa: RUF005

    return walls


def _settling(side: int, loose: bool, rest: Any) -> Any:
    """All members: the guarded ones as they are, free ones between them."""

    def settle(lowers: Any, uppers: Any, lows: Any, highs: Any, low: float, high: float) -> Any:
        lower, upper = lows[0], highs[0]
        if loose:
            lower = clipped(lowers[0], lower, upper) if side <= 0 else lowers[0]
            upper = clipped(uppers[0], lows[0], upper) if side >= 0 else uppers[0]
        lower, upper, low, high = _beyond(side, lower, upper, low, high)
        if rest is None:
            return (lower,), (upper,)
        below, above = rest(lowers[1:], uppers[1:], lows[1:], highs[1:], low, high)
        return (lower,) + below, (upper,) + above  # noqa: RUF005

    return settle


def _beyond(
    side: int, lower: float, upper: float, low: float, high: float
) -> tuple[float, float, float, float]:
    """A member beyond the ends inside it, and the ends that others then lie beyond.

    The first half-line is where those of the other side begin. An empty one has no end.
    """
    if side == 0:
        lower, upper = low if low < lower else lower, high if high > upper else upper
        return lower, upper, lower, upper
    if side < 0:
        if lower < inf:
            lower = low if low < lower else lower
            low, high = lower, lower if lower > high else high
    elif upper > -inf:
        upper = high if high > upper else upper
        low, high = upper if upper < low else low, upper
    return lower, upper, low, high


def clipped(end: float, low: float, high: float) -> float:
    """An end between two others."""
    end = low if end < low else end
    return high if end > high else end
