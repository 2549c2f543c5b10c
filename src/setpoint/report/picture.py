"""The report as one static picture for a slide: a PNG, or a PDF that can be scaled."""

import os
from collections.abc import Hashable, Mapping
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

from setpoint._files import put
from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.guarantee import asked_of
from setpoint.report import curves, words
from setpoint.report.curves import View, view_of
from setpoint.report.figures import LIGHT, library
from setpoint.report.numbers import metrics as numbers_of

__all__ = ["picture"]

_DPI = 110
_ROWS = 300
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
    are those of all together and the curves those of the one with the highest risk, if none is
    named.
    """
    kind = Path(path).suffix.lower()
    if kind not in _UNSIGNED:
        raise InputError(f"a picture is a .png or a .pdf, got {os.fspath(path)!r}")
    figure = library("matplotlib.figure").Figure(
        figsize=(12.8, 7.2), dpi=_DPI, layout="constrained"
    )
    numbers = numbers_of(trace, window=window) if metrics is None else metrics
    parts = figure.subplot_mosaic([["words", "rows"], ["words", "windows"]], width_ratios=[2, 3])
    view = view_of(trace, stream, alone=True)
    _words(parts["words"], numbers, title)
    titles = {
        "rows": _rows(parts["rows"], view.part(slice(-_ROWS, None)), words.target(numbers)),
        "windows": _rolling(parts["windows"], view, numbers["window"]),
    }
    for name, text in titles.items():
        panel = parts[name]
        panel.set_title(_text(text), loc="left", fontsize=11, color=LIGHT["ink"])
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LIGHT["muted"])
        panel.grid(visible=True, axis="y", color=LIGHT["grid"], linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=9, colors=LIGHT["muted"])
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=9, frameon=False, loc="upper right", ncols=3)
    buffer = BytesIO()
    figure.savefig(buffer, format=kind[1:], metadata=_UNSIGNED[kind])
    return put(path, buffer.getvalue())


def _words(panel: Any, numbers: Mapping[str, Any], title: str) -> None:
    """The outcome, the sets before and after, and whether they were of use."""
    panel.set_axis_off()
    lines = [words.outcome(numbers)]
    if numbers["usefulness"] is not None:
        lines.append(f"The {words.of_sets(numbers)} are {words.use(numbers['usefulness'])}.")
    paragraphs = "\n\n".join(fill(_text(line), 48) for line in lines)
    ink = {"color": LIGHT["ink"], "va": "top", "transform": panel.transAxes}
    panel.text(0.0, 1.0, fill(_text(title), 34), fontsize=17, **ink)
    panel.text(0.0, 0.86, paragraphs, fontsize=11.5, linespacing=1.4, **ink)
    before = numbers.get("before")
    rows = [row for row in words.beside(numbers) if row[0].startswith(_TOLD)]
    cells = [
        ([_cell(before, *then)] if before else []) + [_cell(numbers, *now)] for _, now, then in rows
    ]
    heads = ([before["name"]] if before else []) + ["with setpoint"]
    titles = [fill(_text(title), 30) for title, *_ in rows]
    table = panel.table(
        cells, rowLabels=titles, colLabels=heads, edges="horizontal", bbox=(0.42, 0.1, 0.58, 0.34)
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10.5)
    for cell in table.get_celld().values():
        cell.set_edgecolor(LIGHT["grid"])
        cell.get_text().set_color(LIGHT["ink"])


def _cell(numbers: Mapping[str, Any], name: str, form: str) -> str:
    """A number by its name, as people write it."""
    value: Any = numbers
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return "–" if value is None else words.written(value, form)


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
        panel.yaxis.set_major_formatter(library("matplotlib.ticker").PercentFormatter(1.0))
    for worst in rolling.worst[:3]:
        panel.axvspan(view.x[worst.start], view.x[worst.stop], color=_shade("worst"), linewidth=0)
    line = curves.broken(rolling.x, rolling.risk)
    panel.plot(*line, color=LIGHT["line"], linewidth=1.1)
    _add_level(panel, rolling.level)
    return f"{what} of the last {rolling.window:,} labels{view.name}, worst times shaded"
