"""The kinds of files of rows, and what their cells of text stand for: numbers, times, nothing."""

import os
import re
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs.times import parsed

__all__ = [
    "MISSING",
    "SUFFIXES",
    "advice",
    "arrow",
    "as_floats",
    "blanked",
    "cast",
    "first_wrong",
    "has_points",
    "is_csv",
    "is_json",
    "pointed",
    "suffix_of",
    "textual",
    "typed",
]

Array = np.ndarray[Any, Any]

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl", ".jsonl.gz", ".ndjson")
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
            "reading files of rows needs pyarrow: pip install 'setpoint[data]'"
        ) from error


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Which of the known suffixes a path has."""
    name = os.fspath(path).lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise DataError(f"a file of rows ends in {', '.join(SUFFIXES)}; got {os.fspath(path)!r}")


def is_csv(suffix: str) -> bool:
    """Whether a suffix is one of cells of text with something between them."""
    return suffix.startswith((".csv", ".tsv"))


def is_json(suffix: str) -> bool:
    """Whether a suffix is one of JSON Lines."""
    return suffix.startswith((".jsonl", ".ndjson"))


def textual(pa: Any, kind: Any) -> bool:
    """Whether an Arrow type is text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_floats(column: Any) -> Array:
    """A column of numbers as float64, NaN where there is none."""
    return np.asarray(column.to_numpy(zero_copy_only=False) if column.num_chunks == 1
                      else column.to_numpy(), dtype=np.float64)  # fmt: skip


def cast(column: Any) -> Any:
    """Text as numbers, an Arrow error where it holds anything else."""
    return column.cast(arrow().float64())


def blanked(column: Any) -> Any:
    """Text without the spaces around it, and null where it stands for nothing."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    bare = compute.utf8_trim_whitespace(column.cast(pa.string()))
    nothing = compute.is_in(bare, value_set=pa.array(MISSING))
    return compute.if_else(nothing, pa.scalar(None, pa.string()), bare)


def pointed(column: Any, *, points: bool = False) -> Any:
    """Text with decimal points, where all of it is numbers and some have decimal commas.

    Where other numbers have `points`, commas that may stand between thousands are left as they are.
    """
    compute = arrow("pyarrow.compute")
    if not textual(arrow(), column.type):
        return column
    bare = blanked(column)
    if not _any(compute, bare, ",") or _any(compute, bare, _COMMA, fits=False):
        return column
    if points and not _any(compute, bare, _GROUPED, fits=False):
        return column
    return compute.replace_substring(bare, ",", ".")


def has_points(column: Any) -> bool:
    """Whether a column is text of numbers, some of them with decimal points."""
    compute = arrow("pyarrow.compute")
    if not textual(arrow(), column.type):
        return False
    bare = blanked(column)
    return _any(compute, bare, r"\.") and not _any(compute, bare, _NUMBER, fits=False)


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
    pa, compute = arrow(), arrow("pyarrow.compute")
    for place, name in enumerate(table.column_names):
        held = table[name]
        if not textual(pa, held.type):
            continue
        bare = blanked(held)
        made = None
        if bare.null_count == len(bare) or _any(compute, bare, _CODE):
            continue
        if _any(compute, bare, _NUMBER, fits=False):
            made = parsed(held) if dates else None
        elif numbers:
            with suppress(pa.ArrowInvalid):
                made = bare.cast(pa.int64() if not _any(compute, bare, _FRACTION) else pa.float64())
        if made is not None:
            table = table.set_column(place, name, made)
    return table


def _any(compute: Any, column: Any, pattern: str, *, fits: bool = True) -> bool:
    """Whether some cell fits a pattern, or some does not."""
    found = compute.match_substring_regex(column, pattern)
    return bool(compute.any(found if fits else compute.invert(found)).as_py())


def first_wrong(column: Any) -> tuple[int, str] | None:
    """The first cell that is no number and does not stand for none."""
    compute = arrow("pyarrow.compute")
    bare = blanked(column)
    fits = compute.match_substring_regex(bare, _NUMBER).fill_null(True)
    place = compute.index(fits, False).as_py()
    return None if place < 0 else (place, column[place].as_py())
