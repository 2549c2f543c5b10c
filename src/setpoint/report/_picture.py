"""The report as one static picture, for places where no page can be opened."""

import os
from collections.abc import Hashable
from io import BytesIO
from pathlib import Path
from typing import Any

from setpoint._files import put
from setpoint.bulk.replay import Trace
from setpoint.report import _curves as curves
from setpoint.report._look import LIGHT, library
from setpoint.report._view import View, sizes_of, view

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

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    path
        Where to write it, such as `report.png`.
    stream
        The id of a stream; of several, the risk is that of all together and the rest that of
        the one with the highest risk, if none is named.
    title
        A line above the picture.
    window
        Labels in a sliding window.

    Returns
    -------
    The path.
    """
    made = library("matplotlib.figure").Figure(figsize=(9.0, 9.6), dpi=_DPI, layout="constrained")
    panels = made.subplots(4, 1)
    every, seen = view(trace, stream), view(trace, stream, alone=True)
    _risk(panels[0], trace, every)
    _rows(panels[1], seen.taken(slice(-_ROWS, None)))
    _theta(panels[2], trace, seen)
    _rolling(panels[3], seen, window)
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LIGHT["muted"])
        panel.grid(visible=True, axis="y", color=LIGHT["grid"], linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8, colors=LIGHT["muted"])
        panel.title.set_fontsize(10)
        panel.title.set_color(LIGHT["ink"])
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=8, frameon=False, loc="upper right", ncols=3)
    if title:
        made.suptitle(title, x=0.01, ha="left", fontsize=13, color=LIGHT["ink"])
    buffer = BytesIO()
    # matplotlib signs its files with its version, which would change them from one to the next.
    made.savefig(buffer, format="png", metadata={"Software": None})
    return put(path, buffer.getvalue())


def _shade(name: str) -> tuple[str, float]:
    """A translucent colour of the pages as matplotlib takes it."""
    red, green, blue, opacity = LIGHT[name].removeprefix("rgba(").removesuffix(")").split(",")
    return "#" + "".join(f"{int(part):02x}" for part in (red, green, blue)), float(opacity)


def _risk(panel: Any, trace: Trace, seen: View) -> None:
    found = curves.risks(seen, 0)
    if found.low is not None and found.high is not None:
        panel.fill_between(
            found.x, found.low, found.high, color=_shade("fill"), linewidth=0, label="guaranteed"
        )
    panel.plot(found.x, found.risk, color=LIGHT["line"], linewidth=1.3, label="risk so far")
    panel.axhline(found.level, color=LIGHT["ink"], linewidth=1.0, linestyle="--", label="level")
    panel.set_ylim(*curves.risk_range(found))
    risk = trace.controller.risks[0]
    told = f"Risk over time: {risk.name}{seen.name}, {found.level:.4g} asked for"
    if len(found.risk):
        told += f", {found.risk[-1]:.4g} came out"
        if found.low is not None and found.high is not None:
            told += f", {found.low[-1]:.4g} to {found.high[-1]:.4g} guaranteed"
    panel.set_title(told, loc="left")


def _rows(panel: Any, seen: View) -> None:
    found = curves.rows(seen)
    if found.bands:
        low, high = curves.finite_range(found.y, *(end for band in found.bands for end in band))
        for band in found.bands:
            x, lower, upper = curves.broken(found.x, *curves.closed(band, low - 1.0, high + 1.0))
            panel.fill_between(
                x,
                lower,
                upper,
                color=_shade("fill"),
                linewidth=0,
                label="set" if band is found.bands[0] else None,
            )
        panel.plot(
            *curves.broken(found.at, found.y), color=LIGHT["ink"], linewidth=0.9, label="label"
        )
        panel.set_ylim(low, high)
        height = seen.trace.tape.y[seen.rows]
    else:
        height = sizes_of(seen.trace, seen.rows)
        panel.step(seen.x, height, color=LIGHT["line"], linewidth=1.0, where="post", label="size")
    missed = found.misses
    panel.plot(
        seen.x[missed],
        height[missed],
        linestyle="none",
        marker="x",
        markersize=5,
        color=LIGHT["miss"],
        label="miss",
    )
    panel.set_title(f"The last {len(seen.rows):,} rows{seen.name}", loc="left")


def _theta(panel: Any, trace: Trace, seen: View) -> None:
    several = len(trace.controller.risks) > 1
    for place, (risk, values) in enumerate(
        zip(trace.controller.risks, trace.theta[:, seen.rows], strict=True)
    ):
        colour = LIGHT[("line", "second", "third", "miss")[place % 4]]
        drawn = curves.thinned(values)
        name = f"{risk.name} at {risk.level:g}" if several else None
        line = curves.broken(seen.x[drawn], values[drawn])
        panel.plot(*line, linewidth=1.1, color=colour, label=name)
    panel.set_title(f"θ{seen.name}", loc="left")


def _rolling(panel: Any, seen: View, window: int) -> None:
    found = curves.rolling(seen, 0, window)
    for each in found.worst[:3]:
        panel.axvspan(seen.x[each.start], seen.x[each.stop], color=_shade("worst"), linewidth=0)
    panel.plot(*curves.broken(found.x, found.risk), color=LIGHT["line"], linewidth=1.1)
    panel.axhline(found.level, color=LIGHT["ink"], linewidth=1.0, linestyle="--")
    panel.set_title(
        f"Mean loss of the last {found.window:,} labels{seen.name}, worst windows shaded",
        loc="left",
    )
