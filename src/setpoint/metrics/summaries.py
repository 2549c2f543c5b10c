"""All metrics of a stream in one table, from arrays."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import finite, interval, whole
from setpoint._html import table
from setpoint.errors import InputError
from setpoint.metrics import deviations, tally
from setpoint.metrics.deviations import WindowErrors
from setpoint.metrics.tally import Flags, Floats, Moments, Steps, Tally


@dataclass(frozen=True, slots=True)
class Summary:
    """Every metric of a stream. Shares, coverage and ΔCoverage are fractions, not percentages.

    A mean over nothing is NaN; `msl`, `longest_streak` and `correlation` are then 0. Widths of
    several streams count as shares of the stream's own mean in `narrow_coverage` and
    `wide_coverage`.
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
    pinball: float  # NaN for sets that are not intervals, and so are the next two
    finite_pinball: float  # of the finite intervals only
    winkler: float
    worst_window: float  # the largest |mean loss − level| over windows
    rms_window: float  # its root mean square
    worst_window_start: int | None  # the step, counted from 0 with the missing ones
    correlation: float  # of coverage and length
    narrow_coverage: float  # of the narrowest fifth of the finite sets; NaN below 5 of them
    wide_coverage: float  # of the widest fifth

    def as_dict(self) -> dict[str, float | int | None]:
        """Names and numbers, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _repr_html_(self) -> str:
        return table((name, _shown(value)) for name, value in self.as_dict().items())

    def __str__(self) -> str:
        rows = self.as_dict()
        endless = [name for name, value in rows.items() if value == math.inf]
        width = max(map(len, rows))
        lines = [f"{n:<{width}}  {_shown(value)}" for n, value in rows.items() if n not in endless]
        if endless:
            lines.append(f"infinite, because a set has no limits: {', '.join(endless)}")
        return "\n".join(lines)


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
    support: tuple[float, float] = (-math.inf, math.inf),
    offsets: ArrayLike | None = None,
) -> Summary:
    """Every metric of a stream of intervals, or of several streams together.

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
    offsets
        Of several streams that lie one after the other: where each begins, and the end of the
        last one. Streaks and windows end where their stream does.

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
    low, high = tally.ends(lower, upper)
    label = tally.observed(y, "y", len(low))
    steps = tally.measure_rows(low, high, label, *interval(support, "support"))
    account = _account(level, confidence_level, window)
    return _summarised(account, steps, label == label, losses, groups, offsets)


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
    offsets: ArrayLike | None = None,
) -> Summary:
    """Every metric of a stream of sets that have a size and no ends: label sets, images.

    Parameters
    ----------
    size
        How large each set is: the number of labels, the mean width over the pixels of an image.
        Other parameters are those of `summary`; `pinball` and `winkler` are NaN.
    covered
        1 (or True) where the set did its duty, 0 where not, NaN where not observed. For an image
        whose loss is a share of pixels, say `losses <= level`.
    full, empty
        Which sets are full and empty; if not given, those of size +inf and of size 0.

    Examples
    --------
    >>> got = size_summary([1, 2, 3, 0], [1, 1, 1, 0], level=0.1, full=[0, 0, 1, 0])
    >>> got.mean_length, got.full, got.empty, got.coverage
    (1.5, 0.25, 0.25, 0.75)
    """
    hits = tally.flags(covered, "covered")
    length = tally.sizes(size, "size", len(hits))
    is_whole, is_nothing = (
        tally.marks(full, "full", np.isinf(length)),
        tally.marks(empty, "empty", length == 0.0),
    )
    unknown = np.full(len(hits), math.nan)
    steps = Steps(length, is_whole, is_nothing, unknown, unknown, hits == 0.0)
    account = _account(level, confidence_level, window)
    return _summarised(account, steps, hits == hits, losses, groups, offsets)


@dataclass(slots=True)
class _Account:
    """What is kept of a stream beside its windows and its lengths."""

    level: float
    nominal: float
    window: int
    tally: Tally = tally.NOTHING
    moments: Moments = Moments()  # noqa: RUF009
    loss: float = 0.0
    missing: int = 0
    by_width: Floats = field(default_factory=lambda: np.full(1, math.nan))
    counts: dict[Hashable, list[int]] = field(default_factory=dict)  # group: [steps, misses]

    def by_group(self) -> deviations.GroupCoverage:
        return deviations.coverage_by_group(self.counts, self.nominal)

    def summary(self, errors: WindowErrors, median: float) -> Summary:
        metrics = tally.derived(self.tally, (1.0 - self.nominal) / 2.0)
        shares = {name: float(value) for name, value in metrics.items()}
        by_group = self.by_group()
        return Summary(
            level=self.level,
            confidence_level=self.nominal,
            window=self.window,
            steps=int(self.tally.observed),
            missing=self.missing,
            risk=float(tally.share(self.loss, self.tally.observed)),
            median_length=median,
            streaks=int(self.tally.streaks),
            longest_streak=int(shares.pop("longest_streak")),
            delta_coverage=by_group.delta,
            noise_floor=by_group.noise_floor,
            groups=len(by_group.sizes),
            worst_window=errors.worst,
            rms_window=errors.rms,
            worst_window_start=errors.start,
            correlation=tally.correlation_of(self.moments),
            narrow_coverage=float(self.by_width[0]),
            wide_coverage=float(self.by_width[-1]),
            **shares,
        )


def _account(level: float, confidence_level: float | None, window: int) -> _Account:
    target = finite(level, "level")
    if confidence_level is None and not 0.0 <= target <= 1.0:
        raise InputError(
            "confidence_level must be given, between 0 and 1, when the level of the risk is not"
            f" between 0 and 1: got level={target}"
        )
    nominal = 1.0 - target if confidence_level is None else confidence_level
    nominal = tally.fraction(nominal, "confidence_level")
    return _Account(target, nominal, whole(window, "window", 1))


def _summarised(
    account: _Account,
    steps: Steps,
    seen: Flags,
    losses: ArrayLike | None,
    groups: Iterable[Any] | None,
    offsets: ArrayLike | None,
) -> Summary:
    """The table of the steps that were `seen`, if their loss was too."""
    size, bounds = len(seen), tally.offsets_of(offsets, len(seen))
    costs: Floats | Flags = steps.missed
    if losses is not None:
        costs = tally.observed(losses, "losses", size)
        seen = seen & (costs == costs)
    if not seen.all():
        kept: Any = (column[seen] for column in steps)
        steps, costs = Steps(*kept), costs[seen]
    begins = None
    if len(bounds) > 2:
        stops = np.concatenate([[0], np.cumsum(seen)])[bounds]
        begins = stops[:-1][np.diff(stops) > 0]
    account.tally = tally.tally_of(steps, begins)
    account.moments = tally.moments_of(steps.length, steps.missed)
    account.by_width = tally.by_length(steps.length, steps.missed, begins)
    account.missing = size - len(costs)
    with np.errstate(over="ignore"):
        account.loss = float(costs.sum())
    if groups is not None:
        codes, keys = deviations.coded(groups, size)
        account.counts = deviations.counts_by_group(codes[seen], keys, steps.missed)
    errors = deviations.errors_of(costs, account.level, account.window, seen, bounds)
    return account.summary(errors, _median(steps.length))


def _median(lengths: Any) -> float:
    """The median of lengths; NaN without any."""
    with np.errstate(over="ignore"):
        return float(np.median(lengths)) if len(lengths) else math.nan
