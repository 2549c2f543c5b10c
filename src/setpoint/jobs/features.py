"""Features of the rows of a file: numbers, dates as a calendar, words with few values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs.rows import Rows
from setpoint.tape import Tape
from setpoint.tape.dates import calendar

__all__ = ["Features", "find"]

Array = np.ndarray[Any, Any]

WORDS = 30
"""A column of text with more distinct values is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What a model sees of each row.

    Parameters
    ----------
    values
        One row for each of the tape, one column for each feature, all finite.
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


def find(
    rows: Rows,
    tape: Tape,
    target: str,
    *,
    time: str | None = None,
    id: str | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Features:
    """The features of a file.

    Parameters
    ----------
    rows
        The file.
    tape
        Its rows in the order of time: a missing number is taken to be the last one before it in
        its series.
    target, id
        The columns that are no features.
    time
        The time, of which the calendar is taken and nothing else: a trend is the model's matter.
    only, without
        Columns to take alone, or to leave out.
    """
    for name in (*only, *without):
        rows.column(name, "--features" if name in only else "--without")
    wanted = [name for name in (only or rows.names) if name not in (target, id, *without)]
    features: dict[str, Array] = {}
    used: list[str] = []
    left: dict[str, str] = {}
    for name in wanted:
        columns = _column(rows, name, name == time)
        if isinstance(columns, str):
            left[name] = columns
            continue
        used.append(name)
        features |= columns
    if only and left:
        name, why = next(iter(left.items()))
        raise DataError(f"--features must be numbers, dates or few words, and {name!r} {why}")
    values = np.empty((len(rows), len(features)))
    for place, column in enumerate(features.values()):
        values[:, place] = _carried(column if tape.places is None else column[tape.places], tape)
    return Features(values, tuple(features), tuple(used), left)


def _column(rows: Rows, name: str, is_time: bool) -> dict[str, Array] | str:
    """The features of one column, or why there are none."""
    moments = rows.times(name, "--time") if is_time else rows.moments(name)
    if moments is not None and moments.dtype.kind == "M":
        return {f"{name} {part}": column for part, column in calendar(moments).items()}
    if is_time:
        return "is the time, in numbers that have no calendar"
    if not rows.is_text(name):
        try:
            numbers = rows.numbers(name, "a feature")
        except DataError:
            return f"holds {rows.table[name].type}"
        numbers = np.where(np.isinf(numbers), np.nan, numbers)
        return "is empty" if np.isnan(numbers).all() else {name: numbers}
    words, codes = rows.words(name, "a feature")
    if len(words) > WORDS:
        many = f"holds {len(words):,} different words, and at most {WORDS} become features"
        return rows.no_dates(name) or many
    return {f"{name} = {word}": (codes == i).astype(np.float64) for i, word in enumerate(words)}


def _carried(values: Array, tape: Tape) -> Array:
    """Missing numbers replaced by the last one before them in their series, else by 0."""
    if not np.isnan(values).any():
        return values
    offsets = tape.segments.offsets
    column = tape.by_stream(values)
    known = np.where(np.isnan(column), -1, np.arange(len(column)))
    last = np.maximum.accumulate(known)
    there = last >= np.repeat(offsets[:-1], np.diff(offsets))
    return tape.by_row(np.where(there, column[np.maximum(last, 0)], 0.0))
