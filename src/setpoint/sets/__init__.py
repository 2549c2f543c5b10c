"""Nested families, sets that grow with one number λ, and the set values they yield.

A family answers two questions, and they agree with each other:

    at(prediction, lam)        the set at λ; +inf gives the full set, −inf the empty one
    critical(prediction, y)    the smallest λ whose set contains y
"""

from setpoint.sets.family import Family
from setpoint.sets.fan import Bands, Fan
from setpoint.sets.intervals import Interval, Lower, Scale, Upper, Widen
from setpoint.sets.labels import Cumulative, LabelSet, Multilabel, Threshold
from setpoint.sets.multiplied import Multiplied
from setpoint.sets.paths import Paths
from setpoint.sets.pixels import PixelScale, PixelThreshold
from setpoint.sets.quantile_scale import QuantileScale
from setpoint.sets.wrapping import Levels, Nested, ScoreWindow, TwoSided

__all__ = [
    "Bands", "Cumulative", "Family", "Fan", "Interval", "LabelSet", "Levels", "Lower", "Multilabel",
    "Multiplied", "Nested", "Paths", "PixelScale", "PixelThreshold", "QuantileScale",
    "Scale", "ScoreWindow", "Threshold", "TwoSided", "Upper", "Widen",
]  # fmt: skip
