"""How good the sets of a stream were: risk, coverage, length, streaks, groups, scores, windows.

Functions over arrays, and `summary` for all of them at once. A label or loss of NaN means "not
observed": the step is left out and counted.
"""

from setpoint.metrics.arrays import (
    coverage,
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
from setpoint.metrics.deviations import GroupCoverage, delta_coverage, noise_floor
from setpoint.metrics.summaries import Summary, size_summary, summary
from setpoint.metrics.usefulness import (
    Use,
    Usefulness,
    label_usefulness,
    rolling_quantile,
    usefulness,
)

__all__ = [
    "GroupCoverage", "Summary", "Use", "Usefulness", "coverage", "covered",
    "delta_coverage", "false_negatives", "label_usefulness", "labels_covered", "lengths", "mc",
    "mean_finite_length", "mean_length",
    "miscoverage_counter", "msl", "noise_floor", "pinball", "risk", "rolling_quantile", "set_sizes",
    "size_summary", "streaks", "summary", "usefulness",
]  # fmt: skip
