"""The figures of a report: functions from a trace to a plotly figure, all drawn by `draw`.

A figure is of one series: the one that `stream` names, else the one with the most trouble. Its
caption is `figure.layout.meta["caption"]`.
"""

from collections.abc import Hashable, Mapping, Sequence
from html import escape
from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np

from setpoint._html import named
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.guarantee import asked_of
from setpoint.losses import declaration
from setpoint.report import curves, words
from setpoint.report.curves import Array, Band, View, summary_of, view_of
from setpoint.report.groups import grouped
from setpoint.report.numbers import worst_window_stream
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
NIGHT = dict(_COLOURS.values())
"""The colours of a dark page, by those of a light one."""
SERIES = ("line", "second", "third", "miss")
"""The colours of several curves in one plot."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_FIRST_LOOK = 300
"""About how many rows are seen before anyone zooms."""
_MOST_GROUPS = 30

Curves = list[dict[str, Any]]


def windows(trace: Trace, stream: Hashable = None, *, risk: int = 0, window: int = 250) -> Any:
    """The coverage, or the mean loss, over sliding windows, with the worst ones shaded."""
    if stream is None and len(trace.states) > 1:
        stream = worst_window_stream(trace, summary_of(trace, risk, window))
    view = view_of(trace, stream, risk)
    found, held = curves.rolling(view, risk, window), trace.controller.risks[risk]
    share = asked_of(held) is not None
    found, what = (found.covered(), "coverage") if share else (found, "mean loss")
    shaded = found.shaded(len(view.rows))
    return draw(
        line("window", *curves.broken(found.rows, view.x[found.rows], found.risk)),
        view, f"{what.capitalize()} of the last {found.window:,} labels",
        words.windows_caption(found, len(shaded), declaration(held.loss), share=share),
        x=view.axis, y=what, level=found.level, share=share,
        shaded=[(view.x[worst.start], view.x[worst.stop], "worst") for worst in shaded],
    )  # fmt: skip


def groups(trace: Trace, stream: Hashable = None, *, by: str | None = None) -> Any:
    """Coverage by group, or the mean loss where the first risk is not about coverage.

    `by` is "group", "weekday", "hour" or "size", by default the first of these that rows have.
    Without a stream it is of all series together.
    """
    tables = {table.by: table for table in grouped(trace, stream)}
    if not tables or by not in (None, *tables):
        known = ", ".join(map(repr, tables)) or "none: they need groups or times that are dates"
        raise InputError(f"rows are told apart by {known}; got {by!r}")
    table = next(iter(tables.values())) if by is None else tables[by]
    shares = np.array([row.coverage if table.coverage else row.risk for row in table.rows])
    kept = np.sort(np.argsort(-np.abs(shares - table.goal), kind="stable")[:_MOST_GROUPS])
    names = [plotly_text(str(table.rows[place].key)) for place in kept.tolist()]
    labels = np.array([table.rows[place].labels for place in kept.tolist()])
    values, drawn, yrange = shares[kept], [], None
    if table.coverage:
        spread = 2.0 * sqrt(table.goal * (1.0 - table.goal)) / np.sqrt(labels)
        low, high = np.maximum(table.goal - spread, 0.0), np.minimum(table.goal + spread, 1.0)
        drawn.append({"type": "bar", "x": names, "y": high - low, "base": low, "name": "chance",
                      "marker": {"color": LIGHT["noise"]}, "hoverinfo": "skip"})  # fmt: skip
        every = np.concatenate([values, [table.goal], low, high])
        yrange = list(curves.finite_range(np.clip(every, 0.0, 1.0)))
    what = "coverage" if table.coverage else "mean loss"
    drawn.append({
        "type": "scatter", "x": names, "y": values.tolist(), "mode": "markers", "name": what,
        "marker": {"color": LIGHT["line"], "size": 10}, "customdata": labels,
        "hovertemplate": "%{y} of %{customdata:,} labels<extra></extra>",
    })  # fmt: skip
    view = None if stream is None else view_of(trace, stream)
    every_one = ", all series" if stream is None and len(trace.states) > 1 else ""
    figure = draw(
        drawn, view, f"By {words.BY[table.by]}{every_one}", words.groups_caption(table, len(kept)),
        y=what, level=table.goal, share=table.coverage, yrange=yrange,
    )  # fmt: skip
    figure.update_xaxes(type="category")
    return figure.update_layout(bargap=0.5)


def intervals(
    trace: Trace,
    stream: Hashable = None,
    *,
    start: int | None = None,
    stop: int | None = None,
    target: str = "actual value",
    window: int = 250,
) -> Any:
    """The sets and the labels, row by row, with the misses marked; drag to zoom.

    Of a long trace the worst window of labels is seen first, with the whole in a strip below;
    `start` and `stop` choose rows to look at more closely. Sets of labels are drawn by their size.
    `target` is what the actual value is called.
    """
    view = view_of(trace, stream).part(slice(start, stop))
    if not len(view.rows):
        raise InputError(f"there are no rows from {start} to {stop}")
    look = _first_look(view, window)
    rows = curves.rows(view, look)
    if rows.bands:
        title, axis, height = "Intervals and misses", plotly_text(target), view.y
        drawn, yrange, whole_range = _bands_and_labels(view, rows, axis, look)
    else:
        title, axis, height = "Set sizes and misses", "size", view.sizes
        finite = np.where(np.isinf(rows.sizes), np.nan, rows.sizes)
        points = curves.broken(rows.begins, view.x[rows.begins], finite)
        drawn = line("size of the set", *points, width=1.4, shape="hv")
        most = float(np.nanmax(finite)) if not np.isnan(finite).all() else 1.0
        yrange = whole_range = [-0.05 * most, 1.08 * most]
    drawn += crosses("miss", view.x[rows.misses], height[rows.misses])
    whole = look.stop - look.start == len(view.rows)
    caption = words.rows_caption(view, rows, None if whole else look)
    figure = draw(drawn, view, title, caption, y=axis, height=420, yrange=yrange)
    if not whole:
        figure.update_xaxes(
            range=_ends(view.x[look]),
            rangeslider={
                "visible": True, "thickness": 0.13, "bgcolor": LIGHT["paper"],
                "bordercolor": LIGHT["grid"], "borderwidth": 1, "range": _ends(view.x),
                "yaxis": {"rangemode": "fixed", "range": whole_range},
            },
        )  # fmt: skip
    return figure


def _first_look(view: View, window: int) -> slice:
    """The rows around the worst window, or all of few."""
    count = len(view.rows)
    worst = curves.rolling(view, 0, window).worst
    if count <= _FIRST_LOOK:
        return slice(0, count)
    if not worst:
        return slice(count - _FIRST_LOOK, count)
    air = max((_FIRST_LOOK - (worst[0].stop - worst[0].start)) // 2, 10)
    return slice(max(worst[0].start - air, 0), min(worst[0].stop + air, count))


def _bands_and_labels(
    view: View, rows: curves.Rows, target: str, look: slice
) -> tuple[Curves, list[float], list[float]]:
    """The intervals as bands, and the labels; the range of what is seen first, and of all."""
    seen = [end[look] for level in curves.bands_of(view) for end in level[1:]]
    ends = [end for level in rows.bands for end in level[1:]]
    least, most = curves.finite_range(view.y, *ends)
    out, drawn = 10.0 * (most - least), []
    asked = asked_of(view.trace.controller.risks[0])
    for place, level in enumerate(rows.bands):
        name = level.name if len(rows.bands) > 1 else words.interval(asked)
        drawable = curves.closed(level, least - out, most + out)
        x, *both = curves.broken(rows.begins, view.x[rows.begins], *drawable)
        fill = "fill" if place == 0 else "inner"
        drawn += band(Band(name, *both), x, edge=0.8, fill=fill)
    points = curves.broken(rows.labels, view.x[rows.labels], view.y[rows.labels])
    mode = "lines+markers" if len(view.rows) <= 400 else "lines"
    drawn += line(target, *points, colour="ink", width=1.1, mode=mode)
    return drawn, [*curves.finite_range(view.y[look], *seen)], [least, most]


def lengths(trace: Trace, stream: Hashable = None) -> Any:
    """The lengths of the intervals, or the sizes of other sets, over time."""
    view = view_of(trace, stream)
    found = curves.lengths(view)
    what, middle = ("width", "median") if trace.shown is None else ("size", "mean")
    x, drawn = view.x[found.begins], []
    if found.low is not None and found.high is not None:
        places, *ends = curves.broken(found.begins, x, found.low, found.high)
        drawn += band(Band("10 to 90 %", *ends), places)
    points = curves.broken(found.begins, x, found.middle)
    drawn += line(what if found.low is None else middle, *points, width=1.6)
    title = "Widths over time" if what == "width" else "Set sizes over time"
    caption = words.lengths_caption(found, what, middle)
    return draw(drawn, view, title, caption, x=view.axis, y=what)


def price(trace: Trace, stream: Hashable = None) -> Any:
    """The cost of sets and model relative to a healthy past, with alarms marked."""
    view = view_of(trace, stream)
    found, drawn, shaded = curves.prices(view), [], []
    if found is not None:
        costs = {"intervals": found.sets, "model": found.model, "actual values": found.world}
        for colour, (name, values) in zip(SERIES, costs.items(), strict=False):
            places = curves.thinned(values)
            points = curves.broken(places, view.x[places], values[places])
            drawn += line(name, *points, colour=colour, width=1.6)
        if found.reference is not None:
            shaded.append((*view.x[list(found.reference)], "fill"))
        if found.alarms:
            rows, kinds = zip(*found.alarms, strict=True)
            more = {"text": kinds, "hovertemplate": "%{text}<extra></extra>"}
            drawn += crosses("alarm", view.x[list(rows)], np.ones(len(rows)), **more)
    figure = draw(
        drawn, view, "Price", words.price_caption(found), x=view.axis, y="times the reference",
        shaded=shaded,
    )  # fmt: skip
    return figure.update_yaxes(type="log")


def plot(subject: Trace | Stream) -> Any:
    """A plotly figure of the sets and labels of a trace, or of a stream's last labels.

    Both have it as a method, `trace.plot()`.
    """
    if isinstance(subject, Trace):
        return intervals(subject)
    if isinstance(subject, Stream):
        return _last_labels(subject)
    raise InputError(f"a plot is of a Trace or a Stream, got {subject!r}")


def _last_labels(stream: Stream) -> Any:
    """The sets of the last labels, and the labels."""
    recent = [label for label in stream.recent if label.size == label.size]
    if not recent:
        raise InputError("a plot of a stream needs labels, and none came since it was made")
    x, drawn, axis = np.arange(1 - len(recent), 1), [], "actual value"
    if all(isinstance(label.y, float) for label in recent):
        height = np.array([label.y for label in recent])
        ends = np.array([(label.lower, label.upper) for label in recent])
        closed = np.where(np.isfinite(ends) & (ends[:, :1] <= ends[:, 1:]), ends, np.nan).T
        name = words.interval(asked_of(stream.controller.risks[0]))
        drawn += band(Band(name, *closed), x, edge=0.8)
        drawn += line("actual value", x, height, colour="ink", width=1.1, mode="lines+markers")
        missed = (height < ends[:, 0]) | (height > ends[:, 1])
    else:
        height, axis = np.array([label.size for label in recent]), "size of the set"
        drawn += line("size", x, height)
        losses = [np.ravel(label.loss)[0] for label in recent]
        missed = np.array([bool(loss) for loss in losses])
    drawn += crosses("miss", x[missed], height[missed])
    caption = f"The last {len(recent):,} labels and their sets. Open sets are left out."
    return draw(drawn, None, "The last labels", caption, x="labels ago", y=axis)


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


def line(
    name: str, x: Any, y: Array, *, colour: str = "line", width: float = 2.0, mode: str = "lines",
    **look: Any,
) -> Curves:  # fmt: skip
    """A curve; `look` are further options of its line."""
    return [{
        "type": "scatter", "x": _places(x), "y": _thin(y), "mode": mode, "name": name,
        "line": {"color": LIGHT[colour], "width": width, **look}, "marker": {"size": 3},
    }]  # fmt: skip


def crosses(name: str, x: Any, y: Array, **more: Any) -> Curves:
    """What is to be noticed; `more` are further options of plotly."""
    edge = {"color": LIGHT["miss"], "width": 2.0}
    marker = {"color": LIGHT["miss"], "size": 8, "symbol": "x-thin", "line": edge}
    return [{"type": "scatter", "x": _places(x), "y": _thin(y), "mode": "markers", "name": name,
             "marker": marker, **more}]  # fmt: skip


def band(ends: Band, x: Any, *, edge: float = 0.0, fill: str = "fill") -> Curves:
    """A band between two curves, one entry in the legend.

    Each piece between NaNs is a band of its own: a fill would go across them.
    """
    gaps = np.isnan(ends.lower) | np.isnan(ends.upper)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], gaps, [True]]))).tolist()
    pieces = [slice(*pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
    return [
        {
            "type": "scatter", "x": _places(x[piece]), "y": _thin(values[piece]), "mode": "lines",
            "line": {"color": LIGHT["line"], "width": edge}, "name": ends.name, "fill": to,
            "hovertemplate": f"{ends.name} {word} %{{y:.5~g}}<extra></extra>",
            "legendgroup": ends.name, "showlegend": to is not None and not number,
            "fillcolor": LIGHT[fill],
        }
        for number, piece in enumerate(pieces or [slice(None)])
        for values, to, word in ((ends.upper, None, "to"), (ends.lower, "tonexty", "from"))
    ]  # fmt: skip


def draw(
    drawn: Curves, view: View | None, title: str, caption: str, *, x: str = "", y: str = "",
    height: int = 340, level: float | None = None, share: bool = False,
    yrange: Sequence[float] | None = None, shaded: Sequence[tuple[Any, Any, str]] = (),
) -> Any:  # fmt: skip
    """The figure of some curves in the one style that all share.

    The title and the caption say of which series it is; `layout.meta` keeps the caption and the
    bare title. `level` is a dashed line across the plot, `share` writes the vertical axis in
    percent, and `shaded` are stretches of the horizontal axis with their colours.
    """
    name = "" if view is None else view.name
    if view is not None and name:
        caption = f"This is series {named(view.stream)}. {caption}"
    muted, rim = {"color": LIGHT["muted"], "size": 12}, LIGHT["grid"]
    axis: Mapping[str, Any] = {
        "gridcolor": rim, "linecolor": rim, "zeroline": False, "tickfont": muted,
        "automargin": True,
    }  # fmt: skip
    shapes: Curves = [
        {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": _plain(first), "x1": _plain(last),
         "fillcolor": LIGHT[colour], "line": {"width": 0}, "layer": "below"}
        for first, last, colour in shaded
    ]  # fmt: skip
    if level is not None:
        dashed = {"color": LIGHT["ink"], "width": 1.3, "dash": "dash"}
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level,
                       "line": dashed})  # fmt: skip
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"}
    below = {"showgrid": False, "ticks": "outside", "tickcolor": rim, **axis}
    form = {"tickformat": ".4~%", "hoverformat": ".2%"} if share else {"hoverformat": ".5~g"}
    return library("plotly.graph_objects").Figure(drawn, {
        "template": "none",
        "title": {"text": plotly_text(f"{title}{name}"), "x": 0, "xref": "paper",
                  "font": {"size": 16}},
        "meta": {"caption": caption, "title": title},
        "height": height, "margin": {"l": 8, "r": 8, "t": 44, "b": 8},
        "paper_bgcolor": LIGHT["paper"], "plot_bgcolor": LIGHT["paper"],
        "font": {"family": _FONT, "size": 13, "color": LIGHT["ink"]},
        "hoverlabel": {"bgcolor": LIGHT["paper"], "bordercolor": rim, "font_color": LIGHT["ink"]},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": LIGHT["muted"],
                    "activecolor": LIGHT["ink"]},
        "hovermode": "x unified", "dragmode": "zoom", "legend": {**legend, "font": muted},
        "shapes": shapes,
        "xaxis": {"title": {"font": muted, "text": x}, **below},
        "yaxis": {"title": {"font": muted, "text": y}, "range": yrange, **form, **axis},
    })  # fmt: skip


def _thin(values: Array) -> Array:
    """Numbers for a page: float32 is finer than any screen and half the size."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _places(x: Any) -> Any:
    """Places on the horizontal axis as plotly takes them."""
    times = isinstance(x, np.ndarray) and x.dtype.kind == "M"
    return np.datetime_as_string(x).tolist() if times else x


def _plain(x: Any) -> Any:
    """One place on the horizontal axis."""
    return str(x) if isinstance(x, np.datetime64) else x.item()


def _ends(x: Array) -> list[Any]:
    """The range of some places on the horizontal axis."""
    return [_plain(x[0]), _plain(x[-1])]
