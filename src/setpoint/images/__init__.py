"""Online estimation of images: uncertainty of each pixel, alignment, registration, tuning.

A model of images, `SpreadModel` around it with a heuristic of its uncertainty, and a stream with
`sets.PixelScale`: that is all a loop needs. The libraries behind optical flow are imported when a
flow is asked for.
"""

from setpoint.images.alignment import Fit, Line, Ratio, fit, known_pixels, only, valid_depth
from setpoint.images.criticals import Chosen, CriticalSet, CriticalValues, FrameTape, choose
from setpoint.images.heuristics import (
    Constant,
    PreviousResiduals,
    RegisteredResiduals,
    ResidualMagnitude,
)
from setpoint.images.model import Facts, SpreadModel
from setpoint.images.registration import DIS, TVL1, warp

__all__ = [
    "DIS",
    "TVL1",
    "Chosen",
    "Constant",
    "CriticalSet",
    "CriticalValues",
    "Facts",
    "Fit",
    "FrameTape",
    "Line",
    "PreviousResiduals",
    "Ratio",
    "RegisteredResiduals",
    "ResidualMagnitude",
    "SpreadModel",
    "choose",
    "fit",
    "known_pixels",
    "only",
    "valid_depth",
    "warp",
]
