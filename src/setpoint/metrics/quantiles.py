"""How good several quantiles were: calibration, PIT, CRPS and weighted quantile loss.

`levels` rise, (k,), and `ends` has a row of quantiles for each prediction, (n, k). The distribution
between and outside them is that of `sets.Bands`. NaN labels are left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import confidence
from setpoint.errors import InputError
from setpoint.metrics.tally import mean, observed
from setpoint.sets import distribution

Array = np.ndarray[Any, Any]
_BINS = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """What came out of several quantiles.

    Parameters
    ----------
    labels
        How many actual values were seen.
    levels, shares
        The level of each quantile, and the share of actual values at or below it.
    pit
        How many actual values fell into each tenth of the predicted distributions: all alike where
        these are right, many at both ends where they are too narrow.
    crps
        The mean continuous ranked probability score, in the unit of y; rows without a finite
        quantile are left out.
    wql
        Twice the pinball loss of all levels, for one unit of |y|: the mean weighted quantile loss.
    """

    labels: int
    levels: tuple[float, ...]
    shares: tuple[float, ...]
    pit: tuple[int, ...]
    crps: float
    wql: float

    @property
    def off(self) -> float:
        """The mean distance of shares from their levels."""
        return float(np.mean(np.abs(np.subtract(self.shares, self.levels))))


def calibration(levels: ArrayLike, ends: ArrayLike, y: ArrayLike) -> Calibration:
    """Every number of quantiles at once.

    >>> scores = calibration([0.25, 0.75], [[0, 2], [0, 2]], [1.0, 3.0])
    >>> scores.shares, scores.wql
    ((0.0, 0.5), 0.5)
    """
    known, quantiles, label = _checked(levels, ends, y)
    chances = distribution.cdf(known, quantiles, label)
    scores = distribution.crps(known, quantiles, label)
    counts = np.histogram(chances[np.isfinite(chances)], _BINS, (0.0, 1.0))[0]
    return Calibration(
        len(label), tuple(known.tolist()),
        tuple((label[:, None] <= quantiles).mean(axis=0).tolist()) if len(label)
        else (float("nan"),) * len(known),
        tuple(counts.tolist()), mean(scores[~np.isnan(scores)]), _wql(known, quantiles, label),
    )  # fmt: skip


def _wql(levels: Array, quantiles: Array, label: Array) -> float:
    """Twice the pinball loss, for one unit of |y|."""
    finite = np.isfinite(quantiles).all(axis=1)
    over = label[finite, None] - quantiles[finite]
    loss = 2.0 * np.maximum(levels * over, (levels - 1.0) * over).sum(axis=0)
    size = np.abs(label[finite]).sum()
    return float(loss.mean() / size) if size > 0.0 else float("nan")


def _checked(levels: ArrayLike, ends: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
    """Levels, the quantiles of the rows with a label, and these labels."""
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
    return known, quantiles[seen], label[seen]
