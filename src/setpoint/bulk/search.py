"""Search spaces and objectives: ranges, the paper's grids, what to minimise."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log, nan
from typing import Any, Protocol, runtime_checkable

import numpy as np

from setpoint._check import finite, positive, whole
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.sets.family import size_of

__all__ = ["GAMMAS", "LogUniform", "Narrowest", "Pinball", "Uniform"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Uniform:
    """A uniform distribution between two numbers."""

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
    """A log-uniform distribution between two numbers."""

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
BETA_SCORE = Uniform(0.01, 0.4)
"""The paper's range of β_score."""
BETA_LOSS = Uniform(0.1, 0.2)
"""The paper's range of β_loss."""


class Objective(Protocol):
    """What is made small: a function of a controller and its metrics.

    It is a number, or several of which the first that differs decides. +inf and NaN, of several
    the first, reject a controller.
    """

    def __call__(
        self, controller: Controller, metrics: Mapping[str, float], /
    ) -> float | tuple[float, ...]: ...


@runtime_checkable
class Measures(Protocol):
    """An objective to which the metrics of a sweep are not enough: it measures the whole trace.

    What `measure` returns are the metrics that the objective is called with, and the table.
    """

    def measure(self, trace: Trace) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True)
class Pinball:
    """The pinball loss of the two ends, the paper's objective for its tabular data."""

    def __call__(self, controller: Controller, metrics: Mapping[str, float]) -> float:
        return metrics["pinball"]


@dataclass(frozen=True, slots=True)
class Narrowest:
    """The narrowest sets among those whose risks are held, the paper's rule for depth.

    Parameters
    ----------
    excess
        How far each risk may be above its level: one number for all, or one for each.
    """

    excess: float | tuple[float, ...] = 0.001

    def __call__(self, controller: Controller, metrics: Mapping[str, float]) -> float:
        excess = self.excess
        tolerances = excess if isinstance(excess, tuple) else (excess,) * len(controller.risks)
        limits = _limits(controller, tolerances)
        held = all(metrics[f"risk{i}"] <= limit for i, limit in enumerate(limits))
        return metrics["mean_length"] if held else inf


def _limits(controller: Controller, tolerances: tuple[float, ...]) -> list[float]:
    """How high each risk may be."""
    levels = [risk.level for risk in controller.risks]
    if len(tolerances) != len(levels):
        raise InputError(f"there are {len(tolerances)} tolerances for {len(levels)} risks")
    return [level + tolerance for level, tolerance in zip(levels, tolerances, strict=True)]


@dataclass(frozen=True, slots=True)
class Holding:
    """The narrowest sets among those that hold every risk, judged from one row on.

    The objective is three numbers: the worst excess of a risk over its tolerance, 0 if all are
    held; the share of sets without a finite size; the mean size of the others. So where none holds
    every risk, the one that comes nearest is the best.

    Parameters
    ----------
    tolerances
        How far each risk may be above its level.
    start
        The first row that is judged.
    """

    tolerances: tuple[float, ...]
    start: int = 0

    def __post_init__(self) -> None:
        whole(self.start, "start", 0)

    def measure(self, trace: Trace) -> dict[str, float]:
        """The mean loss of each risk, the share of full sets and the mean size of the others."""
        losses = trace.losses[:, self.start :]
        judged = ~np.isnan(losses)
        risks = [
            row[known].mean() if known.any() else nan
            for row, known in zip(losses, judged, strict=True)
        ]
        sizes = trace.upper - trace.lower if trace.shown is None else map(size_of, trace.shown)
        lengths = np.array([*sizes])[self.start :][judged.any(axis=0)]
        known = lengths[np.isfinite(lengths)]
        return {
            **{f"risk{i}": float(risk) for i, risk in enumerate(risks)},
            "full": 1.0 - len(known) / len(lengths) if len(lengths) else 0.0,
            "length": float(known.mean()) if len(known) else 0.0,
        }

    def __call__(
        self, controller: Controller, metrics: Mapping[str, float]
    ) -> tuple[float, float, float]:
        limits = _limits(controller, self.tolerances)
        excess = [metrics[f"risk{i}"] - limit for i, limit in enumerate(limits)]
        # A risk that was never judged was never above its level.
        worst = max([0.0, *(value for value in excess if value == value)])
        return worst, metrics["full"], metrics["length"]
