"""Figures of the sets: the intervals and their misses, what moved them, how large they were."""

from collections.abc import Hashable
from math import inf
from typing import Any

import numpy as np

from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.report import _curves as curves
from setpoint.report._drawing import add_band, axis_range, places, stroke, thin, titled
from setpoint.report._look import LIGHT, library
from setpoint.report._view import View, shows_intervals, sizes_of, view
from setpoint.stretches import Identity

__all__ = ["intervals", "lengths", "theta"]

Array = np.ndarray[Any, Any]

_FIRST_LOOK = 300
"""How many of the last rows are seen before anyone zooms."""


def intervals(
    trace: Trace, stream: Hashable = None, *, start: int | None = None, stop: int | None = None
) -> Any:
    """The sets and the labels, row by row, with the misses marked; drag to zoom.

    Of a long trace the last rows are drawn one by one and the older ones as envelopes; `start`
    and `stop` choose rows to look at more closely. Sets of labels are drawn by their size.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    stream
        The id of a stream; of several, the one with the highest risk if none is named.
    start, stop
        The rows of the stream to draw, as in a slice.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    go = library("plotly.graph_objects")
    seen = view(trace, stream, alone=True).taken(slice(start, stop))
    if not len(seen.rows):
        raise InputError(f"there are no rows from {start} to {stop}")
    found = curves.rows(seen)
    figure = go.Figure()
    if found.bands:
        told, title, axis = _draw_bands(figure, seen, found)
    else:
        told, title, axis = _draw_sizes(figure, seen, found)
    if found.exact < len(seen.rows):
        told += (
            f" The last {found.exact:,} rows are drawn one by one. Older ones are drawn as "
            f"envelopes of {found.together:,} rows, the outermost ends of the sets and the "
            "extremes of the labels, with at most one miss marked in each."
        )
    titled(figure, seen, title, told, x="", y=axis, height=420)
    if len(seen.rows) > _FIRST_LOOK:
        figure.update_xaxes(
            range=axis_range(seen.x[-_FIRST_LOOK], seen.x[-1]),
            rangeslider={
                "visible": True,
                "thickness": 0.13,
                "bgcolor": LIGHT["paper"],
                "bordercolor": LIGHT["grid"],
                "borderwidth": 1,
                "range": axis_range(seen.x[0], seen.x[-1], air=0),
            },
        )
    return figure


def _draw_bands(figure: Any, seen: View, found: curves.Rows) -> tuple[str, str, str]:
    low, high = curves.finite_range(found.y, *(end for band in found.bands for end in band))
    out = 10.0 * (high - low)
    for place, band in enumerate(found.bands):
        ends = curves.closed(band, low - out, high + out)
        x, lower, upper = curves.broken(found.x, *ends, exact=found.exact)
        name = "set" if len(found.bands) == 1 else f"level {len(found.bands) - place}"
        fill = "fill" if place == 0 else "inner"
        add_band(figure, places(x), lower, upper, name, edge=True, fill=fill)
    at, y = curves.broken(found.at, found.y, exact=found.exact)
    figure.add_scatter(
        x=places(at),
        y=thin(y),
        mode="lines+markers" if found.exact <= 400 else "lines",
        name="label",
        line={"color": LIGHT["ink"], "width": 1.1},
        marker={"size": 3},
    )
    _misses(figure, seen, found, seen.trace.tape.y[seen.rows])
    figure.update_yaxes(range=[low, high])
    told = (
        "The band is the set that was shown before the label was known, the thin line the label. "
        "A cross is a miss: the label lay outside its set. "
    )
    return told + _extremes_told(seen) + _zoom_told(seen), "Intervals and misses", "label"


def _draw_sizes(figure: Any, seen: View, found: curves.Rows) -> tuple[str, str, str]:
    sizes = np.zeros(0) if found.sizes is None else found.sizes
    finite = np.where(np.isinf(sizes), np.nan, sizes)
    x, height = curves.broken(found.x, finite, exact=found.exact)
    figure.add_scatter(
        x=places(x),
        y=thin(height),
        mode="lines",
        name="size of the set",
        line={"color": LIGHT["line"], "shape": "hv", "width": 1.4},
    )
    _misses(figure, seen, found, sizes_of(seen.trace, seen.rows))
    known = sizes[np.isfinite(sizes)]
    most = float(known.max()) if len(known) else 1.0
    figure.update_yaxes(range=[-0.05 * most, 1.08 * most])
    told = (
        "The line is the size of each set, such as the number of its labels. A cross is a miss: "
        "the label was not in its set. "
    )
    return told + _extremes_told(seen) + _zoom_told(seen), "Set sizes and misses", "size"


def _misses(figure: Any, seen: View, found: curves.Rows, height: Array) -> None:
    figure.add_scatter(
        x=places(seen.x[found.misses]),
        y=thin(height[found.misses]),
        mode="markers",
        name="miss",
        marker={"color": LIGHT["miss"], "size": 8, "symbol": "x-thin", "line": stroke("miss", 2)},
    )


def _zoom_told(seen: View) -> str:
    if len(seen.rows) <= _FIRST_LOOK:
        return "Drag across the plot to zoom."
    return (
        f"At first the last {_FIRST_LOOK:,} rows are seen: move the ends of the strip below, or "
        "drag across the plot, to see others."
    )


def _extremes_told(seen: View) -> str:
    """How many sets were full or empty, whether the safeguard or a small λ made them so."""
    full, empty = curves.extremes(seen)
    acted = int(np.isinf(seen.trace.lam[seen.rows]).sum())
    if not full + empty:
        return ""
    told = f"{full:,} of the {len(seen.rows):,} sets are full and {empty:,} are empty"
    if shows_intervals(seen.trace):
        told += "; ends of full ones lie beyond the plot, empty ones are drawn without width"
    return f"{told}. The safeguard chose {acted:,} of them. "


def theta(trace: Trace, stream: Hashable = None) -> Any:
    """θ of each risk, and the λ that it became.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    stream
        The id of a stream; of several, the one with the highest risk if none is named.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    library("plotly.graph_objects")
    seen = view(trace, stream, alone=True)
    controller = trace.controller
    same = len(controller.risks) == 1 and isinstance(controller.stretch, Identity)
    made = library("plotly.subplots").make_subplots
    figure = made(rows=1 if same else 2, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    colours = ("line", "second", "third", "miss")
    thetas = trace.theta[:, seen.rows]
    for place, (risk, values) in enumerate(zip(controller.risks, thetas, strict=True)):
        drawn = curves.thinned(values)
        several = len(controller.risks) > 1
        x, line = curves.broken(seen.x[drawn], values[drawn])
        figure.add_scatter(
            x=places(x),
            y=thin(line),
            mode="lines",
            name=f"θ of {risk.name} at {risk.level:g}" if several else "θ",
            line={"color": LIGHT[colours[place % len(colours)]], "width": 1.4},
            row=1,
            col=1,
        )
    lam = seen.trace.lam[seen.rows]
    finite = np.where(np.isinf(lam), np.nan, lam)
    told = "θ is what the controller moves: up after a loss above the level, down after one below. "
    if same:
        told += "λ, by which the sets grow, is θ itself. "
    else:
        drawn = curves.thinned(finite)
        x, line = curves.broken(seen.x[drawn], finite[drawn])
        figure.add_scatter(
            x=places(x),
            y=thin(line),
            mode="lines",
            name="λ",
            line={"color": LIGHT["ink"], "width": 1.2},
            row=2,
            col=1,
        )
        told += "λ, by which the sets grow, is what the stretching function makes of it. "
    told += _bounds_told(seen, thetas)
    titled(figure, seen, "θ and λ", told, x="", y="", height=340 if same else 460)
    figure.update_yaxes(title_text="θ = λ" if same else "θ", row=1)
    if not same:
        figure.update_yaxes(title_text="λ", row=2)
    figure.update_layout(showlegend=len(controller.risks) > 1)
    figure.update_xaxes(title_text=seen.axis, row=1 if same else 2)
    return figure


def _bounds_told(seen: View, thetas: Array) -> str:
    lam = seen.trace.lam[seen.rows]
    times = int(np.isinf(lam).sum())
    told = []
    for risk, (low, high), own in zip(
        seen.trace.controller.risks, seen.trace.controller.bounds, thetas, strict=True
    ):
        which = f"θ of {risk.name}" if len(thetas) > 1 else "θ"
        if low == -inf and high == inf:
            told.append(f"{which} has no bounds, so there is no safeguard.")
        else:
            span = f"{own.min():.4g} to {own.max():.4g}, its bounds are {low:g} and {high:g}"
            told.append(f"{which} went from {span}.".replace("-", "−"))
    told.append(f"The safeguard acted {times:,} times." if times else "The safeguard never acted.")
    return " ".join(told)


def lengths(trace: Trace, stream: Hashable = None) -> Any:
    """The lengths of the intervals, or the sizes of other sets, over time.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    stream
        The id of a stream; of several, all together if none is named.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    go = library("plotly.graph_objects")
    seen = view(trace, stream)
    found = curves.lengths(seen)
    figure = go.Figure()
    what, middle = ("length", "median") if shows_intervals(trace) else ("size", "mean")
    if found.low is not None and found.high is not None:
        x, low, high = curves.broken(found.x, found.low, found.high)
        add_band(figure, places(x), low, high, "10 to 90 %")
        told = (
            f"The line is the {middle} {what} of each {found.together:,} rows in a row, the band "
            "holds the middle 80 % of them."
        )
    else:
        told = f"The {what} of each set."
    x, line = curves.broken(found.x, found.middle)
    figure.add_scatter(
        x=places(x),
        y=thin(line),
        mode="lines",
        name=middle if found.low is not None else what,
        line={"color": LIGHT["line"], "width": 1.6},
    )
    if found.infinite:
        told += f" {found.infinite:,} sets have no finite {what} and are left out."
    if np.isnan(found.middle).all():
        told += " None of these sets has a finite one." if found.infinite else " They have none."
    title = "Lengths" if what == "length" else "Set sizes over time"
    return titled(figure, seen, title, told, x=seen.axis, y=what)
