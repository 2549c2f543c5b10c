"""One figure of anything that can be drawn."""

from math import inf, isfinite
from typing import Any

import numpy as np

from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.guarantee import Certificate, asked_of
from setpoint.report import words
from setpoint.report.figures import LIGHT, add_band, blank, intervals, line_of, titled
from setpoint.stream import Stream


def plot(subject: Trace | Stream | Certificate) -> Any:
    """A plotly figure: the sets and labels of a trace or of a stream's last labels, or the mean
    loss of each risk within its guarantee.

    Traces, streams and certificates have it as a method, `trace.plot()`.
    """
    if isinstance(subject, Trace):
        return intervals(subject)
    if isinstance(subject, Stream):
        return _last(subject)
    if isinstance(subject, Certificate):
        return _guaranteed(subject)
    raise InputError(f"a plot is of a Trace, a Stream or a Certificate, got {subject!r}")


def _last(stream: Stream) -> Any:
    """The sets of the last labels, and the labels."""
    recent = [label for label in stream.recent if label.size == label.size]
    if not recent:
        raise InputError("a plot of a stream needs labels, and none came since it was made")
    x, figure = np.arange(1 - len(recent), 1), blank()
    if all(isinstance(label.y, float) for label in recent):
        y = np.array([label.y for label in recent])
        ends = np.array([(label.lower, label.upper) for label in recent])
        lower, upper = np.where(np.isfinite(ends) & (ends[:, :1] <= ends[:, 1:]), ends, np.nan).T
        name = words.interval(asked_of(stream.controller.risks[0]))
        add_band(figure, x, lower, upper, name, edge=0.8)
        figure.add_scatter(x=x, y=y, mode="lines+markers", name="label", line=line_of("ink", 1.1))
        missed, height, axis = (y < ends[:, 0]) | (y > ends[:, 1]), y, "label"
    else:
        sizes = np.array([label.size for label in recent])
        figure.add_scatter(x=x, y=sizes, mode="lines", name="size", line=line_of("line"))
        losses = [
            label.loss[0] if isinstance(label.loss, tuple) else label.loss for label in recent
        ]
        missed, height, axis = np.array([bool(loss) for loss in losses]), sizes, "size of the set"
    marker = {"color": LIGHT["miss"], "size": 8, "symbol": "x-thin", "line": line_of("miss")}
    figure.add_scatter(x=x[missed], y=height[missed], mode="markers", name="miss", marker=marker)
    caption = f"The last {len(recent):,} labels and their sets. Open sets are left out."
    return titled(figure, None, "The last labels", caption, x="labels ago", y=axis)


def _guaranteed(certificate: Certificate) -> Any:
    """The mean loss of each risk, its level, and where the guarantee lets the mean be."""
    figure = blank()
    names = [f"{place}. {risk.name}" for place, risk in enumerate(certificate.risks, 1)]
    for name, risk in zip(names, certificate.risks, strict=True):
        low = -inf if risk.lower is None else risk.level + risk.lower
        high = inf if risk.upper is None else risk.level + risk.upper
        low, high = max(low, risk.level - 1.0), min(high, risk.level + 1.0)
        figure.add_bar(
            x=[name], y=[high - low], base=[low], name="guaranteed", legendgroup="guaranteed",
            marker={"color": LIGHT["fill"]}, showlegend=name == names[0],
        )  # fmt: skip
    values = {"mean loss": ("line", [r.mean for r in certificate.risks])}
    values["level"] = ("ink", [r.level for r in certificate.risks])
    for label, (colour, heights) in values.items():
        marker = {"color": LIGHT[colour], "size": 26, "symbol": "line-ew-open"}
        known = [height if isfinite(height) else None for height in heights]
        figure.add_scatter(x=names, y=known, mode="markers", name=label, marker=marker)
    caption = "The mean loss so far, what was asked for, and the range that is guaranteed."
    return titled(figure, None, "What is guaranteed", caption, x="", y="mean loss")
