"""The figures of a report: functions from a trace to a plotly figure.

`stream` names one of several streams. If none is named, a figure is of all streams together, or,
where it can show only one, of the one with the highest risk. A figure's caption is
`figure.layout.meta["caption"]`.
"""

from collections.abc import Hashable
from math import inf, sqrt
from typing import Any

import numpy as np

from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.losses import declaration
from setpoint.report import curves, style, words
from setpoint.report.numbers import grouped, worst_window_stream
from setpoint.report.view import Array, shows_intervals, view_of

__all__ = [
    "draw_groups", "groups", "intervals", "lengths", "risk_over_time", "streaks", "theta",
    "windows",
]  # fmt: skip

_FIRST_LOOK = 300
"""How many of the last rows are seen before anyone zooms."""

_MOST_GROUPS, _MOST_BARS = 30, 40


def _figure() -> Any:
    return style.library("plotly.graph_objects").Figure()


def _add_line(figure: Any, points: tuple[Array, ...], name: str, line: Any, row: int = 1) -> None:
    x, y = points
    figure.add_scatter(
        x=style.places(x), y=style.thin(y), mode="lines", name=name, line=line,
        xaxis="x" if row == 1 else "x2", yaxis="y" if row == 1 else "y2",
    )  # fmt: skip


def risk_over_time(trace: Trace, stream: Hashable = None, *, risk: int = 0) -> Any:
    """The mean loss up to each label, with the guarantee as a band."""
    figure, view = _figure(), view_of(trace, stream)
    curve = curves.risks(view, risk)
    promise = declaration(trace.controller.risks[risk].loss)
    if curve.high is not None or curve.low is not None:
        most = 2.0 * float(max(curve.risk.max(initial=0.0), curve.level))
        most = promise.high if promise.high < inf else most
        low = np.full(len(curve.risk), promise.low) if curve.low is None else curve.low
        high = np.full(len(curve.risk), most) if curve.high is None else curve.high
        style.add_band(figure, style.places(curve.x), low, high, "guaranteed")
    _add_line(figure, (curve.x, curve.risk), "risk so far", style.line_of("line"))
    style.add_level(figure, curve.level)
    figure.update_yaxes(range=curves.risk_range(curve))
    caption = words.of_risk(view, curve, trace.controller.risks[risk].name)
    return style.titled(figure, view, "Risk over time", caption, x=view.axis, y="mean loss so far")


def windows(trace: Trace, stream: Hashable = None, *, risk: int = 0, window: int = 250) -> Any:
    """The mean loss over sliding windows, with the worst ones shaded."""
    figure = _figure()
    if stream is None and len(trace.states) > 1:
        stream = worst_window_stream(trace, trace.summary(risk, window=window))
    view = view_of(trace, stream, alone=True, risk=risk)
    rolling = curves.rolling(view, risk, window)
    shaded = rolling.worst[: 3 if len(view.rows) > 12 * rolling.window else 1]
    for worst in shaded:
        figure.add_vrect(
            x0=style.plain(view.x[worst.start]),
            x1=style.plain(view.x[worst.stop]),
            fillcolor=style.LIGHT["worst"],
            line_width=0,
            layer="below",
        )
    _add_line(figure, curves.broken(rolling.x, rolling.risk), "window", style.line_of("line"))
    style.add_level(figure, rolling.level)
    promise = declaration(trace.controller.risks[risk].loss)
    caption = words.of_windows(rolling, len(shaded), promise)
    style.titled(figure, view, "Worst windows", caption, x=view.axis, y="mean loss in window")
    figure.update_layout(meta={**figure.layout.meta, "shaded": len(shaded)})
    return figure


def streaks(trace: Trace, stream: Hashable = None) -> Any:
    """How long misses in a row lasted, beside what chance alone would give."""
    figure, view = _figure(), view_of(trace, stream)
    runs = curves.streaks(view)
    longest = int(runs.max(initial=0))
    hits = view.hits[~np.isnan(view.hits)]
    missed = float(1.0 - hits.mean()) if len(hits) else 0.0
    counts = np.bincount(runs, minlength=2)[1:]
    length = np.arange(1, len(counts) + 1)
    expected = len(runs) * (1.0 - missed) * missed ** (length - 1.0)
    names = [str(misses) for misses in length.tolist()]
    if longest > _MOST_BARS:  # the tail in one bar
        counts = np.append(counts[:_MOST_BARS], counts[_MOST_BARS:].sum())
        expected = np.append(expected[:_MOST_BARS], len(runs) * missed**_MOST_BARS)
        names = [*names[:_MOST_BARS], f"over {_MOST_BARS}"]
    for name, values, colour in (("streaks", counts, "line"), ("by chance", expected, "noise")):
        figure.add_bar(
            x=names,
            y=values,
            name=name,
            marker={"color": style.LIGHT[colour]},
            text=[f"{value:,.0f}" for value in values.tolist()] if longest <= 12 else None,
            textposition="outside",
            textfont={"color": style.LIGHT["muted"]},
            cliponaxis=False,
        )
    caption = words.of_streaks(len(runs), longest, missed)
    style.titled(figure, view, "Streaks of misses", caption, x="misses in a row", y="how often")
    figure.update_xaxes(type="category")
    figure.update_layout(bargap=0.3, barmode="group")
    return figure


def groups(trace: Trace, stream: Hashable = None) -> Any:
    """Coverage by group, or by day of the week where rows have times and no groups.

    Where the first risk is not about coverage, its mean loss in each group instead.
    """
    figure = draw_groups(trace, stream)
    if figure is None:
        raise InputError("groups need a tape with groups, or with times that are dates")
    return figure


def draw_groups(trace: Trace, stream: Hashable = None) -> Any:
    """The figure of groups; None where there are none."""
    figure, view = _figure(), view_of(trace, stream)
    table = grouped(view)
    if table is None or not table.groups:
        return None
    shares = [group.coverage if table.coverage else group.risk for group in table.groups]
    furthest = np.argsort(-np.abs(np.array(shares) - table.goal), kind="stable")[:_MOST_GROUPS]
    kept = np.sort(furthest).tolist()
    names = [style.plotly_text(str(table.groups[place].key)) for place in kept]
    labels = np.array([table.groups[place].labels for place in kept])
    values = np.array([shares[place] for place in kept])
    if table.coverage:
        spread = 2.0 * sqrt(table.goal * (1.0 - table.goal)) / np.sqrt(labels)
        low, high = np.maximum(table.goal - spread, 0.0), np.minimum(table.goal + spread, 1.0)
        figure.add_bar(
            x=names,
            y=high - low,
            base=low,
            name="chance",
            marker={"color": style.LIGHT["noise"]},
            hoverinfo="skip",
        )
        every = np.clip(np.concatenate([values, [table.goal], low, high]), 0.0, 1.0)
        figure.update_yaxes(range=list(curves.finite_range(every)))
    what = "coverage" if table.coverage else "mean loss"
    figure.add_scatter(
        x=names,
        y=values.tolist(),
        mode="markers",
        name=what,
        marker={"color": style.LIGHT["line"], "size": 10},
        customdata=labels,
        hovertemplate="%{y:.4f} of %{customdata:,} labels<extra></extra>",
    )
    style.add_level(figure, table.goal)
    by = "day of the week" if table.by == "weekday" else "group"
    caption = words.of_groups(table, len(kept))
    style.titled(figure, view, f"By {by}", caption, x="", y=what)
    figure.update_xaxes(type="category")
    figure.update_layout(bargap=0.5)
    return figure


def intervals(
    trace: Trace, stream: Hashable = None, *, start: int | None = None, stop: int | None = None
) -> Any:
    """The sets and the labels, row by row, with the misses marked; drag to zoom.

    Of a long trace the last rows are drawn one by one and the older ones as envelopes; `start`
    and `stop` choose rows to look at more closely. Sets of labels are drawn by their size.
    """
    figure = _figure()
    view = view_of(trace, stream, alone=True).part(slice(start, stop))
    if not len(view.rows):
        raise InputError(f"there are no rows from {start} to {stop}")
    rows = curves.rows(view)
    if rows.bands:
        title, axis, height = "Intervals and misses", "label", view.trace.tape.y[view.rows]
        _add_sets(figure, rows)
    else:
        title, axis, height = "Set sizes and misses", "size", view.sizes
        finite = np.where(np.isinf(rows.sizes), np.nan, rows.sizes)
        line = {**style.line_of("line", 1.4), "shape": "hv"}
        points = curves.broken(rows.x, finite, exact=rows.exact)
        _add_line(figure, points, "size of the set", line)
        most = float(np.nanmax(finite)) if not np.isnan(finite).all() else 1.0
        figure.update_yaxes(range=[-0.05 * most, 1.08 * most])
    figure.add_scatter(
        x=style.places(view.x[rows.misses]),
        y=style.thin(height[rows.misses]),
        mode="markers",
        name="miss",
        marker={
            "color": style.LIGHT["miss"],
            "size": 8,
            "symbol": "x-thin",
            "line": style.line_of("miss"),
        },
    )
    caption = words.of_rows(view, rows, _FIRST_LOOK)
    style.titled(figure, view, title, caption, x="", y=axis, height=420)
    if len(view.rows) > _FIRST_LOOK:
        figure.update_xaxes(
            range=style.axis_range(view.x[-_FIRST_LOOK], view.x[-1]),
            rangeslider={
                "visible": True,
                "thickness": 0.13,
                "bgcolor": style.LIGHT["paper"],
                "bordercolor": style.LIGHT["grid"],
                "borderwidth": 1,
                "range": style.axis_range(view.x[0], view.x[-1], air=0),
            },
        )
    return figure


def _add_sets(figure: Any, rows: curves.Rows) -> None:
    """The intervals as bands, and the labels."""
    low, high = curves.finite_range(rows.y, *(end for band in rows.bands for end in band))
    out = 10.0 * (high - low)
    for place, band in enumerate(rows.bands):
        ends = curves.closed(band, low - out, high + out)
        x, lower, upper = curves.broken(rows.x, *ends, exact=rows.exact)
        name = "set" if len(rows.bands) == 1 else f"level {len(rows.bands) - place}"
        fill = "fill" if place == 0 else "inner"
        style.add_band(figure, style.places(x), lower, upper, name, edge=0.8, fill=fill)
    at, y = curves.broken(rows.at, rows.y, exact=rows.exact)
    figure.add_scatter(
        x=style.places(at),
        y=style.thin(y),
        mode="lines+markers" if rows.exact <= 400 else "lines",
        name="label",
        line=style.line_of("ink", 1.1),
        marker={"size": 3},
    )
    figure.update_yaxes(range=[low, high])


def theta(trace: Trace, stream: Hashable = None) -> Any:
    """θ of each risk, and the λ that it became where that is another number."""
    subplots = style.library("plotly.subplots")
    view = view_of(trace, stream, alone=True)
    risks, thetas = trace.controller.risks, view.thetas
    lam = np.where(np.isinf(view.lam), np.nan, view.lam)
    finite = ~np.isnan(lam)
    same = len(risks) == 1 and np.array_equal(thetas[0, finite], lam[finite])
    count = 1 if same else 2
    figure = subplots.make_subplots(rows=count, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    for place, (risk, values) in enumerate(zip(risks, thetas, strict=True)):
        drawn = curves.thinned(values)
        name = style.plotly_text(f"θ of {risk.name} at {risk.level:g}") if len(risks) > 1 else "θ"
        line = style.line_of(style.SERIES[place % len(style.SERIES)], 1.4)
        points = curves.broken(view.x[drawn], values[drawn])
        _add_line(figure, points, name, line)
    if not same:
        drawn = curves.thinned(lam)
        points = curves.broken(view.x[drawn], lam[drawn])
        _add_line(figure, points, "λ", style.line_of("ink", 1.2), row=2)
    caption = words.of_theta(view, same=same)
    style.titled(figure, view, "θ and λ", caption, x="", y="", height=340 if same else 460)
    figure.update_yaxes(title_text="θ = λ" if same else "θ", row=1)
    if not same:
        figure.update_yaxes(title_text="λ", row=2)
    figure.update_layout(showlegend=len(risks) > 1)
    figure.update_xaxes(title_text=view.axis, row=count)
    return figure


def lengths(trace: Trace, stream: Hashable = None) -> Any:
    """The lengths of the intervals, or the sizes of other sets, over time."""
    figure, view = _figure(), view_of(trace, stream)
    curve = curves.lengths(view)
    what, middle = ("length", "median") if shows_intervals(trace) else ("size", "mean")
    title = "Lengths" if what == "length" else "Set sizes over time"
    if curve.low is not None and curve.high is not None:
        x, low, high = curves.broken(curve.x, curve.low, curve.high)
        style.add_band(figure, style.places(x), low, high, "10 to 90 %")
    name = what if curve.low is None else middle
    _add_line(figure, curves.broken(curve.x, curve.middle), name, style.line_of("line", 1.6))
    caption = words.of_lengths(curve, what, middle)
    return style.titled(figure, view, title, caption, x=view.axis, y=what)
