"""Times: text that is a date or a moment, and what a calendar says of it."""

from importlib import import_module
from math import pi
from typing import Any

import numpy as np

__all__ = ["calendar", "first_odd", "parsed"]

Array = np.ndarray[Any, Any]

_DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
_ZONES = ("$", r"(Z|[+-]\d\d:?\d\d)$")


def parsed(column: Any) -> Any | None:
    """A column of text as one of timestamps, if every cell is one; else None.

    ISO 8601 first, then the other ways in which people write dates. Where both the month and the
    day may come first, the reading in which times do not fall is taken, month first if both do.
    """
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    bare = compute.utf8_trim_whitespace(column.cast(pa.string()))
    for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        try:
            return bare.cast(kind)
        except pa.ArrowInvalid:
            continue
    fitting = []
    for day in _DAYS:
        for clock in _CLOCKS:
            made = compute.strptime(bare, format=day + clock, unit="s", error_is_null=True)
            if made.null_count == column.null_count:
                fitting.append(made)
    for made in fitting:
        if len(fitting) == 1 or bool((np.diff(made.to_numpy()) >= np.timedelta64(0)).all()):
            return made
    return fitting[0] if fitting else None


def first_odd(column: Any) -> tuple[int, float]:
    """The first cell that is not written as most of the others are, and the share of these."""
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    bare = compute.utf8_trim_whitespace(column.cast(pa.string()))
    ways = [
        compute.strptime(bare, format=day + clock, unit="s", error_is_null=True).is_valid()
        for day in ("%Y-%m-%d", *_DAYS)
        for clock in _CLOCKS
    ]
    ways += [compute.match_substring_regex(bare, _ISO + zone).fill_null(False) for zone in _ZONES]
    best = max(ways, key=lambda fits: int(compute.sum(fits).as_py() or 0))
    share = int(compute.sum(best).as_py() or 0) / max(len(column), 1)
    place = int(compute.index(best, False).as_py())
    return (_first_unread(bare) if place < 0 else place), share


def _first_unread(column: Any) -> int:
    """The first cell that is no ISO 8601, of a column of cells that all look like it."""
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if parsed(column[:middle]) is not None else (good, middle)
    return good


def calendar(moments: Array) -> dict[str, Array]:
    """Where moments lie in the day, the week and the year, as numbers that run round.

    Cycles in which the moments do not move are left out: a daily series has no hours.

    >>> import numpy as np
    >>> hours = np.datetime64("2024-01-01", "h") + np.arange(48)
    >>> sorted(calendar(hours))
    ['of day cos', 'of day cos 2', 'of day sin', 'of day sin 2', 'of week cos', 'of week sin']
    """
    seconds = moments.astype("datetime64[s]").astype(np.int64)
    day, year = 86_400, 31_556_952
    span = int(seconds.max() - seconds.min()) if len(seconds) else 0
    made: dict[str, Array] = {}

    def turn(name: str, phase: Array, times: int) -> None:
        more = "" if times == 1 else f" {times}"
        made[f"{name} sin{more}"] = np.sin(2.0 * pi * times * phase)
        made[f"{name} cos{more}"] = np.cos(2.0 * pi * times * phase)

    if (seconds % day != seconds[:1] % day).any():
        turn("of day", (seconds % day) / day, 1)
        turn("of day", (seconds % day) / day, 2)
    weekday = (seconds // day + 3) % 7  # the first of January 1970 was a Thursday
    if (weekday != weekday[:1]).any():
        turn("of week", weekday / 7.0, 1)
        if span > 14 * day:
            made["weekend"] = (weekday >= 5).astype(np.float64)
    if span > year // 2:
        turn("of year", (seconds % year) / year, 1)
    return made
