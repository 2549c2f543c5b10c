"""The figures: each a function from a trace to a plotly figure that carries its own caption."""

from collections.abc import Hashable
from math import inf, sqrt
from typing import Any

import numpy as np

from setpoint.errors import InputError
from setpoint.losses import declaration
from setpoint.replaying import Trace
from setpoint.report import _curves as curves
from setpoint.report._look import LIGHT, library
from setpoint.report._look import styled as look
from setpoint.report._view import View, shows_intervals, sizes_of, stream_at, view
from setpoint.stretches import Identity

__all__ = [
    "draw_groups",
    "groups",
    "intervals",
    "lengths",
    "risk_over_time",
    "streaks",
    "theta",
    "windows",
]

Array = np.ndarray[Any, Any]

_FIRST_LOOK = 300
"""How many of the last rows are seen before anyone zooms."""

_MOST_GROUPS = 30


def risk_over_time(trace: Trace, stream: Hashable = None, *, risk: int = 0) -> Any:
    """The mean loss up to each label, with the guarantee as a band.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    stream
        The id of a stream; of several, all together if none is named.
    risk
        Which risk of the controller, counted from 0.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    go = library("plotly.graph_objects")
    seen = view(trace, stream)
    found = curves.risks(seen, risk)
    figure = go.Figure()
    x, name = _at(found.x), trace.controller.risks[risk].name
    if found.high is not None or found.low is not None:
        promise = declaration(trace.controller.risks[risk].loss)
        ends = promise.low, promise.high if promise.high < inf else _most(found)
        low = np.full(len(found.risk), ends[0]) if found.low is None else found.low
        high = np.full(len(found.risk), ends[1]) if found.high is None else found.high
        _band(figure, x, low, high, "guaranteed")
    figure.add_scatter(
        x=x, y=_thin(found.risk), mode="lines", name="risk so far", line={"color": LIGHT["line"]}
    )
    _level(figure, found.level)
    figure.update_yaxes(range=curves.risk_range(found))
    mean = f"{found.risk[-1]:.4g}" if found.labels else "unknown, there being no label"
    told = (
        f"The line is the mean loss ({name}) of all labels up to that point; at the end it is "
        f"{mean}. The dashed line is the level asked for, {found.level:g}. "
    )
    told += _band_told(found, seen)
    if found.earlier:
        told += (
            f" It goes on from a saved state: {found.earlier:,} earlier labels are counted in the "
            "line and in the band."
        )
    return _styled(figure, seen, "Risk over time", told, x=seen.axis, y="mean loss so far")


def _band_told(found: curves.Risks, seen: View) -> str:
    sides = [side for side in (found.low, found.high) if side is not None]
    if not sides or not found.labels:
        return "There is no band, because nothing is guaranteed here; the certificate says why."
    told = (
        "The band is the guarantee: whatever the data do, the line cannot leave it. It narrows as "
        "one over the number of labels; early on it is wider than the plot."
    )
    if len(sides) == 1:
        told += " Here it binds from one side only."
    if seen.several:
        told += " Over several streams the bounds of the streams add up."
    return told


def _most(found: curves.Risks) -> float:
    return 2.0 * float(max(found.risk.max(initial=0.0), found.level))


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
    _styled(figure, seen, title, told, x="", y=axis, height=420)
    if len(seen.rows) > _FIRST_LOOK:
        figure.update_xaxes(
            range=_axis_range(seen.x[-_FIRST_LOOK], seen.x[-1]),
            rangeslider={
                "visible": True,
                "thickness": 0.13,
                "bgcolor": LIGHT["paper"],
                "bordercolor": LIGHT["grid"],
                "borderwidth": 1,
                "range": _axis_range(seen.x[0], seen.x[-1], air=0),
            },
        )
    return figure


def _draw_bands(figure: Any, seen: View, found: curves.Rows) -> tuple[str, str, str]:
    ends = [end for band in found.bands for end in band]
    low, high = curves.finite_range(found.y, *ends)
    out = 10.0 * (high - low)
    x = _at(found.x)
    for place, band in enumerate(found.bands):
        lower, upper = curves.closed(band, low - out, high + out)
        name = "set" if len(found.bands) == 1 else f"level {len(found.bands) - place}"
        _band(figure, x, lower, upper, name, edge=True, fill="fill" if place == 0 else "inner")
    figure.add_scatter(
        x=_at(found.at),
        y=_thin(found.y),
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
    return told + _safeguard_told(seen) + _zoom_told(seen), "Intervals and misses", "label"


def _draw_sizes(figure: Any, seen: View, found: curves.Rows) -> tuple[str, str, str]:
    sizes = np.zeros(0) if found.sizes is None else found.sizes
    figure.add_scatter(
        x=_at(found.x),
        y=_thin(np.where(np.isinf(sizes), np.nan, sizes)),
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
    return told + _safeguard_told(seen) + _zoom_told(seen), "Set sizes and misses", "size"


def _misses(figure: Any, seen: View, found: curves.Rows, height: Array) -> None:
    figure.add_scatter(
        x=_at(seen.x[found.misses]),
        y=_thin(height[found.misses]),
        mode="markers",
        name="miss",
        marker={"color": LIGHT["miss"], "size": 8, "symbol": "x-thin", "line": _stroke("miss", 2)},
    )


def _zoom_told(seen: View) -> str:
    if len(seen.rows) <= _FIRST_LOOK:
        return "Drag across the plot to zoom."
    return (
        f"At first the last {_FIRST_LOOK:,} rows are seen: move the ends of the strip below, or "
        "drag across the plot, to see others."
    )


def _safeguard_told(seen: View) -> str:
    lam = seen.trace.lam[seen.rows]
    full, empty = int((lam == inf).sum()), int((lam == -inf).sum())
    if not full + empty:
        return ""
    return (
        f"The safeguard showed {full:,} full sets, whose ends lie beyond the plot, and {empty:,} "
        "empty ones, drawn without width. "
    )


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
        figure.add_scatter(
            x=_at(seen.x[drawn]),
            y=_thin(values[drawn]),
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
        figure.add_scatter(
            x=_at(seen.x[drawn]),
            y=_thin(finite[drawn]),
            mode="lines",
            name="λ",
            line={"color": LIGHT["ink"], "width": 1.2},
            row=2,
            col=1,
        )
        told += "λ, by which the sets grow, is what the stretching function makes of it. "
    told += _bounds_told(seen, thetas)
    _styled(figure, seen, "θ and λ", told, x="", y="", height=340 if same else 460)
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
    x = _at(found.x)
    what, middle = ("length", "median") if shows_intervals(trace) else ("size", "mean")
    if found.low is not None and found.high is not None:
        _band(figure, x, found.low, found.high, "10 to 90 %")
        told = (
            f"The line is the {middle} {what} of each {found.together:,} rows in a row, the band "
            "holds the middle 80 % of them."
        )
    else:
        told = f"The {what} of each set."
    figure.add_scatter(
        x=x,
        y=_thin(found.middle),
        mode="lines",
        name=middle if found.low is not None else what,
        line={"color": LIGHT["line"], "width": 1.6},
    )
    if found.infinite:
        told += f" {found.infinite:,} sets have no finite {what} and are left out."
    if np.isnan(found.middle).all():
        told += " None of these sets has a finite one." if found.infinite else " They have none."
    title = "Lengths" if what == "length" else "Set sizes over time"
    return _styled(figure, seen, title, told, x=seen.axis, y=what)


def windows(trace: Trace, stream: Hashable = None, *, risk: int = 0, window: int = 250) -> Any:
    """The mean loss over sliding windows, with the worst ones shaded.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    stream
        The id of a stream; of several, the one with the worst window if none is named.
    risk
        Which risk of the controller, counted from 0.
    window
        Labels in a window.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    go = library("plotly.graph_objects")
    if stream is None and len(trace.states) > 1:
        start = trace.summary(risk, window=window).worst_window_start
        stream = None if start is None else stream_at(trace, start)
    seen = view(trace, stream, alone=True, risk=risk)
    found = curves.rolling(seen, risk, window)
    figure = go.Figure()
    x = _at(found.x)
    shaded = found.worst[: 3 if len(seen.rows) > 12 * found.window else 1]
    for each in shaded:
        figure.add_vrect(
            x0=_plain(seen.x[each.start]),
            x1=_plain(seen.x[each.stop]),
            fillcolor=LIGHT["worst"],
            line_width=0,
            layer="below",
        )
    figure.add_scatter(
        x=x, y=_thin(found.risk), mode="lines", name="window", line={"color": LIGHT["line"]}
    )
    _level(figure, found.level)
    told = "There are no labels, so there are no windows."
    if found.window:
        told = (
            f"The line is the mean loss of the last {found.window:,} labels, the dashed line the "
            f"level asked for, {found.level:g}."
        )
        if found.worst:
            worst = found.worst[0]
            which = "windows" if len(shaded) > 1 else "window"
            told += (
                f" Shaded: the {which} furthest from it; the worst has a mean of {worst.risk:.4g}."
            )
        told += _noise_told(trace, risk, found)
    return _styled(figure, seen, "Worst windows", told, x=seen.axis, y="mean loss in window")


def _noise_told(trace: Trace, risk: int, found: curves.Rolling) -> str:
    promise = declaration(trace.controller.risks[risk].loss)
    if (promise.low, promise.high) != (0.0, 1.0) or not 0.0 < found.level < 1.0:
        return ""
    noise = sqrt(found.level * (1.0 - found.level) / found.window)
    return (
        f" Independent losses of 0 and 1 would stray by about ±{2.0 * noise:.2g} (two standard "
        "deviations) in a window of this length."
    )


def streaks(trace: Trace, stream: Hashable = None) -> Any:
    """How long misses in a row lasted, beside what chance alone would give.

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
    found = curves.streaks(seen)
    longest = int(found.max(initial=0))
    counts = np.bincount(found, minlength=2)[1:]
    size = np.arange(1, len(counts) + 1)
    if longest > 40:  # the tail in one bar
        counts, size = np.append(counts[:40], counts[40:].sum()), np.arange(1, 42)
    names = [str(each) for each in size.tolist()]
    names = [*names[:-1], "over 40"] if longest > 40 else names
    figure = go.Figure()
    hits = seen.hits
    hits = hits[~np.isnan(hits)]
    missed = float(1.0 - hits.mean()) if len(hits) else 0.0
    expected = len(found) * (1.0 - missed) * missed ** (size - 1.0)
    if longest > 40:
        expected[-1] = len(found) * missed**40
    for name, values, colour in (("streaks", counts, "line"), ("by chance", expected, "noise")):
        figure.add_bar(
            x=names,
            y=values,
            name=name,
            marker={"color": LIGHT[colour]},
            text=[f"{value:,.0f}" for value in values.tolist()] if longest <= 12 else None,
            textposition="outside",
            textfont={"color": LIGHT["muted"]},
            cliponaxis=False,
        )
    if len(found):
        told = (
            f"Each bar counts the runs of so many misses in a row; there were {len(found):,} in "
            f"all and the longest had {longest:,}. Grey is what independent misses with the "
            f"same rate, {missed:.2%}, would give."
        )
    else:
        told = "Nothing was missed, so there are no streaks."
    _styled(figure, seen, "Streaks of misses", told, x="misses in a row", y="how often")
    figure.update_xaxes(type="category")
    figure.update_layout(bargap=0.3, barmode="group")
    return figure


def groups(trace: Trace, stream: Hashable = None) -> Any:
    """Coverage by group, or by day of the week where rows have times and no groups.

    Where the first risk is not about coverage, its mean loss in each group instead.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned; its tape must have groups, or dates.
    stream
        The id of a stream; of several, all together if none is named.

    Returns
    -------
    A `plotly.graph_objects.Figure`, with its caption in `layout.meta["caption"]`.
    """
    figure = draw_groups(trace, stream)
    if figure is None:
        raise InputError("groups need a tape with groups, or with times that are dates")
    return figure


def draw_groups(trace: Trace, stream: Hashable = None) -> Any:
    """The figure of groups; None where there are none."""
    go = library("plotly.graph_objects")
    seen = view(trace, stream)
    found = curves.grouped(seen)
    if found is None or not found.groups:
        return None
    shares = [(own, own.coverage if found.coverage else own.risk) for own in found.groups]
    told = ""
    if len(shares) > _MOST_GROUPS:
        told = f" Of {len(shares):,} groups the {_MOST_GROUPS} furthest from it are shown."
        kept = sorted(shares, key=lambda pair: -abs(pair[1] - found.goal))[:_MOST_GROUPS]
        shares = [pair for pair in shares if pair in kept]
    names = [str(own.key) for own, _ in shares]
    figure = go.Figure()
    what = "coverage" if found.coverage else "mean loss"
    if found.coverage:
        spread = [2.0 * sqrt(found.goal * (1.0 - found.goal) / own.labels) for own, _ in shares]
        figure.add_bar(
            x=names,
            y=[min(found.goal + each, 1.0) - max(found.goal - each, 0.0) for each in spread],
            base=[max(found.goal - each, 0.0) for each in spread],
            name="chance",
            marker={"color": LIGHT["noise"]},
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=names,
        y=[share for _, share in shares],
        mode="markers",
        name=what,
        marker={"color": LIGHT["line"], "size": 10},
        customdata=[own.labels for own, _ in shares],
        hovertemplate="%{y:.4f} of %{customdata:,} labels<extra></extra>",
    )
    _level(figure, found.goal)
    by = "day of the week" if found.by == "weekday" else "group"
    caption = f"Each dot is the {what} in one {by}, the dashed line what was asked for." + told
    if found.coverage:
        caption += (
            " The grey bars are where chance alone would put nearly all dots (two standard "
            "deviations of independent hits): a dot inside its bar says nothing about the group."
        )
    _styled(figure, seen, f"By {by}", caption, x="", y=what)
    figure.update_xaxes(type="category")
    values = np.array([share for _, share in shares] + [found.goal])
    if found.coverage:
        values = np.concatenate(
            [values, found.goal + np.array(spread), found.goal - np.array(spread)]
        )
        low, high = curves.finite_range(np.clip(values, 0.0, 1.0))
        figure.update_yaxes(range=[low, high])
    figure.update_layout(bargap=0.5)
    return figure


# Drawn


def _styled(figure: Any, seen: View, title: str, told: str, **axes: Any) -> Any:
    """The figure with its look; the title and the caption say of which stream it is."""
    if seen.name:
        told = f"This is stream {seen.streams[0]}. {told}"
    return look(figure, f"{title}{seen.name}", told, **axes)


def _thin(values: Array) -> Array:
    """Numbers for a page: float32 is finer than any screen and half the size."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _at(x: Array) -> Any:
    return np.datetime_as_string(x).tolist() if x.dtype.kind == "M" else x


def _plain(x: Any) -> Any:
    return str(x) if isinstance(x, np.datetime64) else x.item()


def _axis_range(first: Any, last: Any, *, air: int = 1) -> list[Any]:
    """The range from one place to another, with some air behind the last."""
    return [_plain(first), _plain(last + air * ((last - first) // 40))]


def _stroke(colour: str, width: float = 2.0) -> dict[str, Any]:
    return {"color": LIGHT[colour], "width": width}


def _band(
    figure: Any,
    x: Any,
    low: Array,
    high: Array,
    name: str,
    *,
    edge: bool = False,
    fill: str = "fill",
) -> None:
    """A band between two curves, one entry in the legend."""
    line = {"color": LIGHT["line"], "width": 0.8 if edge else 0.0}
    for values, own in ((high, {"fill": None}), (low, {"fill": "tonexty"})):
        figure.add_scatter(
            x=x,
            y=_thin(values),
            mode="lines",
            line=line,
            name=name,
            hovertemplate=f"{name} {'from' if own['fill'] else 'to'} %{{y:.5~g}}<extra></extra>",
            legendgroup=name,
            showlegend=bool(own["fill"]),
            fillcolor=LIGHT[fill],
            **own,
        )


def _level(figure: Any, level: float) -> None:
    """What was asked for, across the whole plot."""
    figure.add_hline(y=level, line={"color": LIGHT["ink"], "width": 1.3, "dash": "dash"})
