"""Reading what metrics are given: columns of numbers, flags, levels, ends of streams."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._check import number
from setpoint.errors import InputError

__all__ = [
    "Flags", "Floats", "Places", "column", "ends", "flags", "fraction", "marks", "mean",
    "nominal_of", "observed", "offsets_of", "refuse", "sizes",
]  # fmt: skip

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


def column(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """One number a step as float64; `None` becomes NaN. `size` is the length it must have.

    What is float64 already is not copied, so nothing may be written into a column.
    """
    try:
        raw = np.asarray(values)
        if raw.size and raw.dtype.kind not in "biufO":
            raise InputError(f"{name} must hold numbers, got values of type {raw.dtype}")
        numbers = raw.astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a column of numbers, got {values!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"{name} must have one dimension, one value a step; got shape {raw.shape}")
    if size is not None and len(numbers) != size:
        raise InputError(f"{name} must have one value for each of the {size} steps, got {len(raw)}")
    return numbers


def refuse(wrong: Flags, values: Floats, name: str, allowed: str) -> None:
    """One error for the first step where `wrong` holds."""
    if wrong.any():
        step = int(np.argmax(wrong))
        raise InputError(f"{name} must be {allowed}, got {float(values[step])} at step {step}")


def ends(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """The two columns of ends, without NaN."""
    low = column(lower, "lower")
    high = column(upper, "upper", len(low))
    refuse(np.isnan(low), low, "lower", "a number or ±inf")
    refuse(np.isnan(high), high, "upper", "a number or ±inf")
    return low, high


def observed(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of finite numbers, NaN where a step was not observed."""
    numbers = column(values, name, size)
    refuse(np.isinf(numbers), numbers, name, "finite, or NaN where not observed")
    return numbers


def flags(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of 0 and 1, NaN where a step was not observed."""
    numbers = column(values, name, size)
    wrong = ~(np.isnan(numbers) | (numbers == 0.0) | (numbers == 1.0))
    refuse(wrong, numbers, name, "0, 1, or NaN where not observed")
    return numbers


def marks(values: ArrayLike | None, name: str, missing: Flags) -> Flags:
    """A column of 0 and 1 as flags; `missing` stands for a column that was not given."""
    if values is None:
        return missing
    numbers = column(values, name, len(missing))
    refuse(~((numbers == 0.0) | (numbers == 1.0)), numbers, name, "0 or 1")
    return np.asarray(numbers == 1.0)


def sizes(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of lengths or set sizes: 0 or more, +inf allowed, NaN not."""
    numbers = column(values, name, size)
    refuse(~(numbers >= 0.0), numbers, name, "0 or more")
    return numbers


def fraction(value: Any, name: str) -> float:
    """A number between 0 and 1, both included."""
    part = number(value, name)
    if not 0.0 <= part <= 1.0:
        raise InputError(f"{name} must lie between 0 and 1, got {part}")
    return part


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


def mean(values: Floats) -> float:
    """The mean; NaN over nothing, without a warning."""
    with np.errstate(over="ignore"):
        return float(np.mean(values)) if len(values) else math.nan


def offsets_of(offsets: ArrayLike | None, size: int) -> Places:
    """Where streams begin among `size` steps, and the end of the last one; None for one stream."""
    bounds = np.array([0, size]) if offsets is None else np.asarray(offsets)
    ordered = bounds.ndim == 1 and len(bounds) > 0 and bounds.dtype.kind in "iu"
    if not ordered or bounds[0] != 0 or bounds[-1] != size or (np.diff(bounds) < 0).any():
        raise InputError(
            f"offsets must be whole numbers that rise from 0 to the {size} steps, got {offsets!r}"
        )
    return bounds.astype(np.int64, copy=False)
