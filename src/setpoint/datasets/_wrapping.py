"""Depth maps stored in 16 bits by a network that saw further than 16 bits reach.

The stored KITTI predictions hold 10,000 × depth in unsigned 16 bits. The network's depth ends at
100, so its far pixels should read 1,000,000; stored, they read 1,000,000 mod 65,536 = 16,960, as
though they were near, and the few pixels between 65,536 and 1,000,000 read like noise. How often
such a pixel went round cannot be told from its neighbours, so it is marked, not put right.
"""

from typing import Any

import numpy as np

__all__ = ["MODULUS", "PLATEAU", "wrapped"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]

MODULUS = 65_536
"""Where 16 bits begin again."""
PLATEAU = 1_000_000 % MODULUS
"""What the largest depth of the network reads once it is stored."""
_NEAR_PLATEAU = 16
_JUMP = MODULUS // 4


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
    plateau = (values <= PLATEAU) & (values >= PLATEAU - _NEAR_PLATEAU)
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
    made: Mask = marked | (_neighbours(marked) >= 3)
    return made


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
