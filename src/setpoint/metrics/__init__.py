"""How good the sets of a stream were: risk, coverage, length, streaks, groups, scores, windows.

Functions over arrays, and `summary` for all of them at once. A label or loss of NaN means "not
observed": the step is left out and counted.
"""

from setpoint.metrics.arrays import (
    coverage,
    coverage_by_width,
    covered,
    false_negatives,
    labels_covered,
    lengths,
    mc,
    mean_finite_length,
    mean_length,
    miscoverage_counter,
    msl,
    pinball,
    risk,
    set_sizes,
    streaks,
)
from setpoint.metrics.deviations import delta_coverage, noise_floor
from setpoint.metrics.quantiles import calibration
from setpoint.metrics.summaries import Summary, summary
from setpoint.metrics.usefulness import Use, Usefulness, label_usefulness, usefulness

__all__ = [
    "Summary",
    "Use",
    "Usefulness",
    "calibration",
    "coverage",
    "coverage_by_width",
    "covered",
    "delta_coverage",
    "false_negatives",
    "label_usefulness",
    "labels_covered",
    "lengths",
    "mc",
    "mean_finite_length",
    "mean_length",
    "miscoverage_counter",
    "msl",
    "noise_floor",
    "pinball",
    "risk",
    "set_sizes",
    "streaks",
    "summary",
    "usefulness",
]
