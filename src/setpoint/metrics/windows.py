"""How far the risk strays from its level over sliding windows, in arrays and step by step.

Both versions cut the stream into blocks as long as the window and add the suffix sum of one block
to the prefix sum of the next. No sum is ever carried further than that, so nothing drifts, and
both do the same additions in the same order: their windows agree to the bit.
"""

import math
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint.metrics._input import Flags, Floats, level_of, observed, whole

__all__ = ["WindowErrors", "window_errors"]


@dataclass(frozen=True, slots=True)
class WindowErrors:
    """|mean loss − level| over all windows: the largest, the root mean square, where it was worst.

    `start` is the step at which the worst window begins (the first one, if several are as bad).
    Without a step `worst` and `rms` are NaN and `start` is `None`.
    """

    worst: float
    rms: float
    start: int | None
    windows: int


_BLOCK = 1 << 15
_NOTHING = WindowErrors(math.nan, math.nan, None, 0)


def window_errors(losses: ArrayLike, level: float, window: int) -> WindowErrors:
    """|mean loss − level| over every run of `window` observed steps.

    A stream shorter than the window counts as one window. Steps with a loss of NaN are left out,
    so the window reaches over them; `start` is the position in `losses` all the same.

    Parameters
    ----------
    losses
        The loss of each step, NaN where not observed.
    level
        The level the risk should have.
    window
        Steps in a window, 1 or more.

    Examples
    --------
    >>> got = window_errors([0, 0, 1, 1, 0, 0], level=0.5, window=2)
    >>> got.worst, got.start, got.windows
    (0.5, 0, 5)
    >>> round(got.rms, 6)
    0.387298
    """
    got = observed(losses, "losses")
    target, width = level_of(level), whole(window, "window")
    seen = ~np.isnan(got)
    if seen.all():
        return _errors(got, target, width)
    found = _errors(got[seen], target, width)
    if found.start is None:
        return found
    return replace(found, start=int(np.flatnonzero(seen)[found.start]))


def _errors(losses: Floats, level: float, width: int) -> WindowErrors:
    """The errors over losses that were all observed."""
    if not len(losses):
        return _NOTHING
    width = min(width, len(losses))
    padded = np.zeros(-(-len(losses) // width) * width)
    padded[: len(losses)] = losses
    blocks = padded.reshape(-1, width)
    prefix = np.cumsum(blocks, axis=1).ravel()
    suffix = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].copy()
    suffix[:, 0] = 0.0  # a window that starts a block ends it too: the prefix has it all
    count = len(losses) - width + 1
    totals = suffix.ravel()[:count] + prefix[width - 1 : width - 1 + count]
    errors = np.abs(totals / width - level)
    worst = int(np.argmax(errors))
    rms = math.sqrt(float(np.square(errors).sum()) / count)
    return WindowErrors(float(errors[worst]), rms, worst, count)


def _binary_errors(ones: Flags, level: float, width: int) -> WindowErrors:
    """The errors over losses of 0 and 1, whose sums are whole numbers and so exact.

    A window has one of few totals, so it is enough to count how often each comes.
    """
    if not len(ones):
        return _NOTHING
    width = min(width, len(ones))
    count = len(ones) - width + 1
    sums: Any = np.zeros(len(ones) + 1, np.int32 if len(ones) < 1 << 31 else np.int64)
    np.cumsum(ones, out=sums[1:])
    often = np.zeros(width + 1, np.int64)
    block = max(_BLOCK, width)
    for start in range(0, count, block):
        stop = min(start + block, count)
        totals = sums[start + width : stop + width] - sums[start:stop]
        often += np.bincount(totals, minlength=width + 1)
    errors = np.abs(np.arange(width + 1) / width - level)
    worst = float(errors[often > 0].max())
    marked = (errors == worst) & (often > 0)
    for start in range(0, count, block):
        stop = min(start + block, count)
        found = marked[sums[start + width : stop + width] - sums[start:stop]]
        if found.any():
            break
    rms = math.sqrt(float(np.dot(often, errors * errors)) / count)
    return WindowErrors(worst, rms, start + int(found.argmax()), count)


class _RunningWindows:
    """`window_errors`, one loss at a time, in O(1) amortised and memory of two windows."""

    __slots__ = (
        "_level",
        "_old_steps",
        "_prefix",
        "_squares",
        "_start",
        "_steps",
        "_suffix",
        "_values",
        "_window",
        "_windows",
        "_worst",
    )

    def __init__(self, level: float, window: Any) -> None:
        self._level = level
        self._window = whole(window, "window")
        self._values: list[float] = []  # the block being filled, and the step of each value
        self._steps: list[int] = []
        self._prefix = 0.0
        self._suffix: list[float] = []  # suffix sums of the block before, and its steps
        self._old_steps: list[int] = []
        self._worst, self._start = -1.0, 0
        self._squares, self._windows = 0.0, 0

    @property
    def window(self) -> int:
        return self._window

    def update(self, step: int, loss: float) -> None:
        self._values.append(loss)
        self._steps.append(step)
        self._prefix += loss
        filled = len(self._values)
        if filled == self._window:
            self._judge(self._prefix, self._steps[0])
            self._suffix = list(accumulate(reversed(self._values)))[::-1]
            self._old_steps = self._steps
            self._values, self._steps, self._prefix = [], [], 0.0
        elif self._suffix:
            self._judge(self._suffix[filled] + self._prefix, self._old_steps[filled])

    def _judge(self, total: float, start: int) -> None:
        error = abs(total / self._window - self._level)
        self._squares += error * error
        self._windows += 1
        if error > self._worst:
            self._worst, self._start = error, start

    def errors(self) -> WindowErrors:
        if self._windows:
            rms = math.sqrt(self._squares / self._windows)
            return WindowErrors(self._worst, rms, self._start, self._windows)
        if not self._values:
            return _NOTHING
        error = abs(self._prefix / len(self._values) - self._level)
        return WindowErrors(error, error, self._steps[0], 1)
