"""Cells of text: numbers, with decimal points or commas, dates in many forms, cells for nothing.

Arrow reads numbers and ISO 8601, pandas the other ways of writing dates, a column at a time; dates
of Python and ISO text in lists need numpy alone.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from setpoint.errors import DataError, TapeError

Array = np.ndarray[Any, Any]
_NEVER = np.datetime64("NaT")

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
_HEAD, _SOME = 200, 5
_ISO8601 = "ISO8601"
_MIDNIGHT = r"\s24:00((?::00)?)$"
_AWAY = r"\d\d:\d\d\S*[+-](0[1-9]|00:?[1-9]|00:?0[1-9]|1\d)\S*$"
"""The end of a time with a zone in numbers that is not UTC."""
_FIRST = {"d": "day", "m": "month", "y": "year", "Y": "year", "b": "month", "B": "month"}


class Moments(NamedTuple):
    """How a column of text reads as times.

    `times` are datetime64, NaT where a cell is empty, or None where some cell is no time; `doubt`
    says how they were read if another reading was possible, `odd` which row is the first without
    a time and `share` how many rows have one.
    """

    times: Array | None
    doubt: str | None = None
    odd: int = 0
    share: float = 0.0


def moments(column: Any) -> Moments:
    """A column of text as times: ISO 8601 first, then the other ways in which people write dates.

    24:00 is the midnight that ends a day. Where both the month and the day may come first, the
    reading in which times do not fall is taken; if both or none is such, the one with the more
    even steps, and month first if they are alike.
    """
    pa, compute, cells = arrow(), arrow("pyarrow.compute"), bare(column)
    for unit, zone in product(("us", "ns"), (None, "UTC")):
        with suppress(pa.ArrowInvalid):
            times = np.asarray(cells.cast(pa.timestamp(unit, tz=zone)).to_numpy())
            doubt = _zone(cells, times) if zone else None
            return _found(times.astype("datetime64[us]"), doubt, whole=True)
    coded = cells.combine_chunks().dictionary_encode()  # days repeat, and each costs time
    codes = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
    late = compute.match_substring_regex(coded.dictionary, _MIDNIGHT)
    midnight = compute.replace_substring_regex(coded.dictionary, _MIDNIGHT, r" 00:00\1")
    words = arrow("pandas").Series(midnight.to_pylist(), dtype=object)
    days = np.asarray(late).astype("timedelta64[D]")
    readings = {form: np.append(_read(words, form) + days, _NEVER) for form in _forms(words)}
    if not readings:
        return Moments(None)
    gaps = {form: int(np.isnat(times).sum()) for form, times in readings.items()}
    least = min(gaps.values())
    best = {form: times[codes] for form, times in readings.items() if gaps[form] == least}
    form = min(best, key=lambda form: _oddity(best[form]))
    return _found(best[form], _turned(cells, form, best), whole=least == 1)


def _found(times: Array, doubt: str | None, *, whole: bool) -> Moments:
    there = ~np.isnat(times)
    share = float(there.mean()) if len(there) else 0.0
    return Moments(times if whole else None, doubt, int(there.argmin()) if share else 0, share)


def _forms(words: Any) -> list[str]:
    """The ways of writing that the first cells are in, and of those that most cells are in."""
    head, some = words[:_HEAD], words[:_SOME].tolist()
    forms = [_ISO8601, *map("".join, product(_DAYS, _CLOCKS))]
    gaps = {
        form: int(np.isnat(_read(head, form)).sum())
        for form in forms
        if any(_fits(cell, form) for cell in some)
    }
    return [form for form, count in gaps.items() if count == min(gaps.values())]


def _fits(cell: str, form: str) -> bool:
    """Whether one cell is written so; pandas takes a millisecond to see it, Python none."""
    with suppress(ValueError):
        iso_form = form == _ISO8601
        return bool(datetime.fromisoformat(cell) if iso_form else datetime.strptime(cell, form))
    return False


def _read(words: Any, form: str) -> Array:
    """Times in text of one form, NaT where it has another or the day does not exist."""
    times = arrow("pandas").to_datetime(words, format=form, errors="coerce", utc=True)
    found = np.array(times.dt.tz_localize(None).to_numpy(), "datetime64[us]")
    found[found < np.datetime64("1000-01-01")] = _NEVER  # 1.2.0024 is no date
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
        days = _read(arrow("pandas").Series(numbers.astype(np.int64).astype(str)), "%Y%m%d")
        if not np.isnat(days).any():
            return days, "days like 20240131"
    for place, unit in enumerate(("seconds", "milliseconds", "microseconds", "nanoseconds")):
        if low >= 1e9 * 1000**place and high < 5e9 * 1000**place:
            micro = np.round(numbers * 1000.0 ** (2 - place)).astype(np.int64)
            return micro.astype("datetime64[us]"), f"{unit} since 1970"
    return None


# Dates of Python, pandas and ISO 8601, with numpy alone

_ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?")
_OFFSET = re.compile(r"(.*[T ]\d\d.*)(Z|[+-]\d\d:?\d\d)")


def iso(values: list[Any]) -> Array:
    """Dates of Python and pandas and ISO text as datetime64; offsets go to UTC."""
    found: list[Any] = []
    aware = set()
    for row, value in enumerate(values):
        moment = value
        with suppress(ValueError):
            if isinstance(value, str) and _OFFSET.fullmatch(value):
                moment = datetime.fromisoformat(value)
        zoned = isinstance(moment, datetime) and moment.tzinfo is not None
        aware.add(zoned and isinstance(value, str))
        if hasattr(moment, "to_datetime64"):
            moment = moment.to_datetime64()  # in UTC where pandas knows the zone
        elif zoned:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        elif not isinstance(moment, date | np.datetime64) and not _ISO.fullmatch(str(moment)):
            raise TapeError(
                "time must hold numbers, dates or ISO text such as 2012-10-02 09:00:00, got "
                f"{value!r} at row {row}"
            )
        found.append(moment)
    if len(aware) > 1:
        raise TapeError("time must have an offset from UTC in every row or in none, got both")
    return _exact(found)


def _exact(moments: Any) -> np.ndarray:
    try:
        return np.array(moments, "datetime64")
    except (ValueError, OverflowError) as error:
        raise TapeError(f"time must hold dates that exist: {error}") from None


def weekday(moments: Array) -> Array:
    """The day of the week of each moment, from 0 for Monday.

    >>> weekday(np.array(["2024-01-01", "2024-01-07"], "datetime64[D]")).tolist()
    [0, 6]
    """
    days: Array = moments.astype("datetime64[D]").astype(np.int64)
    return (days + 3) % 7  # the first of January 1970 was a Thursday
