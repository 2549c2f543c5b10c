"""A family that learns, as a user may write one: the mean of past errors shifts the forecast."""

from dataclasses import dataclass
from math import inf
from typing import Any

from setpoint.errors import PredictionError
from setpoint.sets import Interval
from setpoint.sets.intervals import scale, scale_critical

MOST = 1e6
"""The largest forecast that `Shifted` takes."""


def shifted_sound(columns: Any) -> bool:
    """A rule of the family's own: no forecast beyond ±MOST."""
    centre, low, high = columns
    return -MOST <= centre <= MOST and 0.0 <= low < MOST and 0.0 <= high < MOST


def prepare(params: Any, memory: Any, columns: Any) -> Any:
    """The forecast plus the mean error, the scales, and the forecast as it came."""
    centre, low, high = columns
    return centre + memory[0], low, high, centre


def observe(params: Any, memory: Any, reading: Any, y: float) -> Any:
    """The exponentially weighted mean of the errors, cut to ±MOST, and how many there were."""
    error = y - reading[3]
    error = -MOST if error < -MOST else MOST if error > MOST else error
    return memory[0] + params[0] * (error - memory[0]), memory[1] + 1.0


def ends(reading: Any, lam: float) -> tuple[float, float]:
    return scale((reading[0], reading[1], reading[2]), lam)


def score(reading: Any, y: float) -> float:
    return scale_critical((reading[0], reading[1], reading[2]), y)


@dataclass(frozen=True)
class Shifted:
    """[centre + error − λ·low, centre + error + λ·high], error the mean of the past ones."""

    rate: float = 0.3
    support: tuple[float, float] = (-inf, inf)

    columns = ("centre", "low", "high")
    ends, score, sound = staticmethod(ends), staticmethod(score), staticmethod(shifted_sound)
    prepare, observe = staticmethod(prepare), staticmethod(observe)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.rate,)

    def init(self) -> tuple[float, ...]:
        return (0.0, 0.0)

    def read(self, prediction: Any) -> tuple[float, ...]:
        columns = tuple(float(number) for number in prediction)
        if not shifted_sound(columns):
            raise PredictionError(f"a forecast must be within ±{MOST:g}, got {columns}")
        return columns

    def label(self, y: Any) -> float:
        return float(y)

    def at(self, prediction: Any, lam: float) -> Interval:
        low, high = self.support
        if lam == inf:
            return Interval(low, high)
        if lam == -inf:
            return Interval(inf, -inf)
        lower, upper = ends(prediction, lam)
        return Interval(max(lower, low), min(upper, high))

    def critical(self, prediction: Any, y: float) -> float:
        return score(prediction, y)

    def start(self, level: float) -> float:
        return 1.0

    def bounds(self) -> None:
        return None

    def unit(self, prediction: Any) -> float:
        return 0.5 * (prediction[1] + prediction[2])
