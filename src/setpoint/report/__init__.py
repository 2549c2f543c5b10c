"""Reports: a replayed trace as one page, as figures for notebooks, as a picture, as numbers.

`write` makes a self-contained HTML page that needs no network; `png` a static picture; `metrics`
the numbers behind both. Every figure of the page is a function from a trace to a plotly figure.
Figures need the extra `plots`.
"""

from setpoint.report._metrics import metrics, write_metrics
from setpoint.report._page import write
from setpoint.report._picture import png
from setpoint.report._risk_figures import groups, risk_over_time, streaks, windows
from setpoint.report._set_figures import intervals, lengths, theta

__all__ = [
    "groups",
    "intervals",
    "lengths",
    "metrics",
    "png",
    "risk_over_time",
    "streaks",
    "theta",
    "windows",
    "write",
    "write_metrics",
]
