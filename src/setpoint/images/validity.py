"""Which pixels count: depth that is there, and stored predictions that did not go round."""

from math import inf
from typing import Any

from setpoint._check import number
from setpoint.datasets._wrapping import wrapped
from setpoint.errors import InputError
from setpoint.sets.frames import space

__all__ = ["only", "valid_depth", "wrapped"]


def valid_depth(depth: Any, least: float = 1e-8, most: float = inf) -> Any:
    """Which pixels have a depth: finite, at least `least` and at most `most`.

    A depth below 1e-8 is how maps say that there is none, and padding is below it too.

    >>> import numpy as np
    >>> valid_depth(np.array([[0.0, 3.5], [np.nan, -1.0]]))
    array([[False,  True],
           [False, False]])
    """
    low, high = number(least, "least"), number(most, "most")
    if not low <= high:
        raise InputError(f"valid_depth needs least ≤ most, got {low} and {high}")
    xp = space(depth)
    held = xp.asarray(depth)
    return xp.isfinite(held) & (held >= low) & (held <= high)


def only(values: Any, valid: Any) -> Any:
    """The values where they are valid and NaN elsewhere, in floats.

    >>> import numpy as np
    >>> depth = np.array([[0.0, 3.5]])
    >>> only(depth, valid_depth(depth))
    array([[nan, 3.5]])
    """
    xp = space(values)
    held = xp.asarray(values)
    if held.dtype not in (xp.float16, xp.float32, xp.float64):
        held = held * xp.asarray(1.0, dtype=xp.float32)
    return xp.where(xp.asarray(valid), held, float("nan"))
