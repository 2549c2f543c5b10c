"""Intervals between two quantiles of one forecast, by the share of it that they hold."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf, nextafter
from typing import Any

import numpy as np

from setpoint._check import choice, interval, number
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import QuantileGrid, Quantiles, Spread
from setpoint.sets.family import ShareOfOne, finite_label, floats
from setpoint.sets.intervals import Interval, _extreme, _within

Grid = tuple[tuple[float, ...], tuple[float, ...]]
"""Levels that rise, and the quantiles at them."""


@dataclass(frozen=True, slots=True)
class QuantileScale(ShareOfOne):
    """Between the quantiles τ/2 and 1 − τ/2 of the model, τ = −λ.

    θ lives in [−1, 0]: at 0 the set is full, at −1 it is the median, below it is empty.

    A prediction is a function of the level, `predictions.QuantileGrid(levels, values)`, a mapping
    of levels to values or, where the family knows the levels, the values alone. The values of a
    grid are put in order, which mends crossing quantiles, and interpolated.

    Parameters
    ----------
    levels
        The levels of the values, rising, in [0, 1].
    beyond
        What lies beyond the outermost levels of a grid: "hold" takes the outermost value, "open"
        ±inf.
    support
        The values y can take: the full set.

    Examples
    --------
    >>> family = QuantileScale(levels=(0.0, 0.5, 1.0))
    >>> prediction = family.read([10.0, 12.0, 20.0])
    >>> family.at(prediction, -0.5)
    Interval(11.0, 16.0)
    >>> family.critical(prediction, 16.0)
    -0.5
    >>> from statistics import NormalDist
    >>> family.at(family.read(NormalDist(0.0, 1.0).inv_cdf), -0.1)
    Interval(-1.64..., 1.64...)

    References
    ----------
    Feldman et al. 2023, appendix F, with the sign of θ put right.
    """

    levels: tuple[float, ...] | None = None
    beyond: str = "hold"
    support: tuple[float, float] = (-inf, inf)

    shows = Interval

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", _levels(self.levels, InputError))
        choice(self.beyond, "beyond", ("hold", "open"))
        object.__setattr__(self, "support", interval(self.support, "support"))

    def read(self, prediction: Any) -> Callable[[float], float] | Grid:
        """The function as it is, or the grid as two tuples of floats."""
        if callable(prediction) and not isinstance(prediction, Mapping):
            function: Callable[[float], float] = prediction
            return function
        levels: Any
        if isinstance(prediction, Quantiles | Spread):
            raise PredictionError(f"QuantileScale takes quantiles at many levels, got {prediction}")
        if isinstance(prediction, QuantileGrid):
            levels, values = prediction
        elif isinstance(prediction, Mapping):
            levels, values = (
                zip(*sorted(prediction.items()), strict=True) if prediction else ((), ())
            )
        elif self.levels is None:
            raise PredictionError(
                "without levels of its own QuantileScale takes a function, a QuantileGrid or a "
                f"mapping of levels to values, got {prediction!r}"
            )
        else:
            levels, values = self.levels, prediction
        quantiles = floats(values, "quantiles")
        kept = self.levels
        if kept is None or levels is not kept:
            kept = _levels(levels, PredictionError)
        if quantiles.shape != (len(kept),):
            flat = quantiles.ndim == 1
            shape = str(len(quantiles)) if flat else f"an array of shape {quantiles.shape}"
            raise PredictionError(
                f"a prediction must have one quantile for each of {len(kept)} levels, got {shape}"
            )
        if np.isnan(quantiles).any():
            raise PredictionError(f"a prediction must not be NaN, got {quantiles.tolist()}")
        quantiles.sort()
        return kept, tuple(quantiles.tolist())

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        return finite_label(y, self.support)

    def at(self, prediction: Any, lam: float) -> Interval:
        """The interval at λ."""
        if not -1.0 <= lam < 0.0:
            return _extreme(inf if lam >= 0.0 else -inf if lam < -1.0 else lam, self.support)
        tail = -0.5 * lam
        # The upper end is told by its tail: 1 − tail may round to a level that is not passed yet.
        open_above = self.beyond == "open" and not callable(prediction)
        above = open_above and tail < 1.0 - prediction[0][-1]
        lower = self._quantile(prediction, tail)
        upper = inf if above else self._quantile(prediction, 1.0 - tail)
        return _within((lower, upper), self.support)

    def _quantile(self, prediction: Any, level: float) -> float:
        if callable(prediction):
            if not 0.0 < level < 1.0:  # no function need know these, and both ends are open there
                return -inf if level <= 0.0 else inf
            quantile = number(prediction(level), "a quantile", PredictionError)
            if quantile != quantile:
                raise PredictionError(f"a quantile must not be NaN, got it at level {level}")
            return quantile
        grid: Grid = prediction
        levels, values = grid
        if level < levels[0] or level > levels[-1]:
            below = level < levels[0]
            if self.beyond == "open":
                return -inf if below else inf
            return values[0] if below else values[-1]
        place = bisect_right(levels, level)
        if place == len(levels):
            return values[-1]
        low, high = values[place - 1], values[place]
        share = (level - levels[place - 1]) / (levels[place] - levels[place - 1])
        if low == high or low == -inf or share == 0.0:
            return low
        step = 2.0 * ((0.5 * high - 0.5 * low) * share)  # the difference itself may overflow
        return min(low + step, high)

    def critical(self, prediction: Any, y: float) -> float:
        """The smallest λ whose interval contains y."""
        if callable(prediction) or prediction[1][0] == -inf or prediction[1][-1] == inf:
            return self._searched(prediction, y)
        levels, values = prediction
        opened = self.beyond == "open"
        least, most = (levels[0], levels[-1]) if opened else (0.0, 1.0)
        if y < values[0] or y > values[-1]:
            if not opened:  # beyond an end that is held lies only the full set
                return 0.0
            # An open end is passed just after its level, unless the other end has to pass it first.
            near = least if y < values[0] else 1.0 - most
            passed = nextafter(-2.0 * near, inf) if near <= 0.5 else -2.0 * (1.0 - near)
            return min(passed, 0.0)
        below = _share(levels, values, bisect_right(values, y), y, most)
        above = _share(levels, values, bisect_left(values, y), y, most) if y > values[0] else least
        return min(-2.0 * min(below, 1.0 - above, 0.5), 0.0)

    def _searched(self, prediction: Any, y: float) -> float:
        """The critical value where no line leads to y: under a function, or an infinite value."""
        low, high = -1.0, 0.0
        if self.at(prediction, low).contains(y):
            return low
        for _ in range(64):
            middle = 0.5 * (low + high)
            if self.at(prediction, middle).contains(y):
                high = middle
            else:
                low = middle
        return high


def _share(
    levels: tuple[float, ...], values: tuple[float, ...], place: int, y: float, most: float
) -> float:
    """The level at which the line between two values of a grid passes y."""
    if place == len(values):
        return most
    low, high = values[place - 1], values[place]
    step = levels[place] - levels[place - 1]
    return levels[place - 1] + step * ((0.5 * y - 0.5 * low) / (0.5 * high - 0.5 * low))


def _levels(levels: Any, error: type[InputError]) -> tuple[float, ...]:
    """Levels that rise, in [0, 1]."""
    try:
        numbers = tuple([number(level, "a level", error) for level in levels])
    except TypeError:
        raise error(f"levels must be numbers that rise in [0, 1], got {levels!r}") from None
    rising = all(low < high for low, high in pairwise(numbers))
    if not numbers or not rising or not (numbers[0] >= 0.0 and numbers[-1] <= 1.0):
        raise error(f"levels must be numbers that rise in [0, 1], got {numbers}")
    return numbers
