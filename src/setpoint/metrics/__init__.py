"""How good the sets of a stream were: risk, coverage, length, streaks, groups, scores, windows.

Functions over arrays, `summary` for all of them at once, and `Running` for the same table one step
at a time. A label or loss of NaN means "not observed": the step is left out and counted.
"""

from setpoint.metrics.arrays import (
    correlation,
    coverage,
    covered,
    empty_share,
    full_share,
    lengths,
    longest_streak,
    mc,
    mean_finite_length,
    mean_length,
    median_length,
    miscoverage_counter,
    msl,
    pinball,
    risk,
    streaks,
    winkler,
)
from setpoint.metrics.groups import GroupCoverage, delta_coverage, noise_floor
from setpoint.metrics.labels import (
    f1,
    false_negatives,
    false_positives,
    labels_covered,
    set_sizes,
    size_share,
)
from setpoint.metrics.summaries import Running, Summary, size_summary, summary
from setpoint.metrics.windows import WindowErrors, window_errors

__all__ = [
    "GroupCoverage", "Running", "Summary", "WindowErrors", "correlation", "coverage", "covered",
    "delta_coverage", "empty_share", "f1", "false_negatives", "false_positives", "full_share",
    "labels_covered", "lengths", "longest_streak", "mc", "mean_finite_length", "mean_length",
    "median_length", "miscoverage_counter", "msl", "noise_floor", "pinball", "risk",
    "set_sizes", "size_share", "size_summary", "streaks", "summary", "window_errors", "winkler",
]  # fmt: skip
