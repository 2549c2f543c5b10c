"""One figure of anything that can be drawn, and a summary for a slide."""

import os
from collections.abc import Hashable, Mapping
from io import BytesIO
from math import inf, isfinite
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from setpoint._files import put
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.guarantee import Certificate, asked_of
from setpoint.report import words
from setpoint.report.figures import (
    LIGHT,
    add_band,
    blank,
    intervals,
    library,
    line_of,
    titled,
    windows,
)
from setpoint.report.numbers import Numbers
from setpoint.report.numbers import metrics as numbers_of
from setpoint.report.views import view_of
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


# A slide

_ROWS, _WIDE = 300, 52
_TOLD = ("Coverage", "Worst", "Longest", "Mean width", "Mean size")
"""The rows of the table on a slide begin so."""
# matplotlib signs its files with its version and the time, which would change them each time.
_UNSIGNED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def picture(
    trace: Trace,
    path: str | os.PathLike[str],
    stream: Hashable = None,
    *,
    title: str = "",
    metrics: Mapping[str, Any] | None = None,
    window: int = 250,
) -> Path:
    """Writes a summary for a slide: the outcome, before and after, the last sets, worst windows.

    The suffix of the path says what it is, `.png` or `.pdf`. It needs neither a browser nor a
    display.

    The parameters are those of `write`. `stream` is the id of a stream; of several, the numbers
    are those of all together and the curves those of the one with the most trouble, if none is
    named.
    """
    kind = Path(path).suffix.lower()
    if kind not in _UNSIGNED:
        raise InputError(f"a picture is a .png or a .pdf, got {os.fspath(path)!r}")
    slide = library("matplotlib.figure").Figure(figsize=(12.8, 7.2), dpi=110)
    numbers = Numbers.read(numbers_of(trace, window=window) if metrics is None else metrics)
    _text(slide, numbers, title)
    (stream,) = view_of(trace, stream, alone=True).streams
    drawn = (
        intervals(trace, stream, start=-_ROWS, target=numbers.target),
        windows(trace, stream, window=numbers.scores["window"]),
    )
    for bottom, figure in zip((0.55, 0.08), drawn, strict=True):
        _draw(slide.add_axes((0.49, bottom, 0.48, 0.34)), figure)
    buffer = BytesIO()
    slide.savefig(buffer, format=kind[1:], metadata=_UNSIGNED[kind])
    return put(path, buffer.getvalue())


def _text(slide: Any, numbers: Numbers, title: str) -> None:
    """The outcome, the sets before and after, and whether they were of use, one below the other."""
    left, middle, right, line, place = 0.03, 0.305, 0.405, 0.035, 0.95

    def say(lines: list[str], size: float, step: float) -> None:
        nonlocal place
        for text in lines:
            if place > 0.02:
                slide.text(left, place, _bare(text), fontsize=size, color=LIGHT["ink"], va="top")
            place -= step

    say(wrap(title, 34)[:2], 18.0, 1.4 * line)
    place -= 0.5 * line
    say(_lines(words.outcome(numbers)), 11.5, line)
    place -= 0.6 * line
    before = numbers.before
    table = [("", before["name"] if before else "", "with setpoint")]
    for name, now, then in words.beside(numbers):
        if name.startswith(_TOLD):
            old = words.cell(before, *then) if before else ""
            table.append((name, old, words.cell(numbers.plain, *now)))
    for number, cells in enumerate(table):
        for end, text in zip((middle, right), cells[1:], strict=True):
            weight = "normal" if number else "bold"
            slide.text(end, place, _bare(text), fontsize=10.5, ha="right", va="top", weight=weight)
        say(wrap(cells[0], 33) or [""], 10.5, line)
    place -= 0.6 * line
    use = numbers.usefulness
    if use is not None:
        say(
            wrap(f"The {words.of_sets(numbers)} are {use['use']}: {use['words']}.", _WIDE),
            11.5,
            line,
        )


def _lines(text: str) -> list[str]:
    """A sentence on several lines, none of which begins with a sign of percent."""
    return wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), _WIDE)


def _bare(text: str) -> str:
    """Text that matplotlib shows letter for letter: no formulas, no entities of plotly."""
    plain = text.replace("&#36;", "$").replace("&#123;", "{").replace("&lt;", "<")
    return plain.replace("&gt;", ">").replace("&amp;", "&").replace("$", r"\$")


def _colour(colour: str) -> Any:
    """A colour of the pages as matplotlib takes it."""
    if not colour.startswith("rgba("):
        return colour
    red, green, blue, opacity = map(float, colour[5:-1].split(","))
    return red / 255.0, green / 255.0, blue / 255.0, opacity


def _places(x: Any) -> Any:
    """Places on the horizontal axis: plotly takes times as text."""
    values = np.asarray(x)
    return values.astype("datetime64[us]") if values.dtype.kind in "UO" else values


def _draw(panel: Any, figure: Any) -> None:
    """A plotly figure of lines, bands and marks on axes of matplotlib."""
    before = None
    for curve in figure.data:
        x, y = _places(curve.x), np.asarray(curve.y, np.float64)
        label = _bare(curve.name) if curve.showlegend is not False else None
        if curve.mode == "markers":
            colour = curve.marker.line.color or curve.marker.color
            panel.plot(x, y, "x", markersize=5, color=_colour(colour), label=label)
        elif curve.fill == "tonexty":
            fill = _colour(curve.fillcolor)
            panel.fill_between(x, y, before, color=fill, linewidth=0, label=label)
        else:
            width = curve.line.width if label else 0.0  # the edge of a band
            drawn = panel.plot(x, y, color=_colour(curve.line.color), linewidth=width, label=label)
            drawn[0].set_drawstyle("steps-post" if curve.line.shape == "hv" else "default")
        before = y
    for shape in figure.layout.shapes:
        if shape.type == "rect":
            ends = _places([shape.x0, shape.x1])
            panel.axvspan(*ends, color=_colour(shape.fillcolor), linewidth=0)
        else:
            panel.axhline(shape.y0, color=_colour(shape.line.color), linewidth=1.0, linestyle="--")
    if figure.layout.yaxis.range:
        panel.set_ylim(*figure.layout.yaxis.range)
    share = (figure.layout.yaxis.tickformat or "").endswith("%")
    ticks = library("matplotlib.ticker").FuncFormatter(
        lambda y, _: f"{100.0 * y:.4g} %" if share else f"{y:,.6g}"
    )
    panel.yaxis.set_major_formatter(ticks)
    if len(figure.data) and _places(figure.data[0].x).dtype.kind == "M":
        dates = library("matplotlib.dates")
        locator = dates.AutoDateLocator(maxticks=8)
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    title = _bare(figure.layout.title.text)
    panel.set_title(title, loc="left", fontsize=12, color=LIGHT["ink"], y=1.12)
    panel.set_ylabel(_bare(figure.layout.yaxis.title.text or ""), fontsize=9, color=LIGHT["muted"])
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(visible=True, axis="y", color=LIGHT["grid"], linewidth=0.7)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=9, colors=LIGHT["muted"])
    panel.legend(
        fontsize=9, frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
    )  # fmt: skip
