"""Which pixels count: depth that is there, and stored predictions that did not go round.

Some stored predictions hold 10,000 × depth in unsigned 16 bits. The network's depth ends at 100,
so its far pixels should read 1,000,000. Stored, they read 1,000,000 mod 65,536 = 16,960, as though
they were near, and the few pixels between 65,536 and 1,000,000 read like noise. Their neighbours
do not tell how often such a pixel went round, so it is marked, not put right.
"""

from math import inf
from typing import Any

import numpy as np

from setpoint._check import number
from setpoint.errors import InputError
from setpoint.sets.frames import space

__all__ = ["only", "valid_depth", "wrapped"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_MODULUS = 65_536
"""Where 16 bits begin again."""
_PLATEAU = 1_000_000 % _MODULUS
"""What the largest depth of the network reads once it is stored."""
_NEAR_PLATEAU = 16
_JUMP = _MODULUS // 4


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


def wrapped(raw: Any) -> Mask:
    """Which pixels of stored 16-bit depth went round, for one map (H, W) or several (T, H, W).

    The rule, in this order:

    1. the plateau: a value at most 16 below 16,960 with such a value beside, above or below it;
    2. every pixel that touches the plateau, also by a corner: it is on the way up to it;
    3. both pixels of a jump of more than a quarter of the range (16,384) from one pixel to the
       next: depth maps of this size are smoother than that;
    4. a pixel with at least three of its four neighbours marked, once.

    >>> raw = np.full((4, 6), 30_000, np.uint16)
    >>> raw[:2, :2] = 16_960
    >>> wrapped(raw).astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [0, 0, 0, 0, 0, 0]])
    """
    values = np.asarray(raw).astype(np.int32)
    plateau = (values <= _PLATEAU) & (values >= _PLATEAU - _NEAR_PLATEAU)
    plateau &= _neighbours(plateau) > 0
    marked = plateau.copy()
    for axis in (-1, -2):  # first along rows, then along columns: corners too
        before = marked.copy()
        for one, other in _pairs(values.ndim, axis):
            marked[one] |= before[other]
    for axis in (-1, -2):
        one, other = next(_pairs(values.ndim, axis))
        jump = np.abs(values[one] - values[other]) > _JUMP
        marked[one] |= jump
        marked[other] |= jump
    mask: Mask = marked | (_neighbours(marked) >= 3)
    return mask


def _pairs(dimensions: int, axis: int) -> Any:
    """The two ways to lay a map over itself moved by one pixel, as pairs of indices."""
    first: list[Any] = [slice(None)] * dimensions
    second = list(first)
    first[axis], second[axis] = slice(1, None), slice(None, -1)
    yield tuple(first), tuple(second)
    yield tuple(second), tuple(first)


def _neighbours(mask: Mask) -> np.ndarray[Any, np.dtype[np.int8]]:
    """How many of the four neighbours of each pixel are marked."""
    count = np.zeros(mask.shape, np.int8)
    for axis in (-1, -2):
        for one, other in _pairs(mask.ndim, axis):
            count[one] += mask[other]
    return count
