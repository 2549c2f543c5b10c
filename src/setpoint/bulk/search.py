"""What a search tries and what it makes small: ranges, the paper's grids, objectives."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log
from typing import Protocol

from setpoint._check import finite, positive
from setpoint.bulk.replay import nominal
from setpoint.controller import Controller
from setpoint.errors import InputError

__all__ = [
    "BETA_LOSS",
    "BETA_SCORE",
    "DEPTH_GAMMAS",
    "DEPTH_PAIR_GAMMAS",
    "GAMMAS",
    "Authors",
    "LogUniform",
    "Narrowest",
    "Objective",
    "Pinball",
    "Uniform",
]


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any number between two, each as likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not finite(self.low, "low") < finite(self.high, "high"):
            raise InputError(f"Uniform needs low < high, got ({self.low}, {self.high})")

    def at(self, share: float) -> float:
        """The number that lies `share` of the way."""
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Any number between two, each order of magnitude as likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not positive(self.low, "low") < finite(self.high, "high"):
            raise InputError(f"LogUniform needs low < high, got ({self.low}, {self.high})")

    def at(self, share: float) -> float:
        """The number that lies `share` of the way, in orders of magnitude."""
        return exp(log(self.low) + share * (log(self.high) - log(self.low)))


GAMMAS = (0.025, 0.03, 0.05, 0.09, 0.1, 0.15, 0.2, 0.35)
"""The paper's step sizes for its tabular data."""
DEPTH_GAMMAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0)
"""The paper's step sizes for depth with one risk."""
DEPTH_PAIR_GAMMAS = (0.00001, 0.0001, 0.001, 0.005, 0.01, 0.1, 0.5, 2.0)
"""The paper's step sizes for depth with two risks, each of them."""
BETA_SCORE = Uniform(0.01, 0.4)
"""The paper's range of β_score."""
BETA_LOSS = Uniform(0.1, 0.2)
"""The paper's range of β_loss."""


class Objective(Protocol):
    """What is made small: a function of a controller and its metrics, +inf to reject it."""

    def __call__(self, controller: Controller, found: Mapping[str, float]) -> float: ...


@dataclass(frozen=True, slots=True)
class Pinball:
    """The pinball loss of the two ends, the paper's objective for its tabular data."""

    def __call__(self, controller: Controller, found: Mapping[str, float]) -> float:
        return found["pinball"]


@dataclass(frozen=True, slots=True)
class Narrowest:
    """The narrowest sets among those whose risks are held, the paper's rule for depth.

    Parameters
    ----------
    excess
        How far each risk may be above its level: one number for all, or one for each.
    """

    excess: float | tuple[float, ...] = 0.001

    def __call__(self, controller: Controller, found: Mapping[str, float]) -> float:
        count = len(controller.risks)
        allowed = self.excess if isinstance(self.excess, tuple) else (self.excess,) * count
        if len(allowed) != count:
            raise InputError(f"Narrowest has {len(allowed)} tolerances for {count} risks")
        held = all(
            found[f"risk{i}"] <= risk.level + allowed[i] for i, risk in enumerate(controller.risks)
        )
        return found["mean_length"] if held else inf


@dataclass(frozen=True, slots=True)
class Authors:
    """(1 + |MSL − ideal|)·length where coverage is near its nominal level: the authors' code.

    Parameters
    ----------
    tolerance
        How far coverage may be from its nominal level.
    """

    tolerance: float = 0.005

    def __call__(self, controller: Controller, found: Mapping[str, float]) -> float:
        confidence = nominal(controller)
        if abs(found["coverage"] - confidence) > self.tolerance:
            return inf
        return (1.0 + abs(found["msl"] - 1.0 / confidence)) * found["mean_length"]
