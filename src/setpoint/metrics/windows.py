"""How far the risk strays from its level over sliding windows, in arrays and step by step.

Both ways cut the stream into blocks as long as the window and add the suffix sum of one block to
the prefix sum of the next. No sum is ever carried further than that, so nothing drifts. For one
stream both do the same additions in the same order: their windows agree to the bit.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import finite, whole
from setpoint._window import Sum
from setpoint.metrics.columns import Flags, Floats, Places, observed, offsets_of

__all__ = ["RunningWindows", "WindowErrors", "errors_of", "window_errors"]


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


def window_errors(
    losses: ArrayLike, level: float, window: int, *, offsets: ArrayLike | None = None
) -> WindowErrors:
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
    offsets
        Where streams that lie one after the other begin, and the end of the last one. A window
        holds steps of one stream.

    Examples
    --------
    >>> got = window_errors([0, 0, 1, 1, 0, 0], level=0.5, window=2)
    >>> got.worst, got.start, got.windows
    (0.5, 0, 5)
    >>> round(got.rms, 6)
    0.387298
    """
    values = observed(losses, "losses")
    target, width = finite(level, "level"), whole(window, "window", 1)
    seen = ~np.isnan(values)
    return errors_of(values[seen], target, width, seen, offsets_of(offsets, len(values)))


def errors_of(
    losses: Floats | Flags, level: float, width: int, seen: Flags, offsets: Places
) -> WindowErrors:
    """The errors over the losses of the steps that were `seen`; `start` is one of all steps."""
    bounds = np.concatenate([[0], np.cumsum(seen)])[offsets] if len(offsets) > 2 else None
    stops = np.array([len(losses)]) if bounds is None else bounds[1:][np.diff(bounds) > 0]
    if not len(losses):
        return _NOTHING
    worst, start, squares, windows = -1.0, 0, 0.0, 0
    for errors, starts in _errors(losses, level, width, stops):
        largest = float(errors.max(initial=-1.0))
        if largest >= worst and len(errors):
            first = int(starts[np.argmax(errors)])
            start = first if largest > worst else min(start, first)
            worst = largest
        squares += float(np.square(errors).sum())
        windows += len(errors)
    start = int(np.flatnonzero(seen)[start]) if len(seen) > len(losses) else start
    return WindowErrors(worst, math.sqrt(squares / windows), start, windows)


def _errors(
    losses: Floats | Flags, level: float, width: int, stops: Places
) -> Iterator[tuple[Floats, Places]]:
    """|mean − level| of windows and where they begin, piece by piece in the order of the steps.

    Streams shorter than the window come first. Each stream ends at one of `stops`.
    """
    firsts = np.concatenate([[0], stops[:-1]])
    counts = stops - firsts
    width = min(width, int(counts.max()))
    short = counts < width
    if short.any():
        totals = np.add.reduceat(losses, firsts, dtype=np.float64)[short]
        yield np.abs(totals / counts[short] - level), firsts[short]
    block = max(_BLOCK // width, 1) * width
    for begin in range(0, len(losses) - width + 1, block):
        totals = _sums(losses[begin : begin + block + width - 1], width)
        starts = np.arange(begin, begin + len(totals))
        if len(stops) > 1:
            within = stops[np.searchsorted(stops, starts, side="right")] - starts >= width
            totals, starts = totals[within], starts[within]
        yield np.abs(totals / width - level), starts


def _sums(losses: Floats | Flags, width: int) -> Floats:
    """The sum of every window, as a suffix of one block and a prefix of the next."""
    padded = np.zeros(-(-len(losses) // width) * width)
    padded[: len(losses)] = losses
    blocks = padded.reshape(-1, width)
    prefix = np.cumsum(blocks, axis=1).ravel()
    suffix = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].copy()
    suffix[:, 0] = 0.0  # a window that starts a block ends it too: the prefix has it all
    count = len(losses) - width + 1
    sums: Floats = suffix.ravel()[:count] + prefix[width - 1 : width - 1 + count]
    return sums


class RunningWindows:
    """`window_errors`, one loss at a time, in O(1) amortised and memory of a few windows."""

    __slots__ = ("_level", "_squares", "_start", "_steps", "_sum", "_total", "_windows", "_worst")

    def __init__(self, level: float, window: int) -> None:
        self._level = level
        self._sum = Sum(window)
        self._steps: deque[int] = deque(maxlen=self._sum.size)  # of the losses in the window
        self._total = 0.0
        self._worst, self._start = -1.0, 0
        self._squares, self._windows = 0.0, 0

    def update(self, step: int, loss: float) -> None:
        self._steps.append(step)
        self._total = self._sum.add(loss)
        if len(self._sum) == self._sum.size:
            error = abs(self._total / self._sum.size - self._level)
            self._squares += error * error
            self._windows += 1
            if error > self._worst:
                self._worst, self._start = error, self._steps[0]

    def errors(self) -> WindowErrors:
        if self._windows:
            rms = math.sqrt(self._squares / self._windows)
            return WindowErrors(self._worst, rms, self._start, self._windows)
        if not self._steps:
            return _NOTHING
        error = abs(self._total / len(self._steps) - self._level)
        return WindowErrors(error, error, self._steps[0], 1)
