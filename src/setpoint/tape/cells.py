"""Cells of text: the numbers they stand for, with decimal commas or none, and cells for nothing."""

import re
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.tape.dates import parsed

__all__ = [
    "MISSING",
    "advice",
    "arrow",
    "as_floats",
    "blanked",
    "first_wrong",
    "has_points",
    "is_text",
    "numbers",
    "pointed",
    "typed",
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


def as_floats(column: Any) -> Array:
    """A column of numbers as float64, NaN where there is none."""
    return np.asarray(column, dtype=np.float64)


def blanked(column: Any) -> Any:
    """Text without the spaces around it, and null where it stands for nothing."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    bare = compute.utf8_trim_whitespace(column.cast(pa.string()))
    nothing = compute.is_in(bare, value_set=pa.array(MISSING))
    return compute.if_else(nothing, pa.scalar(None, pa.string()), bare)


def numbers(column: Any) -> Array | tuple[int, str]:
    """Text as float64; or the first cell that is no number and does not stand for none."""
    pa = arrow()
    with suppress(pa.ArrowInvalid):
        return as_floats(column.cast(pa.float64()))
    wrong = first_wrong(column)
    return as_floats(blanked(column).cast(pa.float64())) if wrong is None else wrong


def first_wrong(column: Any) -> tuple[int, str] | None:
    """The first cell that is no number and does not stand for none, and its text."""
    compute = arrow("pyarrow.compute")
    bare = blanked(column)
    fits = compute.match_substring_regex(bare, _NUMBER).fill_null(True)
    place = compute.index(fits, False).as_py()
    return None if place < 0 else (place, column[place].as_py())


def pointed(column: Any, *, points: bool = False) -> Any:
    """Text with decimal points, where all of it is numbers and some have decimal commas.

    Where other numbers have `points`, commas that may stand between thousands are left as they are.
    """
    compute = arrow("pyarrow.compute")
    if not is_text(column):
        return column
    bare = blanked(column)
    if not _any(bare, ",") or _any(bare, _COMMA, fits=False):
        return column
    if points and not _any(bare, _GROUPED, fits=False):
        return column
    return compute.replace_substring(bare, ",", ".")


def has_points(column: Any) -> bool:
    """Whether a column is text of numbers, some of them with decimal points."""
    if not is_text(column):
        return False
    bare = blanked(column)
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
        bare, values = blanked(column), None
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


def _any(column: Any, pattern: str, *, fits: bool = True) -> bool:
    """Whether some cell fits a pattern, or some does not."""
    compute = arrow("pyarrow.compute")
    matches = compute.match_substring_regex(column, pattern)
    return bool(compute.any(matches if fits else compute.invert(matches)).as_py())
