"""The distribution that a few quantiles tell: linear between them, exponential outside.

Every function takes `levels` that rise, (k,), and `ends`, (n, k), a row of quantiles for each
prediction, none below the one before it. Infinite ends are left out; a row without any is NaN.
"""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_SMALL = 1e-300


def cdf(levels: Array, ends: Array, y: Array) -> Array:
    """The probability of at most y, one for each row."""
    return _by_row(_cdf, levels, ends, np.asarray(y, float)[:, None])[:, 0]


def quantiles(levels: Array, ends: Array, wanted: Array) -> Array:
    """The quantiles at other levels: a column for each of those that are wanted, (n, m)."""
    return _by_row(_quantiles, levels, ends, np.asarray(wanted, float))


def crps(levels: Array, ends: Array, y: Array) -> Array:
    """The continuous ranked probability score of each row, in the unit of y; NaN where y is."""
    return _by_row(_crps, levels, ends, np.asarray(y, float)[:, None])[:, 0]


def _by_row(work: Callable[..., Array], levels: Array, ends: Array, given: Array) -> Array:
    """Rows whose ends are all finite at once, others by those of their ends that are."""
    finite, count = np.isfinite(ends), len(ends)
    given = np.broadcast_to(given, (count, given.shape[-1]))
    out, whole = np.full(given.shape, np.nan), finite.all(axis=1)
    patterns = np.unique(finite[~whole], axis=0)
    for pattern in [np.ones(len(levels), bool), *patterns]:
        rows = (finite == pattern).all(axis=1)
        if pattern.any() and rows.any():
            out[rows] = work(levels[pattern], ends[np.ix_(rows, pattern)], given[rows])
    return out


def _scale(levels: Array, ends: Array) -> Array:
    """How fast the distribution falls off outside its ends, (n, 1)."""
    low, high = float(levels[0]), float(levels[-1])
    if low < 0.5 < high:
        apart, span = ends[:, -1] - ends[:, 0], log(0.5 / low) + log(0.5 / (1.0 - high))
    elif len(levels) > 1:  # one side only: as the two outermost say
        tails = (levels[:2] if low < 0.5 else 1.0 - levels[:-3:-1]).tolist()
        outer = ends[:, :2] if low < 0.5 else ends[:, :-3:-1]
        apart, span = np.abs(outer[:, 1] - outer[:, 0]), abs(log(tails[1] / tails[0]))
    else:
        apart, span = np.zeros(len(ends)), 1.0
    return np.maximum(apart / span, _SMALL)[:, None]


def _cdf(levels: Array, ends: Array, y: Array) -> Array:
    scale = _scale(levels, ends)
    place = (ends <= y).sum(axis=1)[:, None]
    last = len(levels) - 1
    before, after = np.clip(place - 1, 0, last), np.clip(place, 0, last)
    low, high = np.take_along_axis(ends, before, 1), np.take_along_axis(ends, after, 1)
    share = np.where(high > low, (y - low) / np.where(high > low, high - low, 1.0), 0.0)
    between = levels[before] + share * (levels[after] - levels[before])
    with np.errstate(over="ignore", under="ignore"):
        below = levels[0] * np.exp(-np.maximum(ends[:, :1] - y, 0.0) / scale)
        above = 1.0 - (1.0 - levels[-1]) * np.exp(-np.maximum(y - ends[:, -1:], 0.0) / scale)
    made = np.where(place == 0, below, np.where(place == len(levels), above, between))
    return np.where(np.isnan(y), np.nan, made)


def _quantiles(levels: Array, ends: Array, wanted: Array) -> Array:
    scale, p = _scale(levels, ends), wanted[:1]
    after = np.clip(np.searchsorted(levels, p[0]), 1, max(len(levels) - 1, 1))
    if len(levels) > 1:
        span = levels[after] - levels[after - 1]
        share = np.clip((p - levels[after - 1]) / span, 0.0, 1.0)
        low, high = ends[:, after - 1], ends[:, after]
        made = np.where(share < 1.0, low + share * (high - low), high)
    else:
        made = np.broadcast_to(ends, (len(ends), p.shape[1])).copy()
    with np.errstate(divide="ignore"):
        below = ends[:, :1] + scale * np.log(np.minimum(p / levels[0], 1.0))
        above = ends[:, -1:] - scale * np.log(np.minimum((1.0 - p) / (1.0 - levels[-1]), 1.0))
    return np.where(p < levels[0], below, np.where(p > levels[-1], above, made))


def _crps(levels: Array, ends: Array, y: Array) -> Array:
    scale = _scale(levels, ends)[:, 0]
    total = np.zeros(len(ends))
    for place in range(len(levels) - 1):
        (left, right), (f, g) = ends[:, place : place + 2].T, levels[place : place + 2]
        cut = np.clip(y[:, 0], left, right)
        width = np.where(right > left, right - left, 1.0)
        mid = f + (g - f) * (cut - left) / width
        total += (cut - left) * (f * f + f * mid + mid * mid) / 3.0
        f, mid, g = 1.0 - f, 1.0 - mid, 1.0 - g
        total += (right - cut) * (mid * mid + mid * g + g * g) / 3.0
    for end, p, sign in ((ends[:, 0], levels[0], -1.0), (ends[:, -1], 1.0 - levels[-1], 1.0)):
        away = np.maximum(sign * (y[:, 0] - end), 0.0)
        with np.errstate(under="ignore", over="ignore"):
            left_over = np.exp(-away / scale)
        total += away - 2.0 * p * scale * (1.0 - left_over) + 0.5 * p * p * scale
    return np.where(np.isnan(y[:, 0]), np.nan, total)[:, None]
