"""Pixel arithmetic: array functions, and compiled passes for what runs at every step.

A pass is used where numba is at hand, on arrays and on tensors of the host, and gives what the
array functions give, to the bit.
"""

import importlib.util
import os
from collections.abc import Callable
from functools import lru_cache
from math import inf, prod
from typing import Any

import numpy as np

from setpoint.regions import Whole
from setpoint.sets.frames import Frame, chosen, is_tensor, space

Reading = tuple[Frame, Frame, Frame, Frame | None]
"""Centre, uncertainty below and above, and the mask of valid pixels or None."""

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def unsound(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> Frame | None:
    """Which valid pixels lack a finite centre or finite scales of at least 0; None if none."""
    if _within(centre, -inf) and _within(low, 0.0) and _within(high, 0.0):
        return None
    finite = space(centre).isfinite(centre)
    fine = finite & (low >= 0.0) & (low < inf) & (high >= 0.0) & (high < inf)
    return ~fine if valid is None else valid & ~fine


def _within(frame: Frame, least: float) -> bool:
    """Whether every pixel is finite and not below `least`."""
    if not prod(tuple(frame.shape)):
        return True
    low, high = float(frame.min()), float(frame.max())
    return low >= least and -inf < low and high < inf


def outside_support(y: Frame, support: tuple[float, float]) -> Frame | None:
    """Which pixels of a label are infinite or outside the support; None if none is."""
    if support == (-inf, inf):
        infinite = space(y).isinf(y)
        return infinite if bool(infinite.any()) else None
    double = y.double() if is_tensor(y) else y.astype(np.float64)
    return space(y).isinf(y) | (double < support[0]) | (double > support[1])


def ends(reading: Reading, lam: float) -> tuple[Frame, Frame]:
    """Both ends of every pixel at a finite λ, which may cross."""
    centre, low, high, _ = reading
    factor = _factor(centre, lam)
    with np.errstate(all="ignore"):
        return centre - low * float(factor), centre + high * float(factor)


def _factor(frame: Frame, lam: float) -> Any:
    """λ in the precision of the frame; what single precision cannot hold is its largest number."""
    if frame.dtype.itemsize == 8:
        return np.float64(lam)
    return np.float32(min(max(lam, -_LARGEST_SINGLE), _LARGEST_SINGLE))


def judged_pixels(y: Frame, valid: Frame | None) -> Frame:
    """Which pixels are judged: those that are valid and have a label."""
    labelled = y == y  # not NaN
    return labelled if valid is None else labelled & valid


def count_missed(reading: Reading, y: Frame, lam: float, region: Any) -> tuple[int, int]:
    """How many judged pixels of a region are missed at a finite λ, and how many are judged."""
    centre, low, high, valid = reading
    run, window = passes("count", centre), _window(region, tuple(centre.shape))
    if run is not None and window is not None:
        frames = map(_on_host, (centre, low, high, valid, y))
        missed, judged = run(*frames, _factor(centre, lam), *window)
        return int(missed), int(judged)
    index = region.index(tuple(centre.shape))
    truth, centre, low, high = (chosen(frame, index) for frame in (y, centre, low, high))
    factor = float(_factor(centre, lam))
    with np.errstate(all="ignore"):
        inside = (centre - low * factor <= truth) & (truth <= centre + high * factor)
    return tally(chosen(judged_pixels(y, valid), index), inside)


def tally(judged: Frame, inside: Frame) -> tuple[int, int]:
    """How many judged pixels are not inside, and how many are judged."""
    if is_tensor(judged):
        missed, count = space(judged).stack([(judged & ~inside).sum(), judged.sum()]).tolist()
        return missed, count
    return int(np.count_nonzero(judged & ~inside)), int(np.count_nonzero(judged))


def _window(region: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The rows and columns of a region in a frame laid out as one image, if it is a window."""
    if type(region) is Whole:
        return 0, prod(shape[:-1]), 0, shape[-1]
    index = region.index(shape)
    if len(shape) != 2 or not isinstance(index, tuple) or len(index) != 2:
        return None
    if type(index[0]) is not slice or type(index[1]) is not slice:
        return None
    top, bottom, down = index[0].indices(shape[0])
    left, right, along = index[1].indices(shape[1])
    return (top, bottom, left, right) if down == along == 1 else None


def criticals(reading: Reading, y: Frame) -> Frame:
    """The smallest λ that covers each pixel, NaN where it is not judged."""
    centre, low, high, valid = reading
    xp = space(centre)
    run = passes("criticals", centre)
    if run is not None:
        double = xp.float64 in (centre.dtype, y.dtype)
        out = xp.empty_like(centre, dtype=xp.float64 if double else xp.float32)
        array = _on_host(out)
        run(*map(_on_host, (centre, low, high, valid, y)), array.dtype.type(inf), array)
        return out
    with np.errstate(all="ignore"):
        under, over = (centre - y) / abs(low), (y - centre) / abs(high)
        larger = xp.where((under > over) | (over != over), under, over)
        larger[larger != larger] = -inf  # 0/0 on both sides
        return xp.where(judged_pixels(y, valid), larger, xp.nan)


# The compiled passes.

_NO_MASK = np.zeros((1, 0), dtype=np.bool_)
"""In place of a mask where every pixel is valid."""


def passes(name: str, frame: Frame) -> Callable[..., Any] | None:
    """The compiled pass of this name; None without numba, and for a frame off the host."""
    if os.environ.get("SETPOINT_PLAIN", "") == "1" or not _numba_is_there():
        return None
    return None if is_tensor(frame) and frame.device.type != "cpu" else _compiled(name)


def _on_host(frame: Frame | None) -> Any:
    """A frame on the host, or None in place of a mask, as passes take it: numpy, with two axes."""
    if frame is None:
        return _NO_MASK
    array = frame.numpy() if is_tensor(frame) else frame
    return array if array.ndim == 2 else array.reshape(-1, array.shape[-1])


@lru_cache(maxsize=1)
def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


@lru_cache
def _compiled(name: str) -> Callable[..., Any]:
    import numba

    try:
        compiled = numba.njit(cache=True, error_model="numpy", nogil=True)(_PASSES[name])
    except RuntimeError:  # nowhere to keep machine code
        compiled = numba.njit(error_model="numpy", nogil=True)(_PASSES[name])
    result: Callable[..., Any] = compiled
    return result


# Both counts of a pass are fields of one 32-bit number, summed over runs of pixels short enough for
# either field, and numbers keep the precision of the frame: only then does vector code come of it.

_RUN = 32_768
_ONE = np.uint32(1)
_BOTH = np.uint32(65_537)
_NONE = np.uint32(0)


def _count_pass(
    centre: Any, low: Any, high: Any, valid: Any, y: Any, lam: Any,
    top: int, bottom: int, left: int, right: int,
) -> tuple[int, int]:  # fmt: skip
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
                bits = _ONE if v == v else _NONE
                inside = (c[j] - under[j] * lam <= v) & (v <= c[j] + over[j] * lam)
                bits = _BOTH if inside else bits
                if masked:
                    bits = bits if usable[j] else _NONE
                both = np.uint32(both + bits)
            judged += int(both & np.uint32(65_535))
            covered += int(both >> np.uint32(16))
    return judged - covered, judged


def _criticals_pass(
    centre: Any, low: Any, high: Any, valid: Any, y: Any, infinite: Any, out: Any
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
            critical = under if (under > over) | (over != over) else over
            critical = critical if critical == critical else -infinite
            critical = critical if v == v else nothing
            if masked:
                critical = critical if valid[i, j] else nothing
            out[i, j] = critical


_PASSES: dict[str, Callable[..., Any]] = {
    "count": _count_pass,
    "criticals": _criticals_pass,
}
