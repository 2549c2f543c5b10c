"""Pixel arithmetic: one compiled pass over a frame where numba is at hand, else array functions.

Both give the same to the bit. A compiled pass works on numpy arrays and, through their memory, on
tensors that are on the host. Machine code is kept beside this file, or where numba keeps it if
nothing can be written there.
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

__all__ = [
    "Reading",
    "count_missed",
    "criticals",
    "ends",
    "judged_pixels",
    "label_sound",
    "length",
    "lengths",
    "outside_support",
    "passes",
    "sound",
    "tally",
    "unsound",
]

Array = Any

Reading = tuple[Frame, Frame, Frame, Frame | None]
"""Centre, uncertainty below and above, and the mask of valid pixels or None."""

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def sound(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> bool:
    """Whether every valid pixel has a finite centre and finite scales of at least 0."""
    run = passes("sound", centre)
    if run is not None:
        return bool(run(*map(_on_host, (centre, low, high, valid))))
    return not bool(unsound(centre, low, high, valid).any())


def unsound(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> Frame:
    """Which valid pixels are not."""
    finite = space(centre).isfinite(centre)
    fine = finite & (low >= 0.0) & (low < inf) & (high >= 0.0) & (high < inf)
    return ~fine if valid is None else valid & ~fine


def label_sound(y: Frame, support: tuple[float, float]) -> bool:
    """Whether every pixel of a label is NaN, or finite and within the support."""
    run = passes("label_sound", y)
    if run is not None:
        return bool(run(_on_host(y), support != (-inf, inf), *support))
    return not bool(outside_support(y, support).any())


def outside_support(y: Frame, support: tuple[float, float]) -> Frame:
    """Which pixels of a label are infinite or outside the support."""
    double = y.double() if is_tensor(y) else y.astype(np.float64)
    return space(y).isinf(y) | (double < support[0]) | (double > support[1])


def ends(reading: Reading, lam: float) -> tuple[Frame, Frame]:
    """Both ends of every pixel at a finite λ, which may cross."""
    centre, low, high, _ = reading
    factor = _factor(centre, lam)
    run = passes("ends", centre)
    if run is None:
        with np.errstate(all="ignore"):
            return centre - low * float(factor), centre + high * float(factor)
    xp = space(centre)
    lower, upper = xp.empty_like(centre), xp.empty_like(centre)
    run(*map(_on_host, (centre, low, high)), factor, _on_host(lower), _on_host(upper))
    return lower, upper


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
    """The rows and columns of a region in a frame laid out as one image, None if it is no window
    of one."""
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


def lengths(lower: Frame, upper: Frame, valid: Frame | None) -> Frame:
    """upper − lower of every pixel: 0 where it is empty, NaN where it is not valid."""
    xp = space(lower)
    with np.errstate(all="ignore"):
        widths = xp.where(lower < upper, upper - lower, 0.0)
    return widths if valid is None else xp.where(valid, widths, xp.nan)


def length(lower: Frame, upper: Frame, valid: Frame | None) -> float:
    """The mean length over the valid pixels, NaN if there are none."""
    run = passes("length", lower)
    if run is not None:
        total, count = run(*map(_on_host, (lower, upper, valid)))
    else:
        widths = lengths(lower, upper, valid)
        widths = widths if valid is None else widths[valid]
        total = float(widths.sum(dtype=space(widths).float64))
        count = widths.numel() if is_tensor(widths) else widths.size
    return total / count if count else float("nan")


# The compiled passes.

_NO_MASK = np.zeros((1, 0), dtype=np.bool_)
"""In place of a mask where every pixel is valid."""


def passes(name: str, frame: Frame) -> Callable[..., Any] | None:
    """The compiled pass of this name, None for a frame that is elsewhere than on the host, without
    numba, or if it is turned off by SETPOINT_PLAIN=1."""
    if os.environ.get("SETPOINT_PLAIN", "") == "1" or not _numba_is_there():
        return None
    return None if is_tensor(frame) and frame.device.type != "cpu" else _compiled(name)


def _on_host(frame: Frame | None) -> Array:
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


def _sound_pass(centre: Array, low: Array, high: Array, valid: Array) -> bool:
    """Whether every valid pixel has a finite centre and finite scales of at least 0."""
    masked = valid.size > 0
    wrong = False
    for i in range(centre.shape[0]):
        bad = _NONE
        for j in range(centre.shape[1]):
            c, under, over = centre[i, j], low[i, j], high[i, j]
            zero = (c - c) + (under - under) + (over - over)  # NaN if one of them is not finite
            flag = _NONE if (under >= zero) & (over >= zero) else _ONE
            if masked:
                flag = flag if valid[i, j] else _NONE
            bad = np.uint32(bad | flag)
        wrong = wrong or bad != _NONE
    return not wrong


def _label_sound_pass(y: Array, cuts: bool, least: float, greatest: float) -> bool:
    """Whether every pixel of a label is NaN, or finite and, if it cuts, between the ends."""
    wrong = False
    for i in range(y.shape[0]):
        bad = _NONE
        for j in range(y.shape[1]):
            zero = y[i, j] - y[i, j]
            flag = _ONE if (y[i, j] == y[i, j]) & (zero != zero) else _NONE
            if cuts:
                flag = _ONE if (y[i, j] < least) | (y[i, j] > greatest) else flag
            bad = np.uint32(bad | flag)
        wrong = wrong or bad != _NONE
    return not wrong


def _ends_pass(
    centre: Array, low: Array, high: Array, lam: Any, lower: Array, upper: Array
) -> None:
    """Both ends of every pixel."""
    for i in range(centre.shape[0]):
        for j in range(centre.shape[1]):
            lower[i, j] = centre[i, j] - low[i, j] * lam
            upper[i, j] = centre[i, j] + high[i, j] * lam


def _count_pass(
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
            critical = under if (under > over) | (over != over) else over
            critical = critical if critical == critical else -infinite
            critical = critical if v == v else nothing
            if masked:
                critical = critical if valid[i, j] else nothing
            out[i, j] = critical


def _length_pass(lower: Array, upper: Array, valid: Array) -> tuple[float, int]:
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


_PASSES: dict[str, Callable[..., Any]] = {
    "sound": _sound_pass,
    "label_sound": _label_sound_pass,
    "ends": _ends_pass,
    "count": _count_pass,
    "criticals": _criticals_pass,
    "length": _length_pass,
}
