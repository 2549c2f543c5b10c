"""Late labels: the default beside what ignores the delay, on forecasts of several rows ahead.

The streams are forecasts of the power data, 36, 72 and 144 rows ahead, and those of a file. Each
way is judged by what its user would have seen; *taken as known at once* by what a replay without
the delay would claim.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from comparison import RESULTS, command, keep
from comparison.account import SHAPES
from comparison.measures import measure
from comparison.rules import RULES, fixed
from comparison.streams import BURN_IN, Series, ahead, read
from setpoint.metrics import streaks as streaks_of
from setpoint.presets import find_period
from setpoint_paper.pages import table
from setpoint_paper.work import each

__all__ = ["WAYS", "late", "measured"]

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

_STEPS = (36, 72, 144)
_FEW = 12
"""Labels up to so many rows late are a little late, the others a day or a part of it."""
_RULES = {rule.name: rule.ends for rule in RULES}


def _at_once(series: Series) -> Ends:
    """What the default claims when nobody says that labels are late."""
    return _RULES["default"](replace(series, delay=0, delays=None))


def _without_delay(series: Series) -> Ends:
    """A fixed γ that is the best for labels known at once, with labels that are late."""
    return fixed(
        series, two_sided=False, past=False, chosen_for=replace(series, delay=0, delays=None)
    )


def _found(series: Series) -> Ends:
    """The default with the season that the first errors show, from the rows on that show it."""
    seen = min(max(len(series.y) // 10, 50), 1000)  # a tenth, at most 1,000
    errors = (series.y - series.point)[: seen - series.delay]
    period, plain = find_period(errors), _RULES["default"](series)
    seasonal = _RULES["default, period"](replace(series, period=period)) if period else plain
    later = np.arange(len(plain[0])) >= seen - BURN_IN
    lower, upper = (np.where(later, b, a) for a, b in zip(plain, seasonal, strict=True))
    return lower, upper


WAYS: dict[str, Callable[[Series], Ends]] = {
    "default": _RULES["default"],
    "default, period found": _found,
    "default, period": _RULES["default, period"],
    "labels taken as known at once": _at_once,
    "γ chosen as if known at once": _without_delay,
    "quantile of the last 300 known errors": _RULES["last 300 scores"],
    "γ chosen in hindsight": partial(fixed, two_sided=False, past=False),
}


_UNEVEN = {"labels 0 to {} rows late by chance": "jitter", "{} labels at once": "batches"}


def late(
    *,
    streams: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = RESULTS,
) -> str:
    """Measures every way on the power data and on a file of streams; prints and stores the page.

    Parameters
    ----------
    streams
        A file of streams, as `streams.read` reads it; those whose labels are late are taken.
    jobs
        How many processes.
    out
        The folder for `late.md`.
    """
    parts = ["# Late labels", f"    {command('late', streams, out)}"]
    for steps in _STEPS:
        power = list(ahead("power", steps))
        found = np.stack(each(measured, [(one,) for one in power], jobs, "measuring"))
        parts += [f"## Power, {steps} rows ahead, {len(power)} forecasts", _page(found)]
    mean = _STEPS[len(_STEPS) // 2]
    for title, shape in _UNEVEN.items():
        power = [
            replace(one, delays=SHAPES[shape](len(one.y), mean, np.random.default_rng(0)))
            for one in ahead("power", mean)
        ]
        found = np.stack(each(measured, [(one,) for one in power], jobs, "measuring"))
        parts += [f"## Power, {title.format(2 * mean)}, {len(power)} forecasts", _page(found)]
    if streams is not None:
        others = [one for one in read(streams) if one.delay]
        found = np.stack(each(measured, [(one,) for one in others], jobs, "measuring"))
        delays = np.array([one.delay for one in others])
        for chosen in (delays > 0, delays <= _FEW, delays > _FEW):
            if chosen.any():
                least, most = delays[chosen].min(), delays[chosen].max()
                title = f"## {chosen.sum()} streams, {least} to {most} rows late"
                parts += [title, _page(found[chosen])]
    return keep("\n\n".join(parts) + "\n", out, "late.md")


def measured(series: Series) -> Floats:
    """Coverage, width, longest streak, Winkler and worst window of every way (rows)."""
    y, point = series.y[BURN_IN:], series.point[BURN_IN:]
    rows = []
    for ends in WAYS.values():
        lower, upper = ends(series)
        told, _ = measure(lower, upper, y, point)
        streak = streaks_of((lower <= y) & (y <= upper)).max(initial=0)
        rows.append([told.coverage, told.width, streak, told.winkler, told.worst])
    return np.array(rows)


def _page(found: Floats) -> str:
    """Medians over the streams; width and Winkler are shares of those of the γ in hindsight."""
    shares = found / found[:, -1:]
    head = ["", "coverage %", "width", "Winkler", "longest streak", "worst window %"]
    rows = []
    for place, name in enumerate(WAYS):
        coverage, _, streak, _, worst = np.median(found[:, place], axis=0)
        width, winkler = np.median(shares[:, place], axis=0)[[1, 3]]
        rows.append([name, f"{100 * coverage:.1f}", f"{width:.3f}", f"{winkler:.3f}",
                     f"{streak:.0f}", f"{100 * worst:.1f}"])  # fmt: skip
    return table(head, rows)
