"""Reading columns of text: checked names, whole rows, numbers, times."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint.errors import DataError
from setpoint_paper.datasets.files import Found


def rows_to_read(rows: int | None, lead: int = 0) -> int | None:
    """How many rows of a file give `rows` rows of data when y is `lead` rows ahead of x."""
    return None if rows is None else whole(rows, "rows", 1) + lead


def table(
    found: Found, names: Sequence[str], rows: int | None, *, header: bool = True
) -> pd.DataFrame:
    """The columns of a file as text: ARFF, commas under a header, or blanks without one."""
    text, had = found.text, list(names)
    if header and "@attribute" in text[:2000].lower():
        head, _, text = text.partition("@DATA" if "@DATA" in text else "@data")
        told = [line.split() for line in head.splitlines() if line.lower().startswith("@attr")]
        had = [words[1].strip("'\"") for words in told]
        # One line of the power supply file ends in a comma.
        text = "\n".join(line.rstrip(", ") for line in text.splitlines())
    elif header:
        first, _, text = text.partition("\n")
        had = [name.strip().strip('"') for name in first.split(",")]
    if had != list(names):
        raise DataError(f"{found.path} must have the columns {_few(names)}, got {_few(had)}")
    try:
        frame = pd.read_csv(
            StringIO(text), sep="," if header else r"\s+", header=None, names=had, nrows=rows,
            dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False,
        )  # fmt: skip
    except pd.errors.ParserError as error:
        raise DataError(f"{found.path} is damaged: {' '.join(str(error).split())}") from None
    short = (frame[had[-1]] == "").to_numpy()
    if short.any():
        raise DataError(
            f"{found.path} is damaged: row {int(np.argmax(short)) + 1} must have {len(had)} values"
        )
    check_count(found, len(frame), rows)
    return frame


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


def numbers(found: Found, frame: pd.DataFrame, names: Sequence[str]) -> NDArray[np.float64]:
    """Some of the columns as floats, rows × columns."""
    return np.column_stack([_floats(found, frame[name]) for name in names])


def _floats(found: Found, column: "pd.Series[Any]") -> NDArray[np.float64]:
    held: NDArray[np.float64]
    try:
        held = column.to_numpy(object).astype(np.float64)  # digit by digit, as Python reads them
    except ValueError:
        held = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
    wrong = ~np.isfinite(held)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{found.path} is damaged: column {column.name!r} must hold numbers, got "
            f"{column.iloc[row]!r} in row {row + 1}"
        )
    return held


def times(
    found: Found, frame: pd.DataFrame, name: str, form: str = "ISO8601"
) -> NDArray[np.datetime64]:
    """A column of times as datetime64[s]."""
    try:
        found_times: NDArray[np.datetime64] = pd.to_datetime(frame[name], format=form).to_numpy(
            "datetime64[s]"
        )
        return found_times
    except ValueError as error:
        raise DataError(
            f"{found.path} is damaged: column {name!r} must hold times, got {error}"
        ) from None


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 4 else shown or "none"
