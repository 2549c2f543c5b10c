"""A correction as a user may write one: the mean of past errors shifts the forecast."""

from dataclasses import dataclass
from math import inf
from typing import Any

import setpoint as sp
from setpoint.errors import PredictionError

MOST = 1e6
"""The largest forecast that `Shifted` takes."""


def shifted_sound(columns: Any) -> bool:
    """A rule of the correction's own: no forecast beyond ±MOST."""
    centre, low, high = columns
    return -MOST <= centre <= MOST and 0.0 <= low < MOST and 0.0 <= high < MOST


def predict(
    params: Any, memory: Any, table: Any, annex: Any, row: Any, waiting: float, base: Any
) -> Any:
    """The forecast plus the mean error, the scales, and the forecast as it came."""
    base[0], base[1], base[2], base[3] = row[0] + memory[0], row[1], row[2], row[0]
    return memory


def learn(params: Any, memory: Any, table: Any, annex: Any, base: Any, y: float) -> Any:
    """The exponentially weighted mean of the errors, cut to ±MOST, and how many there were."""
    error = y - base[3]
    error = -MOST if error < -MOST else MOST if error > MOST else error
    return memory[0] + params[0] * (error - memory[0]), memory[1] + 1.0


@dataclass(frozen=True)
class Shifted:
    """[centre + error − λ·low, centre + error + λ·high], error the mean of the past ones."""

    rate: float = 0.3

    columns = gives = ("centre", "low", "high")
    begins = 0
    forms = (columns,)
    base, annex = 4, 0
    sound = staticmethod(shifted_sound)
    predict, learn = staticmethod(predict), staticmethod(learn)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.rate,)

    def init(self) -> tuple[tuple[float, ...], list[float]]:
        return (0.0, 0.0), []

    def read(self, prediction: Any) -> tuple[float, ...]:
        columns = tuple(float(number) for number in prediction)
        if not shifted_sound(columns):
            raise PredictionError(f"a forecast must be within ±{MOST:g}, got {columns}")
        return columns

    def arranged(self, names: tuple[str, ...], columns: Any) -> tuple[Any, ...]:
        return tuple(columns)

    def forecast(self, base: Any) -> float:
        return float(base[3])


def shifted(
    risks: Any, stretch: Any = None, support: tuple[float, float] = (-inf, inf), rate: float = 0.3
) -> sp.Controller:
    """A controller of `sets.Scale` behind such a correction."""
    return sp.Controller(sp.sets.Scale(support), risks, stretch, correction=Shifted(rate))
