"""The paper's depth experiments (section 4.2)."""

from setpoint_paper.depth.experiment import reproduce

__all__ = ["reproduce"]
