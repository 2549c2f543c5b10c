"""Label sets on real streams that drift, an experiment that the paper has not."""

from setpoint_paper.classification.experiment import reproduce

__all__ = ["reproduce"]
