"""The report as one static picture, for places where no page can be opened."""

import os
from collections.abc import Hashable
from io import BytesIO
from pathlib import Path
from typing import Any

from setpoint._files import put
from setpoint.bulk.replay import Trace
from setpoint.report import curves
from setpoint.report.curves import View, view_of
from setpoint.report.figures import LIGHT, SERIES, library

__all__ = ["png"]

_DPI = 110
_ROWS = 300


def png(
    trace: Trace,
    path: str | os.PathLike[str],
    stream: Hashable = None,
    *,
    title: str = "",
    window: int = 250,
) -> Path:
    """Writes an overview as a PNG: risk and guarantee, the last sets, θ, the worst windows.

    It needs matplotlib and neither a browser nor a display.

    The parameters are those of `write`. `stream` is the id of a stream; of several, the risk is
    that of all together and the rest that of the one with the highest risk, if none is named.
    """
    figure = library("matplotlib.figure").Figure(figsize=(9.0, 9.6), dpi=_DPI, layout="constrained")
    panels = figure.subplots(4, 1)
    every, view = view_of(trace, stream), view_of(trace, stream, alone=True)
    titles = (
        _risk(panels[0], every),
        _rows(panels[1], view.part(slice(-_ROWS, None))),
        _theta(panels[2], view),
        _rolling(panels[3], view, window),
    )
    for panel, text in zip(panels, titles, strict=True):
        panel.set_title(_text(text), loc="left", fontsize=10, color=LIGHT["ink"])
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LIGHT["muted"])
        panel.grid(visible=True, axis="y", color=LIGHT["grid"], linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8, colors=LIGHT["muted"])
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=8, frameon=False, loc="upper right", ncols=3)
    if title:
        figure.suptitle(_text(title), x=0.01, ha="left", fontsize=13, color=LIGHT["ink"])
    buffer = BytesIO()
    # matplotlib signs its files with its version, which would change them from one to the next.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return put(path, buffer.getvalue())


def _text(text: str) -> str:
    """Text that matplotlib shows letter for letter: no formulas."""
    return text.replace("$", r"\$")


def _shade(name: str) -> tuple[str, float]:
    """A translucent colour of the pages as matplotlib takes it."""
    red, green, blue, opacity = LIGHT[name].removeprefix("rgba(").removesuffix(")").split(",")
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}", float(opacity)


def _add_level(panel: Any, level: float, label: str | None = None) -> None:
    panel.axhline(level, color=LIGHT["ink"], linewidth=1.0, linestyle="--", label=label)


def _risk(panel: Any, view: View) -> str:
    curve = curves.risks(view, 0)
    title = f"Risk over time: {view.trace.controller.risks[0].name}{view.name}, "
    title += f"{curve.level:.4g} asked for"
    if len(curve.risk):
        title += f", {curve.risk[-1]:.4g} came out"
    if curve.low is not None and curve.high is not None:
        shade = {"color": _shade("fill"), "linewidth": 0}
        panel.fill_between(curve.x, curve.low, curve.high, label="guaranteed", **shade)
        if len(curve.risk):
            title += f", {curve.low[-1]:.4g} to {curve.high[-1]:.4g} guaranteed"
    panel.plot(curve.x, curve.risk, color=LIGHT["line"], linewidth=1.3, label="risk so far")
    _add_level(panel, curve.level, "level")
    panel.set_ylim(*curves.risk_range(curve))
    return title


def _rows(panel: Any, view: View) -> str:
    rows = curves.rows(view)
    if rows.bands:
        height = view.trace.tape.y[view.rows]
        low, high = curves.finite_range(rows.y, *(end for band in rows.bands for end in band))
        for place, band in enumerate(rows.bands):
            ends = curves.broken(rows.x, *curves.closed(band, low - 1.0, high + 1.0))
            label = None if place else "set"
            panel.fill_between(*ends, color=_shade("fill"), linewidth=0, label=label)
        line = curves.broken(rows.at, rows.y)
        panel.plot(*line, color=LIGHT["ink"], linewidth=0.9, label="label")
        panel.set_ylim(low, high)
    else:
        height = view.sizes
        panel.step(view.x, height, color=LIGHT["line"], linewidth=1.0, where="post", label="size")
    misses = view.x[rows.misses], height[rows.misses]
    panel.plot(*misses, "x", markersize=5, color=LIGHT["miss"], label="miss")
    return f"The last {len(view.rows):,} rows{view.name}"


def _theta(panel: Any, view: View) -> str:
    risks = view.trace.controller.risks
    for place, (risk, values) in enumerate(zip(risks, view.thetas, strict=True)):
        drawn = curves.thinned(values)
        name = _text(f"{risk.name} at {risk.level:g}") if len(risks) > 1 else None
        line = curves.broken(view.x[drawn], values[drawn])
        panel.plot(*line, linewidth=1.1, color=LIGHT[SERIES[place % len(SERIES)]], label=name)
    return f"θ{view.name}"


def _rolling(panel: Any, view: View, window: int) -> str:
    rolling = curves.rolling(view, 0, window)
    for worst in rolling.worst[:3]:
        panel.axvspan(view.x[worst.start], view.x[worst.stop], color=_shade("worst"), linewidth=0)
    line = curves.broken(rolling.x, rolling.risk)
    panel.plot(*line, color=LIGHT["line"], linewidth=1.1)
    _add_level(panel, rolling.level)
    return f"Mean loss of the last {rolling.window:,} labels{view.name}, worst windows shaded"
