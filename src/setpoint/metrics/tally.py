"""What is counted of each step, and the metrics that follow from the counts.

`measure` reads one interval, `count` takes one step into a tally. Both are scalar rules: plain
Python runs them, and numba can compile them.
"""

from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NOTHING", "Tally", "count", "derived", "measure", "share"]


class Tally(NamedTuple):
    """Sums over the steps whose label was observed."""

    observed: float  # steps
    length: float  # the sum of the finite lengths
    finite: float  # steps with a finite length
    full: float
    empty: float
    near: float  # how far labels lay inside the two ends; NaN for a set without ends
    apart: float  # how far labels lay outside the two ends; NaN for a set without ends
    misses: float
    streaks: float  # of misses
    counter: float  # misses in a row until now
    counters: float  # the sum of the counter over all steps
    longest: float  # the longest streak


NOTHING = Tally(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def measure(
    lo: float, hi: float, y: float, cut_low: float, cut_high: float
) -> tuple[float, bool, bool, float, float]:
    """The length of an interval, whether it is full and empty, and how far y is from its ends.

    The distances are those to the ends that y lies within, and to the ends that it lies beyond.
    """
    length = hi - lo if lo < hi else 0.0
    is_whole = (lo <= cut_low) & (hi >= cut_high)
    is_nothing = (lo > hi) | (lo == inf) | (hi == -inf)
    below, above = lo - y, y - hi
    apart = (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
    near = (-below if below < 0.0 else 0.0) + (-above if above < 0.0 else 0.0)
    return length, is_whole, is_nothing, near, apart


def count(
    tally: Tally,
    length: float,
    is_whole: bool,
    is_nothing: bool,
    near: float,
    apart: float,
    missed: bool,
) -> Tally:
    """The tally after one more step. A set without ends has a size for its length."""
    is_finite = length < inf
    counter = tally.counter + 1.0 if missed else 0.0
    return Tally(
        tally.observed + 1.0,
        tally.length + (length if is_finite else 0.0),
        tally.finite + (1.0 if is_finite else 0.0),
        tally.full + (1.0 if is_whole else 0.0),
        tally.empty + (1.0 if is_nothing else 0.0),
        tally.near + near,
        tally.apart + apart,
        tally.misses + (1.0 if missed else 0.0),
        tally.streaks + (1.0 if counter == 1.0 else 0.0),
        counter,
        tally.counters + counter,
        counter if counter > tally.longest else tally.longest,
    )


def share(total: ArrayLike, count: ArrayLike) -> NDArray[np.float64]:
    """A total over a count, NaN where nothing was counted."""
    counts = np.asarray(count, np.float64)
    quotient = np.full(counts.shape, nan)
    np.divide(total, counts, out=quotient, where=counts > 0.0)
    return quotient


def derived(tally: Tally, tail: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """The metrics of `Summary` that follow from a tally, by their names there.

    Parameters
    ----------
    tally
        Numbers, or arrays of one shape: one tally for each cell.
    tail
        The share of labels that may lie beyond each end, for pinball and Winkler: half of
        1 − confidence_level. One number, or one for each cell.
    """
    arrays: Any = np.broadcast_arrays(*tally)
    t, tails = Tally(*arrays), np.asarray(tail)
    steps = t.observed
    length = np.where(t.finite < steps, inf, share(t.length, steps))
    near, apart = share(t.near, steps), share(t.apart, steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        # At tail 0 the near side costs nothing, however far the end, and a miss costs everything.
        inside = np.where(tails > 0.0, tails * near, 0.0)
        outside = np.where(apart == 0.0, 0.0, apart / tails)
    return {
        "coverage": share(steps - t.misses, steps),
        "mean_length": length,
        "mean_finite_length": share(t.length, t.finite),
        "full": share(t.full, steps),
        "empty": share(t.empty, steps),
        "mc": share(t.counters, steps),
        "msl": np.where(t.streaks > 0.0, share(t.misses, t.streaks), 0.0),
        "longest_streak": np.asarray(t.longest),
        "pinball": 0.5 * ((1.0 - tails) * apart + inside),
        "winkler": length + outside,
    }
