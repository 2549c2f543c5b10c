"""The report as one static picture for a slide: a PNG, or a PDF that can be scaled."""

import os
from collections.abc import Hashable, Mapping
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any

from setpoint._files import put
from setpoint._html import amount
from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.guarantee import asked_of
from setpoint.report import curves, words
from setpoint.report.curves import View, view_of
from setpoint.report.figures import LIGHT, library
from setpoint.report.numbers import metrics as numbers_of

_DPI = 110
_ROWS = 300
_PERCENT = "\N{NO-BREAK SPACE}%"
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

    The suffix of the path says what it is, `.png` or `.pdf`. It needs matplotlib and neither a
    browser nor a display.

    The parameters are those of `write`. `stream` is the id of a stream; of several, the numbers
    are those of all together and the curves those of the one with the most trouble, if none is
    named.
    """
    kind = Path(path).suffix.lower()
    if kind not in _UNSIGNED:
        raise InputError(f"a picture is a .png or a .pdf, got {os.fspath(path)!r}")
    figure = library("matplotlib.figure").Figure(figsize=(12.8, 7.2), dpi=_DPI)
    numbers = numbers_of(trace, window=window) if metrics is None else metrics
    view = view_of(trace, stream, alone=True)
    _words(figure, numbers, title)
    upper, lower = (figure.add_axes((0.49, bottom, 0.48, 0.34)) for bottom in (0.55, 0.08))
    target = words.target(numbers)
    titles = (
        (upper, _rows(upper, view.part(slice(-_ROWS, None)), target), 0.12),
        (lower, _rolling(lower, view, numbers["window"]), 0.03),
    )
    for panel, text, above in titles:
        panel.set_title(_text(text), loc="left", fontsize=12, color=LIGHT["ink"], y=1.0 + above)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LIGHT["muted"])
        panel.grid(visible=True, axis="y", color=LIGHT["grid"], linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=9, colors=LIGHT["muted"])
        if view.axis == "time":
            dates = library("matplotlib.dates")
            ticks = dates.AutoDateLocator(maxticks=8)
            panel.xaxis.set_major_locator(ticks)
            panel.xaxis.set_major_formatter(dates.ConciseDateFormatter(ticks))
        if panel.get_legend_handles_labels()[0]:
            place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
            panel.legend(fontsize=9, frameon=False, ncols=3, **place)
    buffer = BytesIO()
    figure.savefig(buffer, format=kind[1:], metadata=_UNSIGNED[kind])
    return put(path, buffer.getvalue())


def _words(figure: Any, numbers: Mapping[str, Any], title: str) -> None:
    """The outcome, the sets before and after, and whether they were of use, one below the other."""
    left, middle, right, line = 0.03, 0.305, 0.405, 0.035
    ink = {"color": LIGHT["ink"], "va": "top"}
    place = 0.95
    for text in wrap(_text(title), 34)[:2]:
        figure.text(left, place, text, fontsize=18, **ink)
        place -= 1.4 * line
    before, place = numbers.get("before"), place - 0.5 * line
    lines = [words.outcome(numbers)]
    if numbers["usefulness"] is not None:
        lines.append(f"The {words.of_sets(numbers)} are {words.use(numbers['usefulness'])}.")
    rows = [row for row in words.beside(numbers) if row[0].startswith(_TOLD)]
    table = [("", before["name"] if before else "", "with setpoint")]
    for name, now, then in rows:
        table.append((name, words.cell(before, *then) if before else "", words.cell(numbers, *now)))
    for text in wrap(_text(lines[0].replace(" %", _PERCENT)), 52):
        figure.text(left, place, text, fontsize=11.5, **ink)
        place -= line
    place -= 0.6 * line
    for number, cells in enumerate(table):
        names = wrap(_text(cells[0]), 33)
        for below, text in enumerate(names):
            figure.text(left, place - below * line, text, fontsize=10.5, **ink)
        for end, text in zip((middle, right), cells[1:], strict=True):
            weight = "normal" if number else "bold"
            figure.text(end, place, text, fontsize=10.5, ha="right", weight=weight, **ink)
        place -= max(len(names), 1) * line
        rule = library("matplotlib.lines").Line2D((left, right), (place + 0.3 * line,) * 2)
        rule.set(color=LIGHT["grid"], linewidth=0.8)
        figure.add_artist(rule)
    place -= 0.6 * line
    told = wrap(_text(lines[-1].replace(" %", _PERCENT)), 52) if len(lines) > 1 else []
    for text in told[: max(int((place - 0.02) / line), 0)]:
        figure.text(left, place, text, fontsize=11.5, **ink)
        place -= line


def _text(text: str) -> str:
    """Text that matplotlib shows letter for letter: no formulas."""
    return text.replace("$", r"\$")


def _shade(name: str) -> tuple[str, float]:
    """A translucent colour of the pages as matplotlib takes it."""
    red, green, blue, opacity = LIGHT[name].removeprefix("rgba(").removesuffix(")").split(",")
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}", float(opacity)


def _add_level(panel: Any, level: float, label: str | None = None) -> None:
    panel.axhline(level, color=LIGHT["ink"], linewidth=1.0, linestyle="--", label=label)


def _rows(panel: Any, view: View, target: str) -> str:
    rows = curves.rows(view)
    if rows.bands:
        height = view.trace.tape.y[view.rows]
        low, high = curves.finite_range(rows.y, *(end for band in rows.bands for end in band))
        for place, band in enumerate(rows.bands):
            ends = curves.broken(rows.x, *curves.closed(band, low - 1.0, high + 1.0))
            label = None if place else words.interval(asked_of(view.trace.controller.risks[0]))
            panel.fill_between(*ends, color=_shade("fill"), linewidth=0, label=label)
        line = curves.broken(rows.at, rows.y)
        panel.plot(*line, color=LIGHT["ink"], linewidth=0.9, label=_text(target))
        panel.set_ylim(low, high)
        short = library("matplotlib.ticker").FuncFormatter(
            lambda y, _: amount(y) if abs(y) < 1e6 else f"{y:.3g}"
        )
        panel.yaxis.set_major_formatter(short)
        panel.set_ylabel(_text(target), fontsize=9, color=LIGHT["muted"])
    else:
        height = view.sizes
        panel.step(view.x, height, color=LIGHT["line"], linewidth=1.0, where="post", label="size")
    misses = view.x[rows.misses], height[rows.misses]
    panel.plot(*misses, "x", markersize=5, color=LIGHT["miss"], label="miss")
    return f"The last {len(view.rows):,} rows{view.name}"


def _rolling(panel: Any, view: View, window: int) -> str:
    rolling, what = curves.rolling(view, 0, window), "Mean loss"
    if asked_of(view.trace.controller.risks[0]) is not None:
        rolling, what = rolling.covered(), "Coverage"
        percent = library("matplotlib.ticker").FuncFormatter(lambda y, _: f"{100.0 * y:.4g} %")
        panel.yaxis.set_major_formatter(percent)
    shaded = rolling.shaded(len(view.rows))
    for worst in shaded:
        panel.axvspan(view.x[worst.start], view.x[worst.stop], color=_shade("worst"), linewidth=0)
    line = curves.broken(rolling.x, rolling.risk)
    panel.plot(*line, color=LIGHT["line"], linewidth=1.1)
    _add_level(panel, rolling.level)
    more = ", worst times shaded" if shaded else ""
    return f"{what} of the last {rolling.window:,} labels{view.name}{more}"
