"""The metrics one by one, over arrays: risk, coverage, streaks, lengths, pinball, Winkler.

`covered` holds 1 (or True) where the label lay in its set, 0 where not, and NaN where no label was
observed. Such a step is left out as if it were not there: a streak goes on across it. A label of
NaN means "not observed" too.

An interval is empty when its ends are crossed or when it holds no finite number; the empty
interval is lower = +inf, upper = −inf.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._check import interval
from setpoint.metrics.columns import Floats, ends, flags, fraction, mean, observed, sizes
from setpoint.metrics.tally import (
    correlation_of,
    counters,
    derived,
    measure_rows,
    moments_of,
    tally_of,
)

__all__ = [
    "EVERYTHING", "correlation", "coverage", "covered", "empty_share", "full_share", "lengths",
    "longest_streak", "mc", "mean_finite_length", "mean_length", "median_length",
    "miscoverage_counter", "msl", "pinball", "risk", "streaks", "winkler",
]  # fmt: skip

EVERYTHING = (-math.inf, math.inf)
"""The support of a label that can be any number."""


def risk(losses: ArrayLike) -> float:
    """The mean of the observed losses; NaN when none was observed.

    >>> risk([0.0, 1.0, float("nan"), 0.5])
    0.5
    """
    values = observed(losses, "losses")
    return mean(values[~np.isnan(values)])


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
    counter = np.full(len(hits), np.nan)
    counter[seen] = counters(hits[seen] == 0.0)
    return counter


def mc(covered: ArrayLike) -> float:
    """The mean of the miscoverage counter; NaN when no step was observed.

    True conditional quantiles reach α/(1 − α) at miscoverage α. The counter's largest value is
    `longest_streak`.

    >>> mc([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    0.26666666666666666
    """
    counter = miscoverage_counter(covered)
    return mean(counter[~np.isnan(counter)])


def streaks(covered: ArrayLike) -> NDArray[np.int64]:
    """The lengths of the streaks of misses, in order; one cut by the end of the stream counts.

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
    runs = streaks(covered)
    return float(runs.mean()) if len(runs) else 0.0


def longest_streak(covered: ArrayLike) -> int:
    """The length of the longest streak of misses, which is the largest miscoverage counter.

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
    seen = ~np.isnan(hits)
    return correlation_of(moments_of(size[seen], hits[seen] == 0.0))


def covered(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Floats:
    """1.0 where y lies between the ends (included), 0.0 where not, NaN where y is NaN.

    >>> covered([0, 0, 0], [1, 1, 1], [1.0, 2.0, float("nan")])
    array([ 1.,  0., nan])
    """
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    return np.where(np.isnan(label), np.nan, (low <= label) & (label <= high))


def coverage(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> float:
    """The share of observed labels that lie in their interval; NaN when none was observed.

    >>> coverage([0, 0, 0, 0], [1, 1, 1, 1], [0.5, 1.0, 1.5, float("nan")])
    0.6666666666666666
    """
    hits = covered(lower, upper, y)
    return mean(hits[~np.isnan(hits)])


def lengths(lower: ArrayLike, upper: ArrayLike) -> Floats:
    """upper − lower, never negative: crossed ends have length 0, the full interval +inf.

    >>> inf = float("inf")
    >>> lengths([0, 3, inf, -inf], [2, 1, -inf, inf])
    array([ 2.,  0.,  0., inf])
    """
    low, high = ends(lower, upper)
    return measure_rows(low, high, low, *EVERYTHING).length


def mean_length(lengths: ArrayLike) -> float:
    """The mean of lengths or set sizes: +inf with one infinite among them, NaN with none.

    >>> mean_length([1.0, 2.0, 6.0])
    3.0
    """
    return mean(sizes(lengths, "lengths"))


def mean_finite_length(lengths: ArrayLike) -> float:
    """The mean of the finite lengths, NaN when there is none. Read it beside `full_share`.

    >>> mean_finite_length([1.0, 2.0, float("inf")])
    1.5
    """
    values = sizes(lengths, "lengths")
    return mean(values[np.isfinite(values)])


def median_length(lengths: ArrayLike) -> float:
    """The median of lengths or set sizes, NaN when there is none.

    >>> median_length([1.0, 2.0, float("inf")])
    2.0
    """
    values = sizes(lengths, "lengths")
    with np.errstate(over="ignore"):
        return float(np.median(values)) if len(values) else math.nan


def full_share(
    lower: ArrayLike, upper: ArrayLike, support: tuple[float, float] = EVERYTHING
) -> float:
    """The share of intervals that hold the whole support of y, NaN when there is none.

    Parameters
    ----------
    support
        The values y can take; (0, inf) for a demand that is never negative.

    Examples
    --------
    >>> inf = float("inf")
    >>> full_share([-inf, 0, 0, 1], [inf, inf, 9, 2])
    0.25
    >>> full_share([-inf, 0, 0, 1], [inf, inf, 9, 2], support=(0, inf))
    0.5
    """
    low, high = ends(lower, upper)
    steps = measure_rows(low, high, low, *interval(support, "support"))
    return mean(steps.is_whole.astype(np.float64))


def empty_share(lower: ArrayLike, upper: ArrayLike) -> float:
    """The share of intervals that hold nothing, NaN when there is none.

    An interval of one point has length 0 and is not empty.

    >>> inf = float("inf")
    >>> empty_share([inf, 3, 1, 0], [-inf, 2, 1, 1])
    0.5
    """
    low, high = ends(lower, upper)
    return mean(measure_rows(low, high, low, *EVERYTHING).is_nothing.astype(np.float64))


def pinball(lower: ArrayLike, upper: ArrayLike, y: ArrayLike, confidence_level: float) -> float:
    """The mean over steps of the average pinball loss of the two ends.

    With α = 1 − confidence_level, the lower end is judged as the quantile of level α/2 and the
    upper one as that of 1 − α/2; the average of the two is what the paper tunes by. Where the
    ends are not crossed it is α/4 times the Winkler score. One infinite end makes it +inf.

    Parameters
    ----------
    confidence_level
        The nominal coverage 1 − α, between 0 and 1.

    Examples
    --------
    At 80 % the tails are 0.1: (0.1·1 + 0.1·3)/2 inside, (0.9·1 + 0.1·5)/2 one below.

    >>> round(pinball([0], [4], [1], 0.8), 12)
    0.2
    >>> round(pinball([0], [4], [-1], 0.8), 12)
    0.7

    References
    ----------
    Koenker and Bassett, Regression quantiles, Econometrica 46 (1978).
    """
    return _score("pinball", lower, upper, y, confidence_level)


def winkler(lower: ArrayLike, upper: ArrayLike, y: ArrayLike, confidence_level: float) -> float:
    """The mean Winkler (interval) score: length + 2/α times the distance by which y is missed.

    The smaller the better, and the true conditional quantiles have the smallest expectation.
    Crossed ends count with length 0 and with the distance of y to both. One infinite end makes
    the mean +inf, and so does a miss at confidence level 1.

    Parameters
    ----------
    confidence_level
        The nominal coverage 1 − α, between 0 and 1.

    Examples
    --------
    >>> winkler([0], [4], [1], 0.8)
    4.0
    >>> round(winkler([0], [4], [-1], 0.8), 12)
    14.0

    References
    ----------
    Winkler, A decision-theoretic approach to interval estimation, JASA 67 (1972).
    Gneiting and Raftery, Strictly proper scoring rules, JASA 102 (2007), section 6.2.
    """
    return _score("winkler", lower, upper, y, confidence_level)


def _score(
    name: str, lower: ArrayLike, upper: ArrayLike, y: ArrayLike, confidence_level: float
) -> float:
    """A metric of the tally of all intervals whose label was observed."""
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    nominal = fraction(confidence_level, "confidence_level")
    seen = ~np.isnan(label)
    tally = tally_of(measure_rows(low[seen], high[seen], label[seen], *EVERYTHING))
    return float(derived(tally, (1.0 - nominal) / 2.0)[name])
