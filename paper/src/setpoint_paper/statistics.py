"""How a claim is decided from seeds: signed ranks, and what a mean may be off by."""

from collections.abc import Sequence
from functools import lru_cache
from math import isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

LEAST = 6
"""Seeds below which no 95 % interval of signed ranks exists."""


class Estimate(NamedTuple):
    """A margin over seeds: the Hodges–Lehmann median and its interval, NaN ends if too few."""

    middle: float
    low: float
    high: float
    seeds: int

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not isnan(self.low)

    def __str__(self) -> str:
        ends = f" [{_digits(self.low)}, {_digits(self.high)}]" if self.known else ""
        return _digits(self.middle) + ends


def _digits(value: float) -> str:
    """Three digits that count; what is left of a difference of equal numbers is 0, not 4e-16."""
    value = round(value, 12) + 0.0
    return (f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}").replace("-", "−")


def estimate(values: Sequence[float], comparisons: int = 1, *, signs: bool = False) -> Estimate:
    """The median of the mean of two seeds, with the interval of Wilcoxon's signed-rank test.

    The interval has 1 − 0.05/comparisons. It asks for no normal law, but for values that lie alike
    on both sides of their middle; one seed that blows up moves it by one rank. With `signs` it is
    that of the sign test, which asks for nothing, around the median. NaN are left out.

    >>> print(estimate([1.0, 2.0, 3.0, 4.0, 5.0, 60.0]))
    3.5 [1, 60]
    >>> print(estimate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 90.0], signs=True))
    5 [2, 8]
    """
    known = np.array([value for value in values if not isnan(value)])
    if not len(known):
        return Estimate(nan, nan, nan, 0)
    first, second = np.arange(len(known)), np.arange(len(known))
    if not signs:
        first, second = np.triu_indices(len(known))
    points = np.sort((known[first] + known[second]) / 2.0)
    middle, rank = float(np.median(points)), _rank(len(known), 0.05 / comparisons, signs)
    if rank < 0:
        return Estimate(middle, nan, nan, len(known))
    return Estimate(middle, float(points[rank]), float(points[-1 - rank]), len(known))


@lru_cache(maxsize=256)
def _rank(count: int, level: float, signs: bool) -> int:
    """How many of the ordered points lie outside at each end; −1 where no interval exists."""
    ways = np.ones(1)
    for place in range(1, count + 1):  # the null law of the sum of positive ranks, or of signs
        rank = 1 if signs else place
        ways = np.concatenate([ways, np.zeros(rank)]) + np.concatenate([np.zeros(rank), ways])
    below = np.cumsum(ways) / 2.0**count
    return int(np.searchsorted(below, level / 2.0, side="right")) - 1


def two_deviations(level: float, rows: float, *, counter: bool = False) -> float:
    """Two deviations of a mean over rows whose misses are independent.

    The mean is the share of misses, or with `counter` that of a counter of misses in a row, which
    remembers: its values are geometric and correlated.

    >>> round(two_deviations(0.1, 12_000), 4), round(two_deviations(0.1, 200), 4)
    (0.0055, 0.0424)
    >>> round(two_deviations(1 / 9, 12_000, counter=True), 4)
    0.0071
    """
    miss = level / (1.0 + level) if counter else level
    variance = miss * (1.0 + miss) / (1.0 - miss) ** 3 if counter else miss * (1.0 - miss)
    return 2.0 * sqrt(variance / rows)


def tolerance(bound: float, level: float, rows: float, *, counter: bool = False) -> float:
    """How far from its level a mean may be for the claim that it attains it; NaN: not testable.

    The theorem's bound where that is below the level; else two deviations, where these are below a
    tenth of the level.

    >>> tolerance(0.03, 0.1, 200), tolerance(1.7, 0.1, 200)
    (0.03, nan)
    """
    if bound < level:
        return bound
    chance = two_deviations(level, rows, counter=counter)
    return chance if chance < level / 10.0 else nan
