"""All metrics of a stream in one table: from arrays, or one step at a time."""

import math
from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import finite, interval, number, whole
from setpoint._html import table
from setpoint.errors import InputError
from setpoint.metrics import deviations, tally
from setpoint.metrics.deviations import RunningWindows, WindowErrors
from setpoint.metrics.tally import Flags, Floats, Moments, Steps, Tally

__all__ = ["Running", "Summary", "size_summary", "summary"]


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
    pinball: float  # NaN for sets that are not intervals, and so are the next two
    finite_pinball: float  # of the finite intervals only
    winkler: float
    worst_window: float  # the largest |mean loss − level| over windows
    rms_window: float  # its root mean square
    worst_window_start: int | None  # the step, counted from 0 with the missing ones
    correlation: float  # of coverage and length

    def as_dict(self) -> dict[str, float | int | None]:
        """Names and numbers, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _repr_html_(self) -> str:
        return table((name, _shown(value)) for name, value in self.as_dict().items())

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
    account.missing = size - len(costs)
    with np.errstate(over="ignore"):
        account.loss = float(costs.sum())
    if groups is not None:
        codes, keys = deviations.coded(groups, size)
        account.counts = deviations.counts_by_group(codes[seen], keys, steps.missed)
    errors = deviations.errors_of(costs, account.level, account.window, seen, bounds)
    return account.summary(errors, _median(steps.length))


class Running:
    """Every metric of a stream, updated in O(1) amortised a step; agrees with `summary`.

    Memory: two windows of losses, two counts a group, and the lengths, 8 bytes a step, which the
    exact median needs. An update that raises changes nothing.

    Parameters
    ----------
    level, window, confidence_level, support
        Those of `summary`.
    keep_lengths
        `False` keeps no lengths: the memory stays constant and the median is NaN.

    Examples
    --------
    >>> running = Running(level=0.2, window=2)
    >>> for y, day in [(1.0, "mon"), (3.0, "tue"), (1.0, "mon"), (float("nan"), "tue")]:
    ...     running.update(0.0, 2.0, y, group=day)
    >>> got = running.summary()
    >>> got.steps, got.missing, got.coverage, got.longest_streak
    (3, 1, 0.6666666666666666, 1)
    >>> dict(running.by_group().coverage)
    {'mon': 1.0, 'tue': 0.0}
    """

    __slots__ = ("_account", "_lengths", "_support", "_windows")

    def __init__(
        self,
        level: float,
        window: int = 250,
        *,
        confidence_level: float | None = None,
        support: tuple[float, float] = (-math.inf, math.inf),
        keep_lengths: bool = True,
    ) -> None:
        self._account = _account(level, confidence_level, window)
        self._support = interval(support, "support")
        self._windows = RunningWindows(self._account.level, self._account.window)
        self._lengths = array("d") if keep_lengths else None

    def update(
        self,
        lower: float,
        upper: float,
        y: float | None,
        loss: float | None = None,
        group: Hashable | None = None,
    ) -> None:
        """Add one interval and its label.

        Ends may be ±inf; crossed ones are the empty interval. A label or loss of NaN means that
        nothing was observed or judged: the step is counted as missing, and so is one whose label
        is `None`. Without a loss it is the 0-1 miscoverage. `group` is anything hashable, `None`
        or NaN for none.
        """
        low, high = number(lower, "lower"), number(upper, "upper")
        if low != low or high != high:
            raise InputError(f"the ends must be numbers or ±inf, got ({low}, {high})")
        label = _observed(y, "y")
        missed = not low <= label <= high
        cost = float(missed) if loss is None else _observed(loss, "loss")
        step = (*tally.measure(low, high, label, *self._support), missed)
        self._add(step, cost if label == label else math.nan, deviations.group_key(group))

    def update_size(
        self,
        size: float,
        covered: bool | float | None,
        loss: float | None = None,
        group: Hashable | None = None,
        *,
        full: bool | None = None,
        empty: bool | None = None,
    ) -> None:
        """Add one set that has a size and no ends: a label set, an image.

        The arguments are those of `size_summary` for one step; `covered` may be `None` if not
        observed. `loss` and `group` are those of `update`.

        >>> running = Running(level=0.1)
        >>> running.update_size(2, covered=True)
        >>> running.update_size(10, covered=True, full=True)
        >>> running.summary().full
        0.5
        """
        length = number(size, "size")
        if not length >= 0.0:
            raise InputError(f"size must be 0 or more, got {length}")
        hit = _observed(covered, "covered")
        if hit not in (0.0, 1.0) and hit == hit:
            raise InputError(f"covered must be 0, 1, or NaN where not observed; got {hit}")
        cost = 1.0 - hit if loss is None else _observed(loss, "loss")
        is_whole = length == math.inf if full is None else bool(full)
        is_nothing = length == 0.0 if empty is None else bool(empty)
        step = (length, is_whole, is_nothing, math.nan, math.nan, hit == 0.0)
        self._add(step, cost if hit == hit else math.nan, deviations.group_key(group))

    def _add(
        self, step: tuple[float, bool, bool, float, float, bool], loss: float, group: Hashable
    ) -> None:
        account, length, missed = self._account, step[0], step[-1]
        if loss != loss:
            account.missing += 1
            return
        self._windows.update(int(account.tally.observed) + account.missing, loss)
        account.tally = tally.count(account.tally, *step)
        account.moments = tally.moved(account.moments, length, missed)
        account.loss += loss
        if self._lengths is not None:
            self._lengths.append(length)
        if group is not None:
            counts = account.counts.setdefault(group, [0, 0])
            counts[0] += 1
            counts[1] += missed

    def by_group(self) -> deviations.GroupCoverage:
        """Coverage by group, as `delta_coverage` gives it."""
        return self._account.by_group()

    def summary(self) -> Summary:
        """Every metric of the steps so far."""
        median = math.nan if self._lengths is None else _median(self._lengths)
        return self._account.summary(self._windows.errors(), median)


def _median(lengths: Any) -> float:
    """The median of lengths; NaN without any."""
    with np.errstate(over="ignore"):
        return float(np.median(lengths)) if len(lengths) else math.nan


def _observed(value: Any, name: str) -> float:
    """A finite float, or NaN where not observed."""
    if value is None:
        return math.nan
    got = number(value, name)
    if math.isinf(got):
        raise InputError(f"{name} must be finite, or NaN where not observed; got {got}")
    return got
