"""Online estimation of images: uncertainty of each pixel, alignment, registration.

A model of images, `SpreadModel` around it with a heuristic of its uncertainty, and a stream with
`sets.PixelScale`: that is all a loop needs. The libraries behind optical flow are imported when a
flow is asked for.
"""

from setpoint.images.heuristics import (
    DIS,
    Constant,
    PreviousResiduals,
    RegisteredResiduals,
    ResidualMagnitude,
    warp,
)
from setpoint.images.model import SpreadModel, fit, known_pixels, line, ratio

__all__ = [
    "DIS", "Constant", "PreviousResiduals", "RegisteredResiduals",
    "ResidualMagnitude", "SpreadModel", "fit", "known_pixels", "line", "ratio", "warp",
]  # fmt: skip
