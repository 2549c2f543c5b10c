"""The figures of a report: functions from a trace to a plotly figure.

`stream` names one of several streams. If none is named, a figure is of all streams together, or,
where it can show only one, of the one with the most trouble. A figure's caption is
`figure.layout.meta["caption"]`. Below the figures is how they look, which other pictures share.
"""

from collections.abc import Hashable
from html import escape
from importlib import import_module
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from setpoint._html import named
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.guarantee import Certificate, asked_of
from setpoint.losses import declaration
from setpoint.report import curves, words
from setpoint.report.curves import Array, View, shows_intervals, summary_of, view_of
from setpoint.report.levels import fan
from setpoint.report.numbers import grouped, worst_window_stream
from setpoint.stream import Stream

_COLOURS = {
    # By day, and by night: a page replaces each colour of the day by its neighbour here.
    "paper": ("#ffffff", "#191b1e"),
    "ink": ("#1f2328", "#e8e6e1"),
    "muted": ("#57606a", "#a9aeb5"),
    "grid": ("#e6e6e1", "#34373c"),
    "line": ("#0b63a5", "#74b9f0"),
    "fill": ("rgba(11,99,165,0.16)", "rgba(116,185,240,0.22)"),
    "inner": ("rgba(11,99,165,0.28)", "rgba(116,185,240,0.34)"),
    "miss": ("#b8390e", "#ff8f63"),
    "second": ("#8a6100", "#e0b44c"),
    "third": ("#6f42c1", "#b99bf2"),
    "noise": ("rgba(87,96,106,0.22)", "rgba(169,174,181,0.28)"),
    "worst": ("rgba(184,57,14,0.14)", "rgba(255,143,99,0.2)"),
}
LIGHT = {name: day for name, (day, _) in _COLOURS.items()}
"""The colours of a light page, by name."""

NIGHT = dict(_COLOURS.values())
"""The colours of a dark page, by those of a light one."""

SERIES = ("line", "second", "third", "miss")
"""The colours of several curves in one plot."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


_FIRST_LOOK = 300
"""How many of the last rows are seen before anyone zooms."""

_MOST_GROUPS = 30


def blank() -> Any:
    """A figure with nothing in it."""
    return library("plotly.graph_objects").Figure()


def _add_line(figure: Any, points: tuple[Array, ...], name: str, line: Any) -> None:
    x, y = points
    figure.add_scatter(x=_places(x), y=_thin(y), mode="lines", name=name, line=line)


def risk_over_time(trace: Trace, stream: Hashable = None, *, risk: int = 0) -> Any:
    """The coverage up to each label, with the guarantee as a band.

    Where the risk is not about coverage, its mean loss instead.
    """
    figure, view = blank(), view_of(trace, stream)
    curve = curves.risks(view, risk)
    promise = declaration(trace.controller.risks[risk].loss)
    share = asked_of(trace.controller.risks[risk]) is not None
    what = "coverage" if share else "mean loss"
    curve = curve.covered() if share else curve
    if curve.high is not None or curve.low is not None:
        most = 2.0 * float(max(curve.risk.max(initial=0.0), curve.level))
        most = promise.high if promise.high < inf else most
        low = np.full(len(curve.risk), promise.low) if curve.low is None else curve.low
        high = np.full(len(curve.risk), most) if curve.high is None else curve.high
        add_band(figure, _places(curve.x), low, high, "guaranteed")
    _add_line(figure, (curve.x, curve.risk), f"{what} so far", line_of("line"))
    _add_level(figure, curve.level)
    figure.update_yaxes(range=curves.risk_range(curve, share=share))
    caption = words.risk_caption(view, curve, trace.controller.risks[risk].name, share=share)
    title = f"{what.capitalize()} over time"
    titled(figure, view, title, caption, x=view.axis, y=f"{what} so far")
    return _in_percent(figure) if share else figure


def windows(trace: Trace, stream: Hashable = None, *, risk: int = 0, window: int = 250) -> Any:
    """The coverage, or the mean loss, over sliding windows, with the worst ones shaded."""
    figure = blank()
    if stream is None and len(trace.states) > 1:
        stream = worst_window_stream(trace, summary_of(trace, risk, window))
    view = view_of(trace, stream, alone=True, risk=risk)
    rolling = curves.rolling(view, risk, window)
    share = asked_of(trace.controller.risks[risk]) is not None
    what = "coverage" if share else "mean loss"
    rolling = rolling.covered() if share else rolling
    shaded = rolling.shaded(len(view.rows))
    for worst in shaded:
        figure.add_vrect(
            x0=_plain(view.x[worst.start]),
            x1=_plain(view.x[worst.stop]),
            fillcolor=LIGHT["worst"],
            line_width=0,
            layer="below",
        )
    _add_line(figure, curves.broken(rolling.x, rolling.risk), "window", line_of("line"))
    _add_level(figure, rolling.level)
    promise = declaration(trace.controller.risks[risk].loss)
    caption = words.windows_caption(rolling, len(shaded), promise, share=share)
    title = f"{what.capitalize()} of the last {rolling.window:,} labels"
    titled(figure, view, title, caption, x=view.axis, y=what)
    figure.update_layout(meta={**figure.layout.meta, "shaded": len(shaded)})
    return _in_percent(figure) if share else figure


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
    figure, view = blank(), view_of(trace, stream)
    table = grouped(view)
    if table is None or not table.groups:
        return None
    shares = [group.coverage if table.coverage else group.risk for group in table.groups]
    furthest = np.argsort(-np.abs(np.array(shares) - table.goal), kind="stable")[:_MOST_GROUPS]
    kept = np.sort(furthest).tolist()
    names = [plotly_text(str(table.groups[place].key)) for place in kept]
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
            marker={"color": LIGHT["noise"]},
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
        marker={"color": LIGHT["line"], "size": 10},
        customdata=labels,
        hovertemplate="%{y} of %{customdata:,} labels<extra></extra>",
    )
    _add_level(figure, table.goal)
    by = "day of the week" if table.by == "weekday" else "group"
    caption = words.groups_caption(table, len(kept))
    titled(figure, view, f"By {by}", caption, x="", y=what)
    if table.coverage:
        _in_percent(figure)
    figure.update_xaxes(type="category")
    figure.update_layout(bargap=0.5)
    return figure


def intervals(
    trace: Trace,
    stream: Hashable = None,
    *,
    start: int | None = None,
    stop: int | None = None,
    target: str = "label",
) -> Any:
    """The sets and the labels, row by row, with the misses marked; drag to zoom.

    Of a long trace the last rows are drawn one by one and the older ones as envelopes; `start`
    and `stop` choose rows to look at more closely. Sets of labels are drawn by their size.
    `target` is what the label is called.
    """
    figure = blank()
    view = view_of(trace, stream, alone=True).part(slice(start, stop))
    if not len(view.rows):
        raise InputError(f"there are no rows from {start} to {stop}")
    rows = curves.rows(view)
    if rows.bands:
        title, axis, height = "Intervals and misses", target, view.trace.tape.y[view.rows]
        asked = asked_of(trace.controller.risks[0])
        levels = [level.name for level in fan(trace)]
        names = levels if len(levels) > 1 else [words.interval(asked)]
        _add_sets(figure, rows, names, plotly_text(target))
    else:
        title, axis, height = "Set sizes and misses", "size", view.sizes
        finite = np.where(np.isinf(rows.sizes), np.nan, rows.sizes)
        line = {**line_of("line", 1.4), "shape": "hv"}
        points = curves.broken(rows.x, finite, exact=rows.exact)
        _add_line(figure, points, "size of the set", line)
        most = float(np.nanmax(finite)) if not np.isnan(finite).all() else 1.0
        figure.update_yaxes(range=[-0.05 * most, 1.08 * most])
    figure.add_scatter(
        x=_places(view.x[rows.misses]),
        y=_thin(height[rows.misses]),
        mode="markers",
        name="miss",
        marker={
            "color": LIGHT["miss"],
            "size": 8,
            "symbol": "x-thin",
            "line": line_of("miss"),
        },
    )
    caption = words.rows_caption(view, rows, _FIRST_LOOK)
    titled(figure, view, title, caption, x="", y=plotly_text(axis), height=420)
    if len(view.rows) > _FIRST_LOOK:
        figure.update_xaxes(
            range=_axis_range(view.x[-_FIRST_LOOK], view.x[-1]),
            rangeslider={
                "visible": True,
                "thickness": 0.13,
                "bgcolor": LIGHT["paper"],
                "bordercolor": LIGHT["grid"],
                "borderwidth": 1,
                "range": _axis_range(view.x[0], view.x[-1], air=0),
            },
        )
    return figure


def _add_sets(figure: Any, rows: curves.Rows, names: list[str], target: str) -> None:
    """The intervals as bands, and the labels."""
    low, high = curves.finite_range(rows.y, *(end for band in rows.bands for end in band))
    out = 10.0 * (high - low)
    for place, (name, band) in enumerate(zip(names, rows.bands, strict=True)):
        ends = curves.closed(band, low - out, high + out)
        x, lower, upper = curves.broken(rows.x, *ends, exact=rows.exact)
        fill = "fill" if place == 0 else "inner"
        add_band(figure, _places(x), lower, upper, name, edge=0.8, fill=fill)
    at, y = curves.broken(rows.at, rows.y, exact=rows.exact)
    figure.add_scatter(
        x=_places(at),
        y=_thin(y),
        mode="lines+markers" if rows.exact <= 400 else "lines",
        name=target,
        line=line_of("ink", 1.1),
        marker={"size": 3},
    )
    figure.update_yaxes(range=[low, high])


def lengths(trace: Trace, stream: Hashable = None) -> Any:
    """The lengths of the intervals, or the sizes of other sets, over time.

    Of several streams together, lengths are multiples of the median of their stream.
    """
    figure, view = blank(), view_of(trace, stream)
    curve = curves.lengths(view)
    what, middle = ("width", "median") if shows_intervals(trace) else ("size", "mean")
    title = "Widths over time" if what == "width" else "Set sizes over time"
    unit = ", median of the series = 1" if view.several and what == "width" else ""
    if curve.low is not None and curve.high is not None:
        x, low, high = curves.broken(curve.x, curve.low, curve.high)
        add_band(figure, _places(x), low, high, "10 to 90 %")
    name = what if curve.low is None else middle
    _add_line(figure, curves.broken(curve.x, curve.middle), name, line_of("line", 1.6))
    caption = words.lengths_caption(curve, what, middle, several=bool(unit))
    return titled(figure, view, title, caption, x=view.axis, y=f"{what}{unit}")


def price(trace: Trace, stream: Hashable = None) -> Any:
    """What sets and model cost beside a healthy past, on a logarithmic axis; alarms are marked."""
    view = view_of(trace, stream, alone=True)
    figure, curve = blank(), curves.prices(view)
    if curve is not None:
        lines = {"intervals": curve.sets, "model": curve.model, "actual values": curve.world}
        for place, (name, values) in enumerate(lines.items()):
            drawn = curves.thinned(values)
            points = curves.broken(curve.x[drawn], values[drawn])
            _add_line(figure, points, name, line_of(SERIES[place], 1.6))
        if curve.reference is not None:
            first, last = (_plain(curve.x[row]) for row in curve.reference)
            figure.add_vrect(
                x0=first, x1=last, fillcolor=LIGHT["fill"], line_width=0, layer="below"
            )
        if curve.alarms:
            rows = np.array([row for row, _ in curve.alarms])
            figure.add_scatter(
                x=_places(curve.x[rows]), y=np.ones(len(rows)), mode="markers", name="alarm",
                marker={"symbol": "x", "size": 9, "color": LIGHT["miss"]},
                text=[kind for _, kind in curve.alarms], hovertemplate="%{text}<extra></extra>",
            )  # fmt: skip
    titled(figure, view, "Price", words.price_caption(curve), x=view.axis, y="times the reference")
    figure.update_yaxes(type="log")
    return figure


def plot(subject: Trace | Stream | Certificate) -> Any:
    """A plotly figure: the sets and labels of a trace or of a stream's last labels, or the mean
    loss of each risk within its guarantee.

    Traces, streams and certificates have it as a method, `trace.plot()`.
    """
    if isinstance(subject, Trace):
        return intervals(subject)
    if isinstance(subject, Stream):
        return _last_labels(subject)
    if isinstance(subject, Certificate):
        return _guaranteed(subject)
    raise InputError(f"a plot is of a Trace, a Stream or a Certificate, got {subject!r}")


def _last_labels(stream: Stream) -> Any:
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


# How they look


def library(module: str) -> Any:
    """A drawing library, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"this needs {name}: pip install 'setpoint[plots]'") from error


def plotly_text(text: str) -> str:
    """Text that plotly shows letter for letter: no tags, no formulas, no templates.

    >>> plotly_text('<a href="https://a.b">$x$ %{meta.caption}</a>')
    '&lt;a href="https://a.b"&gt;&#36;x&#36; %&#123;meta.caption}&lt;/a&gt;'
    """
    return escape(text, quote=False).replace("$", "&#36;").replace("%{", "%&#123;")


def titled(
    figure: Any, view: View | None, title: str, caption: str, *, x: str, y: str, height: int = 340
) -> Any:
    """The figure with its look and its title; `layout.meta` keeps the caption and the bare title.

    The title and the caption say of which stream it is.
    """
    name = "" if view is None else view.name
    if view is not None and name:
        caption = f"This is series {named(view.streams[0])}. {caption}"
    muted = {"color": LIGHT["muted"], "size": 12}
    axis: dict[str, Any] = {
        "gridcolor": LIGHT["grid"],
        "linecolor": LIGHT["grid"],
        "zeroline": False,
        "tickfont": muted,
        "automargin": True,
    }
    hover = {"bgcolor": LIGHT["paper"], "bordercolor": LIGHT["grid"], "font_color": LIGHT["ink"]}
    bar = {"bgcolor": "rgba(0,0,0,0)", "color": LIGHT["muted"], "activecolor": LIGHT["ink"]}
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"}
    text = plotly_text(f"{title}{name}")
    figure.update_layout(
        template="none",
        title={"text": text, "x": 0, "xref": "paper", "font": {"size": 16}},
        meta={"caption": caption, "title": title},
        height=height,
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        paper_bgcolor=LIGHT["paper"],
        plot_bgcolor=LIGHT["paper"],
        font={"family": _FONT, "size": 13, "color": LIGHT["ink"]},
        hoverlabel=hover,
        hovermode="x unified",
        legend={**legend, "font": muted},
        modebar=bar,
        dragmode="zoom",
    )
    below = {"title": {"font": muted, "text": x}, "ticks": "outside", "tickcolor": LIGHT["grid"]}
    figure.update_xaxes(showgrid=False, **below, **axis)
    beside = {"font": muted, "text": y} if y else {"font": muted}
    figure.update_yaxes(hoverformat=".5~g", title=beside, **axis)
    return figure


def _in_percent(figure: Any) -> Any:
    """The figure with shares on its vertical axis written as percentages."""
    return figure.update_yaxes(tickformat=".4~%", hoverformat=".2%")


def _thin(values: Array) -> Array:
    """Numbers for a page: float32 is finer than any screen and half the size."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _places(x: Array) -> Any:
    """Places on the horizontal axis as plotly takes them."""
    return np.datetime_as_string(x).tolist() if x.dtype.kind == "M" else x


def _plain(x: Any) -> Any:
    """One place on the horizontal axis."""
    return str(x) if isinstance(x, np.datetime64) else x.item()


def _axis_range(first: Any, last: Any, *, air: int = 1) -> list[Any]:
    """The range from one place to another, with some air behind the last."""
    return [_plain(first), _plain(last + air * ((last - first) // 40))]


def line_of(colour: str, width: float = 2.0) -> dict[str, Any]:
    """A line in one of the colours."""
    return {"color": LIGHT[colour], "width": width}


def add_band(
    figure: Any,
    x: Any,
    low: Array,
    high: Array,
    name: str,
    *,
    edge: float = 0.0,
    fill: str = "fill",
) -> None:
    """A band between two curves, one entry in the legend.

    Each piece between NaNs is a band of its own: a fill would go across them.
    """
    for number, piece in enumerate(_pieces(np.isnan(low) | np.isnan(high))):
        for values, to, word in ((high, None, "to"), (low, "tonexty", "from")):
            figure.add_scatter(
                x=x[piece],
                y=_thin(values[piece]),
                mode="lines",
                line=line_of("line", edge),
                name=name,
                hovertemplate=f"{name} {word} %{{y:.5~g}}<extra></extra>",
                legendgroup=name,
                showlegend=to is not None and not number,
                fill=to,
                fillcolor=LIGHT[fill],
            )


def _pieces(gaps: Array) -> list[slice]:
    """The runs between gaps; all of it if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], gaps, [True]]))).tolist()
    pieces = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    return pieces or [slice(None)]


def _add_level(figure: Any, level: float) -> None:
    """What was asked for, across the whole plot."""
    figure.add_hline(y=level, line={"color": LIGHT["ink"], "width": 1.3, "dash": "dash"})
