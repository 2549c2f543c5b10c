"""What all metrics of a stream are made of, gathered block by block in one pass over its arrays.

Blocks stay in the cache of a processor; what must be kept row for row is one flag for each hit,
one for each loss of 0 or 1, and the length.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.metrics._input import Flags, Floats, refuse
from setpoint.metrics.groups import GroupCoverage, _from_counts
from setpoint.metrics.hits import _pearson
from setpoint.metrics.windows import WindowErrors, _binary_errors, _errors

__all__ = ["BLOCK", "Totals"]

BLOCK = 1 << 15


class Totals:
    """Sums and counts of the steps that were observed.

    Parameters
    ----------
    size
        How many steps there are, observed or not.
    losses
        The loss of each step as it was given; None for the 0-1 miscoverage.
    codes, keys
        The group of each step as a place in the list of keys, −1 for none.
    """

    def __init__(
        self, size: int, losses: Any | None, codes: Any | None, keys: Sequence[Any]
    ) -> None:
        self.steps = self.missing = 0
        self.full = self.empty = self.finite = self.finite_hits = self.hits = 0
        self.loss = self.total = self.finite_total = 0.0
        self._mean = self._spread = self._both = 0.0
        self._given, self._codes, self._keys = losses, codes, keys
        self._counts = np.zeros((2, len(keys)), np.int64)
        self._hit = np.empty(size, bool)
        self._length = np.empty(size)
        self._seen: Flags | None = None
        self._size = size
        self._ones = None if losses is None else np.empty(size, bool)  # while all are 0 or 1
        self._losses: Floats | None = None

    def seen(self, known: Flags, start: int) -> tuple[Flags | None, Floats | None]:
        """Which steps of a block count, None for all; and their losses, None for miscoverage."""
        loss = None
        if self._given is not None:
            loss = self._given[start : start + len(known)].astype(np.float64, copy=False)
            infinite = np.isinf(loss)
            if infinite.any():
                refuse(infinite, loss, "losses", "finite, or NaN where not observed", start)
            known = known & (loss == loss)
        if known.all():
            return None, loss
        if self._seen is None:
            self._seen = np.ones(self._size, bool)
        self._seen[start : start + len(known)] = known
        self.missing += len(known) - int(np.count_nonzero(known))
        return known, None if loss is None else loss[known]

    def add(
        self,
        start: int,
        kept: Flags | None,
        hit: Flags,
        length: Floats,
        loss: Floats | None,
        full: Flags,
        empty: Flags,
    ) -> None:
        """Takes in the steps of a block that count; `kept` says which of the block they are."""
        here = slice(self.steps, self.steps + len(hit))
        self._hit[here], self._length[here] = hit, length
        held = int(np.count_nonzero(hit))
        self.hits += held
        self.full += int(np.count_nonzero(full))
        self.empty += int(np.count_nonzero(empty))
        if loss is None:
            self.loss += len(hit) - held
        else:
            self.loss += float(loss.sum())
            self._keep(loss, here)
        self._lengths(hit, length, held)
        if self._codes is not None:
            count = len(hit) if kept is None else len(kept)
            codes = self._codes[start : start + count]
            codes = codes if kept is None else codes[kept]
            for place, own in enumerate((codes, codes[hit])):
                self._counts[place] += np.bincount(own + 1, minlength=len(self._keys) + 1)[1:]
        self.steps += len(hit)

    def _keep(self, loss: Floats, here: slice) -> None:
        """The losses, as flags as long as each is 0 or 1."""
        if self._ones is not None:
            ones = loss == 1.0
            if (ones | (loss == 0.0)).all():
                self._ones[here] = ones
                return
            self._losses = np.empty(self._size)
            self._losses[: here.start] = self._ones[: here.start]
            self._ones = None
        assert self._losses is not None
        self._losses[here] = loss

    def _lengths(self, hit: Flags, length: Floats, held: int) -> None:
        """Sums of the lengths, and their squares and products with hits about the means."""
        own = float(length.sum())
        self.total += own
        if math.isinf(own):
            finite = np.isfinite(length)
            hit, length = hit[finite], length[finite]
            held, own = int(np.count_nonzero(hit)), float(length.sum())
        count = len(length)
        if not count:
            return
        away = length - length[0]  # so that equal lengths are exactly constant
        mean = float(away.mean())
        away -= mean
        mean += float(length[0])
        spread, both = float(np.square(away).sum()), float(away[hit].sum())
        if self.finite:
            step, together = mean - self._mean, self.finite + count
            weight = self.finite * count / together
            share = held / count - self.finite_hits / self.finite
            spread += step * step * weight
            both += step * share * weight
            mean = self._mean + step * (count / together)
        self._mean = mean
        self._spread += spread
        self._both += both
        self.finite_total += own
        self.finite += count
        self.finite_hits += held

    # When all are taken in

    @property
    def correlation(self) -> float:
        """Of coverage and length."""
        if not self.finite:
            return 0.0
        hits = self.finite_hits * (1.0 - self.finite_hits / self.finite)
        return _pearson(hits, self._spread, self._both)

    def by_group(self, nominal: float) -> GroupCoverage:
        """Coverage by group."""
        counts = self._counts.T.tolist()
        held = {key: own for key, own in zip(self._keys, counts, strict=True) if own[0]}
        return _from_counts(held, nominal)

    def streaks(self) -> tuple[int, int, int]:
        """How many streaks of misses there are, the longest, and the sum of the counter."""
        missed = np.flatnonzero(~self._hit[: self.steps])
        if not len(missed):
            return 0, 0, 0
        first = np.flatnonzero(np.diff(missed, prepend=-2) != 1)
        runs = np.diff(first, append=len(missed))
        return len(runs), int(runs.max()), int((runs * (runs + 1) // 2).sum())

    def windows(self, level: float, width: int) -> WindowErrors:
        """How far the risk strays over windows."""
        if self._losses is not None:
            found = _errors(self._losses[: self.steps], level, width)
        elif self._ones is not None:
            found = _binary_errors(self._ones[: self.steps], level, width)
        else:
            found = _binary_errors(~self._hit[: self.steps], level, width)
        if self._seen is None or found.start is None:
            return found
        start = int(np.flatnonzero(self._seen)[found.start])
        return WindowErrors(found.worst, found.rms, start, found.windows)

    def median(self) -> float:
        """The median length; the lengths are in no order afterwards."""
        if not self.steps:
            return math.nan
        with np.errstate(over="ignore"):
            return float(np.median(self._length[: self.steps], overwrite_input=True))
