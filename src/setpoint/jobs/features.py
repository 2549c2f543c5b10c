"""Features found in a file: numbers, dates as a calendar, words with few values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs import files
from setpoint.jobs.times import calendar, parsed

__all__ = ["Features", "date_columns", "find", "time_column"]

Array = np.ndarray[Any, Any]

WORDS = 30
"""A column of text with more distinct values is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What a model sees of each row.

    Parameters
    ----------
    values
        One row for each of the file, one column for each feature, all finite.
    names
        What each feature is.
    columns
        The columns of the file that features are made of.
    left_out
        The columns that are not, each with the reason.
    """

    values: Array
    names: tuple[str, ...]
    columns: tuple[str, ...]
    left_out: dict[str, str]


def date_columns(rows: files.Rows) -> list[str]:
    """The columns of a file that hold dates."""
    return [name for name in rows.names if _moments(rows, name) is not None]


def time_column(rows: files.Rows) -> str | None:
    """The only column of dates of a file; None if there is none, or more than one."""
    found = date_columns(rows)
    return found[0] if len(found) == 1 else None


def find(
    rows: files.Rows,
    target: str,
    *,
    time: str | None = None,
    id: str | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    codes: Array | None = None,
    order: Array | None = None,
) -> Features:
    """The features of a file.

    Parameters
    ----------
    rows
        The file.
    target, id
        The columns that are no features.
    time
        The time, of which the calendar is taken and nothing else: a trend is the model's matter.
    only, without
        Columns to take alone, or to leave out.
    codes, order
        The series of each row and the order of time, in which a missing number is taken to be the
        last one before it in its series.
    """
    for name in (*only, *without):
        rows.column(name, "--features" if name in only else "--without")
    wanted = [name for name in (only or rows.names) if name not in (target, id, *without)]
    made: dict[str, Array] = {}
    used: list[str] = []
    left: dict[str, str] = {}
    for name in wanted:
        found = _column(rows, name, name == time)
        if isinstance(found, str):
            left[name] = found
            continue
        used.append(name)
        made |= found
    if only and left:
        name, why = next(iter(left.items()))
        raise DataError(f"--features must be numbers, dates or few words, and {name!r} {why}")
    values = np.empty((len(rows), len(made)))
    for place, held in enumerate(made.values()):
        values[:, place] = _carried(held, codes, order)
    return Features(values, tuple(made), tuple(used), left)


def _column(rows: files.Rows, name: str, is_time: bool) -> dict[str, Array] | str:
    """The features of one column, or why there are none."""
    moments = rows.times(name, "--time") if is_time else _moments(rows, name)
    if moments is not None and moments.dtype.kind == "M":
        found = calendar(moments)
        return {f"{name} {part}": held for part, held in found.items()}
    if is_time:
        return "is the time, in numbers that have no calendar"
    if not rows.is_text(name):
        try:
            numbers = rows.numbers(name, "a feature")
        except DataError:
            return f"holds {rows.table[name].type}"
        numbers = np.where(np.isinf(numbers), np.nan, numbers)
        return "is empty" if np.isnan(numbers).all() else {name: numbers}
    held = rows.table[name].combine_chunks().dictionary_encode()
    words = held.dictionary.to_pylist()
    if len(words) > WORDS:
        many = f"holds {len(words):,} different words, and at most {WORDS} become features"
        return rows.no_dates(name) or many
    places = held.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return {f"{name} = {word}": (places == i).astype(np.float64) for i, word in enumerate(words)}


def _moments(rows: files.Rows, name: str) -> Array | None:
    """A column as moments of time, if it holds them."""
    pa = files.arrow()
    held = rows.table[name]
    if pa.types.is_timestamp(held.type) or pa.types.is_date(held.type):
        found = held
    elif pa.types.is_string(held.type):
        if parsed(held[:100]) is None or not rows.is_text(name):  # a long column costs time
            return None
        found = parsed(held)
    else:
        return None
    if found is None or found.null_count:
        return None
    return np.asarray(found.cast(pa.timestamp("us"), safe=False).to_numpy())


def _carried(values: Array, codes: Array | None, order: Array | None) -> Array:
    """Missing numbers replaced by the last one before them in their series, else by 0."""
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    series = np.zeros(len(values), np.int64) if codes is None else codes
    along = np.arange(len(values)) if order is None else order
    lines = along[np.argsort(series[along], kind="stable")]
    held, own = values[lines], series[lines]
    known = np.where(np.isnan(held), -1, np.arange(len(held)))
    last = np.maximum.accumulate(known)
    there = (last >= 0) & (own[np.maximum(last, 0)] == own)
    made = np.empty_like(values)
    made[lines] = np.where(there, held[np.maximum(last, 0)], 0.0)
    return made
