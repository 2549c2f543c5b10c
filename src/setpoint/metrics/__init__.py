"""Metrics of sets: risk, coverage, length, streaks, groups, scores, windows.

Functions over arrays, and `summary` for all of them at once. A label or loss of NaN means "not
observed": the step is left out and counted.
"""

from setpoint.metrics.arrays import (
    calibration,
    coverage,
    coverage_by_width,
    covered,
    delta_coverage,
    lengths,
    mc,
    miscoverage_counter,
    msl,
    noise_floor,
    pinball,
    risk,
    streaks,
)
from setpoint.metrics.summaries import Summary, summary
from setpoint.metrics.usefulness import Use, Usefulness, label_usefulness, usefulness

__all__ = [
    "Summary", "Use", "Usefulness", "calibration", "coverage", "coverage_by_width", "covered",
    "delta_coverage", "label_usefulness", "lengths", "mc", "miscoverage_counter", "msl",
    "noise_floor", "pinball", "risk", "streaks", "summary", "usefulness",
]  # fmt: skip
