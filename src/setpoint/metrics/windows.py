"""How far the risk strays from its level over sliding windows, in arrays and step by step.

Both versions cut the stream into blocks as long as the window and add the suffix sum of one block
to the prefix sum of the next. No sum is ever carried further than that, so nothing drifts, and
both do the same additions in the same order: their windows agree to the bit.
"""

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint.metrics._input import level_of, observed, whole

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
    at = np.flatnonzero(~np.isnan(got))
    if not len(at):
        return _NOTHING
    width = min(width, len(at))
    padded = np.zeros(-(-len(at) // width) * width)
    padded[: len(at)] = got[at]
    blocks = padded.reshape(-1, width)
    prefix = np.cumsum(blocks, axis=1).ravel()
    suffix = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].copy()
    suffix[:, 0] = 0.0  # a window that starts a block ends it too: the prefix has it all
    count = len(at) - width + 1
    totals = suffix.ravel()[:count] + prefix[width - 1 : width - 1 + count]
    errors = np.abs(totals / width - target)
    worst = int(np.argmax(errors))
    rms = math.sqrt(float(np.dot(errors, errors)) / count)
    return WindowErrors(float(errors[worst]), rms, int(at[worst]), count)


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
