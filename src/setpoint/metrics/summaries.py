"""All metrics of a stream in one table, from arrays."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import finite, interval, whole
from setpoint._html import table
from setpoint.errors import InputError
from setpoint.metrics import tally
from setpoint.metrics.arrays import GroupCoverage, coded, coverage_by_group
from setpoint.metrics.tally import Flags, Floats, Places, Steps


@dataclass(frozen=True, slots=True)
class Summary:
    """Every metric of a stream. Shares, coverage and ΔCoverage are fractions, not percentages.

    A mean over nothing is NaN; `msl`, `longest_streak` and `correlation` are then 0. Widths of
    several streams count as shares of the stream's own mean in `narrow_coverage` and
    `wide_coverage`.
    """

    level: float  # of the risk
    asked: float  # the coverage that was asked for
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
        endless = [name for name, value in rows.items() if value == inf]
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
    coverage: float | None = None,
    support: tuple[float, float] = (-inf, inf),
    offsets: ArrayLike | None = None,
) -> Summary:
    """Every metric of a stream of intervals, or of several streams together.

    A step whose label or loss is NaN is counted as missing and left out of every number, so that
    all of them speak of the same steps.

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
    coverage
        The nominal coverage, for ΔCoverage, pinball and Winkler; by default 1 − level.
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
    asked               0.8
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
    asked = _asked(level, coverage, window)
    return _summarised(asked, steps, label == label, losses, groups, offsets)


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
    coverage: float | None = None,
    offsets: ArrayLike | None = None,
) -> Summary:
    """Every metric of a stream of sets that have a size and no ends: label sets, images.

    `covered` is 1 where the set did its duty; `full` and `empty` say which sets are, by default
    those of size +inf and 0. Other parameters are those of `summary`; pinball and Winkler are NaN.

    >>> got = size_summary([1, 2, 3, 0], [1, 1, 1, 0], level=0.1, full=[0, 0, 1, 0])
    >>> got.mean_length, got.full, got.empty, got.coverage
    (1.5, 0.25, 0.25, 0.75)
    """
    hits = tally.flags(covered, "covered")
    length = tally.sizes(size, "size", len(hits))
    is_whole = tally.marks(full, "full", np.isinf(length))
    is_nothing = tally.marks(empty, "empty", length == 0.0)
    unknown = np.full(len(hits), nan)
    steps = Steps(length, is_whole, is_nothing, unknown, unknown, hits == 0.0)
    asked = _asked(level, coverage, window)
    return _summarised(asked, steps, hits == hits, losses, groups, offsets)


def _asked(level: float, coverage: float | None, window: int) -> tuple[float, float, int]:
    """What sets are judged against: the level, the nominal coverage, the window."""
    target = finite(level, "level")
    if coverage is None and not 0.0 <= target <= 1.0:
        raise InputError(
            "coverage must be given, between 0 and 1, when the level of the risk is not"
            f" between 0 and 1: got level={target}"
        )
    nominal = 1.0 - target if coverage is None else coverage
    nominal = tally.fraction(nominal, "coverage")
    return target, nominal, whole(window, "window", 1)


def _summarised(
    asked: tuple[float, float, int], steps: Steps, seen: Flags, losses: ArrayLike | None,
    groups: Iterable[Any] | None, offsets: ArrayLike | None,
) -> Summary:  # fmt: skip
    """The table of the steps that were `seen`, if their loss was too."""
    level, nominal, window = asked
    size, bounds = len(seen), tally.offsets_of(offsets, len(seen))
    costs: Floats | Flags = steps.missed
    if losses is not None:
        costs = tally.observed(losses, "losses", size)
        seen = seen & (costs == costs)
    if not seen.all():
        kept: Any = (column[seen] for column in steps)
        steps, costs = Steps(*kept), costs[seen]
    stops = np.concatenate([[0], np.cumsum(seen)])[bounds]
    stops = stops[1:][np.diff(stops) > 0]  # of the streams that have a step
    begins = np.concatenate([[0], stops[:-1]]) if len(stops) > 1 else None
    by_group = GroupCoverage(nan, nan, {}, {})
    if groups is not None:
        codes, keys = coded(groups, size)
        by_group = coverage_by_group(codes[seen], keys, steps.missed, nominal)
    worst, rms, start = _window_errors(costs, level, window, stops)
    counts = tally.tally_of(steps, begins)
    shares: Any = tally.derived(counts, (1.0 - nominal) / 2.0)
    shares = {name: float(value) for name, value in shares.items()}
    by_width = tally.by_length(steps.length, steps.missed, begins)
    with np.errstate(over="ignore"):
        return Summary(
            level=level,
            asked=nominal,
            window=window,
            steps=len(costs),
            missing=size - len(costs),
            risk=float(costs.mean()) if len(costs) else nan,
            median_length=float(np.median(steps.length)) if len(costs) else nan,
            streaks=int(counts.streaks),
            longest_streak=int(shares.pop("longest_streak")),
            delta_coverage=by_group.delta,
            noise_floor=by_group.noise_floor,
            groups=len(by_group.sizes),
            worst_window=worst,
            rms_window=rms,
            worst_window_start=None if start is None else int(np.flatnonzero(seen)[start]),
            correlation=tally.correlation(steps.length, steps.missed),
            narrow_coverage=float(by_width[0]),
            wide_coverage=float(by_width[-1]),
            **shares,
        )


def _window_errors(
    losses: Floats | Flags, level: float, width: int, stops: Places
) -> tuple[float, float, int | None]:
    """|mean loss − level| over all windows: the largest, the root mean square, where the worst is.

    Each stream ends at one of `stops`; one shorter than the window counts as one window.
    """
    if not len(losses):
        return nan, nan, None
    firsts = np.concatenate([[0], stops[:-1]])
    end, first = np.arange(1, len(losses) + 1), np.repeat(firsts, stops - firsts)
    begin = np.maximum(end - width, first)
    is_window = end - begin == width
    is_window[stops - 1] = True
    begin, end = begin[is_window], end[is_window]
    sums = np.concatenate([[0.0], np.cumsum(losses, dtype=np.float64)])
    errors = np.abs((sums[end] - sums[begin]) / (end - begin) - level)
    worst = int(np.argmax(errors))
    return float(errors[worst]), sqrt(float(np.square(errors).mean())), int(begin[worst])
