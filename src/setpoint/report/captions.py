"""What stands below each figure of a report, in words."""

from math import sqrt

import numpy as np

from setpoint.losses import Declaration
from setpoint.report import curves
from setpoint.report.numbers import Grouped
from setpoint.report.views import View, shows_intervals
from setpoint.report.words import in_words, off


def of_risk(view: View, curve: curves.Risks, name: str, *, share: bool) -> str:
    """The caption of the risk over time; `share` where it is told as coverage."""
    mean = in_words(curve.risk[-1], share) if curve.labels else "unknown, there being no label"
    caption = (
        f"The line is the {'coverage' if share else f'mean loss ({name})'} of all labels up to "
        f"that point; at the end it is {mean}. The dashed line is what was asked for, "
        f"{in_words(curve.level, share)}. "
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
        f"{rolling.window:,} labels, the dashed line what was asked for, {in_words(level, share)}."
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
            "deviations) in so many labels."
        )
    return caption


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


def of_price(curve: curves.Prices | None) -> str:
    """The caption of the price."""
    if curve is None or curve.reference is None:
        return "There are too few rows for a reference: it takes about 700."
    caption = (
        "How wide the intervals are, how large the model's own errors, and how restless the actual "
        "values, in multiples of the shaded rows. Coverage is held by design: a model that dies "
        "shows here."
    )
    if not curve.alarms:
        return f"{caption} Nothing calls for anybody."
    kinds = [f"{kind} at row {row:,}" for row, kind in curve.alarms[:5]]
    return f"{caption} Alarms: {', '.join(kinds)}{' …' if len(curve.alarms) > 5 else ''}."
