"""Reading what metrics are given: columns of numbers, flags, levels, group keys."""

import math
from collections.abc import Hashable, Iterable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._check import number
from setpoint.errors import InputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def column(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """One number a step as float64; `None` becomes NaN. `size` is the length it must have.

    What is float64 already is not copied, so nothing may be written into a column.
    """
    return numeric(values, name, size).astype(np.float64, copy=False)


def numeric(values: ArrayLike, name: str, size: int | None = None) -> np.ndarray[Any, Any]:
    """The same in the type it has, if that is one of numbers."""
    try:
        raw = np.asarray(values)
        if raw.size and raw.dtype.kind not in "biufO":
            raise InputError(f"{name} must hold numbers, got values of type {raw.dtype}")
        got = raw if raw.dtype.kind in "biuf" else raw.astype(np.float64)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a column of numbers, got {values!r}: {error}") from None
    if got.ndim != 1:
        raise InputError(f"{name} must have one dimension, one value a step; got shape {got.shape}")
    if size is not None and len(got) != size:
        raise InputError(f"{name} must have one value for each of the {size} steps, got {len(got)}")
    return got


def refuse(wrong: Flags, values: Floats, name: str, allowed: str, first: int = 0) -> None:
    """One error for the first step where `wrong` holds; the values begin at the step `first`."""
    if wrong.any():
        step = int(np.argmax(wrong))
        value = float(values[step])
        raise InputError(f"{name} must be {allowed}, got {value} at step {first + step}")


def ends(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """The two columns of ends, without NaN."""
    low = column(lower, "lower")
    high = column(upper, "upper", len(low))
    refuse(np.isnan(low), low, "lower", "a number or ±inf")
    refuse(np.isnan(high), high, "upper", "a number or ±inf")
    return low, high


def observed(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of finite numbers, NaN where a step was not observed."""
    got = column(values, name, size)
    refuse(np.isinf(got), got, name, "finite, or NaN where not observed")
    return got


def flags(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of 0 and 1, NaN where a step was not observed."""
    got = column(values, name, size)
    wrong = ~(np.isnan(got) | (got == 0.0) | (got == 1.0))
    refuse(wrong, got, name, "0, 1, or NaN where not observed")
    return got


def marks(values: ArrayLike, name: str, size: int) -> Floats:
    """A column of 0 and 1."""
    got = column(values, name, size)
    refuse(~((got == 0.0) | (got == 1.0)), got, name, "0 or 1")
    return got


def sizes(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of lengths or set sizes: 0 or more, +inf allowed, NaN not."""
    got = column(values, name, size)
    refuse(~(got >= 0.0), got, name, "0 or more")
    return got


def fraction(value: Any, name: str) -> float:
    """A number between 0 and 1, both included."""
    got = number(value, name)
    if not 0.0 <= got <= 1.0:
        raise InputError(f"{name} must lie between 0 and 1, got {got}")
    return got


def level_of(value: Any) -> float:
    """The level of a risk: any finite number."""
    got = number(value, "level")
    if not math.isfinite(got):
        raise InputError(f"level must be finite, got {got}")
    return got


def nominal_of(level: float, confidence_level: Any) -> float:
    """The nominal coverage: the one given, else 1 − level where that is a fraction."""
    if confidence_level is not None:
        return fraction(confidence_level, "confidence_level")
    if not 0.0 <= level <= 1.0:
        raise InputError(
            "confidence_level must be given, between 0 and 1, when the level of the risk is not"
            f" between 0 and 1: got level={level}"
        )
    return 1.0 - level


def whole(value: Any, name: str) -> int:
    """A whole number, 1 or more."""
    try:
        got = index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}") from None
    if got < 1 or isinstance(value, bool):
        raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}")
    return got


def group_key(group: Any) -> Hashable | None:
    """The key itself; `None` for a key that equals nothing (NaN, NaT): such a step has no group."""
    try:
        hash(group)
        return group if group == group else None
    except TypeError:
        raise InputError(f"a group must be hashable (a name, a number), got {group!r}") from None


def coded(groups: Iterable[Any], size: int) -> tuple[NDArray[np.int64], list[Hashable]]:
    """The place of each step's key in the list of keys, −1 for none, and that list.

    Keys come in order of first appearance. Numbers in arrays become plain Python ones, dates stay
    as they are.
    """
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "biumM":
        found = _coded_numbers(groups, size)
        if found is not None:
            return found
    plain = isinstance(groups, np.ndarray) and groups.dtype.kind not in "mM"
    try:
        every = list(groups.tolist() if plain else groups)  # type: ignore[attr-defined]
    except TypeError:
        raise InputError(f"groups must hold one key a step, got {groups!r}") from None
    _check_size(len(every), size)
    try:
        distinct = list(dict.fromkeys(every))
    except TypeError:
        for group in every:
            group_key(group)  # says which one
        raise
    keys = [key for key in distinct if group_key(key) is not None]
    places = dict.fromkeys(distinct, -1) | {key: place for place, key in enumerate(keys)}
    return np.fromiter(map(places.__getitem__, every), np.int64, size), keys


_MOST_NUMBERS = 1 << 20


def _coded_numbers(
    groups: np.ndarray[Any, Any], size: int
) -> tuple[NDArray[np.int64], list[Hashable]] | None:
    """The same by whole arrays, for whole numbers and dates that lie close together."""
    _check_size(len(groups), size)
    numbers = groups.view(np.int64) if groups.dtype.kind in "mM" else groups
    if not size or (groups.dtype.kind in "mM" and np.isnat(groups).any()):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _MOST_NUMBERS or high > np.iinfo(np.int64).max:
        return None
    shifted = numbers.astype(np.int64) - low
    first = np.full(high - low + 1, size)
    first[shifted[::-1]] = np.arange(size - 1, -1, -1)  # of equal numbers the last one stays
    there = np.flatnonzero(first < size)
    order = there[np.argsort(first[there])]
    places = np.full(len(first), -1)
    places[order] = np.arange(len(order))
    held = groups[first[order]]
    return places[shifted], list(held) if groups.dtype.kind in "mM" else held.tolist()


def _check_size(got: int, size: int) -> None:
    if got != size:
        raise InputError(f"groups must have one key for each of the {size} steps, got {got}")


def mean(values: Floats) -> float:
    """The mean; NaN over nothing, without a warning."""
    with np.errstate(over="ignore"):
        return float(np.mean(values)) if len(values) else math.nan
