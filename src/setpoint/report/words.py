"""The sentences of a report: the captions of its figures, its outcome, how it was made.

They are plain text: whoever puts them on a page escapes them.
"""

from collections.abc import Mapping
from math import inf, sqrt
from typing import Any

import numpy as np

from setpoint.guarantee import Status
from setpoint.losses import Declaration
from setpoint.metrics import Use
from setpoint.report import curves
from setpoint.report.curves import View, shows_intervals
from setpoint.report.numbers import Grouped

__all__ = [
    "about", "both", "mood", "of_groups", "of_lengths", "of_risk", "of_rows", "of_streaks",
    "of_theta", "of_window", "of_windows", "origin", "outcome", "promise", "range_of", "signed",
    "target", "use",
]  # fmt: skip

_MOODS: dict[str, str] = {
    Status.HOLDS: "good", Status.HOLDS_FROM_ABOVE: "good", Status.BROKEN: "bad",
    Use.USEFUL: "good", Use.USELESS: "bad",
}  # fmt: skip


def mood(status: str) -> str:
    """Whether the status of a guarantee, or the use of sets, is good or bad news, or open."""
    return _MOODS.get(status, "open")


def both(status: str, usefulness: Mapping[str, Any] | None) -> str:
    """The mood of a guarantee and its sets together: good only if both are."""
    moods = [mood(status)] + ([] if usefulness is None else [mood(usefulness["use"])])
    return "bad" if "bad" in moods else "open" if "open" in moods else "good"


def signed(value: float, form: str) -> str:
    """A number with its sign, as people write it."""
    return format(value, f"+{form}").replace("-", "−")


# Captions


def of_risk(view: View, curve: curves.Risks, name: str) -> str:
    """The caption of the risk over time."""
    mean = f"{curve.risk[-1]:.4g}" if curve.labels else "unknown, there being no label"
    caption = (
        f"The line is the mean loss ({name}) of all labels up to that point; at the end it is "
        f"{mean}. The dashed line is the level asked for, {curve.level:g}. "
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
            caption += " Over several streams the bounds of the streams add up."
    else:
        caption += "There is no band, because nothing is guaranteed here; the certificate says why."
    if curve.earlier:
        caption += (
            f" It goes on from a saved state: {curve.earlier:,} earlier labels are counted in the "
            "line and in the band."
        )
    return caption


def of_windows(rolling: curves.Rolling, shaded: int, promise: Declaration) -> str:
    """The caption of the worst windows."""
    if not rolling.window:
        return "There are no labels, so there are no windows."
    level = rolling.level
    caption = (
        f"The line is the mean loss of the last {rolling.window:,} labels, the dashed line the "
        f"level asked for, {level:g}."
    )
    if rolling.worst:
        which = f"{shaded} windows" if shaded > 1 else "window"
        mean = rolling.worst[0].risk
        caption += (
            f" Shaded: the {which} furthest from it; the worst has a mean of {mean:.4g}, "
            f"{signed(mean - level, '.4g')} from the level."
        )
    if (promise.low, promise.high) == (0.0, 1.0) and 0.0 < level < 1.0:
        noise = sqrt(level * (1.0 - level) / rolling.window)
        caption += (
            f" Independent losses of 0 and 1 would stray by about ±{2.0 * noise:.2g} (two standard "
            "deviations) in a window of this length."
        )
    return caption


def of_streaks(count: int, longest: int, missed: float) -> str:
    """The caption of the streaks of misses."""
    if not count:
        return "Nothing was missed, so there are no streaks."
    return (
        f"Each bar counts the runs of so many misses in a row; there were {count:,} in all and "
        f"the longest had {longest:,}. Grey is what independent misses with the same rate, "
        f"{missed:.2%}, would give."
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
            "The band is the set that was shown before the label was known, the thin line the "
            "label. A cross is a miss: the label lay outside its set. "
        )
    else:
        caption = (
            "The line is the size of each set, such as the number of its labels. A cross is a "
            "miss: the label was not in its set. "
        )
    full, empty = curves.extremes(view)
    if full + empty:  # whether the safeguard or a small λ made them so
        caption += f"{full:,} of the {count:,} sets are full and {empty:,} are empty"
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
    for risk, (low, high), values in zip(controller.risks, controller.bounds, thetas, strict=True):
        which = f"θ of {risk.name}" if len(thetas) > 1 else "θ"
        if low == -inf and high == inf:
            sentences.append(f"{which} has no bounds, so there is no safeguard.")
        else:
            span = f"from {values.min():.4g} to {values.max():.4g}"
            ends = f"{low:g} and {high:g}"
            sentences.append(f"{which} went {span}, its bounds are {ends}.".replace("-", "−"))
    times = int(np.isinf(view.lam).sum())
    acted = f"The safeguard acted {times:,} times." if times else "The safeguard never acted."
    return " ".join([*sentences, acted])


def of_lengths(curve: curves.Lengths, what: str, middle: str) -> str:
    """The caption of the lengths or sizes."""
    caption = f"The {what} of each set."
    if curve.low is not None:
        caption = (
            f"The line is the {middle} {what} of each {curve.together:,} rows in a row, the band "
            "holds the middle 80 % of them."
        )
    if curve.infinite:
        caption += f" {curve.infinite:,} sets have no finite {what} and are left out."
    if np.isnan(curve.middle).all():
        caption += " None of these sets has a finite one." if curve.infinite else " They have none."
    return caption


# The numbers of a report in words


def about(numbers: Mapping[str, Any]) -> str:
    """What was run on how much."""
    job = numbers.get("job") or {}
    parts = [f"{numbers['rows']:,} rows"]
    if job.get("burn_in"):
        parts[0] += f" after a burn-in of {job['burn_in']:,}"
    if job.get("file"):
        parts.insert(0, job["file"])
    if job.get("model"):
        parts.append(f"model {job['model']}")
    if numbers["streams"] > 1:
        parts.append(f"{numbers['streams']:,} streams")
    if numbers["missing"]:
        parts.append(f"{numbers['missing']:,} without a label")
    if numbers["first_time"] is not None:
        parts.append(f"{numbers['first_time']} to {numbers['last_time']}".replace("T", " "))
    full, empty = numbers["full"], numbers["empty"]
    if full or empty:
        parts.append(f"{full or 0:.2%} full sets, {empty or 0:.2%} empty")
    return " · ".join(parts)


def outcome(numbers: Mapping[str, Any]) -> str:
    """The outcome of the first risk in a sentence."""
    risk = numbers["risks"][0]
    if risk["risk"] is None:
        return "There was no label to judge a set by, so there is no risk to report."
    streams = f" in {numbers['streams']:,} streams" if numbers["streams"] > 1 else ""
    if risk["asked"] is not None:
        sentence = (
            f"{1.0 - risk['risk']:.2%} of {risk['labels']:,} labels{streams} lay in their sets; "
            f"{100.0 * risk['asked']:.6g} % was asked for."
        )
    else:
        sentence = (
            f"A risk of {risk['level']:.4g} was asked for ({risk['name']}), and {risk['risk']:.4g} "
            f"came out over {risk['labels']:,} labels{streams}."
        )
    if risk["budget"] is not None:
        return f"{sentence} {promise(risk)[0].upper()}{promise(risk)[1:]}, whatever the data."
    if mood(risk["status"]) == "good" and not risk["earlier_labels"]:
        sentence += " That is within the guarantee, which needs no assumption about the data."
    return sentence


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
    sentence += f"; {window['above']:,} above their sets, {window['below']:,} below"
    largest = window["largest"]
    if largest is None:
        return sentence
    place = f"row {largest['row']:,}"
    if largest["time"] is not None:
        place += f", {largest['time']}".replace("T", " ")
    y, low, high = (f"{largest[name]:.4g}".replace("-", "−") for name in ("y", "lower", "upper"))
    return f"{sentence}; furthest off: {target} {y}, set {low} to {high} ({place})"


def use(usefulness: Mapping[str, Any]) -> str:
    """Whether the sets were of use, in a sentence."""
    return f"{usefulness['use']}: {usefulness['words']}"


def promise(risk: Mapping[str, Any]) -> str:
    """What a budget guarantees, in units of the loss."""
    level = f"{risk['level']:.4g} a label"
    if risk["asked"] is not None:
        level = f"{100.0 * risk['level']:.6g} %"
    return f"at no time can there be more than {risk['budget']:.4g} {risk['unit']} above {level}"


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
        "Chosen": _chosen(numbers),
    }
    return {name: str(value) for name, value in entries.items() if value}


def _asked(goal: Mapping[str, Any]) -> str:
    parts = []
    if goal:
        held = goal.get("risk") == "coverage" and goal.get("coverage") is not None
        named = f"coverage of {100.0 * goal['coverage']:.6g} %" if held else goal["risk"]
        parts = [named if held else f"{named} at level {goal['level']:g}"]
    if goal.get("gamma") is not None:
        parts.append(f"γ = {goal['gamma']:g}")
    if goal.get("support") is not None:
        parts.append(f"labels from {goal['support'][0]} to {goal['support'][1]}")
    return ", ".join(parts)


def _burn_in(numbers: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    rows = job.get("burn_in")
    if not rows:
        return "" if rows is None else "none"
    most = job.get("burn_in_each", rows)
    of_each = f", at most {most:,} of each series" if numbers["streams"] > 1 else ""
    return f"the first {rows:,} rows{of_each}; they choose and are not judged"


def _chosen(numbers: Mapping[str, Any]) -> str:
    """What the burn-in took of what it tried."""
    tried = numbers.get("tried") or ()
    for row in tried:
        if row["chosen"]:
            return (
                f"γ = {row['gamma']:.6g} and the stretching {row['stretch']}, of {len(tried)} tried"
            )
    return ""
