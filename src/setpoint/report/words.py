"""The sentences of a report: the captions of its figures, its outcome, how it was made.

They are plain text: whoever puts them on a page escapes them.
"""

from collections.abc import Mapping
from math import inf, sqrt
from typing import Any

import numpy as np

from setpoint._html import amount
from setpoint.guarantee import Status, theta_bounds
from setpoint.losses import Declaration
from setpoint.metrics import Use
from setpoint.report import curves
from setpoint.report.curves import View, shows_intervals
from setpoint.report.numbers import Grouped
from setpoint.summary import told

_MOODS: dict[str, str] = {
    Status.HOLDS: "good", Status.HOLDS_FROM_ABOVE: "good", Status.BROKEN: "bad",
    Use.USEFUL: "good", Use.USELESS: "bad",
}  # fmt: skip


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


def percent(share: float, digits: int = 2) -> str:
    """A share in percent."""
    return f"{100.0 * share:.{digits}f} %"


def written(value: float, form: str) -> str:
    """A number in a table: a share in percent or points, an amount without a form."""
    if form == "whole":
        return f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"
    if form == "points":
        return f"{100.0 * value:.1f} points"
    text = format(value, form).replace("-", "−") if form else amount(value)
    return text.replace("%", "\N{NO-BREAK SPACE}%")


def _value(value: float, share: bool) -> str:
    return percent(value) if share else f"{value:.4g}"


def off(distance: float, share: bool) -> str:
    """How far a mean loss, or a coverage, is from what was asked."""
    return f"{signed(100.0 * distance, '.1f')} points" if share else signed(distance, ".4g")


def signed(value: float, form: str) -> str:
    """A number with its sign, as people write it."""
    return format(value, f"+{form}").replace("-", "−")


# Captions


def of_risk(view: View, curve: curves.Risks, name: str, *, share: bool) -> str:
    """The caption of the risk over time; `share` where it is told as coverage."""
    mean = _value(curve.risk[-1], share) if curve.labels else "unknown, there being no label"
    caption = (
        f"The line is the {'coverage' if share else f'mean loss ({name})'} of all labels up to "
        f"that point; at the end it is {mean}. The dashed line is what was asked for, "
        f"{_value(curve.level, share)}. "
    )
    sides = [side for side in (curve.low, curve.high) if side is not None]
    if sides and curve.labels:
        caption += (
            "The band is the guarantee: whatever the data do, the line cannot leave it. It narrows "
            "as one over the number of labels; early on it is wider than the plot."
        )
        if len(sides) == 1:
            caption += " Here it binds from one side only."
        if view.several:
            caption += " Over several series the misses that each of them may have add up."
    else:
        caption += "There is no band, because nothing is guaranteed here; the certificate says why."
    if curve.earlier:
        caption += (
            f" It goes on from a saved state: {curve.earlier:,} earlier labels are counted in the "
            "line and in the band."
        )
    return caption


def of_windows(rolling: curves.Rolling, shaded: int, promise: Declaration, *, share: bool) -> str:
    """The caption of the worst windows."""
    if not rolling.window:
        return "There are no labels, so there are no windows."
    level = rolling.level
    caption = (
        f"The line is the {'coverage' if share else 'mean loss'} of the last "
        f"{rolling.window:,} labels, the dashed line what was asked for, {_value(level, share)}."
    )
    if rolling.worst:
        mean = rolling.worst[0].risk
        if shaded:
            which = f"{shaded} windows" if shaded > 1 else "window"
            caption += f" Shaded: the {which} furthest from it."
        caption += f" The worst has {_value(mean, share)}, {off(mean - level, share)} from it."
    if (promise.low, promise.high) == (0.0, 1.0) and 0.0 < level < 1.0:
        noise = sqrt(level * (1.0 - level) / rolling.window)
        caption += (
            " By chance alone it would stray by about "
            f"±{f'{200.0 * noise:.2g} points' if share else f'{2.0 * noise:.2g}'} (two standard "
            "deviations) in so many labels."
        )
    return caption


def of_streaks(count: int, longest: int, missed: float) -> str:
    """The caption of the streaks of misses."""
    if not count:
        return "Nothing was missed, so there are no streaks."
    return (
        f"Each bar counts the runs of so many misses in a row; there were {count:,} in all and "
        f"the longest had {longest:,}. Grey is what chance would give: independent misses with "
        f"the same rate, {percent(missed)}."
    )


def of_groups(table: Grouped, shown: int) -> str:
    """The caption of the groups."""
    what = "coverage" if table.coverage else "mean loss"
    by = "day of the week" if table.by == "weekday" else "group"
    caption = f"Each dot is the {what} in one {by}, the dashed line what was asked for."
    if shown < len(table.groups):
        caption += f" Of {len(table.groups):,} groups the {shown} furthest from it are shown."
    if table.coverage:
        caption += (
            " The grey bars are where chance alone would put nearly all dots (two standard "
            "deviations of independent hits): a dot inside its bar says nothing about the group."
        )
    return caption


def of_rows(view: View, rows: curves.Rows, first_look: int) -> str:
    """The caption of the sets and misses."""
    count = len(view.rows)
    if rows.bands:
        caption = (
            "The band is the interval that was shown before the label was known, the thin line "
            "the label. A cross is a miss: the label lay outside its interval. "
        )
    else:
        caption = (
            "The line is the size of each set, such as the number of its labels. A cross is a "
            "miss: the label was not in its set. "
        )
    full, empty = curves.extremes(view)
    if full + empty:  # whether the safeguard or a small λ made them so
        caption += f"Of the {count:,} sets, {full:,} are full and {empty:,} are empty"
        if shows_intervals(view.trace):
            caption += "; ends of full ones lie beyond the plot, empty ones are drawn without width"
        caption += f". The safeguard chose {int(np.isinf(view.lam).sum()):,} of them. "
    if count <= first_look:
        caption += "Drag across the plot to zoom."
    else:
        caption += (
            f"At first the last {first_look:,} rows are seen: move the ends of the strip below, "
            "or drag across the plot, to see others."
        )
    if rows.exact < count:
        caption += (
            f" The last {rows.exact:,} rows are drawn one by one. Older ones are drawn as "
            f"envelopes of {rows.together:,} rows, the outermost ends of the sets and the "
            "extremes of the labels, with at most one miss marked in each."
        )
    return caption


def of_theta(view: View, *, same: bool) -> str:
    """The caption of θ and λ."""
    controller, thetas = view.trace.controller, view.thetas
    sentences = [
        "θ is what the controller moves: up after a loss above the level, down after one below.",
        "λ, by which the sets grow, is θ itself."
        if same
        else "λ, by which the sets grow, is what the stretching function makes of it.",
    ]
    bounded = False
    for index, (risk, values) in enumerate(zip(controller.risks, thetas, strict=True)):
        which = f"θ of {risk.name}" if len(thetas) > 1 else "θ"
        low, high = theta_bounds(controller, index)
        span = f"{which} went from {amount(values.min())} to {amount(values.max())}"
        if low == -inf and high == inf:
            sentences.append(f"{span} and has no bounds, so there is no safeguard.")
        elif low == -inf:
            sentences.append(
                f"{span}; it has no bound below, and from {amount(high)} on sets are full, later "
                "where labels wait."
            )
        else:
            sentences.append(f"{span}, its bounds are {amount(low)} and {amount(high)}.")
        bounded = bounded or high < inf
    times = int(np.isinf(view.lam).sum())
    acted = f"The safeguard acted {times:,} times." if times else "The safeguard never acted."
    return " ".join([*sentences, acted] if bounded else sentences)


def of_lengths(curve: curves.Lengths, what: str, middle: str, *, several: bool) -> str:
    """The caption of the widths or sizes."""
    sets = "interval" if what == "width" else "set"
    caption = f"The {what} of each {sets}."
    if curve.low is not None:
        caption = (
            f"The line is the {middle} {what} of each {curve.together:,} rows in a row, the band "
            "holds the middle 80 % of them."
        )
    if several:
        caption += " Series may have unlike units: each width is a multiple of its series' median."
    if curve.infinite:
        caption += f" Those without a finite {what}, {curve.infinite:,} {sets}s, are left out."
    if np.isnan(curve.middle).all():
        caption += " None has a finite one." if curve.infinite else " They have none."
    return caption


# The numbers of a report in words


def about(numbers: Mapping[str, Any]) -> str:
    """What was run on how much."""
    job = numbers.get("job") or {}
    parts = [f"{numbers['rows']:,} rows"]
    if job.get("burn_in"):
        parts[0] += f" after a burn-in of {job['burn_in']:,}"
    if job.get("columns"):
        parts.insert(0, target(numbers))
    if job.get("file"):
        parts.insert(0, job["file"])
    if job.get("model"):
        parts.append(f"model {job['model']}")
    if numbers["streams"] > 1:
        parts.append(f"{numbers['streams']:,} series")
    if numbers["missing"]:
        parts.append(f"{numbers['missing']:,} without a label")
    if numbers["first_time"] is not None:
        parts.append(f"{numbers['first_time']} to {numbers['last_time']}".replace("T", " "))
    if numbers.get("forecast_error") is not None:
        parts.append(f"the forecast is off by {amount(numbers['forecast_error'])} on average")
    full, empty = numbers["full"], numbers["empty"]
    if full or empty:
        parts.append(f"{percent(full or 0)} full {of_sets(numbers)}, {percent(empty or 0)} empty")
    return " · ".join(parts)


def outcome(numbers: Mapping[str, Any]) -> str:
    """What came out, what was asked and what is guaranteed, in a sentence or two.

    Of an interval with a risk for each side the whole interval is told: a label may miss either.
    """
    risks = numbers["risks"]
    risk = risks[0]
    if risk["risk"] is None:
        return "There was no label to judge a set by, so there is no risk to report."
    streams = f" in {numbers['streams']:,} series" if numbers["streams"] > 1 else ""
    if risk["asked"] is not None:
        coverage, asked, low = risk["coverage"], risk["asked"], risk["coverage_low"]
        if len(risks) > 1 and all(each["asked"] is not None for each in risks):
            lows = [each["coverage_low"] for each in risks]
            coverage, asked = numbers["coverage"], 1.0 - sum(each["level"] for each in risks)
            low = None if None in lows else sum(lows) - (len(risks) - 1.0)
        sentence = (
            f"{percent(coverage)} of {risk['labels']:,} labels{streams} lay in their "
            f"{of_sets(numbers)}; {100.0 * asked:.6g} % was asked for."
        )
        vacuous = low is not None and low < 0.0005
    else:
        vacuous = False
        sentence = (
            f"A risk of {risk['level']:.4g} was asked for ({risk['name']}), and {risk['risk']:.4g} "
            f"came out over {risk['labels']:,} labels{streams}."
        )
    if risk["budget"] is not None:
        return f"{sentence} {promise(risk, numbers['streams'])}, whatever the data."
    if risk["status"] == Status.SAYS_NOTHING_YET or vacuous:
        return f"{sentence} Nothing is guaranteed yet: there are too few labels."
    if mood(risk["status"]) == "good" and not risk["earlier_labels"]:
        sentence += " That is within the guarantee, which needs no assumption about the data."
    return sentence


def of_sets(numbers: Mapping[str, Any]) -> str:
    """What the sets are called."""
    return "intervals" if numbers["sets"] == "intervals" else "sets"


def beside(numbers: Mapping[str, Any]) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Titles, and the names and forms of the numbers after and before.

    Widths of several series may have unlike units: of all together only their ratio is told.
    """
    size = "width" if numbers["sets"] == "intervals" else "size"
    everything = "without limits" if size == "width" else "all classes"
    finite = numbers["mean_length"], (numbers.get("before") or numbers)["mean_length"]
    worst = min(numbers["window"], max(numbers["steps"], 1))
    if numbers["risks"][0]["asked"] is not None:
        distance, form = "coverage off by", "points"
    else:
        distance, form = "mean loss off by", ".3g"
    rows = {
        "Coverage": ("coverage", ".2%"),
        f"Worst {worst:,} labels: {distance}": ("worst_window", form),
        "Longest streak of misses": ("longest_streak", ","),
        "Mean streak of misses": ("msl", ".3g"),
        f"Mean {size}{', finite ones' if None in finite else ''}": ("mean_finite_length", ""),
        f"Median {size}": ("median_length", ""),
        f"Full {of_sets(numbers)} ({everything})": ("full", ".2%"),
        f"Empty {of_sets(numbers)}": ("empty", ".2%"),
    }
    if numbers["streams"] > 1 and size == "width":
        rows = {title: row for title, row in rows.items() if size not in title}
        if numbers["usefulness"] is not None:
            rows["Mean width (rolling quantile of past errors: 1)"] = ("usefulness.width", ".2f")
    return [
        (title, (f"risks.0.{name}" if name == "worst_window" else name, form), (name, form))
        for title, (name, form) in rows.items()
    ]


def cell(numbers: Mapping[str, Any], name: str, form: str) -> str:
    """A number by its name, as people write it."""
    value: Any = numbers
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
    return "–" if value is None else written(value, form)


def target(numbers: Mapping[str, Any]) -> str:
    """What the label is called: its column, if a file has one."""
    columns = (numbers.get("job") or {}).get("columns") or {}
    return str(columns.get("target", "label"))


def of_window(window: Mapping[str, Any], target: str) -> str:
    """What happened in a window: misses, on which side, and the largest."""
    sentence = f"{window['misses']:,} misses, {window['longest_streak']:,} in a row at the most"
    if not window["misses"]:
        return "nothing was missed"
    if window["above"] is None:
        return sentence
    sentence += f"; {window['above']:,} above their intervals, {window['below']:,} below"
    largest = window["largest"]
    if largest is None:
        return sentence
    place = f"row {largest['row']:,}"
    if largest["time"] is not None:
        place += f", {largest['time']}".replace("T", " ")
    y, low, high = (amount(largest[name]) for name in ("y", "lower", "upper"))
    return f"{sentence}; furthest off: {target} {y}, interval {low} to {high} ({place})"


def learnt(numbers: Mapping[str, Any]) -> list[str]:
    """What a family has learnt of the forecast by the end, in sentences."""
    known = {name: value or 0.0 for name, value in (numbers["learnt"] or {}).items()}
    features: Any = known.pop("features", [])
    if "bias" not in known or not known["labels"]:
        return [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in told(known).values()]
    side = "above" if known["bias"] > 0.0 else "below"
    sentences = [
        f"{target(numbers)} is expected {amount(abs(known['bias']))} {side} the middle of the "
        "forecast, and the intervals are moved by that.",
        f"Around that, errors are {amount(known['scale'])} on average.",
        f"So intervals reach {amount(known['below'])} below their centre and "
        f"{amount(known['above'])} above it, before past misses make them wider or narrower.",
    ]
    if known.get("given", 0.0) > 0.005:
        sentences.append(
            f"The ends that the model gave count for {100.0 * known['given']:.0f} %, and for the "
            "rest what was learnt."
        )
    if known["period"]:
        sentences.append(
            f"The season has {known['period']:,.0f} rows, and moves {target(numbers)} by about "
            f"{amount(known['season'])}."
        )
    for end, side in (("least", "below"), ("most", "above")):
        if (numbers["learnt"] or {}).get(end) is not None:
            sentences.append(
                f"No actual value lies {side} {amount(known[end])}, so intervals end there; those "
                "without limits do not."
            )
    return sentences + [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in features]


def use(usefulness: Mapping[str, Any]) -> str:
    """Whether the sets were of use, in a sentence."""
    return f"{usefulness['use']}: {usefulness['words']}"


def promise(risk: Mapping[str, Any], streams: int = 1) -> str:
    """What a budget guarantees, in units of the loss: of one series, or of each and of all."""
    level = f"{risk['level']:.4g} a label"
    if risk["asked"] is not None:
        level = f"{100.0 * risk['level']:.6g} %"
    most = f"more than {risk['budget']:,.4g} {risk['unit']} beyond the {level} allowed"
    if streams == 1:
        return f"At no time can there be {most}"
    every = f"{risk['budget_all']:,.4g} in all {streams:,} together"
    return f"At no time can there be {most} in any one series, nor more than {every}"


def range_of(risk: Mapping[str, Any]) -> str:
    """Between which numbers a loss lies."""
    if risk["high"] is None:
        return f"{risk['name']}, at least {risk['low']:g}"
    return f"{risk['name']}, from {risk['low']:g} to {risk['high']:g}"


def origin(numbers: Mapping[str, Any]) -> dict[str, str]:
    """What was asked of which file, and what was chosen; empty without a job."""
    job = numbers.get("job")
    if not job:
        return {}
    columns = {
        role: ", ".join(name) if isinstance(name, list) else name
        for role, name in job.get("columns", {}).items()
    }
    entries = {
        "File": job.get("file"),
        "Columns": "; ".join(f"{role} {name}" for role, name in columns.items()),
        "Model": job.get("model"),
        "Features": ", ".join(job.get("features", ())),
        "Asked": _asked(job.get("goal", {})),
        "Burn-in": _burn_in(numbers, job),
        "Notes": " ".join(map(sentence, numbers.get("notes") or ())),
    }
    return {name: str(value) for name, value in entries.items() if value}


def _asked(goal: Mapping[str, Any]) -> str:
    if not goal:
        return ""
    if "coverage" not in goal:
        return f"{goal['risk']} at level {goal['level']:g}"
    ends = goal.get("support")
    limits = "" if ends is None else f", actual values from {ends[0]} to {ends[1]}"
    return f"coverage of {100.0 * goal['coverage']:.6g} %{limits}"


def _burn_in(numbers: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    rows = job.get("burn_in")
    if not rows:
        return "" if rows is None else "none"
    most = job.get("burn_in_each", rows)
    of_each = f", at most {most:,} of each series" if numbers["streams"] > 1 else ""
    return f"the first {rows:,} rows{of_each}; they choose and are not judged"
