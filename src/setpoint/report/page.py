"""The page: one HTML file with its figures, its style and its scripts inside."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Hashable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._files import put
from setpoint._html import named
from setpoint.bulk.replay import Trace
from setpoint.errors import SpecError
from setpoint.guarantee import Status
from setpoint.report import figures, words
from setpoint.report.figures import NIGHT, library
from setpoint.report.numbers import metrics as numbers_of

_MOST_VIEWS = 5
"""How many streams of several can be looked at one by one."""
_PLOTLY = files("setpoint.report").joinpath("plotly-basic.min.js.gz")
"""The part of plotly.js that draws lines and bars: a quarter of the whole."""


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
    """
    library("plotly")
    numbers = numbers_of(trace, window=window) if metrics is None else metrics
    return put(path, _page(trace, numbers, str(title)).encode())


def _page(trace: Trace, numbers: Mapping[str, Any], title: str) -> str:
    views = _views(trace, numbers)
    return Template(_asset("page.html")).substitute(
        version=escape(numbers["setpoint"]),
        title=escape(title),
        style=_asset("page.css"),
        header=_header(numbers, title),
        before=_before(numbers),
        useful=_useful(numbers),
        worst="\n".join(_worst(numbers, index) for index in range(len(numbers["risks"]))),
        learnt=_learnt(numbers),
        streams=_streams(numbers),
        choice=_choice(views),
        plots="\n".join(_plots(numbers, views)),
        certificate=_certificate(trace, numbers),
        origin=_origin(numbers),
        configuration=_configuration(trace),
        metrics=_json(numbers),
        figures=_squeezed(_json(_packed(views)).encode()),
        plotly=b64encode(_PLOTLY.read_bytes()).decode(),
        script=_asset("page.js"),
    )


def _asset(name: str) -> str:
    return files("setpoint.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that may stand inside a script element, where `</script` and `<!--` would end it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _squeezed(content: bytes) -> str:
    """Bytes packed by gzip, as text: a browser unpacks them without another library."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


# Figures


def _views(trace: Trace, numbers: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The figures of each view, by its label: all streams together, and the worst by themselves."""
    if numbers["streams"] == 1:
        return {"": _drawn(trace, None, numbers)}
    views = {"all series together": _drawn(trace, None, numbers)}
    for stream in numbers["worst_streams"][:_MOST_VIEWS]:
        id = stream["id"]
        views[f"series {named(id)}"] = _drawn(trace, _key(id), numbers)
    return views


def _key(id: Any) -> Any:
    """The key of a stream from what the numbers have of it: a tuple is a list there."""
    return tuple(id) if isinstance(id, list) else id


def _drawn(trace: Trace, stream: Hashable, numbers: Mapping[str, Any]) -> dict[str, str]:
    """The figures of one view as JSON, by the id of their place; empty ones are left out."""
    risks, window = range(len(numbers["risks"])), numbers["window"]
    drawn: dict[str, Any] = {}
    drawn["intervals"] = figures.intervals(trace, stream, target=words.target(numbers))
    for index in risks:
        drawn[f"windows-{index}"] = figures.windows(trace, stream, risk=index, window=window)
    drawn["lengths"] = figures.lengths(trace, stream)
    for index in risks:
        drawn[f"risk-{index}"] = figures.risk_over_time(trace, stream, risk=index)
    drawn["streaks"] = figures.streaks(trace, stream)
    by_group = figures.draw_groups(trace, stream)
    if by_group is not None:
        drawn["groups"] = by_group
    drawn["theta"] = figures.theta(trace, stream)
    return {name: _bare(figure) for name, figure in drawn.items() if _has_points(figure)}


def _has_points(figure: Any) -> bool:
    """Whether anything would be seen: a curve or a bar with a number that is no gap and no zero."""
    for curve in figure.data:
        values = np.asarray(curve.y if curve.y is not None else (), dtype=np.float64)
        values = values[~np.isnan(values)]
        if len(values) and (curve.type != "bar" or values.any()):
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
    return {"views": packed, "figures": list(places), "night": NIGHT}


def _choice(views: Mapping[str, Any]) -> str:
    if len(views) == 1:
        return ""
    options = "".join(f"<option>{escape(label)}</option>" for label in views)
    return (
        f'<p class="choose"><label for="stream">The figures show</label> '
        f'<select id="stream">{options}</select></p>'
    )


def _plots(numbers: Mapping[str, Any], views: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A section for each figure of the first view."""
    sections = []
    for name, text in next(iter(views.values())).items():
        layout = json.loads(text)["layout"]
        heading, more = layout["meta"]["title"], ""
        kind, _, index = name.partition("-")
        if index and len(numbers["risks"]) > 1:
            heading += f": {numbers['risks'][int(index)]['name']}"
        if kind == "groups":
            more = _group_note(numbers)
        sections.append(_plot(name, heading, layout, more))
    return sections


def _plot(name: str, heading: str, layout: Mapping[str, Any], more: str) -> str:
    # A group and no image: there are buttons in it, and points to be read one by one.
    return (
        f'<section aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(heading)}</h2>\n'
        f'<figure role="group" aria-labelledby="{name}-heading" aria-describedby="{name}-caption">'
        f'<div class="plot" id="{name}" style="min-height:{layout["height"]}px" role="group" '
        f'aria-label="Plot: {escape(heading)}"></div>\n'
        f'<figcaption id="{name}-caption">{escape(layout["meta"]["caption"])}</figcaption></figure>'
        "\n<noscript><p>The figure is drawn by a script, and scripts are switched off.</p>"
        f"</noscript>\n{more}</section>"
    )


# Words and tables


def _number(numbers: Mapping[str, Any], name: str, form: str = "") -> str:
    """A number of the metrics, marked with its name there and its full value.

    Without a form it is written as people write amounts.
    """
    value: Any = numbers
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    if isinstance(value, str):
        return f'<span data-metric="{name}">{escape(value)}</span>'
    text = "unknown"
    if value is not None:
        text = words.written(value, form)
    return f'<data data-metric="{name}" value="{json.dumps(value)}">{text}</data>'


def _unbroken(text: str) -> str:
    """Text in which no line begins with a sign of percent."""
    return escape(text).replace(" %", "&nbsp;%")


def _entries(entries: Mapping[str, str], kind: str, wide: Mapping[str, str] | None = None) -> str:
    """Names and values in a list; `wide` has the names that take more room, with a class."""
    lines = [f'<dl class="{kind}">']
    for name, value in entries.items():
        more = (wide or {}).get(name)
        of_div, of_dd = ("", "") if more is None else (' class="wide"', f' class="{more}"')
        lines.append(f"<div{of_div}><dt>{name}</dt><dd{of_dd}>{value}</dd></div>")
    return "\n".join([*lines, "</dl>"])


def _table(heads: tuple[str, ...], rows: list[str], words_in: tuple[str, ...], id: str) -> str:
    cells = (
        f'<th scope="col"{"" if name in words_in else " class=number"}>{name}</th>'
        for name in heads
    )
    return (
        f'<div class="scroll"><table aria-labelledby="{id}">\n<tr>{"".join(cells)}</tr>\n'
        + "\n".join(rows)
        + "\n</table></div>\n"
    )


def _header(numbers: Mapping[str, Any], title: str) -> str:
    lines = [
        "<header>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="about">{_unbroken(words.about(numbers))}</p>',
    ]
    if numbers.get("warning"):
        text = words.sentence(numbers["warning"])
        lines.append(f'<p class="warning" role="alert">{_unbroken(text)}</p>')
    for index, risk in enumerate(numbers["risks"]):
        if len(numbers["risks"]) > 1:
            lines.append(f"<h3>{index + 1}. {escape(risk['name'])}</h3>")
        else:
            lines.append(f'<p class="lede">{_unbroken(words.outcome(numbers))}</p>')
        lines += _risk(numbers, risk, f"risks.{index}")
    if not numbers.get("before"):  # else they stand beside what there was
        entries = {title: _number(numbers, *now) for title, now, _ in words.beside(numbers)}
        lines.append(_entries(entries, "headline more"))
    return "\n".join([*lines, "</header>"])


def _risk(numbers: Mapping[str, Any], risk: Mapping[str, Any], place: str) -> list[str]:
    """What was asked of one risk, what came out and what is guaranteed."""
    if risk["asked"] is not None:
        names, form = ("coverage", "asked", "coverage_low", "coverage_high"), ".2%"
        titles = ("Coverage", "Asked")
    else:
        names, form = ("risk", "level", "bound_lower", "bound_upper"), ""
        titles = ("Mean loss", "Asked")
    came_out, asked, low, high = (_number(numbers, f"{place}.{name}", form) for name in names)
    if risk["asked"] is not None:
        asked = _number(numbers, f"{place}.asked", "whole")
    if risk[names[2]] is None:
        bound = "none" if risk[names[3]] is None else f"at most {high}"
    else:
        bound = f"at least {low}" if risk[names[3]] is None else f"{low} to {high}"
    if risk["budget"] is not None:
        most, every = (_number(numbers, f"{place}.{name}") for name in ("budget", "budget_all"))
        several = f" in a series, and {every} in all" if numbers["streams"] > 1 else ""
        bound += f"; never more than {most} {escape(risk['unit'])} too many{several}"
    entries = {
        titles[0]: came_out,
        titles[1]: asked,
        "Guaranteed, whatever the data": bound,
        "The guarantee": _number(numbers, f"{place}.verdict"),
    }
    mood, use = words.both(risk["status"], numbers["usefulness"]), numbers["usefulness"]
    if use is not None and mood != words.mood(risk["status"]):  # what made it another colour
        entries["The guarantee"] += f", but the {words.of_sets(numbers)} are {use['use']}"
    if risk["status"] == Status.HOLDS_FROM_ABOVE:
        entries["The guarantee"] += " <small>(too many misses are ruled out)</small>"
    wide = {"Guaranteed, whatever the data": "wide", "The guarantee": f"wide verdict {mood}"}
    lines = [_entries(entries, "headline", wide)]
    if risk["earlier_labels"]:
        lines.append(
            '<p class="note">The trace goes on from a saved state. The guarantee is about '
            f"the {_number(numbers, f'{place}.earlier_labels', ',')} earlier labels too: over "
            f"all of them the mean loss is {_number(numbers, f'{place}.certified_risk')}.</p>"
        )
    return lines


def _before(numbers: Mapping[str, Any]) -> str:
    """The sets that there were without setpoint beside those that were shown."""
    before = numbers.get("before")
    if not before:
        return ""
    rows = [
        f'<tr><td class="title">{title}</td>'
        f'<td class="number">{_number(numbers, f"before.{then[0]}", then[1])}</td>'
        f'<td class="number">{_number(numbers, *now)}</td></tr>'
        for title, now, then in words.beside(numbers)
    ]
    heads = ("", escape(before["name"].capitalize()), "With setpoint")
    return (
        "<section>\n<h2>Before and after</h2>\n"
        f'<p class="note" id="before-said">{escape(before["words"])}</p>\n'
        f"{_table(heads, rows, ('',), 'before-said')}</section>"
    )


def _learnt(numbers: Mapping[str, Any]) -> str:
    """What the correction has learnt of the forecast."""
    sentences = words.learnt(numbers)
    if not sentences:
        return ""
    entries = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return (
        "<section>\n<h2>What was learnt</h2>\n"
        f'<p class="note">What past errors of the forecast told by the end:</p>\n'
        f"<ul>{entries}</ul>\n</section>"
    )


def _streams(numbers: Mapping[str, Any]) -> str:
    """The series, those with the most trouble first."""
    if not numbers["worst_streams"]:
        return ""
    shown, every = len(numbers["worst_streams"]), numbers["streams"]
    caption = f"All {every:,} series" if shown == every else f"{shown} of {every:,} series"
    shares = numbers["risks"][0]["asked"] is not None
    size = "width" if numbers["sets"] == "intervals" else "size"
    columns = {
        "Coverage": ("worst_streams.{}.coverage", ".2%"),
        "Mean loss": ("worst_streams.{}.risk", ".4f"),
        "Above the level": ("worst_streams.{}.excess", "+.4f"),
        f"Mean {size}": ("worst_streams.{}.mean_finite_length", ""),
        f"Mean {size}, before": ("before.lengths.{}", ""),
        "Labels": ("worst_streams.{}.labels", ","),
    }
    if shares:
        del columns["Mean loss"], columns["Above the level"]
    if not numbers.get("before"):
        del columns[f"Mean {size}, before"]
    rows = []
    for index, stream in enumerate(numbers["worst_streams"]):
        cells = (
            f'<td class="number">{_number(numbers, name.format(index), form)}</td>'
            for name, form in columns.values()
        )
        rows.append(
            f"<tr><td>{escape(named(stream['id']))}</td>"
            + ("" if stream["usefulness"] is None else _use(stream["usefulness"]))
            + "".join(cells)
            + f'<td class="{words.mood(stream["status"])}">{escape(stream["verdict"])}</td></tr>'
        )
    judged = numbers["worst_streams"][0]["usefulness"] is not None
    heads = ("Series", *(("Of use?",) if judged else ()), *columns, "The guarantee")
    table = _table(heads, rows, ("Series", "The guarantee", "Of use?"), "streams-said")
    sets = words.of_sets(numbers)
    worst = "the lowest coverage" if shares else "the highest mean loss"
    units = " Widths are in the units of each series." if size == "width" else ""
    return (
        "<section>\n<h2>Series by trouble</h2>\n"
        f'<p class="note" id="streams-said">{caption}: first those with useless and poor {sets}, '
        f"then {worst}.{units}</p>\n{table}</section>"
    )


def _use(usefulness: Mapping[str, Any]) -> str:
    mood = words.mood(usefulness["use"])
    return f'<td class="{mood}" title="{escape(usefulness["words"])}">{usefulness["use"]}</td>'


def _useful(numbers: Mapping[str, Any]) -> str:
    """Whether the sets were of use: the verdict, and what it rests on."""
    if numbers["usefulness"] is None:
        return ""
    use = numbers["usefulness"]
    verdict = use["use"][:1].upper() + use["use"][1:]
    return (
        f"<section>\n<h2>Are the {words.of_sets(numbers)} of use?</h2>\n"
        f'<p class="use"><strong class="{words.mood(use["use"])}">{verdict}</strong>: '
        f"{_unbroken(use['words'])}.</p>\n</section>"
    )


def _worst(numbers: Mapping[str, Any], index: int) -> str:
    """The worst windows of a risk as a table, each with what happened there."""
    risk = numbers["risks"][index]
    windows = risk["windows"]
    if not windows:
        return ""
    shares, rows = risk["asked"] is not None, []
    for place, window in enumerate(windows):
        ends = [f"row {window[end]:,}" for end in ("start", "stop")]
        if window["from"] is not None:
            ends = [str(window[end]).replace("T", " ") for end in ("from", "to")]
        name, form = ("coverage", ".1%") if shares else ("risk", ".4f")
        mean = _number(numbers, f"risks.{index}.windows.{place}.{name}", form)
        distance = window["risk"] - risk["level"]
        rows.append(
            f"<tr><td>{escape(ends[0])}</td><td>{escape(ends[1])}</td>"
            f'<td class="number">{mean}</td>'
            f'<td class="number">{words.off(-distance if shares else distance, shares)}</td>'
            f'<td class="words">{escape(words.of_window(window, words.target(numbers)))}</td></tr>'
        )
    of = f" of series {escape(named(windows[0]['stream']))}" if numbers["streams"] > 1 else ""
    which = f": {escape(risk['name'])}" if len(numbers["risks"]) > 1 else ""
    heads = ("From", "To", "Coverage" if shares else "Mean loss", "Off by", "What happened there")
    said = f"windows-said-{index}"
    many = f"{len(rows)} stretches" if len(rows) > 1 else "stretch"
    goal = f"a coverage of {100.0 * risk['asked']:.6g} %" if shares else "the level"
    units = (
        ""
        if shares
        else (f" Mean loss and distance are in units of the loss ({escape(words.range_of(risk))}).")
    )
    return (
        f'<section>\n<h2>Worst times{which}</h2>\n<p class="note" id="{said}">'
        f"The {many} of {windows[0]['labels']:,} labels{of} furthest from {goal}"
        f"{', without overlap; those with too many misses first' if len(rows) > 1 else ''}."
        f"{units}</p>\n"
        f"{_table(heads, rows, ('From', 'To', 'What happened there'), said)}</section>"
    )


def _group_note(numbers: Mapping[str, Any]) -> str:
    groups = numbers["groups"]
    if groups is None or groups["delta_coverage"] is None:
        return ""
    return (
        f'<p class="note">ΔCoverage, the mean distance from what was asked, is '
        f"{_number(numbers, 'groups.delta_coverage', '.2%')}; chance alone would give about "
        f"{_number(numbers, 'groups.noise_floor', '.2%')}.</p>\n"
    )


def _section(heading: str, note: str, text: str) -> str:
    about = f'<p class="note">{note}</p>\n' if note else ""
    return (
        f'<section class="long">\n<h2>{heading}</h2>\n{about}'
        f'<pre tabindex="0">{escape(text)}</pre>\n</section>'
    )


def _certificate(trace: Trace, numbers: Mapping[str, Any]) -> str:
    if numbers["streams"] == 1:
        return _section("Certificate", "", str(trace.certificate()))
    worst = numbers["worst_streams"][0]["id"]
    note = f"Of series {escape(named(worst))}, the one with the most trouble."
    return _section("Certificate", note, str(trace.certificate(_key(worst))))


def _configuration(trace: Trace) -> str:
    try:
        text = spec.to_toml(trace.controller)
        note = (
            "Save this as a file, read it by <code>setpoint.spec.from_toml</code>, and replay the "
            "same predictions with it: every number comes out again."
        )
    except SpecError:
        text = repr(trace.controller)
        note = "Some parts of the controller are not registered: this is how Python prints it."
    return _section("Configuration", note, text)


def _origin(numbers: Mapping[str, Any]) -> str:
    """What was asked of which file, what was chosen, and the command that does it again."""
    entries = words.origin(numbers)
    if not entries:
        return ""
    lines = ['<section class="long">', "<h2>How it was made</h2>", '<dl class="made">']
    lines += [f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in entries.items()]
    lines.append("</dl>")
    if numbers["job"].get("repeat"):
        lines.append(
            '<p class="note">This command does it again, and setpoint '
            f"{escape(numbers['setpoint'])} gives the same numbers:</p>\n"
            f'<pre tabindex="0" id="repeat">{escape(numbers["job"]["repeat"])}</pre>'
        )
    return "\n".join([*lines, "</section>"])
