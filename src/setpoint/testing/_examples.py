"""The predictions, labels and values of λ that checks try."""

from math import inf
from typing import Any

import numpy as np

from setpoint.predictions import Probabilities, QuantileGrid

__all__ = ["IDS", "LABELS", "LAMS", "LEVELS", "PREDICTIONS", "ROUNDING"]


def _line(level: float) -> float:
    """A quantile function: y is anything from −8 to 8 alike."""
    return 16.0 * level - 8.0


def _stairs(level: float) -> float:
    """A quantile function that jumps and is flat in between: y is 0, 2 or 5."""
    return 0.0 if level <= 0.25 else 2.0 if level <= 0.625 else 5.0


# Eighths and powers of two: the arithmetic of the library's own families is exact on them.
PREDICTIONS: tuple[Any, ...] = (
    3.0,
    -2.5,
    inf,
    -inf,
    (10.0, 14.0),
    (-3.5, 2.25),
    (0.0, 0.0),
    (4.0, 1.0),
    (-inf, 2.0),
    (0.5, inf),
    (-inf, inf),
    (12.0, 2.0, 4.0),
    (0.0, 0.25, 0.5),
    (5.0, 0.0, 1.0),
    (5.0, 1.0, 0.0),
    (-2.0, 0.0, 0.0),
    (0.5, 0.25, 0.25),
    [0.25, 0.25, 0.25, 0.25],
    (0.0, 1.0, 0.0),
    np.array([0.125, 0.5, 0.0, 0.25, 0.125]),
    (0.75, 0.0, 0.75, 1.0),
    {"cat": 0.25, "dog": 0.5, "owl": 0.25},
    {},
    Probabilities((0.25, 0.625, 0.125), classes=("owl", "cat", "dog"), u=0.5),
    QuantileGrid((0.125, 0.25, 0.5, 0.75, 0.875), (-4.0, 0.0, 2.0, 4.0, 12.0)),
    QuantileGrid((0.25, 0.5, 0.625, 0.75), (2.0, 2.0, -2.0, 4.0)),
    QuantileGrid((0.0, 0.5, 1.0), (-inf, 0.0, inf)),
    {0.125: 0.0, 0.25: 4.0, 0.375: 4.0, 0.75: 5.0},
    _line,
    _stairs,
    (np.array([[2.0, 4.5], [0.0, -8.0]]), np.full((2, 2), 0.5), np.array([[1.0, 2.0], [0.0, 4.0]])),
    (
        np.array([[2.0, 4.5, 12.0]], np.float32),
        np.array([[0.5, 0.0, 8.0]], np.float32),
        np.array([[1.0, 0.0, 0.25]], np.float32),
        np.array([[True, True, False]]),
    ),
    (np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 1)), np.zeros((2, 1), dtype=bool)),
    np.array([[0.25, 0.5, 1.0], [0.0, 0.125, 0.5]]),
    (np.array([[0.25, 0.5, 0.75]], np.float32), np.array([[True, True, False]])),
)


LABELS = (0.0, 2.0, 4.5, 5.0, 10.0, 12.0, 14.0, *(k / 8 for k in range(-160, 161, 13)))


LAMS = (
    *(-1e300, -1e6, -30.0, -8.0, -2.0, -1.0, -0.99, -0.75, -0.5, -0.25, -0.1, -1e-6),
    *(0.0, 0.5, 1.0, 2.0, 8.0, 30.0, 1e6, 1e300),
)


IDS = (0, 7, "tomorrow")


LEVELS = (0.0, 0.05, 0.5, 0.95, 1.0)


ROUNDING = 1e-9
