"""The page: one HTML file with its figures, its style and its scripts inside."""

import json
import os
from collections.abc import Hashable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from setpoint import spec
from setpoint.errors import SpecError
from setpoint.replaying import Trace
from setpoint.report import _figures as figures
from setpoint.report._files import put
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
            _header(found, title),
            "<main>",
            _streams(found),
            _choose(views),
            *_plots(found, views),
            _certificate(trace, found),
            _configuration(trace),
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


# Numbers


def _number(found: Mapping[str, Any], name: str, form: str = ".4g") -> str:
    """A number of the metrics, marked with its name there and its full value."""
    value: Any = found
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    if isinstance(value, str):
        return f'<span data-metric="{name}">{escape(value)}</span>'
    shown = "unknown" if value is None else format(value, form).replace("-", "−")
    return f'<data data-metric="{name}" value="{json.dumps(value)}">{shown}</data>'


def _entry(name: str, shown: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    wide = ' class="wide"' if "wide" in kind else ""
    return f"<div{wide}><dt>{name}</dt><dd{attribute}>{shown}</dd></div>"


def _mood(verdict: str) -> str:
    """Whether a verdict is good news, bad news, or open."""
    if "BROKEN" in verdict:
        return "bad"
    return "good" if verdict in ("holds", "holds from above") else "open"


def _bound(found: Mapping[str, Any], place: str) -> str:
    risk = found["risks"][int(place.rpartition(".")[2])]
    low, high = risk["bound_lower"], risk["bound_upper"]
    ends = _number(found, f"{place}.bound_lower"), _number(found, f"{place}.bound_upper")
    if low is None and high is None:
        return "none"
    if low is None:
        return f"at most {ends[1]}"
    return f"at least {ends[0]}" if high is None else f"{ends[0]} to {ends[1]}"


def _header(found: Mapping[str, Any], title: str) -> str:
    lines = ["<header>", f"<h1>{escape(title)}</h1>", f'<p class="about">{_about(found)}</p>']
    several = len(found["risks"]) > 1
    for index, risk in enumerate(found["risks"]):
        place = f"risks.{index}"
        if several:
            lines.append(f"<h3>{index + 1}. {escape(risk['name'])}</h3>")
        else:
            lines.append(f'<p class="lede">{_lede(found)}</p>')
        lines += [
            '<dl class="headline">',
            _entry("Level asked", _number(found, f"{place}.level")),
            _entry("Realised risk", _number(found, f"{place}.risk")),
            _entry("Guaranteed", _bound(found, place), "wide"),
            _entry(
                "The guarantee",
                _number(found, f"{place}.verdict"),
                f"wide verdict {_mood(risk['verdict'])}",
            ),
            "</dl>",
        ]
        if risk["earlier_labels"]:
            lines.append(
                '<p class="note">The trace goes on from a saved state. The guarantee is about '
                f"the {_number(found, f'{place}.earlier_labels', ',')} earlier labels too: over "
                f"all of them the risk is {_number(found, f'{place}.certified_risk')}.</p>"
            )
    size = "length" if found["sets"] == "intervals" else "size"
    of_finite = "" if found["mean_length"] is not None else ", finite ones"
    lines += [
        '<dl class="headline more">',
        _entry("Coverage", _number(found, "coverage", ".2%")),
        _entry(f"Mean {size}{of_finite}", _number(found, "mean_finite_length")),
        _entry(f"Median {size}", _number(found, "median_length")),
        _entry("Longest streak", _number(found, "longest_streak", ",")),
        _entry("Mean streak (MSL)", _number(found, "msl")),
        _entry("Worst window off by", _number(found, "risks.0.worst_window")),
        "</dl>",
        "</header>",
    ]
    return "\n".join(lines)


def _about(found: Mapping[str, Any]) -> str:
    told = [f"{found['rows']:,} rows"]
    if found["streams"] > 1:
        told.append(f"{found['streams']:,} streams")
    if found["missing"]:
        told.append(f"{found['missing']:,} without a label")
    if found["first_time"] is not None:
        first, last = (str(found[name]).replace("T", " ") for name in ("first_time", "last_time"))
        told.append(f"{escape(first)} to {escape(last)}")
    full, empty = found["full"], found["empty"]
    if full or empty:
        told.append(f"{full or 0:.2%} full sets, {empty or 0:.2%} empty")
    return " · ".join(told)


def _lede(found: Mapping[str, Any]) -> str:
    """The outcome in a sentence."""
    risk = found["risks"][0]
    if risk["risk"] is None:
        return "There was no label to judge a set by, so there is no risk to report."
    streams = f" in {found['streams']:,} streams" if found["streams"] > 1 else ""
    told = (
        f"A risk of {risk['level']:.4g} was asked for ({escape(risk['name'])}), and "
        f"{risk['risk']:.4g} came out over {risk['labels']:,} labels{streams}."
    )
    if _mood(risk["verdict"]) == "good" and not risk["earlier_labels"]:
        told += " That is within the guarantee, which needs no assumption about the data."
    return told


# Streams


def _streams(found: Mapping[str, Any]) -> str:
    if not found["worst_streams"]:
        return ""
    shown, every = len(found["worst_streams"]), found["streams"]
    caption = f"All {every:,} streams" if shown == every else f"{shown} of {every:,} streams"
    head = ("Stream", "Labels", "Risk", "Above the level", "Coverage", "Mean size", "The guarantee")
    lines = [
        "<section>",
        "<h2>Streams</h2>",
        '<div class="scroll"><table>',
        f"<caption>{caption}, the highest risk first.</caption>",
        _head(head, words=("Stream", "The guarantee")),
    ]
    for index, stream in enumerate(found["worst_streams"]):
        place = f"worst_streams.{index}"
        cells = [
            (f"{place}.labels", ","),
            (f"{place}.risk", ".4f"),
            (f"{place}.excess", "+.4f"),
            (f"{place}.coverage", ".2%"),
            (f"{place}.mean_finite_length", ".4g"),
        ]
        lines.append(
            f"<tr><td>{escape(str(stream['id']))}</td>"
            + "".join(f'<td class="number">{_number(found, *cell)}</td>' for cell in cells)
            + f'<td class="{_mood(stream["verdict"])}">{escape(stream["verdict"])}</td></tr>'
        )
    return "\n".join([*lines, "</table></div>", "</section>"])


def _head(names: tuple[str, ...], words: tuple[str, ...]) -> str:
    cells = [
        f'<th scope="col"{"" if name in words else " class=number"}>{name}</th>' for name in names
    ]
    return f"<tr>{''.join(cells)}</tr>"


# Figures


def _views(trace: Trace, found: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The figures of each view, by its label: all streams together, and the worst by themselves."""
    several = found["streams"] > 1
    views = {"all streams together" if several else "": _drawn(trace, None, found)}
    if several:
        for each in found["worst_streams"][:_MOST_VIEWS]:
            views[f"stream {each['id']}"] = _drawn(trace, each["id"], found)
    return views


def _drawn(trace: Trace, stream: Hashable, found: Mapping[str, Any]) -> dict[str, str]:
    """The figures of one view as JSON, by the id of their place on the page."""
    made: dict[str, Any] = {}
    for risk in range(len(found["risks"])):
        made[f"risk-{risk}"] = figures.risk_over_time(trace, stream, risk=risk)
    made["intervals"] = figures.intervals(trace, stream)
    made["theta"] = figures.theta(trace, stream)
    made["lengths"] = figures.lengths(trace, stream)
    for risk in range(len(found["risks"])):
        made[f"windows-{risk}"] = figures.windows(trace, stream, risk=risk, window=found["window"])
    made["streaks"] = figures.streaks(trace, stream)
    by_group = figures.draw_groups(trace, stream)
    if by_group is not None:
        made["groups"] = by_group
    return {name: _bare(figure) for name, figure in made.items()}


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
    risks = found["risks"]
    several = len(risks) > 1
    made = []
    for index, risk in enumerate(risks):
        heading = f"Risk over time: {risk['name']}" if several else "Risk over time"
        made.append(_plot(heading, f"risk-{index}", first))
    made.append(
        _plot("Intervals and misses" if intervals else "Set sizes and misses", "intervals", first)
    )
    made.append(_plot("θ and λ", "theta", first))
    made.append(_plot("Lengths" if intervals else "Set sizes over time", "lengths", first))
    for index, risk in enumerate(risks):
        heading = f"Worst windows: {risk['name']}" if several else "Worst windows"
        made.append(_plot(heading, f"windows-{index}", first, _windows(found, index)))
    made.append(_plot("Streaks of misses", "streaks", first))
    if "groups" in first:
        by = "Day of the week" if found["groups"]["by"] == "weekday" else "Groups"
        made.append(_plot(by, "groups", first, _groups(found)))
    return made


def _plot(heading: str, name: str, drawn: Mapping[str, str], more: str = "") -> str:
    layout = json.loads(drawn[name])["layout"]
    caption, height = layout["meta"]["caption"], layout["height"]
    return (
        f'<section aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(heading)}</h2>\n'
        f'<figure><div class="plot" id="{name}" style="min-height:{height}px" role="img" '
        f'aria-labelledby="{name}-heading" aria-describedby="{name}-caption"></div>\n'
        f'<figcaption id="{name}-caption">{escape(caption)}</figcaption></figure>\n'
        "<noscript><p>The figure is drawn by a script, and scripts are switched off.</p></noscript>"
        f"\n{more}</section>"
    )


def _windows(found: Mapping[str, Any], index: int) -> str:
    """The worst windows as a table."""
    risk = found["risks"][index]
    if not risk["windows"]:
        return ""
    timed = risk["windows"][0]["from"] is not None
    head = ("From", "To", "Mean loss", "Off by")
    lines = []
    for place, window in enumerate(risk["windows"]):
        name = f"risks.{index}.windows.{place}"
        begin, end = (
            (str(window["from"]).replace("T", " "), str(window["to"]).replace("T", " "))
            if timed
            else (f"row {window['start']:,}", f"row {window['stop']:,}")
        )
        lines.append(
            f"<tr><td>{escape(begin)}</td><td>{escape(end)}</td>"
            f'<td class="number">{_number(found, f"{name}.risk", ".4f")}</td>'
            f'<td class="number">{_signed(window["risk"] - risk["level"])}</td></tr>'
        )
    stream = risk["windows"][0]["stream"]
    of = f" of stream {escape(str(stream))}" if found["streams"] > 1 else ""
    labels = risk["windows"][0]["labels"]
    return (
        '<div class="scroll"><table>\n'
        f"<caption>The windows of {labels:,} labels{of} furthest from the level, without overlap."
        f"</caption>\n{_head(head, words=('From', 'To'))}\n"
        + "\n".join(lines)
        + "\n</table></div>\n"
    )


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def _groups(found: Mapping[str, Any]) -> str:
    held = found["groups"]
    if held["delta_coverage"] is None:
        return ""
    return (
        f'<p class="note">ΔCoverage, the mean distance from what was asked, is '
        f"{_number(found, 'groups.delta_coverage', '.2%')}; chance alone would give about "
        f"{_number(found, 'groups.noise_floor', '.2%')}.</p>\n"
    )


# What to repeat it with


def _certificate(trace: Trace, found: Mapping[str, Any]) -> str:
    about, text = "", ""
    if found["streams"] > 1:
        worst = found["worst_streams"][0]["id"]
        about = (
            f'<p class="note">Of stream {escape(str(worst))}, the one with the highest risk.</p>'
        )
        text = str(trace.certificate(worst))
    else:
        text = str(trace.certificate())
    return (
        '<section class="long">\n<h2>Certificate</h2>\n'
        f'{about}<pre tabindex="0">{escape(text)}</pre>\n</section>'
    )


def _configuration(trace: Trace) -> str:
    try:
        text = spec.to_toml(trace.controller)
        told = (
            "Save this as a file, read it by <code>setpoint.spec.from_toml</code>, and replay the "
            "same predictions with it: every number comes out again."
        )
    except SpecError:
        text = repr(trace.controller)
        told = "Some parts of the controller are not registered: this is how Python prints it."
    return (
        '<section class="long">\n<h2>Configuration</h2>\n'
        f'<p class="note">{told}</p>\n<pre tabindex="0">{escape(text)}</pre>\n</section>'
    )
