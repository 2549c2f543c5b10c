"""The page: one HTML file with its figures, its style and its scripts inside."""

import json
import os
from collections.abc import Hashable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._files import put
from setpoint.bulk.replay import Trace
from setpoint.report import _risk_figures as risk_figures
from setpoint.report import _set_figures as set_figures
from setpoint.report import _words as words
from setpoint.report._look import DARK, LIGHT, library
from setpoint.report._metrics import metrics as numbers_of

__all__ = ["write"]

_MOST_VIEWS = 5
"""How many streams of several can be looked at one by one."""


def write(
    trace: Trace,
    path: str | os.PathLike[str],
    *,
    title: str = "Report",
    metrics: Mapping[str, Any] | None = None,
    window: int = 250,
) -> Path:
    """Writes the report of a trace as one HTML file, whole or not at all.

    The file holds everything it needs and asks no network for anything. Its numbers are those of
    `metrics`: each one on the page carries the name it has there.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    path
        Where to write it, such as `report.html`.
    title
        The heading of the page.
    metrics
        What `report.metrics(trace)` returned, where it is at hand already.
    window
        Labels in a sliding window; where `metrics` are given, those they were made with.

    Returns
    -------
    The path.
    """
    script = library("plotly.offline").get_plotlyjs()
    found = numbers_of(trace, window=window) if metrics is None else metrics
    page = _page(trace, found, str(title), script)
    return put(path, page.encode())


def _page(trace: Trace, found: Mapping[str, Any], title: str, script: str) -> str:
    views = _views(trace, found)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            # Whatever a script may try, the page asks for nothing outside itself.
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">",
            f'<meta name="generator" content="setpoint {escape(found["setpoint"])}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_asset('page.css')}</style>",
            "</head>",
            "<body>",
            words.header(found, title),
            "<main>",
            words.streams(found),
            _choose(views),
            *_plots(found, views),
            words.certificate(trace, found),
            words.made(found),
            words.configuration(trace),
            "</main>",
            "<footer><p>Made by setpoint "
            f"{escape(found['setpoint'])}. Everything on this page is in this file, and it asks no "
            "network for anything. Its numbers are in the element <code>metrics</code> as JSON."
            "</p></footer>",
            f'<script type="application/json" id="metrics">{_json(found)}</script>',
            f'<script type="application/json" id="figures">{_json(_packed(views))}</script>',
            f"<script>{script}</script>",
            f"<script>\n{_asset('page.js')}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _asset(name: str) -> str:
    return files("setpoint.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that may stand inside a script element, where `</script` and `<!--` would end it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _views(trace: Trace, found: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The figures of each view, by its label: all streams together, and the worst by themselves."""
    several = found["streams"] > 1
    views = {"all streams together" if several else "": _drawn(trace, None, found)}
    if several:
        for each in found["worst_streams"][:_MOST_VIEWS]:
            views[f"stream {each['id']}"] = _drawn(trace, each["id"], found)
    return views


def _drawn(trace: Trace, stream: Hashable, found: Mapping[str, Any]) -> dict[str, str]:
    """The figures of one view as JSON, by the id of their place; empty ones are left out."""
    made: dict[str, Any] = {}
    for risk in range(len(found["risks"])):
        made[f"risk-{risk}"] = risk_figures.risk_over_time(trace, stream, risk=risk)
    made["intervals"] = set_figures.intervals(trace, stream)
    made["theta"] = set_figures.theta(trace, stream)
    made["lengths"] = set_figures.lengths(trace, stream)
    for risk, held in enumerate(found["risks"]):
        worst = held["windows"][0]["stream"] if held["windows"] else None
        own = worst if stream is None and found["streams"] > 1 else stream
        made[f"windows-{risk}"] = risk_figures.windows(
            trace, own, risk=risk, window=found["window"]
        )
    made["streaks"] = risk_figures.streaks(trace, stream)
    by_group = risk_figures.draw_groups(trace, stream)
    if by_group is not None:
        made["groups"] = by_group
    return {name: _bare(figure) for name, figure in made.items() if _has_points(figure)}


def _has_points(figure: Any) -> bool:
    """Whether anything would be seen: a curve or a bar with a number that is no gap and no zero."""
    for each in figure.data:
        values = np.asarray(each.y if each.y is not None else (), dtype=np.float64)
        values = values[~np.isnan(values)]
        if len(values) and (each.type != "bar" or values.any()):
            return True
    return False


def _bare(figure: Any) -> str:
    """A figure as JSON without its title: on the page it stands under a heading."""
    figure.update_layout(title=None, margin={"t": 36})
    return str(figure.to_json())


def _packed(views: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """What the script draws: every figure once, and which view shows which."""
    places: dict[str, int] = {}
    packed = [
        {
            "label": label,
            "plots": {name: places.setdefault(text, len(places)) for name, text in plots.items()},
        }
        for label, plots in views.items()
    ]
    night = {colour: DARK[name] for name, colour in LIGHT.items()}
    return {"views": packed, "figures": list(places), "night": night}


def _choose(views: Mapping[str, Any]) -> str:
    if len(views) == 1:
        return ""
    options = "".join(f"<option>{escape(label)}</option>" for label in views)
    return (
        f'<p class="choose"><label for="stream">The figures show</label> '
        f'<select id="stream">{options}</select></p>'
    )


def _plots(found: Mapping[str, Any], views: Mapping[str, Mapping[str, str]]) -> list[str]:
    first = next(iter(views.values()))
    intervals = found["sets"] == "intervals"
    several = len(found["risks"]) > 1
    made = {}
    for index, risk in enumerate(found["risks"]):
        made[f"risk-{index}"] = f"Risk over time: {risk['name']}" if several else "Risk over time"
    made["intervals"] = "Intervals and misses" if intervals else "Set sizes and misses"
    made["theta"] = "θ and λ"
    made["lengths"] = "Lengths" if intervals else "Set sizes over time"
    for index, risk in enumerate(found["risks"]):
        made[f"windows-{index}"] = f"Worst windows: {risk['name']}" if several else "Worst windows"
    made["streaks"] = "Streaks of misses"
    if "groups" in first:
        made["groups"] = "Day of the week" if found["groups"]["by"] == "weekday" else "Groups"
    return [_plot(heading, name, first, found) for name, heading in made.items() if name in first]


def _plot(heading: str, name: str, drawn: Mapping[str, str], found: Mapping[str, Any]) -> str:
    layout = json.loads(drawn[name])["layout"]
    caption, height = layout["meta"]["caption"], layout["height"]
    more = ""
    if name.startswith("windows-"):
        more = words.windows(found, int(name.removeprefix("windows-")), layout["meta"]["shaded"])
    elif name == "groups":
        more = words.groups(found)
    # A group and no image: there are buttons in it, and points to be read one by one.
    return (
        f'<section aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(heading)}</h2>\n'
        f'<figure role="group" aria-labelledby="{name}-heading" aria-describedby="{name}-caption">'
        f'<div class="plot" id="{name}" style="min-height:{height}px" role="group" '
        f'aria-label="Plot: {escape(heading)}"></div>\n'
        f'<figcaption id="{name}-caption">{escape(caption)}</figcaption></figure>\n'
        "<noscript><p>The figure is drawn by a script, and scripts are switched off.</p></noscript>"
        f"\n{more}</section>"
    )
