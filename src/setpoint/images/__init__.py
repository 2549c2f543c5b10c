"""Online estimation of images: uncertainty of each pixel, alignment, registration, tuning.

A model of images, `SpreadModel` around it with a heuristic of its uncertainty, and a stream with
`sets.PixelScale`: that is all a loop needs. The libraries behind optical flow are imported when a
flow is asked for.
"""

from setpoint.images.criticals import Chosen, CriticalSet, CriticalValues, FrameTape, choose
from setpoint.images.heuristics import (
    DIS,
    FLOOR,
    TVL1,
    Checks,
    Constant,
    Heuristic,
    PreviousResiduals,
    Register,
    RegisteredResiduals,
    ResidualMagnitude,
    floored,
    sides,
    warp,
)
from setpoint.images.model import (
    Facts,
    Fit,
    Line,
    Ratio,
    Rescale,
    SpreadModel,
    fit,
    known_pixels,
    only,
    valid_depth,
)

__all__ = [
    "DIS",
    "FLOOR",
    "TVL1",
    "Checks",
    "Chosen",
    "Constant",
    "CriticalSet",
    "CriticalValues",
    "Facts",
    "Fit",
    "FrameTape",
    "Heuristic",
    "Line",
    "PreviousResiduals",
    "Ratio",
    "Register",
    "RegisteredResiduals",
    "Rescale",
    "ResidualMagnitude",
    "SpreadModel",
    "choose",
    "fit",
    "floored",
    "known_pixels",
    "only",
    "sides",
    "valid_depth",
    "warp",
]
