"""Reading columns of text: checked names, whole rows, numbers, times."""

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint.errors import DataError
from setpoint_paper.datasets.files import Found

__all__ = [
    "Columns",
    "arff_columns",
    "check_count",
    "csv_columns",
    "numbers",
    "rows_to_read",
    "times",
]

Columns = dict[str, Sequence[str]]


def rows_to_read(rows: int | None, lead: int = 0) -> int | None:
    """How many rows of a file give `rows` rows of data when y is `lead` rows ahead of x."""
    return None if rows is None else whole(rows, "rows", 1) + lead


def csv_columns(found: Found, names: Sequence[str], rows: int | None) -> Columns:
    """The columns of a file with commas and a header that must be `names`."""
    lines = csv.reader(found.text.splitlines(), skipinitialspace=True)
    header = tuple(name.strip() for name in next(lines, []))
    if header != tuple(names):
        raise DataError(f"{found.path} must have the columns {_few(names)}, got {_few(header)}")
    return dict(zip(names, _split(found, lines, len(names), 2, rows), strict=True))


def arff_columns(found: Found, rows: int | None) -> Columns:
    """The columns of an ARFF file with plain values."""
    names: list[str] = []
    lines = found.text.splitlines()
    for number, line in enumerate(lines):
        word, _, rest = line.strip().partition(" ")
        if word.lower() == "@attribute":
            names.append(rest.split()[0].strip("'\""))
        elif word.lower() == "@data":
            # One line of the power supply file ends in a comma.
            values = (line.rstrip(", ").split(",") for line in lines[number + 1 :] if line.strip())
            held = _split(found, values, len(names), number + 2, rows)
            return dict(zip(names, held, strict=True))
    raise DataError(f"{found.path} is no ARFF file: it has no line @data")


def _split(
    found: Found, lines: Iterator[list[str]], wide: int, first: int, rows: int | None
) -> list[tuple[str, ...]]:
    """Columns from lines of `wide` values each, as many lines as the file must have."""
    held = list(islice(lines, rows))
    for number, values in enumerate(held, first):
        if len(values) != wide:
            raise DataError(
                f"{found.path} is damaged: line {number} must have {wide} values, got {len(values)}"
            )
    check_count(found, len(held), rows)
    return list(zip(*held, strict=True))


def check_count(found: Found, got: int, rows: int | None) -> None:
    """An error where a file has not the rows it must have, or fewer than are asked for."""
    whole_file = found.file.rows
    if rows is None and got != whole_file:
        raise DataError(
            f"{found.path} must have {whole_file} rows, got {got}: it is not whole, or not this "
            "file; ask for fewer rows to read what is there"
        )
    if rows is not None and got < min(rows, whole_file):
        raise DataError(f"{found.path} must have the {rows} rows asked for, got {got}")


def numbers(found: Found, columns: Columns, names: Sequence[str]) -> NDArray[np.float64]:
    """Some of the columns as floats, rows × columns."""
    return np.column_stack([_floats(found, name, columns[name]) for name in names])


def _floats(found: Found, name: str, values: Sequence[str]) -> NDArray[np.float64]:
    try:
        held = np.array([float(value) for value in values], dtype=np.float64)
    except ValueError:
        held = np.array([_or_nan(value) for value in values])
    wrong = ~np.isfinite(held)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{found.path} is damaged: column {name!r} must hold numbers, got {values[row]!r} "
            f"in row {row + 1}"
        )
    return held


def _or_nan(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")


def times(
    found: Found, name: str, values: Sequence[str], form: Callable[[str], str] | None = None
) -> NDArray[np.datetime64]:
    """A column of times as datetime64[s]; `form` turns each into ISO 8601."""
    try:
        held = np.array(values if form is None else list(map(form, values)), dtype="datetime64[s]")
        wrong = np.isnat(held)
        if not wrong.any():
            return held
        got: object = values[int(np.argmax(wrong))]
    except ValueError as error:
        got = error
    raise DataError(f"{found.path} is damaged: column {name!r} must hold times, got {got}")


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 4 else shown or "none"
