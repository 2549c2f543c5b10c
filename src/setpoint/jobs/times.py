"""Times: text that is a date or a moment, and what a calendar says of it."""

import re
from datetime import datetime
from importlib import import_module
from itertools import product
from math import pi
from typing import Any

import numpy as np

__all__ = ["calendar", "counted", "doubt", "first_odd", "in_utc", "parsed"]

Array = np.ndarray[Any, Any]

_LONG = ("%Y/%m/%d", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y",
         "%d-%b-%Y", "%d %B %Y")  # fmt: skip
_SHORT = ("%d.%m.%y", "%m-%d-%y", "%d-%m-%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y",
          "%y-%m-%d", "%y/%m/%d")  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FIRST_YEAR = np.datetime64("1000-01-01", "s")
"""Before it, a year is one with too few digits."""
_HEAD = 1000
_ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
_SLASHED = re.compile(r"\d{1,2}([/-])\d{1,2}\1(\d{4}|\d\d)( |$)")
_ZONES = ("$", r"(Z|[+-]\d\d:?\d\d)$")
_AWAY = r"\d\d:\d\d\S*[+-]\d\d(:?\d\d)?$"
"""The end of a time with a zone in numbers; one of zeros is UTC."""
_AT_HOME = r"[+-]00(:?00)?$"


def parsed(column: Any) -> Any | None:
    """A column of text as one of timestamps, if every cell is one; else None.

    ISO 8601 first, then the other ways in which people write dates. Where both the month and the
    day may come first, the reading in which times do not fall is taken; if both or none is such,
    the one with the more even steps, and month first if they are alike.
    """
    pa = import_module("pyarrow")
    bare = _bare(column)
    for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        try:
            return bare.cast(kind)
        except pa.ArrowInvalid:
            continue
    fitting = [made for _, made in _fitting(bare)]
    return fitting[0] if len(fitting) == 1 else min(fitting, key=_oddity, default=None)


def doubt(column: Any) -> str | None:
    """How a column of text was read as dates, if the day and the month could change places.

    Or if the clock of a zone was left for that of UTC.
    """
    bare = _bare(column)
    if not _SLASHED.match(str(bare[0])):
        return _moved(bare)
    fitting = _fitting(bare)
    if len({day for day, _ in fitting}) < 2:
        return None
    day, made = min(fitting, key=lambda each: _oddity(each[1]))
    differs = [np.flatnonzero(made.to_numpy() != other.to_numpy()) for _, other in fitting]
    rows = [int(places[0]) for places in differs if len(places)]
    if not rows:
        return None
    first = {"d": "day", "m": "month", "y": "year"}[day[1]]
    return (
        f"with the {first} first: {str(bare[rows[0]])!r} is "
        f"{made[rows[0]].as_py():%Y-%m-%d}; if that is wrong, write dates like 2024-01-31"
    )


def _moved(bare: Any) -> str | None:
    """How times with a zone were read, if some are not those of UTC."""
    compute = import_module("pyarrow.compute")
    away = compute.and_(
        compute.match_substring_regex(bare, _AWAY),
        compute.invert(compute.match_substring_regex(bare, _AT_HOME)),
    )
    row = compute.index(away, True).as_py()
    made = None if row < 0 else parsed(bare[row : row + 1])
    return None if made is None else in_utc(str(bare[row]), made[0].as_py())


def in_utc(local: str, moment: datetime) -> str:
    """How a time with a zone was read, to go behind "is read".

    >>> in_utc("2024-01-01T00:00+02:00", datetime(2023, 12, 31, 22))
    "with its zone, and times are shown in UTC: '2024-01-01T00:00+02:00' is 2023-12-31 22:00"
    """
    return f"with its zone, and times are shown in UTC: {local!r} is {moment:%Y-%m-%d %H:%M}"


def counted(numbers: Array) -> tuple[Array, str] | None:
    """Numbers that are days like 20240131, or a count since 1970, as moments; and which it is.

    >>> import numpy as np
    >>> counted(np.array([20240228.0, 20240229.0]))[0].astype(str).tolist()
    ['2024-02-28T00:00:00.000000', '2024-02-29T00:00:00.000000']
    >>> counted(np.array([1.7e9]))[1], counted(np.array([1.0, 2.0]))
    ('seconds since 1970', None)
    """
    if not len(numbers):
        return None
    low, high = numbers.min(), numbers.max()
    if low >= 19_000_101 and high <= 21_001_231 and (numbers % 1 == 0).all():
        whole = numbers.astype(np.int64)
        year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
        first = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        made = first.astype("datetime64[D]") + (day - 1)
        if ((month >= 1) & (month <= 12) & (made.astype("datetime64[M]") == first)).all():
            return made.astype("datetime64[us]"), "days like 20240131"
    for place, unit in enumerate(("seconds", "milliseconds", "microseconds", "nanoseconds")):
        if low >= 1e9 * 1000**place and high < 5e9 * 1000**place:
            micro = np.round(numbers * 1000.0 ** (2 - place)).astype(np.int64)
            return micro.astype("datetime64[us]"), f"{unit} since 1970"
    return None


def _bare(column: Any) -> Any:
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    return compute.utf8_trim_whitespace(column.cast(pa.string()))


def _fitting(bare: Any) -> list[tuple[str, Any]]:
    """The ways of writing days that every cell is in, and the times in them."""
    found = []
    for day, clock in product((*_LONG, *_SHORT), _CLOCKS):
        head = bare[:_HEAD]  # a long column costs time, and most forms fail at once
        if _read(head, day, clock).null_count == head.null_count:
            made = _read(bare, day, clock)
            if made.null_count == bare.null_count:
                found.append((day, made))
    return found


def _read(bare: Any, day: str, clock: str) -> Any:
    """The times in text of one form, null where it has another."""
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    made = compute.strptime(bare, format=day + clock, unit="s", error_is_null=True)
    if day in _SHORT:
        digits = r"^\d\d\D" if day.startswith("%y") else r"^\S+\D\d\d( |$)"
        fits = compute.match_substring_regex(bare, digits)
    else:
        fits = compute.greater_equal(made, pa.scalar(_FIRST_YEAR.item(), made.type))
    return compute.if_else(fits, made, pa.scalar(None, made.type))


def _oddity(times: Any) -> tuple[bool, float]:
    """Whether times fall, and how much the steps between them differ."""
    held = times.drop_null().to_numpy().astype(np.int64)
    steps = np.diff(np.unique(held))
    uneven = float(steps.std() / steps.mean()) if len(steps) else 0.0
    return bool((np.diff(held) < 0).any()), uneven


def first_odd(column: Any) -> tuple[int, float]:
    """The first cell that is not written as most of the others are, and the share of these."""
    compute = import_module("pyarrow.compute")
    bare = _bare(column)
    ways = [
        _read(bare, day, clock).is_valid()
        for day, clock in product(("%Y-%m-%d", *_LONG, *_SHORT), _CLOCKS)
        if compute.any(_read(bare[:_HEAD], day, clock).is_valid()).as_py()
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
