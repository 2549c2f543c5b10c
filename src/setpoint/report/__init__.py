"""Reports: a replayed trace as one page, as figures for notebooks, as a picture, as numbers.

`write` makes a self-contained HTML page that needs no network; `picture` a summary for a slide;
`metrics` the numbers behind both. Every figure of the page is a function from a trace to a plotly
figure. Figures need the extra `plots`.
"""

from setpoint.report.drawing import picture, plot
from setpoint.report.figures import (
    groups,
    intervals,
    lengths,
    price,
    risk_over_time,
    streaks,
    theta,
    windows,
)
from setpoint.report.numbers import metrics
from setpoint.report.page import write

__all__ = [
    "groups", "intervals", "lengths", "metrics", "picture", "plot", "price", "risk_over_time",
    "streaks", "theta", "windows", "write",
]  # fmt: skip
