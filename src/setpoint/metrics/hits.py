"""Metrics of hits, misses and losses: risk, miscoverage counter, streaks, correlation.

`covered` holds 1 (or True) where the label lay in its set, 0 where not, and NaN where no label
was observed. Such a step is left out as if it were not there: a streak goes on across it.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint.metrics._input import Floats, flags, mean, observed, sizes

__all__ = [
    "correlation",
    "longest_streak",
    "mc",
    "miscoverage_counter",
    "msl",
    "risk",
    "streaks",
]


def risk(losses: ArrayLike) -> float:
    """The mean of the observed losses; NaN when none was observed.

    Examples
    --------
    >>> risk([0.0, 1.0, float("nan"), 0.5])
    0.5
    """
    got = observed(losses, "losses")
    return mean(got[~np.isnan(got)])


def miscoverage_counter(covered: ArrayLike) -> Floats:
    """How many misses in a row there were up to each step; 0 at a hit, NaN where not observed.

    Examples
    --------
    >>> miscoverage_counter([1, 0, 0, float("nan"), 0, 1])
    array([ 0.,  1.,  2., nan,  3.,  0.])

    References
    ----------
    Feldman et al., Achieving risk control in online learning settings, TMLR 2023: MC.
    """
    hits = flags(covered, "covered")
    seen = ~np.isnan(hits)
    step = np.arange(1, np.count_nonzero(seen) + 1)
    last_hit = np.maximum.accumulate(np.where(hits[seen] == 1.0, step, 0))
    counter = np.full(len(hits), np.nan)
    counter[seen] = step - last_hit
    return counter


def mc(covered: ArrayLike) -> float:
    """The mean of the miscoverage counter; NaN when no step was observed.

    True conditional quantiles reach α/(1 − α) at miscoverage α. The counter's largest value is
    `longest_streak`.

    Examples
    --------
    >>> mc([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    0.26666666666666666
    """
    counter = miscoverage_counter(covered)
    return mean(counter[~np.isnan(counter)])


def streaks(covered: ArrayLike) -> NDArray[np.int64]:
    """The lengths of the streaks of misses, in order; one cut by the end of the stream counts.

    Examples
    --------
    >>> streaks([1, 0, 1, 0, 0])
    array([1, 2])
    """
    counter = miscoverage_counter(covered)
    counter = counter[~np.isnan(counter)]
    ended = np.append(counter[1:] == 0.0, True)[: len(counter)]
    return counter[ended & (counter > 0.0)].astype(np.int64)


def msl(covered: ArrayLike) -> float:
    """The mean length of a streak of misses; 0.0 when nothing was missed.

    True conditional quantiles reach 1/(1 − α) at miscoverage α. A smaller value is no better: at
    1 every miss is followed by a hit, which a controller can cause and honest noise does not.

    Examples
    --------
    The two sequences of the paper's appendix:

    >>> msl([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    1.5
    >>> msl([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    3.0

    References
    ----------
    Feldman et al., Achieving risk control in online learning settings, TMLR 2023: MSL.
    """
    got = streaks(covered)
    return float(got.mean()) if len(got) else 0.0


def longest_streak(covered: ArrayLike) -> int:
    """The length of the longest streak of misses, which is the largest miscoverage counter.

    Examples
    --------
    >>> longest_streak([1, 0, 1, 0, 0])
    2
    """
    return int(streaks(covered).max(initial=0))


def correlation(covered: ArrayLike, lengths: ArrayLike) -> float:
    """Pearson's correlation of coverage and length; 0.0 where either does not vary.

    Near 0 for intervals that cover equally well whether short or long. Steps not observed and
    infinite lengths are left out. NaN where the squares of the lengths overflow.

    Examples
    --------
    >>> round(correlation([1, 1, 0, 0], [4.0, 3.0, 1.0, 2.0]), 6)
    0.894427

    References
    ----------
    Feldman, Bates and Romano, Improving conditional coverage via orthogonal quantile
    regression, NeurIPS 2021.
    """
    hits = flags(covered, "covered")
    size = sizes(lengths, "lengths", len(hits))
    kept = ~np.isnan(hits) & np.isfinite(size)
    hits, size = hits[kept], size[kept]
    if not len(hits):
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        size = size - size[0]  # so that equal lengths are exactly constant
        size = size - size.mean()
        hits = hits - hits.mean()
        return _pearson(
            float(np.dot(hits, hits)), float(np.dot(size, size)), float(np.dot(hits, size))
        )


def _pearson(hits: float, sizes: float, both: float) -> float:
    """The correlation from the two sums of squares and the sum of products about the means."""
    if hits == 0.0 or sizes == 0.0:
        return 0.0
    if not math.isfinite(sizes):
        return math.nan
    return min(1.0, max(-1.0, both / (math.sqrt(hits) * math.sqrt(sizes))))
