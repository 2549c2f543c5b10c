"""The controllers the adapters use when they are given none: coverage, in units that fit any y."""

from statistics import NormalDist

from setpoint import losses, sets, steps
from setpoint._check import finite
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError

__all__ = ["checked_level", "interval_controller", "set_controller"]

_LARGEST = 20.0
"""Mean absolute residuals beyond which an interval counts as the whole line.

Small, because the guarantee's constant is proportional to it; large against what a λ ever needs,
because the scale itself follows the residuals.
"""


def checked_level(confidence_level: float) -> float:
    """The risk's level, 1 − confidence_level."""
    level = finite(confidence_level, "confidence_level")
    if not 0.0 < level < 1.0:
        raise InputError(f"confidence_level must lie strictly between 0 and 1, got {level}")
    return 1.0 - level


def interval_controller(confidence_level: float, unit: float | None = None) -> Controller:
    """Intervals in units of a tracked scale, held at a coverage.

    The first λ is `unit`, or the one that is right for normal residuals measured by their mean
    absolute value.
    """
    level = checked_level(confidence_level)
    normal = NormalDist()
    mean_absolute = 2.0 * normal.pdf(0.0)
    start = normal.inv_cdf(1.0 - level / 2.0) / mean_absolute if unit is None else unit
    risk = Risk(
        losses.Miscoverage(),
        level=level,
        step=steps.Fixed(0.1),
        start=min(start, _LARGEST),
        bounds=(0.0, _LARGEST),
    )
    return Controller(sets.Scale(), risk)


def set_controller(confidence_level: float) -> Controller:
    """Label sets by a threshold on the probabilities, held at a coverage."""
    risk = Risk(losses.Miscoverage(), level=checked_level(confidence_level), step=steps.Fixed(0.05))
    return Controller(sets.Threshold(), risk)
