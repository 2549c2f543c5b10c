"""The metrics one by one, over arrays: risk, coverage, streaks, lengths, pinball, label sets.

`covered` holds 1 (or True) where the label lay in its set, 0 where not, and NaN where no label was
observed. Such a step is left out as if it were not there: a streak goes on across it. A label or
loss of NaN means "not observed" too. A mean over nothing is NaN.

Sets of labels are `masks`: which classes each set holds, one row a step and one column a class.
`labels` is the class of each step as its place among the columns, NaN where it was not observed;
or, where a step may have several labels, a matrix of 0 and 1 like `masks`, a row of NaN where not
observed. A class beyond the last column is one that the sets do not know, and is in none of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint.errors import InputError
from setpoint.metrics.tally import (
    Flags,
    Floats,
    by_length,
    column,
    derived,
    ends,
    flags,
    fraction,
    mean,
    measure_rows,
    observed,
    refuse,
    share,
    sizes,
    streaks_of,
    tally_of,
)


def risk(losses: ArrayLike) -> float:
    """The mean of the observed losses.

    >>> risk([0.0, 1.0, float("nan"), 0.5])
    0.5
    """
    return _mean(observed(losses, "losses"))


def _mean(values: Floats) -> float:
    """The mean of the values that are not NaN."""
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
    steps = np.arange(1.0, seen.sum() + 1.0)
    counter[seen] = steps - np.maximum.accumulate(np.where(hits[seen] == 0.0, 0.0, steps))
    return counter


def mc(covered: ArrayLike) -> float:
    """The mean of the miscoverage counter. True conditional quantiles reach α/(1 − α).

    >>> mc([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    0.26666666666666666
    """
    return _mean(miscoverage_counter(covered))


def streaks(covered: ArrayLike) -> NDArray[np.int64]:
    """The lengths of the streaks of misses, in order; one cut by the end of the stream counts.

    >>> streaks([1, 0, 1, 0, 0])
    array([1, 2])
    """
    hits = flags(covered, "covered")
    return streaks_of(hits[~np.isnan(hits)] == 0.0)


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


def covered(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Floats:
    """1.0 where y lies between the ends (included), 0.0 where not, NaN where y is NaN.

    >>> covered([0, 0, 0], [1, 1, 1], [1.0, 2.0, float("nan")])
    array([ 1.,  0., nan])
    """
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    return np.where(np.isnan(label), np.nan, (low <= label) & (label <= high))


def coverage(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> float:
    """The share of observed labels that lie in their interval.

    >>> coverage([0, 0, 0, 0], [1, 1, 1, 1], [0.5, 1.0, 1.5, float("nan")])
    0.6666666666666666
    """
    return _mean(covered(lower, upper, y))


def lengths(lower: ArrayLike, upper: ArrayLike) -> Floats:
    """upper − lower, never negative: crossed ends have length 0, the full interval +inf.

    >>> inf = float("inf")
    >>> lengths([0, 3, inf, -inf], [2, 1, -inf, inf])
    array([ 2.,  0.,  0., inf])
    """
    low, high = ends(lower, upper)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.fmax(high - low, 0.0)  # as `measure_rows`, which works out more


def coverage_by_width(
    lower: ArrayLike, upper: ArrayLike, y: ArrayLike, parts: int = 5, offsets: ArrayLike = ()
) -> Floats:
    """The coverage of the narrowest finite intervals, of the next ones, and so on.

    Each part has as many labels. Of several streams, which `offsets` tell apart, widths count as
    shares of the stream's own mean. NaN where a part has no label.

    >>> coverage_by_width([0, 0, 0, 0], [1, 1, 9, 9], [0.5, 2.0, 2.0, 5.0], parts=2).tolist()
    [0.5, 1.0]
    """
    low, high, label = (np.asarray(column, np.float64) for column in (lower, upper, y))
    seen = label == label
    begins = np.append(0, np.cumsum(seen))[np.asarray(offsets, np.int64)[:-1]]
    missed = ~((low <= label) & (label <= high))[seen]
    return by_length(lengths(low, high)[seen], missed, begins if len(begins) > 1 else None, parts)


def mean_length(lengths: ArrayLike) -> float:
    """The mean of lengths or set sizes: +inf with one infinite among them.

    >>> mean_length([1.0, 2.0, 6.0])
    3.0
    """
    return mean(sizes(lengths, "lengths"))


def mean_finite_length(lengths: ArrayLike) -> float:
    """The mean of the finite lengths.

    >>> mean_finite_length([1.0, 2.0, float("inf")])
    1.5
    """
    values = sizes(lengths, "lengths")
    return mean(values[np.isfinite(values)])


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
    tail = (1.0 - fraction(confidence_level, "confidence_level")) / 2.0
    seen = ~np.isnan(label)
    tally = tally_of(measure_rows(low[seen], high[seen], label[seen]))
    return float(derived(tally, tail)["pinball"])


# Sets of labels


def set_sizes(masks: ArrayLike) -> NDArray[np.int64]:
    """How many classes each set holds.

    >>> set_sizes([[1, 1, 0], [0, 0, 0]])
    array([2, 0])
    """
    counts: NDArray[np.int64] = np.count_nonzero(_masks(masks), axis=1)
    return counts


def labels_covered(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """1.0 where a set holds every label of its step, 0.0 where not, NaN where not observed.

    >>> labels_covered([[1, 1, 0], [0, 1, 0], [1, 0, 0]], [1, 2, float("nan")])
    array([ 1.,  0., nan])
    >>> labels_covered([[1, 1, 0], [0, 1, 0]], [[1, 1, 0], [1, 1, 0]])
    array([1., 0.])
    """
    judged = _judged(masks, labels)
    return np.where(judged.seen, judged.hits == judged.labels, np.nan)


def false_negatives(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """The share of a step's labels that its set leaves out; NaN where it has none.

    `risk` of it is what a controller of `losses.FalseNegatives` holds.

    >>> false_negatives([[1, 0, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 0]])
    array([0.5, nan])
    """
    judged = _judged(masks, labels)
    return 1.0 - share(judged.hits, np.where(judged.seen, judged.labels, 0))


class _Judged(NamedTuple):
    """Counts of each step: its labels, and those in its set."""

    seen: Flags
    labels: NDArray[np.int64]
    hits: NDArray[np.int64]


def _judged(masks: ArrayLike, labels: ArrayLike) -> _Judged:
    inside = _masks(masks)
    if np.ndim(labels) == 2:
        truth, seen = _several(labels, inside.shape)
        return _Judged(seen, truth.sum(axis=1), np.count_nonzero(truth & inside, axis=1))
    place = column(labels, "labels", len(inside))
    seen = ~np.isnan(place)
    wrong = seen & ~((place >= 0.0) & (place == np.floor(place)) & np.isfinite(place))
    refuse(wrong, place, "labels", "the number of a class from 0, or NaN where not observed")
    truth = place[:, None] == np.arange(inside.shape[1])
    return _Judged(seen, seen.astype(np.int64), np.count_nonzero(truth & inside, axis=1))


def _several(labels: ArrayLike, shape: tuple[int, ...]) -> tuple[Flags, Flags]:
    """Which labels each step has, and which steps were observed."""
    if np.shape(labels) != shape:
        raise InputError(
            f"labels must have the shape {shape} of masks where a step may have several, "
            f"got {np.shape(labels)}"
        )
    numbers = _numbers(labels, "labels")
    missing = np.isnan(numbers).all(axis=1) & (shape[1] > 0)
    wrong = ~((numbers == 0.0) | (numbers == 1.0)).all(axis=1) & ~missing
    if wrong.any():
        step = int(np.argmax(wrong))
        raise InputError(
            "labels must be 0 or 1 for each class, or NaN for all where not observed, "
            f"got {numbers[step].tolist()} at step {step}"
        )
    return np.asarray(numbers == 1.0), np.asarray(~missing)


def _masks(masks: ArrayLike) -> Flags:
    if np.ndim(masks) != 2:
        raise InputError(
            f"masks must have one row a step and one column a class, got shape {np.shape(masks)}"
        )
    numbers = _numbers(masks, "masks")
    wrong = ~((numbers == 0.0) | (numbers == 1.0))
    if wrong.any():
        raise InputError(f"masks must hold 0 and 1, got {float(numbers[wrong][0])}")
    return np.asarray(numbers == 1.0)


def _numbers(values: ArrayLike, name: str) -> Floats:
    numbers = np.asarray(values)
    if numbers.size and numbers.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must hold numbers or booleans, got values of type {numbers.dtype}"
        )
    return numbers.astype(np.float64)
