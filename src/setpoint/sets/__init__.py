"""Nested families, sets that grow with one number λ, and the set values they yield.

A family answers two questions, and they agree with each other:

    at(prediction, lam)        the set at λ; +inf gives the full set, −inf the empty one
    critical(prediction, y)    the smallest λ whose set contains y
"""

from setpoint.sets._family import Family
from setpoint.sets._interval import Interval
from setpoint.sets.intervals import (
    Lower,
    Scale,
    Upper,
    Widen,
    lower_critical,
    lower_end,
    scale,
    scale_critical,
    upper_critical,
    upper_end,
    widen,
    widen_critical,
)
from setpoint.sets.joined import Levels, Nested, Sides, TwoSided
from setpoint.sets.labels import Cumulative, LabelSet, Multilabel, Threshold
from setpoint.sets.pixels import PixelIntervals, PixelScale, PixelSet, PixelThreshold
from setpoint.sets.quantile_scale import QuantileScale
from setpoint.sets.score_window import ScoreWindow

__all__ = [
    "Cumulative",
    "Family",
    "Interval",
    "LabelSet",
    "Levels",
    "Lower",
    "Multilabel",
    "Nested",
    "PixelIntervals",
    "PixelScale",
    "PixelSet",
    "PixelThreshold",
    "QuantileScale",
    "Scale",
    "ScoreWindow",
    "Sides",
    "Threshold",
    "TwoSided",
    "Upper",
    "Widen",
    "lower_critical",
    "lower_end",
    "scale",
    "scale_critical",
    "upper_critical",
    "upper_end",
    "widen",
    "widen_critical",
]
