"""Sets that another rule made, made longer or shorter by a factor: centre ∓ side·e^λ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log
from typing import Any

import numpy as np

from setpoint.sets.family import names_of
from setpoint.sets.intervals import Scale, Widen, _Ends, scale_sound

Floats = tuple[float, ...]


def multiplied(reading: Floats, lam: float) -> tuple[float, float]:
    """Ends of [centre − left·e^λ, centre + right·e^λ], cut to the ends of y, on the grid.

    `cut` is 0 where nothing is cut, 1 at `least`, 2 at `most`, 3 at both.
    """
    centre, left, right = reading[0], reading[1], reading[2]
    factor = exp(lam if lam < 700.0 else 700.0)
    lower = centre - left * factor if left < inf else -inf
    upper = centre + right * factor if right < inf else inf
    return fitted(centre, lower, upper, reading[3], reading[4], reading[5], reading[6])


def fitted(
    centre: float, lower: float, upper: float, least: float, most: float, cut: float, grid: float
) -> tuple[float, float]:
    """Ends cut to those of y, on the grid; an end without a limit stays."""
    if lower > -inf:
        lower = least if (lower < least) & ((cut == 1.0) | (cut == 3.0)) else lower
    if upper < inf:
        upper = most if (upper > most) & (cut > 1.0) else upper
    if grid > 0.0:
        lower, upper = _grid_up(lower, grid), _grid_down(upper, grid)
        if lower > upper:  # nothing of the grid lies inside: what is nearest to the centre
            lower = upper = _grid_down(centre + 0.5 * grid, grid)
    return lower, upper


def _grid_up(end: float, grid: float) -> float:
    steps = end / grid
    return grid * float(ceil(steps)) if -1e15 < steps < 1e15 else end


def _grid_down(end: float, grid: float) -> float:
    steps = end / grid
    return grid * float(floor(steps)) if -1e15 < steps < 1e15 else end


def multiplied_critical(reading: Floats, y: float) -> float:
    """The λ at which an end reaches y; −inf at the centre, +inf where no λ reaches it."""
    cut, grid = reading[5], reading[6]
    if ((y < reading[3]) & ((cut == 1.0) | (cut == 3.0))) | ((y > reading[4]) & (cut > 1.0)):
        return inf
    if grid > 0.0:
        if y == _grid_down(reading[0] + 0.5 * grid, grid):
            return -inf
        y = _grid_up(y, grid) if y > reading[0] else _grid_down(y, grid)
    distance = y - reading[0]
    reach = reading[2] if distance > 0.0 else reading[1]
    distance = distance if distance > 0.0 else -distance
    if distance == 0.0:
        return -inf
    if reach <= 0.0:
        return inf
    ratio = distance / reach
    if ratio <= 0.0:
        return -inf
    lam = log(ratio)
    return lam + 1e-15 * (2.0 + abs(lam))  # so that rounding does not leave y outside


def multiplied_sound(row: Floats) -> bool:
    """Whether numbers are a centre with two sides, neither negative."""
    return scale_sound((row[0], row[1], row[2]))


@dataclass(frozen=True, slots=True)
class Multiplied(_Ends):
    """Sets that another rule made, made longer or shorter: [centre − low·e^λ, centre + high·e^λ].

    It takes a pair (lower, upper), whose centre is its middle, or `Spread`. With `steps.Account`
    it puts a budget around any other rule; `presets.around` is that. A correction can say besides
    where labels end, at `least`, at `most` or at both, and the `grid` on which they lie, 0 for
    none: finite sets are cut to these, the full set never.

    Parameters
    ----------
    support
        As for `Widen`.

    Examples
    --------
    >>> Multiplied().at(Multiplied().read((10.0, 14.0)), 0.0)
    Interval(10.0, 14.0)
    >>> Multiplied().at((2.5, 3.0, 3.0, 0.0, 0.0, 1.0, 1.0), 0.0)  # counts
    Interval(0.0, 5.0)
    """

    columns = ("centre", "low", "high", "least", "most", "cut", "grid")
    ends = staticmethod(multiplied)
    score = staticmethod(multiplied_critical)
    sound = staticmethod(multiplied_sound)
    forms = (("lower", "upper"), columns[:3], columns)

    def read(self, prediction: Any) -> Floats:
        """The prediction as its centre and its two sides, with no ends and no grid."""
        three = isinstance(prediction, Sequence | np.ndarray) and np.shape(prediction) == (3,)
        if three or names_of(prediction) == set(_SPREAD.columns):
            return (*_SPREAD.read(prediction), *_OPEN)
        if isinstance(prediction, tuple) and len(prediction) == len(self.columns):
            return (*_SPREAD.read(prediction[:3]), *map(float, prediction[3:]))
        lower, upper = _ENDS.read(prediction)
        half = 0.5 * abs(upper - lower)
        return (*_SPREAD.read((0.5 * (lower + upper), half, half)), *_OPEN)

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them."""
        if names == self.columns:
            return tuple(columns)
        if names != self.columns[:3]:
            lower, upper = columns
            half = 0.5 * np.abs(upper - lower)
            columns = 0.5 * (lower + upper), half, half
        return (*columns, *(np.full_like(columns[0], value) for value in _OPEN))


_ENDS, _SPREAD = Widen(), Scale()
_OPEN = 0.0, 0.0, 0.0, 0.0
