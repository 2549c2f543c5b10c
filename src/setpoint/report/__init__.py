"""Reports: a replayed trace as one page, as figures for notebooks, as numbers.

`write` makes a self-contained HTML page that needs no network; `metrics` the numbers behind it.
Every figure of the page is a function from a trace to a plotly figure. Figures need the extra
`plots`.
"""

from setpoint.report.figures import (
    groups,
    intervals,
    lengths,
    plot,
    price,
    windows,
)
from setpoint.report.numbers import metrics
from setpoint.report.page import write

__all__ = [
    "groups", "intervals", "lengths", "metrics", "plot", "price", "windows", "write",
]  # fmt: skip
