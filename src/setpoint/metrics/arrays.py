"""The metrics one by one, over arrays: risk, coverage, streaks, widths, pinball, groups, quantiles.

`covered` holds 1 (or True) where the label lay in its set, 0 where not, and NaN where no label was
observed. Such a step is left out as if it were not there: a streak goes on across it. A label or
loss of NaN means "not observed" too. A mean over nothing is NaN. MC, MSL and ΔCoverage are those of
Feldman et al., Achieving risk control in online learning settings, TMLR 2023.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from math import exp, floor, fsum, lgamma, log, log1p, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._check import confidence, whole
from setpoint.errors import InputError
from setpoint.metrics.tally import (
    Flags,
    Floats,
    Places,
    by_length,
    derived,
    ends,
    flags,
    fraction,
    mean,
    measure_rows,
    observed,
    streaks_of,
    tally_of,
)
from setpoint.sets import distribution


def risk(losses: ArrayLike) -> float:
    """The mean of the observed losses.

    >>> risk([0.0, 1.0, float("nan"), 0.5])
    0.5
    """
    return _mean(observed(losses, "losses"))


def _mean(values: Floats) -> float:
    return mean(values[~np.isnan(values)])


def miscoverage_counter(covered: ArrayLike) -> Floats:
    """Counts consecutive misses up to each step; 0 at a hit, NaN if not observed.

    >>> miscoverage_counter([1, 0, 0, float("nan"), 0, 1])
    array([ 0.,  1.,  2., nan,  3.,  0.])
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

    >>> msl([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    1.5
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
    """Coverage by width: of the narrowest finite intervals, the next, and so on.

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


def pinball(lower: ArrayLike, upper: ArrayLike, y: ArrayLike, coverage: float) -> float:
    """The mean over steps of the average pinball loss of the two ends.

    With α = 1 − `coverage`, the ends are judged as the quantiles of levels α/2 and 1 − α/2.
    Where they are not crossed it is α/4 times the Winkler score. One infinite end makes it +inf.

    At 80 % the tails are 0.1: (0.1·1 + 0.1·3)/2 inside, (0.9·1 + 0.1·5)/2 one below.

    >>> round(pinball([0], [4], [1], 0.8), 12), round(pinball([0], [4], [-1], 0.8), 12)
    (0.2, 0.7)
    """
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    tail = (1.0 - fraction(coverage, "coverage")) / 2.0
    seen = ~np.isnan(label)
    tally = tally_of(measure_rows(low[seen], high[seen], label[seen]))
    return float(derived(tally, tail)["pinball"])


# Groups


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """Coverage by group; `delta` and `noise_floor` are fractions, NaN without a group."""

    delta: float  # the mean distance of coverage from the nominal level
    noise_floor: float  # what chance alone would give
    coverage: Mapping[Hashable, float]
    sizes: Mapping[Hashable, int]


def delta_coverage(covered: ArrayLike, groups: Iterable[Any], nominal: float) -> GroupCoverage:
    """ΔCoverage: the mean over groups of |coverage in the group − nominal|.

    `groups` has one key a step: a weekday, a site, anything hashable. A step whose key is `None` or
    NaN belongs to no group.

    >>> got = delta_coverage([1, 1, 0, 1], ["mon", "mon", "tue", "tue"], nominal=0.9)
    >>> dict(got.coverage), round(got.delta, 6), round(got.noise_floor, 6)
    ({'mon': 1.0, 'tue': 0.5}, 0.25, 0.162)
    """
    hits = flags(covered, "covered")
    codes, keys = coded(groups, len(hits))
    seen = ~np.isnan(hits)
    return coverage_by_group(codes[seen], keys, hits[seen] == 0.0, fraction(nominal, "nominal"))


def coverage_by_group(
    codes: Places, keys: list[Hashable], missed: Flags, nominal: float
) -> GroupCoverage:
    """Coverage in each group that has a step; `codes` and `keys` are those of `coded`."""
    steps, misses = (
        np.bincount(places + 1, minlength=len(keys) + 1)[1:].tolist()
        for places in (codes, codes[missed])
    )
    counts = {key: (n, m) for key, n, m in zip(keys, steps, misses, strict=True) if n}
    sizes = {key: n for key, (n, _) in counts.items()}
    shares = {key: (n - m) / n for key, (n, m) in counts.items()}
    distances = [abs(share - nominal) for share in shares.values()]
    delta = fsum(distances) / len(distances) if distances else nan
    return GroupCoverage(delta, noise_floor(list(sizes.values()), nominal), shares, sizes)


def noise_floor(sizes: ArrayLike, nominal: float) -> float:
    """The ΔCoverage expected from independent hits of probability `nominal`: noise alone.

    The mean over groups of E|B/n − nominal| for a binomial B of the group's size n, exact by
    De Moivre's formula E|B − np| = 2ν C(n, ν) p^ν (1 − p)^(n − ν + 1), ν = ⌊np⌋ + 1. A controller
    makes hits less random than that, so a ΔCoverage below the floor is possible and no flaw.

    Seven weekdays of 1714 steps at 90 %: a reported "0.58 %" says nothing about the weekdays.

    >>> round(noise_floor([1714] * 7, 0.9), 4)
    0.0058
    """
    p = fraction(nominal, "nominal")
    if np.ndim(sizes) != 1:
        raise InputError(f"sizes must be a column of group sizes, got {sizes!r}")
    noise = [_deviation(whole(n, "a group size", 1), p) for n in np.asarray(sizes).tolist()]
    return fsum(noise) / len(noise) if noise else nan


def _deviation(n: int, p: float) -> float:
    """E|B/n − p|, in logarithms because the binomial coefficient overflows."""
    if p in (0.0, 1.0):
        return 0.0
    v = min(floor(n * p) + 1, n)
    power = lgamma(n + 1) - lgamma(v + 1) - lgamma(n - v + 1)
    power += v * log(p) + (n - v + 1) * log1p(-p)
    return 2.0 * (v / n) * exp(power)


def coded(groups: Iterable[Any], size: int) -> tuple[Places, list[Hashable]]:
    """The place of each step's key in the list of keys, −1 for none, and that list.

    Keys come in order of first appearance; one that is None or equals nothing (NaN, NaT) is none.
    Numbers in arrays become plain Python ones, dates stay as they are.
    """
    keys: Any = groups
    if isinstance(groups, np.ndarray) and groups.dtype.kind not in "mM":
        keys = groups.tolist()
    try:
        keys = list(keys)
    except TypeError:
        raise InputError(f"groups must hold one key a step, got {groups!r}") from None
    if len(keys) != size:
        raise InputError(f"groups must have one key for each of the {size} steps, got {len(keys)}")
    try:
        distinct = [key for key in dict.fromkeys(keys) if key is not None and key == key]
    except TypeError as error:
        raise InputError(f"a group must be hashable (a name, a number), got {error}") from None
    places = {key: place for place, key in enumerate(distinct)}
    return np.fromiter(map(places.get, keys, repeat(-1)), np.int64, size), distinct


# Several quantiles


@dataclass(frozen=True, slots=True)
class Calibration:
    """What came out of several quantiles; rows without a finite one are left out of scores."""

    labels: int  # actual values seen
    levels: tuple[float, ...]  # of each quantile
    shares: tuple[float, ...]  # of actual values at or below it
    pit: tuple[int, ...]  # actual values in each tenth of the predicted distributions
    crps: float  # the mean continuous ranked probability score, in the unit of y
    wql: float  # twice the pinball loss of all levels, for one unit of |y|

    @property
    def off(self) -> float:
        """The mean distance of shares from their levels."""
        return float(np.mean(np.abs(np.subtract(self.shares, self.levels))))


def calibration(levels: ArrayLike, ends: ArrayLike, y: ArrayLike) -> Calibration:
    """All calibration measures of a set of quantiles.

    >>> scores = calibration([0.25, 0.75], [[0, 2], [0, 2]], [1.0, 3.0])
    >>> scores.shares, scores.wql
    ((0.0, 0.5), 0.5)
    """
    known = np.array([confidence(level, "a level") for level in np.ravel(levels)])
    quantiles = np.asarray(ends, float)
    if not len(known) or (np.diff(known) <= 0.0).any():
        raise InputError(f"levels must rise, got {known.tolist()}")
    if quantiles.ndim != 2 or quantiles.shape[1] != len(known):
        raise InputError(
            f"quantiles must have a column for each of {len(known)} levels, got {quantiles.shape}"
        )
    label = observed(y, "y", len(quantiles))
    seen = ~np.isnan(label)
    quantiles, label = quantiles[seen], label[seen]
    chances = distribution.cdf(known, quantiles, label)
    scores = distribution.crps(known, quantiles, label)
    shares = (label[:, None] <= quantiles).mean(axis=0) if len(label) else np.full(len(known), nan)
    finite = np.isfinite(quantiles).all(axis=1)
    over = label[finite, None] - quantiles[finite]
    losses = 2.0 * np.maximum(known * over, (known - 1.0) * over).sum(axis=0)
    size = np.abs(label[finite]).sum()
    return Calibration(
        labels=len(label),
        levels=tuple(known.tolist()),
        shares=tuple(shares.tolist()),
        pit=tuple(np.histogram(chances[np.isfinite(chances)], 10, (0.0, 1.0))[0].tolist()),
        crps=_mean(scores),
        wql=float(losses.mean() / size) if size > 0.0 else nan,
    )
