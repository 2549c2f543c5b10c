"""Cells of text: numbers, with decimal commas or none, dates in many forms, and cells for nothing.

Arrow reads them, a column at a time; dates of Python and ISO text need numpy alone.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime
from importlib import import_module
from itertools import product
from math import pi
from typing import Any

import numpy as np

from setpoint.errors import DataError, TapeError

__all__ = [
    "MISSING",
    "advice",
    "arrow",
    "as_floats",
    "calendar",
    "counted",
    "first_odd",
    "has_points",
    "is_text",
    "is_time",
    "iso",
    "numbers",
    "parsed",
    "pointed",
    "time_doubt",
    "typed",
    "weekday",
]

Array = np.ndarray[Any, Any]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "?")
"""Cells that stand for nothing where a number or a class is due."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
_FRACTION = r"[.eEnN]"
"""In a number: it is not a whole one."""
_CODE = r"^[+-]?0\d+$"
_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
"""A number with a decimal comma, or without a fraction."""
_GROUPED = r"^[+-]?([1-9]\d{0,2},\d{3}|[^,]*)$"
"""A number whose comma may stand between the thousands, or that has none."""
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([., '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?")


def arrow(module: str = "pyarrow") -> Any:
    """A module of Arrow, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            "CSV, Parquet and JSON Lines need pyarrow: pip install 'setpoint[data]'"
        ) from error


def is_text(column: Any) -> bool:
    """Whether an Arrow column is text."""
    pa, kind = arrow(), column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_time(column: Any) -> bool:
    """Whether an Arrow column holds times or days."""
    types = arrow().types
    return bool(types.is_timestamp(column.type) or types.is_date(column.type))


def as_floats(column: Any) -> Array:
    """A column of numbers as float64, NaN where there is none."""
    return np.asarray(column, dtype=np.float64)


def _trimmed(column: Any) -> Any:
    return arrow("pyarrow.compute").utf8_trim_whitespace(column.cast(arrow().string()))


def _blanked(column: Any) -> Any:
    """Text without the spaces around it, and null where it stands for nothing."""
    pa, compute, bare = arrow(), arrow("pyarrow.compute"), _trimmed(column)
    nothing = compute.is_in(bare, value_set=pa.array(MISSING))
    return compute.if_else(nothing, pa.scalar(None, pa.string()), bare)


def _any(column: Any, pattern: str, *, fits: bool = True) -> bool:
    """Whether some cell fits a pattern, or some does not."""
    compute = arrow("pyarrow.compute")
    matches = compute.match_substring_regex(column, pattern)
    return bool(compute.any(matches if fits else compute.invert(matches)).as_py())


def numbers(column: Any) -> Array | tuple[int, str]:
    """Text as float64; or the first cell that is no number and does not stand for none."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    with suppress(pa.ArrowInvalid):
        return as_floats(column.cast(pa.float64()))
    bare = _blanked(column)
    fits = compute.match_substring_regex(bare, _NUMBER).fill_null(True)
    row = compute.index(fits, False).as_py()
    return as_floats(bare.cast(pa.float64())) if row < 0 else (row, column[row].as_py())


def pointed(column: Any, *, points: bool = False) -> Any:
    """Text with decimal points, where all of it is numbers and some have decimal commas.

    Where other numbers have `points`, commas that may stand between thousands are left as they are.
    """
    if not is_text(column):
        return column
    bare = _blanked(column)
    if not _any(bare, ",") or _any(bare, _COMMA, fits=False):
        return column
    if points and not _any(bare, _GROUPED, fits=False):
        return column
    return arrow("pyarrow.compute").replace_substring(bare, ",", ".")


def has_points(column: Any) -> bool:
    """Whether a column is text of numbers, some of them with decimal points."""
    if not is_text(column):
        return False
    bare = _blanked(column)
    return _any(bare, r"\.") and not _any(bare, _NUMBER, fits=False)


def advice(text: str) -> str:
    """What to do about a cell that should be a number, to go on a sentence.

    >>> advice("10,262.00")
    ': write numbers without signs between the thousands, like 10262.5'
    """
    bare = text.strip()
    if _THOUSANDS.fullmatch(bare):
        return ": write numbers without signs between the thousands, like 10262.5"
    if re.fullmatch(r"[+-]?\d*,\d+", bare):
        return f": write numbers with a decimal point, like {bare.replace(',', '.')}"
    return ""


def typed(table: Any, *, numbers: bool, dates: bool) -> Any:
    """A table whose columns of text that are all numbers or all dates are that, as wanted.

    Whole numbers with zeros before them are codes and stay text.
    """
    pa = arrow()
    for place, name in enumerate(table.column_names):
        column = table[name]
        if not is_text(column):
            continue
        bare, values = _blanked(column), None
        if bare.null_count == len(bare) or _any(bare, _CODE):
            continue
        if _any(bare, _NUMBER, fits=False):
            values = parsed(column) if dates else None
        elif numbers:
            with suppress(pa.ArrowInvalid):
                values = bare.cast(pa.float64() if _any(bare, _FRACTION) else pa.int64())
        if values is not None:
            table = table.set_column(place, name, values)
    return table


# Dates

_DAY, _YEAR = 86_400, 31_556_952
"""Seconds."""

# Ways of writing dates in text. Arrow reads them, each column in one way.

_LONG = ("%Y/%m/%d", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y",
         "%d-%b-%Y", "%d %B %Y")  # fmt: skip
_SHORT = ("%d.%m.%y", "%m-%d-%y", "%d-%m-%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y",
          "%y-%m-%d", "%y/%m/%d")  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_SHAPE = re.compile(r"\d{1,4}([./ -]?)(\d{1,2}|[A-Za-z]{3,9})\1\d{2,4}( .*)?")
"""What every way but ISO 8601 looks like: text of another shape is not tried."""
_DIGITS = {
    "%d": r"(?P<day>\d{1,2})", "%m": r"\d{1,2}", "%b": r"\w+", "%B": r"\w+",
    "%Y": r"[1-9]\d{3}", "%y": r"\d\d",
}  # fmt: skip
_HEAD = 1000
_ISO_CELL = r"^\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"
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
    pa, bare = arrow(), _trimmed(column)
    for zone in (None, "UTC"):
        with suppress(pa.ArrowInvalid):
            return bare.cast(pa.timestamp("us", tz=zone))
    readings = [times for _, times in _readings(bare)]
    return readings[0] if len(readings) == 1 else min(readings, key=_oddity, default=None)


def time_doubt(column: Any) -> str | None:
    """How a column was read as times, if it could have been read otherwise.

    The day and the month may change places, or the clock of a zone was left for that of UTC.
    """
    compute = arrow("pyarrow.compute")
    if not is_text(column):
        return _zone_doubt(column)
    bare = _trimmed(column)
    if not _SLASHED.match(str(bare[0])):
        away = compute.and_(
            compute.match_substring_regex(bare, _AWAY),
            compute.invert(compute.match_substring_regex(bare, _AT_HOME)),
        )
        row = compute.index(away, True).as_py()
        times = None if row < 0 else parsed(bare[row : row + 1])
        return None if times is None else _in_utc(str(bare[row]), times[0].as_py())
    readings = _readings(bare)
    if not readings:
        return None
    day, taken = min(readings, key=lambda reading: _oddity(reading[1]))
    for _, times in readings:
        row = compute.index(compute.not_equal(taken, times), True).as_py()
        if row >= 0:
            first = {"d": "day", "m": "month", "y": "year"}[day[1]]
            return (
                f"with the {first} first: {str(bare[row])!r} is {taken[row].as_py():%Y-%m-%d}; "
                "if that is wrong, write dates like 2024-01-31"
            )
    return None


def _zone_doubt(column: Any) -> str | None:
    """How Arrow's timestamps with a zone were read, if they are not those of UTC."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return None
    plain = column.cast(pa.timestamp("us"), safe=False)
    try:
        local = compute.local_timestamp(column).cast(pa.timestamp("us"), safe=False)
    except pa.ArrowInvalid:
        return f"in UTC: its zone {column.type.tz!r} is not known here"
    row = compute.index(compute.not_equal(local, plain), True).as_py()
    if row < 0:
        return None
    return _in_utc(f"{local[row].as_py():%Y-%m-%d %H:%M} {column.type.tz}", plain[row].as_py())


def _in_utc(local: str, moment: datetime) -> str:
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
        integers = numbers.astype(np.int64)
        year, month, day = integers // 10_000, integers // 100 % 100, integers % 100
        first = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days = first.astype("datetime64[D]") + (day - 1)
        if ((month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == first)).all():
            return days.astype("datetime64[us]"), "days like 20240131"
    for place, unit in enumerate(("seconds", "milliseconds", "microseconds", "nanoseconds")):
        if low >= 1e9 * 1000**place and high < 5e9 * 1000**place:
            micro = np.round(numbers * 1000.0 ** (2 - place)).astype(np.int64)
            return micro.astype("datetime64[us]"), f"{unit} since 1970"
    return None


def first_odd(column: Any) -> tuple[int, float]:
    """The first cell that is not written as most of the others are, and the share of these."""
    compute = arrow("pyarrow.compute")
    bare = _trimmed(column)
    ways = [
        _read(bare, day, clock).is_valid()
        for day, clock in product(("%Y-%m-%d", *_LONG, *_SHORT), _CLOCKS)
        if compute.any(_read(bare[:_HEAD], day, clock).is_valid()).as_py()
    ]
    exists = _read(compute.utf8_slice_codeunits(bare, 0, 10), "%Y-%m-%d", "").is_valid()
    for zone in _ZONES:
        fits = compute.match_substring_regex(bare, _ISO_CELL + zone).fill_null(False)
        ways.append(compute.and_(fits, exists))
    best = max(ways, key=lambda fits: int(compute.sum(fits).as_py() or 0))
    share = int(compute.sum(best).as_py() or 0) / max(len(column), 1)
    return max(int(compute.index(best, False).as_py()), 0), share


def _readings(bare: Any) -> list[tuple[str, Any]]:
    """The ways of writing days that every cell is in, and the times in them."""
    first = bare.drop_null()[:1].to_pylist()
    if not first or not _SHAPE.fullmatch(first[0]):
        return []
    readings = []
    for day, clock in product((*_LONG, *_SHORT), _CLOCKS):
        head = bare[:_HEAD]  # a long column costs time, and most forms fail at once
        if _read(head, day, clock).null_count == head.null_count:
            times = _read(bare, day, clock)
            if times.null_count == bare.null_count:
                readings.append((day, times))
    return readings


def _read(bare: Any, day: str, clock: str) -> Any:
    """The times in text of one form, null where it has another or the day does not exist."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    times = compute.strptime(bare, format=day + clock, unit="s", error_is_null=True)
    pattern = day.replace(".", r"\.")
    for sign, digits in _DIGITS.items():
        pattern = pattern.replace(sign, digits)
    days = compute.struct_field(compute.extract_regex(bare, f"^{pattern}(?: |$)"), [0])
    exists = compute.equal(days.cast(pa.int64()), compute.day(times))  # 30 February becomes 1 March
    return compute.if_else(exists, times, pa.scalar(None, times.type))


def _oddity(times: Any) -> tuple[bool, float]:
    """Whether times fall, and how much the steps between them differ."""
    seconds = times.drop_null().to_numpy().astype(np.int64)
    steps = np.diff(np.unique(seconds))
    uneven = float(steps.std() / steps.mean()) if len(steps) else 0.0
    return bool((np.diff(seconds) < 0).any()), uneven


# Dates of Python, pandas and ISO 8601, with numpy alone

_ISO = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)"
    r"(?:Z|([+-]\d\d):?(\d\d))?"
)


def iso(values: list[Any]) -> Array:
    """Dates of Python and pandas and ISO text as datetime64; offsets go to UTC."""
    moments: list[Any] = []
    shifts: list[int | None] = []  # minutes ahead of UTC, None without an offset
    for row, value in enumerate(values):
        moment, shift = value, None
        if isinstance(value, str) and (match := _ISO.fullmatch(value)):
            moment = match[1]
            if match.end() > match.end(1):
                hours, minutes = int(match[2] or 0), int(match[3] or 0)
                shift = 60 * hours + (-minutes if (match[2] or "").startswith("-") else minutes)
        elif hasattr(value, "to_datetime64"):
            moment = value.to_datetime64()  # in UTC where pandas knows the zone
        elif isinstance(value, datetime) and value.tzinfo is not None:
            moment = value.astimezone(UTC).replace(tzinfo=None)
        elif not isinstance(value, date | np.datetime64):
            raise TapeError(
                "time must hold numbers, dates or ISO text such as 2012-10-02 09:00:00, got "
                f"{value!r} at row {row}"
            )
        moments.append(moment)
        shifts.append(shift)
    if None in shifts and set(shifts) != {None}:
        raise TapeError("time must have an offset from UTC in every row or in none, got both")
    try:
        times = np.array(moments, dtype="datetime64")
    except (ValueError, OverflowError) as error:
        raise TapeError(f"time must hold dates that exist: {error}") from None
    return times if None in shifts else times - np.array(shifts, dtype="timedelta64[m]")


# The calendar


def weekday(moments: Array) -> Array:
    """The day of the week of each moment, from 0 for Monday.

    >>> weekday(np.array(["2024-01-01", "2024-01-07"], "datetime64[D]")).tolist()
    [0, 6]
    """
    days: Array = moments.astype("datetime64[D]").astype(np.int64)
    return (days + 3) % 7  # the first of January 1970 was a Thursday


def calendar(moments: Array) -> dict[str, Array]:
    """Where moments lie in the day, the week and the year, as numbers that run round.

    Cycles in which the moments do not move are left out: a daily series has no hours.

    >>> import numpy as np
    >>> hours = np.datetime64("2024-01-01", "h") + np.arange(48)
    >>> sorted(calendar(hours))
    ['of day cos', 'of day cos 2', 'of day sin', 'of day sin 2', 'of week cos', 'of week sin']
    """
    seconds = moments.astype("datetime64[s]").astype(np.int64)
    span = int(seconds.max() - seconds.min()) if len(seconds) else 0
    days = weekday(moments)
    turns = []
    if (seconds % _DAY != seconds[:1] % _DAY).any():
        turns = [
            ("of day", seconds % _DAY / _DAY, ""),
            ("of day", 2 * (seconds % _DAY) / _DAY, " 2"),
        ]
    if (days != days[:1]).any():
        turns.append(("of week", days / 7.0, ""))
    if span > _YEAR // 2:
        turns.append(("of year", seconds % _YEAR / _YEAR, ""))
    cycles: dict[str, Array] = {}
    for name, phase, times in turns:
        cycles[f"{name} sin{times}"] = np.sin(2.0 * pi * phase)
        cycles[f"{name} cos{times}"] = np.cos(2.0 * pi * phase)
        if name == "of week" and span > 14 * _DAY:
            cycles["weekend"] = (days >= 5).astype(np.float64)
    return cycles
