"""Every rule of the library, beside the default, on the same streams."""

from setpoint_paper.comparison.experiment import reproduce

__all__ = ["reproduce"]
