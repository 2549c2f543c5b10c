"""Validators: one clear sentence with the value got and the values allowed."""

import math
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import date, time
from decimal import Decimal
from operator import index
from typing import Any
from warnings import warn

from setpoint.errors import InputError, SetpointError

commands: ContextVar[bool] = ContextVar("commands", default=False)
"""Whether messages go to someone at a command line, who writes --time for `time`."""


def option(name: str) -> str:
    """What an argument is called on the surface in use.

    >>> option("known_ahead")
    'known_ahead'
    """
    return f"--{name.replace('_', '-')}" if commands.get() else name


def plain(value: Any) -> Any:
    """A value in JSON's own types, however deep; a number that is not finite is None.

    >>> plain({2: (1, float("inf"))})
    {'2': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if getattr(getattr(value, "dtype", None), "kind", "O") in "biuf":
        value = value.item()
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else str(value)


def number(value: Any, name: str, error: type[SetpointError] = InputError) -> float:
    """A Python float from anything that is one number: int, numpy or torch scalar, array of one.

    Text is refused even when it spells a number: a column read as text is a mistake to report.
    """
    if isinstance(value, float):
        return float(value)
    if value is None or isinstance(value, (str, bytes, bytearray, complex)):
        raise error(f"{name} must be a number, got {value!r}")
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
        raise error(f"{name} must be a number, got the time {value}")
    item = getattr(value, "item", None)
    try:
        one = value if item is None else item()
        if isinstance(one, str | bytes):
            raise TypeError
        return float(one)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        shape = getattr(value, "shape", None)
        got = f"{value!r}" if not shape else f"an array of shape {tuple(shape)}"
        raise error(f"{name} must be one number, got {got}") from None


def finite(value: Any, name: str, error: type[SetpointError] = InputError) -> float:
    """A float that is neither NaN nor infinite."""
    got = number(value, name, error)
    if not math.isfinite(got):
        raise error(f"{name} must be finite, got {got}")
    return got


def positive(value: Any, name: str, error: type[SetpointError] = InputError) -> float:
    """A finite float above zero."""
    got = finite(value, name, error)
    if got <= 0.0:
        raise error(f"{name} must be greater than 0, got {got}")
    return got


def not_negative(value: Any, name: str) -> float:
    """A finite float of at least zero."""
    got = finite(value, name)
    if got < 0.0:
        raise InputError(f"{name} must be at least 0, got {got}")
    return got


def confidence(value: Any, name: str = "coverage") -> float:
    """A level of confidence, strictly between 0 and 1."""
    got = finite(value, name)
    if not 0.0 < got < 1.0:
        hint = f": write {got:g} % as {got / 100.0:g}" if 2.0 <= got < 100.0 else ""
        raise InputError(f"{name} must lie strictly between 0 and 1, got {got}{hint}")
    return got


def doubt_level(level: float) -> None:
    """Warns whoever calls the library of a share of misses that is more likely one of hits."""
    if level <= 0.5:
        return
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_INSIDE):
        depth, frame = depth + 1, frame.f_back
    warn(
        f"level {level:g} allows {100.0 * level:g} % misses; for {100.0 * level:g} % coverage "
        f"say {option('coverage')}{' ' if commands.get() else '='}{level:g}",
        stacklevel=depth,
    )


_INSIDE = ("setpoint.", "dataclasses")


def whole(value: Any, name: str, least: int) -> int:
    """A whole number of at least `least`."""
    try:
        count = least - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        count = least - 1
    if count < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return count


def interval(value: Any, name: str) -> tuple[float, float]:
    """A pair (low, high) with low < high; infinite ends are allowed, NaN is not."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a pair (low, high), got {value!r}") from None
    low, high = number(low, f"{name}[0]"), number(high, f"{name}[1]")
    if not low < high:
        raise InputError(f"{name} must have low < high, got ({low}, {high})")
    return low, high


def is_missing(y: Any) -> bool:
    """Whether a label is None, NaN, or what data frames have for a missing value."""
    if y is None:
        return True
    if type(y) is float:
        return y != y
    pandas = sys.modules.get("pandas")  # who has its missing values has it imported
    if pandas is not None and (y is pandas.NA or y is pandas.NaT):
        return True
    try:
        label = number(y, "a label")
    except InputError:
        return False
    return label != label


def choice(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def one_by_one(predictions: Any, count: int | None = None) -> list[Any]:
    """Predictions as a list: any sequence of them, or the rows of a data frame.

    Where `count` says how many there are, columns of that length, such as (lower, upper), will do.
    """
    if hasattr(predictions, "columns") and hasattr(predictions, "to_numpy"):
        rows = predictions.to_numpy()
        predictions = rows[:, 0] if rows.shape[1] == 1 else rows
    elif isinstance(predictions, Mapping):
        predictions = zip(*predictions.values(), strict=True)
    listed = list(predictions)
    in_columns = count is not None and len(listed) in (2, 3) and len(listed) != count
    if in_columns and all(getattr(column, "shape", (0,)) == (count,) for column in listed):
        listed = list(zip(*listed, strict=True))
    return listed
