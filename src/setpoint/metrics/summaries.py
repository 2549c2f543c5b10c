"""All metrics of a stream in one table, from arrays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import interval
from setpoint.metrics._input import (
    coded,
    flags,
    level_of,
    marks,
    nominal_of,
    numeric,
    refuse,
    sizes,
    whole,
)
from setpoint.metrics._totals import BLOCK, Totals
from setpoint.metrics.intervals import _EVERYTHING, _is_empty

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
    low = numeric(lower, "lower")
    high, label = numeric(upper, "upper", len(low)), numeric(y, "y", len(low))
    target = level_of(level)
    nominal = nominal_of(target, confidence_level)
    low_end, high_end = interval(support, "support")
    totals = _begun(len(low), losses, groups)
    missed = near = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(low), BLOCK):
            own, top, out = (
                each[start : start + BLOCK].astype(np.float64, copy=False)
                for each in (low, high, label)
            )
            refuse(np.isnan(own), own, "lower", "a number or ±inf", start)
            refuse(np.isnan(top), top, "upper", "a number or ±inf", start)
            refuse(np.isinf(out), out, "y", "finite, or NaN where not observed", start)
            kept, loss = totals.seen(out == out, start)
            if kept is not None:
                own, top, out = own[kept], top[kept], out[kept]
            hit = (own <= out) & (out <= top)
            length = np.fmax(top - own, 0.0)  # ends of the same infinity differ by NaN
            full = (own <= low_end) & (top >= high_end)
            totals.add(start, kept, hit, length, loss, full, _is_empty(own, top))
            above_low, below_high = out - own, top - out
            missed -= float(np.minimum(above_low, 0.0).sum() + np.minimum(below_high, 0.0).sum())
            near += float(np.maximum(above_low, 0.0).sum() + np.maximum(below_high, 0.0).sum())
    return _summarised(totals, target, nominal, window, missed, near)


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
    nominal = nominal_of(target, confidence_level)
    whole_set = np.isinf(length) if full is None else marks(full, "full", len(hits)) == 1.0
    nothing = length == 0.0 if empty is None else marks(empty, "empty", len(hits)) == 1.0
    totals = _begun(len(hits), losses, groups)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(hits), BLOCK):
            here = slice(start, start + BLOCK)
            kept, loss = totals.seen(hits[here] == hits[here], start)
            hit, own = hits[here] == 1.0, length[here]
            most, least = whole_set[here], nothing[here]
            if kept is not None:
                hit, own, most, least = hit[kept], own[kept], most[kept], least[kept]
            totals.add(start, kept, hit, own, loss, most, least)
    return _summarised(totals, target, nominal, window)


def _begun(size: int, losses: ArrayLike | None, groups: Iterable[Any] | None) -> Totals:
    given = None if losses is None else numeric(losses, "losses", size)
    codes, keys = (None, []) if groups is None else coded(groups, size)
    return Totals(size, given, codes, keys)


def _summarised(
    totals: Totals,
    level: float,
    nominal: float,
    window: int,
    missed: float | None = None,
    near: float = 0.0,
) -> Summary:
    """The table. `missed` is how far labels lay outside in all, `near` how far inside."""
    width = whole(window, "window")
    steps = totals.steps
    by_group = totals.by_group(nominal)
    errors = totals.windows(level, width)
    runs, longest, counter = totals.streaks()
    pinball = winkler = math.nan
    if missed is not None:
        tail = (1.0 - nominal) / 2.0
        # At tail 0 the near side costs nothing, however far the end, and a miss costs everything.
        inside = tail * near if tail > 0.0 else 0.0
        outside = (missed / tail if tail > 0.0 else math.inf) if missed > 0.0 else 0.0
        pinball = _share((1.0 - tail) * missed + inside, 2 * steps)
        winkler = _share(totals.total + outside, steps)
    return Summary(
        level=level,
        confidence_level=nominal,
        window=width,
        steps=steps,
        missing=totals.missing,
        risk=_share(totals.loss, steps),
        coverage=_share(totals.hits, steps),
        mean_length=_share(totals.total, steps),
        mean_finite_length=_share(totals.finite_total, totals.finite),
        full=_share(totals.full, steps),
        empty=_share(totals.empty, steps),
        mc=_share(counter, steps),
        msl=(steps - totals.hits) / runs if runs else 0.0,
        streaks=runs,
        longest_streak=longest,
        delta_coverage=by_group.delta,
        noise_floor=by_group.noise_floor,
        groups=len(by_group.sizes),
        pinball=pinball,
        winkler=winkler,
        worst_window=errors.worst,
        rms_window=errors.rms,
        worst_window_start=errors.start,
        correlation=totals.correlation,
        median_length=totals.median(),
    )


def _share(total: float, count: int) -> float:
    return total / count if count else math.nan
