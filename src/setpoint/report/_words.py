"""The words and tables of the page: the headline, streams, worst windows, how it was made."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from setpoint import spec
from setpoint.bulk.replay import Trace
from setpoint.errors import SpecError

__all__ = ["certificate", "configuration", "groups", "header", "made", "streams", "windows"]


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


def header(found: Mapping[str, Any], title: str) -> str:
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
    worst = min(found["window"], max(found["steps"], 1))
    of_finite = "" if found["mean_length"] is not None else ", finite ones"
    lines += [
        '<dl class="headline more">',
        _entry("Coverage", _number(found, "coverage", ".2%")),
        _entry(f"Mean {size}{of_finite}", _number(found, "mean_finite_length")),
        _entry(f"Median {size}", _number(found, "median_length")),
        _entry("Longest streak", _number(found, "longest_streak", ",")),
        _entry("Mean streak (MSL)", _number(found, "msl")),
        _entry(f"Worst {worst:,} labels: mean loss off by", _number(found, "risks.0.worst_window")),
        "</dl>",
        "</header>",
    ]
    return "\n".join(lines)


def _about(found: Mapping[str, Any]) -> str:
    told = [f"{found['rows']:,} rows"]
    job = found.get("job") or {}
    if job.get("burn_in"):
        told[0] += f" after a burn-in of {job['burn_in']:,}"
    if job.get("file"):
        told.insert(0, escape(job["file"]))
    if job.get("model"):
        told.append(f"model {escape(job['model'])}")
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


def streams(found: Mapping[str, Any]) -> str:
    if not found["worst_streams"]:
        return ""
    shown, every = len(found["worst_streams"]), found["streams"]
    caption = f"All {every:,} streams" if shown == every else f"{shown} of {every:,} streams"
    head = ("Stream", "Labels", "Risk", "Above the level", "Coverage", "Mean size", "The guarantee")
    lines = [
        "<section>",
        "<h2>Streams</h2>",
        f'<p class="note" id="streams-said">{caption}, the highest risk first.</p>',
        '<div class="scroll"><table aria-labelledby="streams-said">',
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


def windows(found: Mapping[str, Any], index: int, shaded: int) -> str:
    """The worst windows as a table, of which the first are shaded in the figure."""
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
        f'<p class="note" id="windows-said-{index}">'
        f"The {len(lines)} windows of {labels:,} labels{of} furthest from the level, "
        f"without overlap; the first {shaded} {'is' if shaded == 1 else 'are'} shaded above. "
        f"Mean loss and distance are in units of the loss, which {_range(risk)}.</p>\n"
        f'<div class="scroll"><table aria-labelledby="windows-said-{index}">\n'
        + _head(head, words=("From", "To"))
        + "\n"
        + "\n".join(lines)
        + "\n</table></div>\n"
    )


def _range(risk: Mapping[str, Any]) -> str:
    """What a loss is, in a few words, where its name is known."""
    if risk["name"] == "Miscoverage":
        return "is 1 for a miss and 0 for a hit: 0.01 is one percentage point of coverage"
    if risk["name"] == "MiscoverageCounter":
        return "counts the misses in a row"
    return f"is that of {escape(risk['name'])}"


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def groups(found: Mapping[str, Any]) -> str:
    held = found["groups"]
    if held["delta_coverage"] is None:
        return ""
    return (
        f'<p class="note">ΔCoverage, the mean distance from what was asked, is '
        f"{_number(found, 'groups.delta_coverage', '.2%')}; chance alone would give about "
        f"{_number(found, 'groups.noise_floor', '.2%')}.</p>\n"
    )


def certificate(trace: Trace, found: Mapping[str, Any]) -> str:
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


def configuration(trace: Trace) -> str:
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


def made(found: Mapping[str, Any]) -> str:
    """What was asked of which file, what was chosen, and the command that does it again."""
    job = found.get("job")
    if not job:
        return ""
    entries = {
        "File": job.get("file"),
        "Columns": "; ".join(
            f"{role} {', '.join(name) if isinstance(name, list) else name}"
            for role, name in job.get("columns", {}).items()
        ),
        "Model": job.get("model"),
        "Features": ", ".join(job.get("features", ())),
        "Asked": _asked(job.get("goal", {})),
        "Burn-in": _burn_in(found, job),
        "Chosen": _chosen(found),
    }
    lines = ['<section class="long">', "<h2>How it was made</h2>", '<dl class="made">']
    lines += [
        f"<dt>{name}</dt><dd>{escape(str(value))}</dd>" for name, value in entries.items() if value
    ]
    lines.append("</dl>")
    if job.get("repeat"):
        lines.append(
            '<p class="note">This command does it again, and setpoint '
            f"{escape(found['setpoint'])} gives the same numbers:</p>\n"
            f'<pre tabindex="0" id="repeat">{escape(job["repeat"])}</pre>'
        )
    return "\n".join([*lines, "</section>"])


def _asked(goal: Mapping[str, Any]) -> str:
    told = [f"{goal['risk']} at level {goal['level']:g}"] if goal else []
    if goal.get("gamma") is not None:
        told.append(f"γ = {goal['gamma']:g}")
    if goal.get("support") is not None:
        told.append(f"labels from {goal['support'][0]} to {goal['support'][1]}")
    return ", ".join(told)


def _burn_in(found: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    rows = job.get("burn_in")
    if rows is None:
        return ""
    each = job.get("burn_in_each", rows)
    most = f", at most {each:,} of each series" if found["streams"] > 1 else ""
    return f"the first {rows:,} rows{most}; they choose and are not judged" if rows else "none"


def _chosen(found: Mapping[str, Any]) -> str:
    """What the burn-in took of what it tried."""
    for row in found.get("tried") or ():
        if row["chosen"]:
            of = len(found["tried"])
            return f"γ = {row['gamma']:.6g} and the stretching {row['stretch']}, of {of} tried"
    return ""
