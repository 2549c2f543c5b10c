"""Cells of text: numbers, with decimal points or commas, dates in many forms, cells for nothing.

Arrow reads numbers and ISO 8601, pandas the other ways of writing dates, a column at a time; dates
of Python and ISO text in lists need numpy alone.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from setpoint.errors import DataError, TapeError

Array = np.ndarray[Any, Any]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "NaT", "?")
"""Cells that stand for nothing where a number, a class or a time is due."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
"""A number with a decimal comma, or without a fraction."""
_GROUPED = r"^[+-]?([1-9]\d{0,2},\d{3}|[^,]*)$"
"""A number whose comma may stand between the thousands, or that has none."""
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([., '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?")


def arrow(module: str = "pyarrow") -> Any:
    """A module of Arrow, or of pandas, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            "files of rows need pyarrow and pandas: pip install 'setpoint[data]'"
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


def bare(column: Any) -> Any:
    """Text without the spaces around it, and null where it stands for nothing."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    trimmed = compute.utf8_trim_whitespace(column.cast(pa.string()))
    nothing = compute.is_in(trimmed, value_set=pa.array(MISSING))
    return compute.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def _any(column: Any, pattern: str, *, fits: bool = True) -> bool:
    """Whether some cell fits a pattern, or some does not."""
    compute = arrow("pyarrow.compute")
    matches = compute.match_substring_regex(column, pattern)
    return bool(compute.any(matches if fits else compute.invert(matches)).as_py())


# Numbers


def numbers(column: Any) -> Array | tuple[int, str]:
    """Text as float64; or the first cell that is no number and does not stand for none."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    with suppress(pa.ArrowInvalid):
        return np.asarray(column.cast(pa.float64()), np.float64)
    cells = bare(column)
    fits = compute.match_substring_regex(cells, _NUMBER).fill_null(True)
    row = compute.index(fits, False).as_py()
    if row >= 0:
        return row, column[row].as_py()
    return np.asarray(cells.cast(pa.float64()), np.float64)


def pointed(column: Any, *, points: bool = False) -> Any:
    """Text with decimal points, where all of it is numbers and some have decimal commas.

    Where other numbers have `points`, commas that may stand between thousands are left as they are.
    """
    if not is_text(column):
        return column
    cells = bare(column)
    if not _any(cells, ",") or _any(cells, _COMMA, fits=False):
        return column
    if points and not _any(cells, _GROUPED, fits=False):
        return column
    return arrow("pyarrow.compute").replace_substring(cells, ",", ".")


def has_points(column: Any) -> bool:
    """Whether a column is text of numbers, some of them with decimal points."""
    if not is_text(column):
        return False
    cells = bare(column)
    return _any(cells, r"\.") and not _any(cells, _NUMBER, fits=False)


def advice(text: str) -> str:
    """What to do about a cell that should be a number, to go on a sentence.

    >>> advice("10,262.00")
    ': write numbers without signs between the thousands, like 10262.5'
    """
    cell = text.strip()
    if _THOUSANDS.fullmatch(cell):
        return ": write numbers without signs between the thousands, like 10262.5"
    if re.fullmatch(r"[+-]?\d*,\d+", cell):
        return f": write numbers with a decimal point, like {cell.replace(',', '.')}"
    return ""


def typed(column: Any) -> Any:
    """A column of text that is all numbers as numbers, one of dates as times; others as they are.

    Whole numbers with zeros before them are codes and stay text.
    """
    pa, cells = arrow(), bare(column)
    if cells.null_count == len(cells) or _any(cells, r"^[+-]?0\d+$"):
        return column
    if not _any(cells, _NUMBER, fits=False):
        with suppress(pa.ArrowInvalid):
            return cells.cast(pa.float64() if _any(cells, r"[.eEnN]") else pa.int64())
    found = moments(cells)
    if found.times is None:
        return column
    return pa.array(found.times, mask=np.isnat(found.times))


# Dates

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y",
    "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m", "%m/%d/%y",
    "%d/%m/%y", "%d.%m.%y", "%m-%d-%y", "%d-%m-%y", "%d-%b-%y", "%y-%m-%d", "%y/%m/%d",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_SHAPE = re.compile(r"(\d{1,4}[./ -]?|[A-Za-z]{3,9} )(\d{1,2}|[A-Za-z]{3,9}),?[./ -]?.*")
"""What every way but ISO 8601 looks like: text of another shape is not tried."""
_HEAD, _SOME = 200, 5
_MIDNIGHT = r"\s24:00((?::00)?)$"
_ISO_CELL = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d\S*)?$"
_AWAY = r"\d\d:\d\d\S*[+-](0[1-9]|00:?[1-9]|00:?0[1-9]|1\d)\S*$"
"""The end of a time with a zone in numbers that is not UTC."""
_FIRST = {"d": "day", "m": "month", "y": "year", "Y": "year", "b": "month", "B": "month"}


class Moments:
    """How a column of text reads as times.

    `times` are datetime64, NaT where there is none, or None where some cell is no time; `doubt`
    says how they were read if another reading was possible, `odd` which row is no time and `share`
    how many of the others are written alike.
    """

    __slots__ = ("doubt", "odd", "share", "times")

    def __init__(self, times: Array | None = None, doubt: str | None = None) -> None:
        self.times, self.doubt, self.odd, self.share = times, doubt, 0, 0.0


def moments(column: Any) -> Moments:
    """A column of text as times: ISO 8601 first, then the other ways in which people write dates.

    24:00 is the midnight that ends a day. Where both the month and the day may come first, the
    reading in which times do not fall is taken; if both or none is such, the one with the more
    even steps, and month first if they are alike.
    """
    pa, compute = arrow(), arrow("pyarrow.compute")
    cells = bare(column)
    for unit, zone in product(("us", "ns"), (None, "UTC")):
        with suppress(pa.ArrowInvalid):
            times = np.asarray(cells.cast(pa.timestamp(unit, tz=zone)).to_numpy())
            return Moments(times.astype("datetime64[us]"), _zone(cells, times) if zone else None)
    first = next((cell for cell in cells[:_HEAD].to_pylist() if cell is not None), "")
    if not _SHAPE.fullmatch(first):
        return _odd(cells, [])
    coded = cells.combine_chunks().dictionary_encode()  # days repeat, and each costs time
    words, codes = coded.dictionary, coded.indices.fill_null(len(coded.dictionary))
    late = compute.match_substring_regex(words, _MIDNIGHT)
    if compute.any(late).as_py():
        words = compute.replace_substring_regex(words, _MIDNIGHT, r" 00:00\1")
    days = np.asarray(late).astype("timedelta64[D]")
    readings = {}
    for form in _forms(words[:_HEAD]):
        times = _read(words, form) + days
        if not np.isnat(times).any():
            readings[form] = np.append(times, np.datetime64("NaT"))[np.asarray(codes)]
    if not readings:
        return _odd(cells, [_read(words, form) for form in _forms(words[:_HEAD], some=True)], codes)
    form = min(readings, key=lambda form: _oddity(readings[form]))
    return Moments(readings[form], _turned(cells, form, readings))


def _forms(head: Any, *, some: bool = False) -> list[str]:
    """The ways of writing that every cell is in, or that one of the first is in."""
    cells = head.to_pylist()
    first = [
        form
        for form in map("".join, product(_DAYS, _CLOCKS))
        if any(_fits(cell, form) for cell in cells[: _SOME if some else 1])
    ]
    texts = arrow("pandas").Series(cells, dtype=object)
    return first if some else [f for f in first if not np.isnat(_parsed(texts, f)).any()]


def _fits(cell: str, form: str) -> bool:
    """Whether one cell is written so; pandas takes a millisecond to see it, Python none."""
    with suppress(ValueError):
        return bool(datetime.strptime(cell, form))
    return False


def _read(words: Any, form: str) -> Array:
    return _parsed(arrow("pandas").Series(words.to_pylist(), dtype=object), form)


def _parsed(texts: Any, form: str) -> Array:
    """Times in text of one form, NaT where it has another or the day does not exist."""
    times = arrow("pandas").to_datetime(texts, format=form, errors="coerce")
    found = np.array(times.to_numpy(), "datetime64[us]")
    found[found < np.datetime64("1000-01-01")] = np.datetime64("NaT")  # 1.2.0024 is no date
    return found


def _oddity(times: Array) -> tuple[bool, float]:
    """Whether times fall, and how much the steps between them differ."""
    seconds = times[~np.isnat(times)].astype("datetime64[s]").astype(np.int64)
    steps = np.diff(np.unique(seconds))
    uneven = float(steps.std() / steps.mean()) if len(steps) else 0.0
    return bool((np.diff(seconds) < 0).any()), uneven


def _turned(cells: Any, form: str, readings: dict[str, Array]) -> str | None:
    """How dates were read where the day and the month may change places."""
    for other in readings.values():
        differ = (readings[form] != other) & ~np.isnat(other)
        if differ.any():
            row = int(differ.argmax())
            return (
                f"with the {_FIRST[form[1]]} first: {str(cells[row])!r} is "
                f"{readings[form][row].astype('datetime64[D]')}; if that is wrong, write dates "
                "like 2024-01-31"
            )
    return None


def _zone(cells: Any, times: Array) -> str | None:
    """How times were read whose zone is not UTC."""
    compute = arrow("pyarrow.compute")
    row = compute.index(compute.match_substring_regex(cells, _AWAY), True).as_py()
    return None if row < 0 else in_utc(str(cells[row]), times[row])


def in_utc(local: str, moment: Any) -> str:
    """That the clock of a zone was left for that of UTC."""
    shown = np.datetime_as_string(np.datetime64(moment, "m")).replace("T", " ")
    return f"with its zone, and times are shown in UTC: {local!r} is {shown}"


def _odd(cells: Any, readings: list[Array], codes: Any = None) -> Moments:
    """Which cell is no time, where others are, and how many are written as most."""
    compute, result = arrow("pyarrow.compute"), Moments()
    iso_cells = np.asarray(compute.match_substring_regex(cells, _ISO_CELL).fill_null(False))
    days = compute.utf8_slice_codeunits(cells, 0, 10)
    there = ~np.isnat(_read(days, "%Y-%m-%d")) if iso_cells.any() else iso_cells
    ways = [iso_cells & there]
    ways += [np.append(~np.isnat(times), False)[np.asarray(codes)] for times in readings]
    best = max(ways, key=lambda fits: int(fits.sum()))
    result.odd, result.share = int((~best).argmax()), float(best.mean()) if len(best) else 0.0
    return result


def hours(values: Array) -> Array | None:
    """Hours of a day as microseconds: 0 to 24, or HHMM up to 2400; None if they are neither.

    >>> (hours(np.array([30.0, 1500.0, 2400.0])) / 3.6e9).tolist()
    [0.5, 15.0, 24.0]
    """
    if ((values >= 0.0) & (values <= 24.0)).all():
        return np.rint(values * 3.6e9)
    if not len(values) or values.max() < 100.0:
        return None
    clock = (values >= 0.0) & (values <= 2400.0) & (values % 100.0 < 60.0) & (values % 1.0 == 0.0)
    return np.rint((values // 100.0 * 60.0 + values % 100.0) * 6e7) if clock.all() else None


def counted(numbers: Array) -> tuple[Array, str] | None:
    """Numbers that are days like 20240131, or a count since 1970, as moments; and which it is.

    >>> import numpy as np
    >>> counted(np.array([20240228.0, 20240229.0]))[0].astype("datetime64[D]").astype(str).tolist()
    ['2024-02-28', '2024-02-29']
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


# Dates of Python, pandas and ISO 8601, with numpy alone

_ISO = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)"
    r"(?:Z|([+-]\d\d):?(\d\d))?"
)


def iso(values: list[Any]) -> Array:
    """Dates of Python and pandas and ISO text as datetime64; offsets go to UTC."""
    found: list[Any] = []
    shifts: list[int | None] = []  # minutes ahead of UTC, None without an offset
    for row, value in enumerate(values):
        moment, shift = value, None
        if isinstance(value, str) and (match := _ISO.fullmatch(value)):
            moment = match[1]
            if match.end() > match.end(1):
                ahead, minutes = int(match[2] or 0), int(match[3] or 0)
                shift = 60 * ahead + (-minutes if (match[2] or "").startswith("-") else minutes)
        elif hasattr(value, "to_datetime64"):
            moment = value.to_datetime64()  # in UTC where pandas knows the zone
        elif isinstance(value, datetime) and value.tzinfo is not None:
            moment = value.astimezone(UTC).replace(tzinfo=None)
        elif not isinstance(value, date | np.datetime64):
            raise TapeError(
                "time must hold numbers, dates or ISO text such as 2012-10-02 09:00:00, got "
                f"{value!r} at row {row}"
            )
        found.append(moment)
        shifts.append(shift)
    if None in shifts and set(shifts) != {None}:
        raise TapeError("time must have an offset from UTC in every row or in none, got both")
    try:
        times = np.array(found, dtype="datetime64")
    except (ValueError, OverflowError) as error:
        raise TapeError(f"time must hold dates that exist: {error}") from None
    return times if None in shifts else times - np.array(shifts, dtype="timedelta64[m]")


def weekday(moments: Array) -> Array:
    """The day of the week of each moment, from 0 for Monday.

    >>> weekday(np.array(["2024-01-01", "2024-01-07"], "datetime64[D]")).tolist()
    [0, 6]
    """
    days: Array = moments.astype("datetime64[D]").astype(np.int64)
    return (days + 3) % 7  # the first of January 1970 was a Thursday
