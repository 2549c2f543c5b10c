"""All metrics of a stream in one table, from arrays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import interval
from setpoint.metrics._input import (
    Floats,
    ends,
    flags,
    group_keys,
    level_of,
    marks,
    mean,
    nominal_of,
    observed,
    sizes,
    whole,
)
from setpoint.metrics.groups import delta_coverage
from setpoint.metrics.hits import correlation, mc, streaks
from setpoint.metrics.intervals import (
    _EVERYTHING,
    _is_empty,
    _is_full,
    _pinball_steps,
    _winkler_steps,
    covered,
    lengths,
    mean_finite_length,
    mean_length,
    median_length,
)
from setpoint.metrics.windows import window_errors

__all__ = ["Summary", "size_summary", "summary"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Every metric of a stream. Shares, coverage and ΔCoverage are fractions, not percentages.

    A mean over nothing is NaN; `msl`, `longest_streak` and `correlation` are then 0.
    """

    level: float  # of the risk
    confidence_level: float  # the nominal coverage
    window: int  # steps in a sliding window
    steps: int  # observed; every number below is about these
    missing: int  # left out: no label, or no loss
    risk: float  # the mean loss
    coverage: float
    mean_length: float
    median_length: float
    mean_finite_length: float
    full: float  # the share of full sets
    empty: float  # the share of empty sets
    mc: float  # the mean miscoverage counter; its largest value is longest_streak
    msl: float  # the mean length of a streak of misses
    streaks: int  # of misses
    longest_streak: int
    delta_coverage: float
    noise_floor: float  # the delta_coverage that noise alone would give
    groups: int
    pinball: float  # NaN for sets that are not intervals, and so is winkler
    winkler: float
    worst_window: float  # the largest |mean loss − level| over windows
    rms_window: float  # its root mean square
    worst_window_start: int | None  # the step, counted from 0 with the missing ones
    correlation: float  # of coverage and length

    def as_dict(self) -> dict[str, float | int | None]:
        """Names and numbers, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        rows = self.as_dict()
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in rows.items())


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def summary(
    lower: ArrayLike,
    upper: ArrayLike,
    y: ArrayLike,
    level: float,
    *,
    losses: ArrayLike | None = None,
    groups: Iterable[Any] | None = None,
    window: int = 250,
    confidence_level: float | None = None,
    support: tuple[float, float] = _EVERYTHING,
) -> Summary:
    """Every metric of a stream of intervals.

    A step whose label or loss is NaN is counted as missing and left out of every number, lengths
    included, so that all numbers speak of the same steps.

    Parameters
    ----------
    lower, upper, y
        The ends shown and the label of each step.
    level
        The level the risk should have.
    losses
        The loss of each step; the 0-1 miscoverage if not given.
    groups
        One key a step for ΔCoverage; without them it is NaN.
    window
        Steps in a sliding window; a shorter stream counts as one window.
    confidence_level
        The nominal coverage, for ΔCoverage, pinball and Winkler. By default 1 − level; it must
        be given where that is not a fraction, and should be where the loss is not miscoverage.
    support
        The values y can take; an interval that holds them all is full.

    Examples
    --------
    >>> got = summary([0, 0, 0, 0], [2, 2, 2, 4], [1, 3, 1, float("nan")], level=0.2)
    >>> got.steps, got.missing, got.mean_length, got.winkler
    (3, 1, 2.0, 5.333333333333333)
    >>> print(got)  # doctest: +ELLIPSIS
    level               0.2
    confidence_level    0.8
    window              250
    steps               3
    missing             1
    risk                0.333333
    coverage            0.666667
    ...
    """
    low, high = ends(lower, upper)
    label = observed(y, "y", len(low))
    target = level_of(level)
    nominal = nominal_of(target, confidence_level)
    whole_set = interval(support, "support")
    return _summarise(
        lengths(low, high),
        covered(low, high, label),
        target,
        nominal,
        window,
        losses,
        groups,
        full=_is_full(low, high, whole_set).astype(np.float64),
        empty=_is_empty(low, high).astype(np.float64),
        pinballs=_pinball_steps(low, high, label, nominal),
        winklers=_winkler_steps(low, high, label, nominal),
    )


def size_summary(
    size: ArrayLike,
    covered: ArrayLike,
    level: float,
    *,
    losses: ArrayLike | None = None,
    groups: Iterable[Any] | None = None,
    full: ArrayLike | None = None,
    empty: ArrayLike | None = None,
    window: int = 250,
    confidence_level: float | None = None,
) -> Summary:
    """Every metric of a stream of sets that have a size and no ends: label sets, images.

    Parameters
    ----------
    size
        How large each set is: the number of labels, the mean width over the pixels of an image.
    covered
        1 (or True) where the set did its duty, 0 where not, NaN where not observed. For an image
        whose loss is a share of pixels, say `losses <= level`.
    full, empty
        Which sets are full and empty; if not given, those of size +inf and of size 0.

    The other parameters are those of `summary`; `pinball` and `winkler` are NaN.

    Examples
    --------
    >>> got = size_summary([1, 2, 3, 0], [1, 1, 1, 0], level=0.1, full=[0, 0, 1, 0])
    >>> got.mean_length, got.full, got.empty, got.coverage
    (1.5, 0.25, 0.25, 0.75)
    """
    hits = flags(covered, "covered")
    length = sizes(size, "size", len(hits))
    target = level_of(level)
    return _summarise(
        length,
        hits,
        target,
        nominal_of(target, confidence_level),
        window,
        losses,
        groups,
        full=np.isinf(length) * 1.0 if full is None else marks(full, "full", len(hits)),
        empty=(length == 0.0) * 1.0 if empty is None else marks(empty, "empty", len(hits)),
        pinballs=None,
        winklers=None,
    )


def _summarise(
    length: Floats,
    hits: Floats,
    level: float,
    nominal: float,
    window: int,
    losses: ArrayLike | None,
    groups: Iterable[Any] | None,
    *,
    full: Floats,
    empty: Floats,
    pinballs: Floats | None,
    winklers: Floats | None,
) -> Summary:
    loss = 1.0 - hits if losses is None else observed(losses, "losses", len(hits))
    keys = None if groups is None else group_keys(groups, len(hits))
    seen = ~(np.isnan(hits) | np.isnan(loss))
    hit = hits[seen]
    size = length[seen]
    grouped = () if keys is None else np.where(seen, hits, np.nan)
    by_group = delta_coverage(grouped, keys or (), nominal)
    errors = window_errors(np.where(seen, loss, np.nan), level, window)
    missed = streaks(hit)
    return Summary(
        level=level,
        confidence_level=nominal,
        window=whole(window, "window"),
        steps=len(hit),
        missing=len(hits) - len(hit),
        risk=mean(loss[seen]),
        coverage=mean(hit),
        mean_length=mean_length(size),
        median_length=median_length(size),
        mean_finite_length=mean_finite_length(size),
        full=mean(full[seen]),
        empty=mean(empty[seen]),
        mc=mc(hit),
        msl=float(missed.mean()) if len(missed) else 0.0,
        streaks=len(missed),
        longest_streak=int(missed.max(initial=0)),
        delta_coverage=by_group.delta,
        noise_floor=by_group.noise_floor,
        groups=len(by_group.sizes),
        pinball=math.nan if pinballs is None else mean(pinballs[seen]),
        winkler=math.nan if winklers is None else mean(winklers[seen]),
        worst_window=errors.worst,
        rms_window=errors.rms,
        worst_window_start=errors.start,
        correlation=correlation(hit, size),
    )
