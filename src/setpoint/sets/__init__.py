"""Nested families, sets that grow with one number λ, and the set values they yield.

A family answers two questions, and they agree with each other:

    at(prediction, lam)        the set at λ; +inf gives the full set, −inf the empty one
    critical(prediction, y)    the smallest λ whose set contains y
"""

from setpoint.sets.family import (
    Arranges,
    Classed,
    Columns,
    Draws,
    Family,
    Forecasts,
    Measured,
    Members,
    NeverEmpty,
    Pixels,
    Remembers,
    Scalar,
    Selection,
    Shares,
    Shows,
    Supports,
    Taped,
)
from setpoint.sets.intervals import Interval, Lower, Scale, Upper, Widen
from setpoint.sets.labels import Cumulative, LabelSet, Multilabel, Threshold
from setpoint.sets.multiplied import Multiplied
from setpoint.sets.paths import Path, Paths
from setpoint.sets.pixels import PixelIntervals, PixelScale, PixelSet, PixelThreshold
from setpoint.sets.quantile_scale import QuantileScale
from setpoint.sets.wrapping import Levels, Nested, ScoreWindow, SidedInterval, TwoSided

__all__ = [
    "Arranges", "Classed", "Columns", "Cumulative", "Draws", "Family", "Forecasts", "Interval",
    "LabelSet", "Levels", "Lower", "Measured", "Members", "Multilabel", "Multiplied", "Nested",
    "NeverEmpty", "Path", "Paths",
    "PixelIntervals", "PixelScale", "PixelSet", "PixelThreshold", "Pixels", "QuantileScale",
    "Remembers", "Scalar", "Scale", "ScoreWindow", "Selection", "Shares", "Shows",
    "SidedInterval", "Supports", "Taped", "Threshold", "TwoSided", "Upper", "Widen",
]  # fmt: skip
