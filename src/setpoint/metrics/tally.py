"""What is counted of each step, and the metrics that follow from the counts.

`measure` reads one interval, `count` takes one step into a tally. Both are scalar rules: plain
Python runs them, and numba can compile them. `measure_rows` and `tally_of` are the same for arrays
of steps. `derived` gives the metrics of one tally, or of many.
"""

from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setpoint.metrics.columns import Flags, Floats, Places

__all__ = [
    "NOTHING", "Moments", "Steps", "Tally", "correlation_of", "count", "counters", "derived",
    "measure", "measure_rows", "moments_of", "moved", "restarted", "share", "tally_of",
]  # fmt: skip


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


def restarted(tally: Tally) -> Tally:
    """The tally at the beginning of a stream: a streak of misses ends with its stream."""
    return Tally(
        tally.observed, tally.length, tally.finite, tally.full, tally.empty, tally.near,
        tally.apart, tally.misses, tally.streaks, 0.0, tally.counters, tally.longest,
    )  # fmt: skip


class Steps(NamedTuple):
    """What `count` takes of each step, as arrays."""

    length: Floats
    is_whole: Flags
    is_nothing: Flags
    near: Floats
    apart: Floats
    missed: Flags


def measure_rows(lo: Floats, hi: Floats, y: Floats, cut_low: float, cut_high: float) -> Steps:
    """`measure` for arrays, and which labels were missed; a label of NaN has no distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = lo - y, y - hi
        return Steps(
            length=np.fmax(hi - lo, 0.0),  # ends of the same infinity differ by NaN
            is_whole=(lo <= cut_low) & (hi >= cut_high),
            is_nothing=(lo > hi) | (lo == inf) | (hi == -inf),
            near=np.maximum(-below, 0.0) + np.maximum(-above, 0.0),
            apart=np.maximum(below, 0.0) + np.maximum(above, 0.0),
            missed=~((lo <= y) & (y <= hi)),
        )


def counters(missed: Flags, begins: Places | None = None) -> Floats:
    """How many misses in a row there were up to each step. They end where a stream `begins`."""
    steps = np.arange(1.0, len(missed) + 1.0)
    last_hit = np.where(missed, 0.0, steps)
    if begins is not None:
        last_hit[begins] = np.maximum(last_hit[begins], begins)
    counter: Floats = steps - np.maximum.accumulate(last_hit)
    return counter


def tally_of(steps: Steps, begins: Places | None = None) -> Tally:
    """The tally of steps that were all observed. Streaks end where a stream `begins`."""
    is_finite, counter = steps.length < inf, counters(steps.missed, begins)
    with np.errstate(over="ignore"):
        sums = [
            len(counter),
            steps.length.sum(where=is_finite),
            is_finite.sum(),
            steps.is_whole.sum(),
            steps.is_nothing.sum(),
            steps.near.sum(),
            steps.apart.sum(),
            steps.missed.sum(),
            (counter == 1.0).sum(),
            counter[-1] if len(counter) else 0.0,
            counter.sum(),
            counter.max(initial=0.0),
        ]
    return Tally(*map(float, sums))


def share(total: ArrayLike, count: ArrayLike) -> Floats:
    """A total over a count, NaN where nothing was counted."""
    counts = np.asarray(count, np.float64)
    quotient = np.full(counts.shape, nan)
    np.divide(total, counts, out=quotient, where=counts > 0.0)
    return quotient


def derived(tally: Tally, tail: ArrayLike) -> dict[str, Floats]:
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
    steps, length = t.observed, np.where(t.finite < t.observed, inf, t.length)
    with np.errstate(divide="ignore", invalid="ignore"):
        # At tail 0 the near side costs nothing, however far the end, and a miss costs everything.
        inside = np.where(tails > 0.0, tails * t.near, 0.0)
        outside = np.where(t.apart == 0.0, 0.0, t.apart / tails)
    return {
        "coverage": share(steps - t.misses, steps),
        "mean_length": share(length, steps),
        "mean_finite_length": share(t.length, t.finite),
        "full": share(t.full, steps),
        "empty": share(t.empty, steps),
        "mc": share(t.counters, steps),
        "msl": np.where(t.streaks > 0.0, share(t.misses, t.streaks), 0.0),
        "longest_streak": np.asarray(t.longest),
        "pinball": share((1.0 - tails) * t.apart + inside, 2.0 * steps),
        "winkler": share(length + outside, steps),
    }


class Moments(NamedTuple):
    """Finite lengths and the hits beside them: sums about the means, for the correlation."""

    steps: float = 0.0
    hits: float = 0.0
    mean: float = 0.0  # of the lengths
    spread: float = 0.0  # the sum of the squares of the lengths about their mean
    both: float = 0.0  # the sum of the products of lengths and hits about their means


def moved(moments: Moments, length: float, missed: bool) -> Moments:
    """The moments after one more step (Welford's update)."""
    if length == inf:
        return moments
    steps, hit = moments.steps + 1.0, 0.0 if missed else 1.0
    hits, away = moments.hits + hit, length - moments.mean
    mean = moments.mean + away / steps
    spread = moments.spread + away * (length - mean)
    return Moments(steps, hits, mean, spread, moments.both + away * (hit - hits / steps))


def moments_of(length: Floats, missed: Flags) -> Moments:
    """The moments of arrays of steps."""
    missed, length = missed[length < inf], length[length < inf]
    if not len(length):
        return Moments()
    with np.errstate(over="ignore", invalid="ignore"):
        away = length - length[0]  # so that equal lengths are exactly constant
        mean = float(away.mean())
        away -= mean
        spread, both = float(np.square(away).sum()), -float(away[missed].sum())
    return Moments(len(away), float((~missed).sum()), mean + float(length[0]), spread, both)


def correlation_of(moments: Moments) -> float:
    """Pearson's correlation of coverage and length; 0 where either does not vary."""
    steps, hits, _, spread, both = moments
    varied = hits * (1.0 - hits / steps) if steps else 0.0
    if varied == 0.0 or spread == 0.0:
        return 0.0
    if not isfinite(spread):
        return nan
    return min(1.0, max(-1.0, both / (sqrt(varied) * sqrt(spread))))
