"""A tape of the rows of a file: predictions, labels and keys, in the order of time."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs import files
from setpoint.jobs.columns import Columns, class_places
from setpoint.jobs.features import date_columns
from setpoint.tape import Tape

__all__ = ["read", "taped", "timed"]

Array = np.ndarray[Any, Any]


def timed(rows: files.Rows, columns: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns with the only one of dates as the time, if none is named; and what to know.

    Rows that are not in its order are told of as such where they are sorted.
    """
    if columns.time is not None:
        return columns, ()
    found = date_columns(rows)
    if len(found) > 1:
        some = " or ".join(map(repr, found))
        return columns, (f"the rows are taken in the order of the file; --time takes {some}",)
    if found:
        return replace(columns, time=found[0]), ()
    odd = [f"{name!r} {why}" for name in rows.names if (why := rows.no_dates(name))]
    return columns, (
        "no time was named or found: the rows are taken in the order of the file",
        *odd,
    )


def read(rows: files.Rows, columns: Columns) -> tuple[Tape, Array | None, tuple[str, ...]]:
    """The tape of a file in the order of time, that order (None for the file's), and notes."""
    prediction = {
        name: rows.numbers(column, columns.option(name))
        for name, column in columns.prediction.items()
    }
    for name, values in prediction.items():
        gaps = np.isnan(values)
        if gaps.any():
            raise DataError(
                f"every row needs a prediction, and {columns.prediction[name]!r} of {rows.path} "
                f"has none in {rows.place(int(gaps.argmax()))}: leave such rows out"
            )
    if columns.probabilities:
        y = class_places(rows, columns)
    else:
        y = rows.numbers(columns.target, "--target")
        if np.isinf(y).any():
            row = int(np.isinf(y).argmax())
            raise DataError(
                f"--target must be finite, and {columns.target!r} of {rows.path} holds {y[row]} "
                f"in {rows.place(row)}"
            )
    if np.isnan(y).all():
        raise DataError(
            f"--target needs labels, and {columns.target!r} of {rows.path} is empty in all "
            f"{len(rows):,} rows"
        )
    tape, order, notes = taped(rows, prediction, y, columns.id, columns.time, columns.group)
    return tape, order, (*_crossed(columns, prediction), *notes)


def _crossed(columns: Columns, prediction: dict[str, Array]) -> list[str]:
    """What to ask where most lower ends are above the upper ones."""
    if columns.lower is None or columns.upper is None:
        return []
    crossed = int((prediction["lower"] > prediction["upper"]).sum())
    if 2 * crossed <= len(prediction["lower"]):
        return []
    return [
        f"{columns.lower!r} is above {columns.upper!r} in {crossed:,} of "
        f"{len(prediction['lower']):,} rows: are --lower and --upper the wrong way round?"
    ]


def taped(
    rows: files.Rows,
    prediction: dict[str, Array],
    y: Array,
    id: str | None,
    time: str | None,
    group: str | None,
) -> tuple[Tape, Array | None, tuple[str, ...]]:
    """A tape with the keys of a file, sorted by time."""
    keys: dict[str, Any] = {}
    for role, name in (("id", id), ("group", group)):
        if name is not None:
            words, codes = rows.keys(name, f"--{role}")
            keys[role] = _named(words)[codes]
    order, notes = None, _commas(rows)
    if time is not None:
        keys["time"] = rows.times(time, "--time")
        doubt = rows.doubt(time)
        if doubt is not None:
            notes.append(f"{time!r} is read {doubt}")
        if (keys["time"][1:] < keys["time"][:-1]).any():
            order = np.argsort(keys["time"], kind="stable")
            prediction = {name: held[order] for name, held in prediction.items()}
            keys = {name: held[order] for name, held in keys.items()}
            y = y[order]
            if id is None:
                notes.append(f"the rows are not in the order of {time!r}; they are taken in it")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tape = Tape.from_arrays(prediction, y, **keys)
    notes += [str(each.message).split(" (strict")[0] for each in said]
    return tape, order, tuple(notes)


def _commas(rows: files.Rows) -> list[str]:
    return ["numbers are read with decimal commas: 1,5 is one and a half"] if rows.commas else []


def _named(words: Sequence[Any]) -> Array:
    """Ids as text or whole numbers."""
    if all(isinstance(word, int) and not isinstance(word, bool) for word in words):
        return np.array(words, dtype=np.int64)
    return np.fromiter(map(str, words), object, len(words))
