"""The paper's regression experiments (section 4.1)."""

from setpoint_paper.tabular.experiment import reproduce

__all__ = ["reproduce"]
