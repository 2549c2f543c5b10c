"""Figures of the risk: over time, in its worst windows, in streaks, by group."""

from collections.abc import Hashable
from math import inf, sqrt
from typing import Any

import numpy as np

from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.losses import declaration
from setpoint.report import _curves as curves
from setpoint.report._by_group import grouped
from setpoint.report._drawing import add_band, add_level, places, plain, thin, titled
from setpoint.report._look import LIGHT, library
from setpoint.report._view import View, stream_at, view

__all__ = ["draw_groups", "groups", "risk_over_time", "streaks", "windows"]

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
    x, name = places(found.x), trace.controller.risks[risk].name
    if found.high is not None or found.low is not None:
        promise = declaration(trace.controller.risks[risk].loss)
        ends = promise.low, promise.high if promise.high < inf else _most(found)
        low = np.full(len(found.risk), ends[0]) if found.low is None else found.low
        high = np.full(len(found.risk), ends[1]) if found.high is None else found.high
        add_band(figure, x, low, high, "guaranteed")
    figure.add_scatter(
        x=x, y=thin(found.risk), mode="lines", name="risk so far", line={"color": LIGHT["line"]}
    )
    add_level(figure, found.level)
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
    return titled(figure, seen, "Risk over time", told, x=seen.axis, y="mean loss so far")


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
    shaded = found.worst[: 3 if len(seen.rows) > 12 * found.window else 1]
    for each in shaded:
        figure.add_vrect(
            x0=plain(seen.x[each.start]),
            x1=plain(seen.x[each.stop]),
            fillcolor=LIGHT["worst"],
            line_width=0,
            layer="below",
        )
    x, line = curves.broken(found.x, found.risk)
    figure.add_scatter(
        x=places(x), y=thin(line), mode="lines", name="window", line={"color": LIGHT["line"]}
    )
    add_level(figure, found.level)
    told = "There are no labels, so there are no windows."
    if found.window:
        told = (
            f"The line is the mean loss of the last {found.window:,} labels, the dashed line the "
            f"level asked for, {found.level:g}."
        )
        if found.worst:
            which = f"{len(shaded)} windows" if len(shaded) > 1 else "window"
            mean = found.worst[0].risk
            off = f"{mean - found.level:+.4g}".replace("-", "−")
            told += f" Shaded: the {which} furthest from it; the worst has a mean of {mean:.4g}, "
            told += f"{off} from the level."
        told += _noise_told(trace, risk, found)
    titled(figure, seen, "Worst windows", told, x=seen.axis, y="mean loss in window")
    figure.update_layout(meta={**figure.layout.meta, "shaded": len(shaded)})
    return figure


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
    titled(figure, seen, "Streaks of misses", told, x="misses in a row", y="how often")
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
    found = grouped(seen)
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
    add_level(figure, found.goal)
    by = "day of the week" if found.by == "weekday" else "group"
    caption = f"Each dot is the {what} in one {by}, the dashed line what was asked for." + told
    if found.coverage:
        caption += (
            " The grey bars are where chance alone would put nearly all dots (two standard "
            "deviations of independent hits): a dot inside its bar says nothing about the group."
        )
    titled(figure, seen, f"By {by}", caption, x="", y=what)
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
