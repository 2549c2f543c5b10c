"""Nested families, sets that grow with one number λ, and the set values they yield.

A family answers two questions, and they agree with each other:

    at(prediction, lam)        the set at λ; +inf gives the full set, −inf the empty one
    critical(prediction, y)    the smallest λ whose set contains y
"""

from setpoint.sets._interval import Interval
from setpoint.sets.family import (
    Draws,
    Family,
    Learns,
    Measured,
    Remembers,
    Scalar,
    Shares,
    Shows,
    Sides,
    Taped,
)
from setpoint.sets.intervals import (
    Lower,
    Scale,
    Upper,
    Widen,
    lower_critical,
    lower_end,
    one_end_sound,
    scale,
    scale_critical,
    scale_sound,
    upper_critical,
    upper_end,
    widen,
    widen_critical,
    widen_sound,
)
from setpoint.sets.joined import Levels, Nested, SidedInterval, TwoSided
from setpoint.sets.labels import Cumulative, LabelSet, Multilabel, Threshold
from setpoint.sets.pixels import PixelIntervals, PixelScale, PixelSet, PixelThreshold
from setpoint.sets.quantile_scale import QuantileScale
from setpoint.sets.score_window import ScoreWindow

__all__ = [
    "Cumulative",
    "Draws",
    "Family",
    "Interval",
    "LabelSet",
    "Learns",
    "Levels",
    "Lower",
    "Measured",
    "Multilabel",
    "Nested",
    "PixelIntervals",
    "PixelScale",
    "PixelSet",
    "PixelThreshold",
    "QuantileScale",
    "Remembers",
    "Scalar",
    "Scale",
    "ScoreWindow",
    "Shares",
    "Shows",
    "SidedInterval",
    "Sides",
    "Taped",
    "Threshold",
    "TwoSided",
    "Upper",
    "Widen",
    "lower_critical",
    "lower_end",
    "one_end_sound",
    "scale",
    "scale_critical",
    "scale_sound",
    "upper_critical",
    "upper_end",
    "widen",
    "widen_critical",
    "widen_sound",
]
