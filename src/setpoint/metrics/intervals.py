"""Metrics of the intervals themselves: coverage, lengths, full and empty, pinball, Winkler.

An interval is empty when its ends are crossed or when it holds no finite number; the empty
interval is lower = +inf, upper = −inf. A label of NaN means "not observed": its step is left out.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import interval
from setpoint.metrics._input import Flags, Floats, ends, fraction, mean, observed, sizes

__all__ = [
    "coverage",
    "covered",
    "empty_share",
    "full_share",
    "lengths",
    "mean_finite_length",
    "mean_length",
    "median_length",
    "pinball",
    "winkler",
]

_EVERYTHING = (-math.inf, math.inf)


def covered(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Floats:
    """1.0 where y lies between the ends (included), 0.0 where not, NaN where y is NaN.

    Examples
    --------
    >>> covered([0, 0, 0], [1, 1, 1], [1.0, 2.0, float("nan")])
    array([ 1.,  0., nan])
    """
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    return np.where(np.isnan(label), np.nan, (low <= label) & (label <= high))


def coverage(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> float:
    """The share of observed labels that lie in their interval; NaN when none was observed.

    Examples
    --------
    >>> coverage([0, 0, 0, 0], [1, 1, 1, 1], [0.5, 1.0, 1.5, float("nan")])
    0.6666666666666666
    """
    hits = covered(lower, upper, y)
    return mean(hits[~np.isnan(hits)])


def lengths(lower: ArrayLike, upper: ArrayLike) -> Floats:
    """upper − lower, never negative: crossed ends have length 0, the full interval +inf.

    Examples
    --------
    >>> inf = float("inf")
    >>> lengths([0, 3, inf, -inf], [2, 1, -inf, inf])
    array([ 2.,  0.,  0., inf])
    """
    low, high = ends(lower, upper)
    got = np.zeros_like(low)
    with np.errstate(over="ignore"):
        np.subtract(high, low, out=got, where=high > low)
    return got


def mean_length(lengths: ArrayLike) -> float:
    """The mean of lengths or set sizes: +inf with one infinite among them, NaN with none.

    Examples
    --------
    >>> mean_length([1.0, 2.0, 6.0])
    3.0
    """
    return mean(sizes(lengths, "lengths"))


def mean_finite_length(lengths: ArrayLike) -> float:
    """The mean of the finite lengths, NaN when there is none. Read it beside `full_share`.

    Examples
    --------
    >>> mean_finite_length([1.0, 2.0, float("inf")])
    1.5
    """
    got = sizes(lengths, "lengths")
    return mean(got[np.isfinite(got)])


def median_length(lengths: ArrayLike) -> float:
    """The median of lengths or set sizes, NaN when there is none.

    Examples
    --------
    >>> median_length([1.0, 2.0, float("inf")])
    2.0
    """
    got = sizes(lengths, "lengths")
    with np.errstate(over="ignore"):
        return float(np.median(got)) if len(got) else math.nan


def _is_full(low: Floats, high: Floats, support: tuple[float, float]) -> Flags:
    return (low <= support[0]) & (high >= support[1])


def _is_empty(low: Floats, high: Floats) -> Flags:
    nothing: Flags = (low > high) | (low == math.inf) | (high == -math.inf)
    return nothing


def full_share(
    lower: ArrayLike, upper: ArrayLike, support: tuple[float, float] = _EVERYTHING
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
    return mean(_is_full(low, high, interval(support, "support")).astype(np.float64))


def empty_share(lower: ArrayLike, upper: ArrayLike) -> float:
    """The share of intervals that hold nothing, NaN when there is none.

    An interval of one point has length 0 and is not empty.

    Examples
    --------
    >>> inf = float("inf")
    >>> empty_share([inf, 3, 1, 0], [-inf, 2, 1, 1])
    0.5
    """
    low, high = ends(lower, upper)
    return mean(_is_empty(low, high).astype(np.float64))


def _beyond(low: Floats, high: Floats, y: Floats) -> tuple[Floats, Floats]:
    """How far y lies below the lower and above the upper end, each 0 or more."""
    return np.maximum(low - y, 0.0), np.maximum(y - high, 0.0)


def _pinball_steps(low: Floats, high: Floats, y: Floats, nominal: float) -> Floats:
    tail = (1.0 - nominal) / 2.0
    with np.errstate(over="ignore"):
        below, above = _beyond(low, high, y)
        got = (1.0 - tail) * (below + above)
        if tail > 0.0:  # at tail 0 the near side costs nothing, however far the end: not 0 · inf
            got += tail * (np.maximum(y - low, 0.0) + np.maximum(high - y, 0.0))
    return got / 2.0


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
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    got = _pinball_steps(low, high, label, fraction(confidence_level, "confidence_level"))
    return mean(got[~np.isnan(label)])


def _winkler_steps(low: Floats, high: Floats, y: Floats, nominal: float) -> Floats:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        missed = np.add(*_beyond(low, high, y))
        cost = np.where(missed > 0.0, np.divide(2.0, 1.0 - nominal) * missed, 0.0)
        return np.where(high > low, high - low, 0.0) + cost


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
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    got = _winkler_steps(low, high, label, fraction(confidence_level, "confidence_level"))
    return mean(got[~np.isnan(label)])
