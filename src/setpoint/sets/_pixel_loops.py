"""Pixel arithmetic in one pass over a frame, compiled by numba where it is at hand.

Each loop gives what the array arithmetic beside its call gives, to the bit. It works on numpy
arrays and, through their memory, on tensors that are on the host. Machine code is kept beside this
file, or where numba keeps it if nothing can be written there.
"""

import importlib.util
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from setpoint.sets._pixel_arrays import is_tensor

__all__ = ["loop", "on_host"]

Array = Any

_NO_MASK = np.zeros((1, 0), dtype=np.bool_)
"""In place of a mask where every pixel is valid."""


def loop(name: str, frame: Any) -> Callable[..., Any] | None:
    """The compiled loop of this name, None for a frame that is elsewhere than on the host, without
    numba, or if it is turned off by SETPOINT_PLAIN=1."""
    if os.environ.get("SETPOINT_PLAIN", "") == "1" or not _numba_is_there():
        return None
    return None if is_tensor(frame) and frame.device.type != "cpu" else _compiled(name)


def on_host(frame: Any) -> Array:
    """A frame on the host, or None in place of a mask, as loops take it: numpy, with two axes."""
    if frame is None:
        return _NO_MASK
    held = frame.numpy() if is_tensor(frame) else frame
    return held if held.ndim == 2 else held.reshape(-1, held.shape[-1])


@lru_cache(maxsize=1)
def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


@lru_cache
def _compiled(name: str) -> Callable[..., Any]:
    import numba

    function = _LOOPS[name]
    try:
        made = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    except RuntimeError:  # nowhere to keep machine code
        made = numba.njit(error_model="numpy", nogil=True)(function)
    result: Callable[..., Any] = made
    return result


# Both counts of a loop are fields of one 32-bit number, summed over runs of pixels short enough for
# either field, and numbers keep the precision of the frame: only then does vector code come of it.

_RUN = 32_768
_ONE = np.uint32(1)
_BOTH = np.uint32(65_537)
_NONE = np.uint32(0)


def _sound(centre: Array, low: Array, high: Array, valid: Array) -> bool:
    """Whether every valid pixel has a finite centre and finite scales of at least 0."""
    masked = valid.size > 0
    wrong = False
    for i in range(centre.shape[0]):
        bad = _NONE
        for j in range(centre.shape[1]):
            c, under, over = centre[i, j], low[i, j], high[i, j]
            zero = (c - c) + (under - under) + (over - over)  # NaN if one of them is not finite
            found = _NONE if (under >= zero) & (over >= zero) else _ONE
            if masked:
                found = found if valid[i, j] else _NONE
            bad = np.uint32(bad | found)
        wrong = wrong or bad != _NONE
    return not wrong


def _label_sound(y: Array, cuts: bool, least: float, greatest: float) -> bool:
    """Whether every pixel of a label is NaN, or finite and, if it cuts, between the ends."""
    wrong = False
    for i in range(y.shape[0]):
        bad = _NONE
        for j in range(y.shape[1]):
            zero = y[i, j] - y[i, j]
            found = _ONE if (y[i, j] == y[i, j]) & (zero != zero) else _NONE
            if cuts:
                found = _ONE if (y[i, j] < least) | (y[i, j] > greatest) else found
            bad = np.uint32(bad | found)
        wrong = wrong or bad != _NONE
    return not wrong


def _ends(centre: Array, low: Array, high: Array, lam: Any, lower: Array, upper: Array) -> None:
    """Both ends of every pixel."""
    for i in range(centre.shape[0]):
        for j in range(centre.shape[1]):
            lower[i, j] = centre[i, j] - low[i, j] * lam
            upper[i, j] = centre[i, j] + high[i, j] * lam


def _count(
    centre: Array,
    low: Array,
    high: Array,
    valid: Array,
    y: Array,
    lam: Any,
    top: int,
    bottom: int,
    left: int,
    right: int,
) -> tuple[int, int]:
    """How many judged pixels of a window are missed, and how many are judged."""
    masked = valid.size > 0
    judged = covered = 0
    for i in range(top, bottom):
        for first in range(left, right, _RUN):
            last = min(first + _RUN, right)
            c, under, over = centre[i, first:last], low[i, first:last], high[i, first:last]
            truth = y[i, first:last]
            usable = valid[i if masked else 0, first:last]
            both = _NONE
            for j in range(truth.size):
                v = truth[j]
                found = _ONE if v == v else _NONE
                inside = (c[j] - under[j] * lam <= v) & (v <= c[j] + over[j] * lam)
                found = _BOTH if inside else found
                if masked:
                    found = found if usable[j] else _NONE
                both = np.uint32(both + found)
            judged += int(both & np.uint32(65_535))
            covered += int(both >> np.uint32(16))
    return judged - covered, judged


def _count_between(
    lower: Array,
    upper: Array,
    valid: Array,
    y: Array,
    top: int,
    bottom: int,
    left: int,
    right: int,
) -> tuple[int, int]:
    """As `_count`, from the ends."""
    masked = valid.size > 0
    judged = covered = 0
    for i in range(top, bottom):
        for first in range(left, right, _RUN):
            last = min(first + _RUN, right)
            least, most, truth = lower[i, first:last], upper[i, first:last], y[i, first:last]
            usable = valid[i if masked else 0, first:last]
            both = _NONE
            for j in range(truth.size):
                v = truth[j]
                found = _ONE if v == v else _NONE
                found = _BOTH if (least[j] <= v) & (v <= most[j]) else found
                if masked:
                    found = found if usable[j] else _NONE
                both = np.uint32(both + found)
            judged += int(both & np.uint32(65_535))
            covered += int(both >> np.uint32(16))
    return judged - covered, judged


def _criticals(
    centre: Array, low: Array, high: Array, valid: Array, y: Array, infinite: Any, out: Array
) -> None:
    """The critical value of every pixel, NaN where it is not judged."""
    masked = valid.size > 0
    nothing = infinite - infinite
    for i in range(centre.shape[0]):
        for j in range(centre.shape[1]):
            v = y[i, j]
            # 0/0 is NaN here and −inf in the end.
            under = (centre[i, j] - v) / abs(low[i, j])
            over = (v - centre[i, j]) / abs(high[i, j])
            found = under if (under > over) | (over != over) else over
            found = found if found == found else -infinite
            found = found if v == v else nothing
            if masked:
                found = found if valid[i, j] else nothing
            out[i, j] = found


def _length(lower: Array, upper: Array, valid: Array) -> tuple[float, int]:
    """The sum of the lengths of the valid pixels, and how many there are."""
    masked = valid.size > 0
    total, count = 0.0, 0
    for i in range(lower.shape[0]):
        sums = np.zeros(8)
        for j in range(lower.shape[1]):
            width = upper[i, j] - lower[i, j]
            if not masked or valid[i, j]:
                count += 1
                if lower[i, j] < upper[i, j]:
                    sums[j & 7] += width
        total += sums.sum()
    return total, count


_LOOPS: dict[str, Callable[..., Any]] = {
    "sound": _sound,
    "label_sound": _label_sound,
    "ends": _ends,
    "count": _count,
    "count_between": _count_between,
    "criticals": _criticals,
    "length": _length,
}
