"""The one teller of a result: its sentences and rows, which terminal, page and notebook render.

They are plain text: whoever puts them on a page escapes them.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from setpoint._html import amount, named, percent
from setpoint.guarantee import Status
from setpoint.losses import Declaration
from setpoint.metrics import Use
from setpoint.report import curves
from setpoint.report.curves import View
from setpoint.report.groups import Grouped
from setpoint.report.numbers import Numbers, RiskNumbers, Window
from setpoint.summary import told

_MOODS: dict[str, str] = {
    Status.HOLDS: "good", Status.HOLDS_FROM_ABOVE: "good", Status.BROKEN: "bad",
    Use.USEFUL: "good", Use.USELESS: "bad",
}  # fmt: skip

BY = {"group": "group", "weekday": "day of the week", "hour": "hour", "size": "width"}
"""What rows are grouped by, in words."""


def mood(status: str) -> str:
    """Whether the status of a guarantee, or the use of sets, is good or bad news, or open."""
    return _MOODS.get(status, "open")


def sentence(text: str) -> str:
    """A note as a sentence of its own.

    >>> sentence("labels are late")
    'Labels are late.'
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def both(status: str, usefulness: Mapping[str, Any] | None) -> str:
    """The mood of a guarantee and its sets together: good only if both are."""
    moods = [mood(status)] + ([] if usefulness is None else [mood(usefulness["use"])])
    return "bad" if "bad" in moods else "open" if "open" in moods else "good"


def interval(asked: float | None) -> str:
    """What an interval is called: after the coverage asked for, if it is about that."""
    return "interval" if asked is None else f"{100.0 * asked:.6g} % interval"


def written(value: float, form: str) -> str:
    """A number in a table: a share in percent or points, an amount without a form."""
    if form == "whole":
        return f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"
    if form == "points":
        return f"{100.0 * value:.1f} points"
    text = format(value, form).replace("-", "−") if form else amount(value)
    return text.replace("%", "\N{NO-BREAK SPACE}%")


def in_words(value: float, share: bool) -> str:
    return percent(value) if share else f"{value:.4g}"


def off(distance: float, share: bool) -> str:
    """How far a mean loss, or a coverage, is from what was asked."""
    return f"{signed(100.0 * distance, '.1f')} points" if share else signed(distance, ".4g")


def signed(value: float, form: str) -> str:
    """A number with its sign, as people write it."""
    return format(value, f"+{form}").replace("-", "−")


# The numbers of a report in words


def about(numbers: Numbers) -> str:
    """What was run on how much."""
    job, full, empty = numbers.job, numbers.scores["full"], numbers.scores["empty"]
    parts = [job.get("file"), numbers.target if job.get("columns") else None]
    rows = f"{numbers.rows:,} rows"
    parts.append(rows + (f" after a burn-in of {job['burn_in']:,}" if job.get("burn_in") else ""))
    if job.get("model"):
        parts.append(f"model {job['model']}")
    if numbers.streams > 1:
        parts.append(f"{numbers.streams:,} series")
    if numbers.scores["missing"]:
        parts.append(f"{numbers.scores['missing']:,} without a label")
    if numbers.first_time is not None:
        parts.append(f"{numbers.first_time} to {numbers.last_time}".replace("T", " "))
    if numbers.forecast_error is not None:
        parts.append(error(numbers))
    if full or empty:
        parts.append(f"{percent(full or 0)} full {numbers.sets}, {percent(empty or 0)} empty")
    return " · ".join(part for part in parts if part)


def error(numbers: Numbers) -> str:
    """How far the forecast is off."""
    return f"the forecast's mean absolute error is {amount(numbers.forecast_error or 0.0)}"


def outcome(numbers: Numbers) -> str:
    """What came out, what was asked and what is guaranteed, in a sentence or two.

    Of an interval with a risk for each side the whole interval is meant: a label may miss either.
    Of several levels it is the widest interval.
    """
    risks = numbers.risks
    risk = risks[0]
    if risk.risk is None:
        return "No actual value has come yet, so there is nothing to report."
    streams = f" in {numbers.streams:,} series" if numbers.streams > 1 else ""
    vacuous = False
    if risk.asked is not None:
        coverage, asked, low = risk.coverage, risk.asked, risk.coverage_low
        if len(risks) > 1 and all(each.asked is not None for each in risks):
            coverage, asked = numbers.scores["coverage"], numbers.scores["asked"]
            if asked < 1.0 - max(each.level for each in risks):  # sides, which miss y together
                lows = [each.coverage_low for each in risks if each.coverage_low is not None]
                low = None if len(lows) < len(risks) else sum(lows) - (len(risks) - 1.0)
        sentence = (
            f"{percent(coverage or 0.0)} of {risk.labels:,} actual values{streams} lay inside "
            f"their {numbers.sets}; the target is {100.0 * asked:.6g} %."
        )
        vacuous = low is not None and low < 0.0005
    else:
        sentence = (
            f"The mean loss is {risk.risk:.4g} over {risk.labels:,} labels{streams}; the target is "
            f"{risk.level:.4g} ({risk.name})."
        )
    if risk.bound is not None:
        return f"{sentence} {promise(risk, numbers.streams)}, whatever the data."
    if risk.status == Status.SAYS_NOTHING_YET or vacuous:
        return f"{sentence} Nothing is guaranteed yet: there are too few actual values."
    if mood(risk.status) == "good" and not risk.earlier_labels:
        sentence += " That is within the guarantee, which needs no assumption about the data."
    return sentence


class Beside(NamedTuple):
    """A row of the table before and after: its title, and the names and forms of two numbers."""

    title: str
    now: tuple[str, str]
    then: tuple[str, str]


def beside(numbers: Numbers) -> list[Beside]:
    """What is told of the sets before and after.

    Widths of several series may have unlike units: of all together only their ratio is told.
    """
    size, sets, scores = numbers.measure, numbers.sets, numbers.scores
    finite = scores["mean_length"], (numbers.before or scores)["mean_length"]
    worst = min(scores["window"], max(scores["steps"], 1))
    shares = numbers.asked is not None
    rows = {
        "Coverage": ("coverage", ".2%"),
        f"Worst {worst:,} labels: {'coverage' if shares else 'mean loss'} off by": (
            "worst_window", "points" if shares else ".3g",
        ),
        f"Coverage of the narrowest fifth of {sets}": ("narrow_coverage", ".2%"),
        f"Coverage of the widest fifth of {sets}": ("wide_coverage", ".2%"),
        "Longest streak of misses": ("longest_streak", ","),
        "Mean streak of misses": ("msl", ".3g"),
        f"Mean {size}{', finite ones' if None in finite else ''}": ("mean_finite_length", ""),
        f"Median {size}": ("median_length", ""),
        f"Full {sets} ({'without limits' if size == 'width' else 'all classes'})": ("full", ".2%"),
        f"Empty {sets}": ("empty", ".2%"),
    }  # fmt: skip
    if numbers.streams > 1 and size == "width":
        rows = {title: row for title, row in rows.items() if size not in title}
        if numbers.usefulness is not None:
            rows["Mean width (rolling quantile of past errors: 1)"] = ("usefulness.width", ".2f")
    return [
        Beside(title, (f"risks.0.{name}" if name == "worst_window" else name, form), (name, form))
        for title, (name, form) in rows.items()
    ]


def value(plain: Mapping[str, Any], name: str) -> Any:
    """A number by its name in the metrics, such as risks.0.coverage; None where it is missing."""
    found: Any = plain
    for part in name.split("."):
        found = found[int(part)] if isinstance(found, list) else (found or {}).get(part)
    return found


def cell(plain: Mapping[str, Any], name: str, form: str) -> str:
    """A number by its name, as people write it."""
    found = value(plain, name)
    return "–" if found is None else written(found, form)


def ends(window: Window) -> tuple[str, str]:
    """From where to where a window goes: times, or rows."""
    if window.first_time is None:
        return f"row {window.start:,}", f"row {window.stop:,}"
    return str(window.first_time).replace("T", " "), str(window.last_time).replace("T", " ")


def away(risk: RiskNumbers, window: Window) -> str:
    """How far a window is from what was asked."""
    distance = window.risk - risk.level
    return off(distance, False) if risk.asked is None else off(-distance, True)


def of_worst(numbers: Numbers, risk: RiskNumbers) -> str:
    """What the worst windows of a risk are."""
    count, first = len(risk.windows), risk.windows[0]
    of = f" of series {named(first.series)}" if numbers.streams > 1 else ""
    goal = "the level" if risk.asked is None else f"a coverage of {100.0 * risk.asked:.6g} %"
    units = f" Mean loss and distance are in units of the loss ({range_of(risk)})."
    return (
        f"The {f'{count} stretches' if count > 1 else 'stretch'} of {first.labels:,} labels{of} "
        f"furthest from {goal}"
        f"{', without overlap; those with too many misses first' if count > 1 else ''}."
        f"{units if risk.asked is None else ''}"
    )


def of_window(window: Window, target: str) -> str:
    """What happened in a window: misses, on which side, and the furthest."""
    if not window.misses:
        return "nothing was missed"
    sentence = f"{window.misses:,} misses, {window.longest_streak:,} in a row at the most"
    if window.above is None:
        return sentence
    sentence += f"; {window.above:,} above their intervals, {window.below:,} below"
    if window.largest is None:
        return sentence
    miss = window.largest
    place = f"row {miss.row:,}"
    if miss.time is not None:
        place += f", {miss.time}".replace("T", " ")
    y, low, high = (amount(number) for number in (miss.y, miss.lower, miss.upper))
    return f"{sentence}; furthest off: {target} {y}, interval {low} to {high} ({place})"


def columns(numbers: Numbers) -> dict[str, tuple[str, str]]:
    """What is told of each series: titles, and the names and forms of the numbers."""
    size = f"Mean {numbers.measure}"
    found = {"Coverage": ("worst_streams.{}.coverage", ".2%")}
    if numbers.asked is None:
        found["Mean loss"] = ("worst_streams.{}.risk", ".4f")
        found["Above the level"] = ("worst_streams.{}.excess", "+.4f")
    found[size] = ("worst_streams.{}.mean_finite_length", "")
    if numbers.before:
        found[f"{size}, before"] = ("before.lengths.{}", "")
    return {**found, "Labels": ("worst_streams.{}.labels", ",")}


def of_series(numbers: Numbers) -> str:
    """Which series are listed, and in which order."""
    shown, every = len(numbers.worst_streams), numbers.streams
    worst = "the highest mean loss" if numbers.asked is None else "the lowest coverage"
    units = " Widths are in the units of each series." if numbers.measure == "width" else ""
    return (
        f"{f'All {every:,}' if shown == every else f'{shown} of {every:,}'} series: first those "
        f"with useless and poor {numbers.sets}, then {worst}.{units}"
    )


def learnt(numbers: Numbers) -> list[str]:
    """What a correction has learnt of the forecast by the end, in sentences."""
    known = {name: 0.0 if value is None and name not in ("least", "most") else value
             for name, value in (numbers.learnt or {}).items()}  # fmt: skip
    return [sentence(text) for text in told(known).values()]


def promise(risk: RiskNumbers, streams: int = 1) -> str:
    """What a budget guarantees, in units of the loss: of one series, or of each and of all."""
    level = f"{risk.level:.4g} a label"
    if risk.asked is not None:
        level = f"{100.0 * risk.level:.6g} %"
    most = f"more than {risk.bound:,.4g} {risk.unit} beyond the {level} allowed"
    if streams == 1:
        return f"There can never be {most}"
    every = f"{risk.bound_all:,.4g} in all {streams:,} together"
    return f"There can never be {most} in any one series, nor more than {every}"


def range_of(risk: RiskNumbers) -> str:
    """Between which numbers a loss lies."""
    if risk.high is None:
        return f"{risk.name}, at least {risk.low:g}"
    return f"{risk.name}, from {risk.low:g} to {risk.high:g}"


def origin(numbers: Numbers) -> dict[str, str]:
    """What was asked of which file, and what was chosen; empty without a job."""
    job = numbers.job
    if not job:
        return {}
    names = {
        role: ", ".join(name) if isinstance(name, list) else name
        for role, name in (job.get("columns") or {}).items()
    }
    entries = {
        "File": job.get("file"),
        "Columns": "; ".join(f"{role} {name}" for role, name in names.items()),
        "Model": job.get("model"),
        "Asked": _asked(job.get("goal", {})),
        "Burn-in": _burn_in(job),
        "Notes": " ".join(map(sentence, numbers.notes)),
    }
    return {name: str(text) for name, text in entries.items() if text}


def _asked(goal: Mapping[str, Any]) -> str:
    if not goal:
        return ""
    if "coverage" not in goal:
        return f"{goal['risk']} at level {goal['level']:g}"
    ends = goal.get("support")
    limits = "" if ends is None else f", actual values from {ends[0]} to {ends[1]}"
    return f"coverage of {100.0 * goal['coverage']:.6g} %{limits}"


def _burn_in(job: Mapping[str, Any]) -> str:
    rows = job.get("burn_in")
    if not rows:
        return "" if rows is None else "none"
    return f"the first {rows:,} rows; they choose and are not judged"


# In a terminal


def text(numbers: Numbers, certificate: object) -> str:
    """A finished job as it is printed; `certificate` is that of its only stream."""
    lines = [_head(numbers)]
    lines += [f"warning: {numbers.warning}"] if numbers.warning else []
    lines.append(outcome(numbers))
    if numbers.usefulness is not None:
        lines.append(f"{numbers.usefulness['use']}: {numbers.usefulness['words']}")
    lines += [] if numbers.forecast_error is None else [error(numbers)]
    lines += ["", *_table(numbers), ""]
    if numbers.streams == 1:
        lines.append(str(certificate))
    elif numbers.risks[0].risk is not None:
        lines += [*_series(numbers), *_groups(numbers.held_groups)]
    lines += ["", *(f"note: {note}" for note in numbers.notes)] if numbers.notes else []
    return "\n".join(lines)


def _head(numbers: Numbers) -> str:
    many = "" if numbers.streams == 1 else f" of {numbers.streams:,} series"
    burn_in, when = numbers.job.get("burn_in"), ""
    if numbers.first_time is not None:
        when = f", {_when(numbers.first_time)} to {_when(numbers.last_time)}"
    after = f" after a burn-in of {burn_in:,}" if burn_in else ""
    return f"{numbers.job['name']}: {numbers.rows:,} rows{many}{after}{when}"


def _when(time: str | float | None) -> str:
    if isinstance(time, str):
        return time.replace("T", " ").removesuffix(".000000")
    return f"{time:.15g}"


def _table(numbers: Numbers) -> list[str]:
    """The sets that were held beside what there was before."""
    before = numbers.before
    rows = [("", before["name"] if before else "", "with setpoint")]
    for title, now, then in beside(numbers):
        cells = cell(before, *then) if before else "", cell(numbers.plain, *now)
        if set(cells) - {"", "–"}:
            rows.append((title, *cells))
    width = max(len(title) for title, *_ in rows)
    plain = ([text.replace("\N{NO-BREAK SPACE}", " ") for text in row] for row in rows)
    return [f"{title:<{width}}{then:>18}{now:>16}" for title, then, now in plain]


def _series(numbers: Numbers) -> list[str]:
    """All series together, and those with the most trouble."""
    first, worst = numbers.risks[0], numbers.worst_streams[:5]
    low, high = (cell(numbers.plain, f"bound_{side}", ".4g") for side in ("lower", "upper"))
    came_out = f"mean loss {first.risk:.4g}, guaranteed between {low} and {high}"
    if first.coverage is not None:
        came_out = f"coverage {percent(first.coverage)}"
        if first.coverage_low is not None:
            came_out += f", at least {percent(first.coverage_low)} is guaranteed"
    if first.bound_all is not None:
        came_out += f", never more than {first.bound_all:,.4g} {first.unit} too many in all"
    lines = [
        f"{first.name} at level {first.level:g}, all series: {first.verdict}",
        f"  {came_out}",
        "  the series by trouble:",
    ]
    width = max(len(named(one.id)) for one in worst)
    for one in worst:
        risk = one.risk if one.risk is not None else float("nan")
        share = f"{risk:>11.4f}" if first.asked is None else f"{100 * (1 - risk):>9.2f} %"
        length = one.mean_finite_length
        wide = "" if length is None else f", mean {numbers.measure} {amount(length)}"
        use = "" if one.usefulness is None else f"; {one.usefulness['use']}"
        lines.append(
            f"    {named(one.id):<{width}}{share} over {one.labels:,} labels{wide} "
            f"({one.verdict}{use})"
        )
    return lines


# In the terminal, groups


def _groups(held: Mapping[str, Any] | None, most: int = 5) -> list[str]:
    """A line for each of the groups of several series that are nearest to their limit."""
    if held is None:
        return []
    lines = [f"  of {held['count']:,} groups those nearest to their limit:"]
    for own in held["nearest"][:most]:
        mean = "" if own["mean"] is None else f"mean loss {own['mean']:.4f}, "
        if own["coverage"] is not None:
            mean = f"coverage {100.0 * own['coverage']:.2f} %, "
        limit = "" if own["bound"] is None else f", never more than {own['bound']:.4g}"
        lines.append(
            f"    {named(own['series'])}, {named(own['group'])}: {mean}"
            f"{own['account']:+.1f} beyond the level{limit}, {own['labels']:,} labels "
            f"({own['verdict']})"
        )
    return lines


# Below the figures


def windows_caption(
    rolling: curves.Rolling, shaded: int, promise: Declaration, *, share: bool
) -> str:
    """The caption of the worst windows."""
    if not rolling.window:
        return "There are no labels, so there are no windows."
    level = rolling.level
    caption = (
        f"The line is the {'coverage' if share else 'mean loss'} of the last "
        f"{rolling.window:,} labels, the dashed line the target, {in_words(level, share)}."
    )
    if rolling.worst:
        mean = rolling.worst[0].risk
        if shaded:
            which = f"{shaded} windows" if shaded > 1 else "window"
            caption += f" Shaded: the {which} furthest from it."
        caption += f" The worst has {in_words(mean, share)}, {off(mean - level, share)} from it."
    if (promise.low, promise.high) == (0.0, 1.0) and 0.0 < level < 1.0:
        noise = sqrt(level * (1.0 - level) / rolling.window)
        caption += (
            " By chance alone it would stray by about "
            f"±{f'{200.0 * noise:.2g} points' if share else f'{2.0 * noise:.2g}'} (two standard "
            "deviations) in this many labels."
        )
    return caption


def groups_caption(table: Grouped, shown: int) -> str:
    """The caption of the groups."""
    what = "coverage" if table.coverage else "mean loss"
    kind = {"hour": "one hour of the day", "size": "the sets of one width"}
    caption = (
        f"Each dot is the {what} in {kind.get(table.by, f'one {BY[table.by]}')}, the dashed line "
        "the target."
    )
    if table.by == "size":
        caption += " Widths are shares of the mean width of their series, in fifths."
    if shown < len(table.rows):
        caption += f" Of {len(table.rows):,} groups the {shown} furthest from it are shown."
    if table.coverage:
        caption += (
            " The grey bars are where chance alone would put nearly all dots (two standard "
            "deviations of independent hits): a dot inside its bar says nothing about the group. "
            f"The mean distance from the target is {percent(table.delta)}; chance alone would "
            f"give about {percent(table.noise_floor)}."
        )
    return caption


def rows_caption(view: View, rows: curves.Rows, look: slice | None) -> str:
    """The caption of the sets and misses; `look` are the rows seen first, None if all are."""
    count = len(view.rows)
    if rows.bands:
        caption = (
            "The band is the interval that was shown before the actual value was known, the thin "
            "line the actual value. A cross is a miss: it lay outside its interval. "
        )
    else:
        caption = (
            "The line is the size of each set, such as the number of its labels. A cross is a "
            "miss: the label was not in its set. "
        )
    full, empty = curves.extremes(view)
    if full + empty:  # whether the safeguard or a small λ made them so
        caption += f"Of the {count:,} sets, {full:,} are full and {empty:,} are empty. "
    if look is None:
        caption += "Drag across the plot to zoom."
    else:
        caption += (
            f"At first rows {look.start:,} to {look.stop - 1:,} are seen, around the worst window: "
            "move the ends of the strip below, or drag across the plot, to see others."
        )
    if rows.together > 1:
        caption += (
            f" The last 5,000 rows and those seen first are drawn one by one, others as envelopes "
            f"of {rows.together:,} rows that keep every extreme, with at most one miss in each."
        )
    return caption


def lengths_caption(curve: curves.Lengths, what: str, middle: str) -> str:
    """The caption of the widths or sizes."""
    sets = "interval" if what == "width" else "set"
    caption = f"The {what} of each {sets}."
    if curve.low is not None:
        caption = (
            f"The line is the {middle} {what} over each {curve.together:,} consecutive rows, the "
            "band contains the middle 80 % of them."
        )
    if curve.infinite:
        caption += f" Those without a finite {what}, {curve.infinite:,} {sets}s, are left out."
    if np.isnan(curve.middle).all():
        caption += " None has a finite one." if curve.infinite else " They have none."
    return caption


def price_caption(curve: curves.Prices | None) -> str:
    """The caption of the price."""
    if curve is None or curve.reference is None:
        return "There are too few rows for a reference: it takes about 700."
    caption = (
        "The width of the intervals, the model's own errors and the movement of the actual values, "
        "in multiples of the shaded rows. Coverage is controlled by design, so a broken model "
        "shows here."
    )
    if not curve.alarms:
        return f"{caption} There are no alarms."
    kinds = [f"{kind} at row {row:,}" for row, kind in curve.alarms[:5]]
    return f"{caption} Alarms: {', '.join(kinds)}{' …' if len(curve.alarms) > 5 else ''}."
