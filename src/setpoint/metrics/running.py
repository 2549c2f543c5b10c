"""All metrics of a stream, one step at a time."""

import math
from array import array
from collections.abc import Hashable
from typing import Any

from setpoint._check import interval, number
from setpoint.errors import InputError
from setpoint.metrics._input import group_key, level_of, nominal_of
from setpoint.metrics.groups import GroupCoverage, _from_counts
from setpoint.metrics.hits import _pearson
from setpoint.metrics.intervals import _EVERYTHING, median_length
from setpoint.metrics.summaries import Summary
from setpoint.metrics.windows import _RunningWindows

__all__ = ["Running"]


class Running:
    """Every metric of a stream, updated in O(1) amortised a step; agrees with `summary`.

    Memory: two windows of losses, two counts a group, and the lengths, 8 bytes a step, which the
    exact median needs. An update that raises changes nothing.

    Parameters
    ----------
    level
        The level the risk should have.
    window
        Steps in a sliding window; a shorter stream counts as one window.
    confidence_level
        The nominal coverage, for ΔCoverage, pinball and Winkler. By default 1 − level; it must
        be given where that is not a fraction, and should be where the loss is not miscoverage.
    support
        The values y can take; an interval that holds them all is full.
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

    __slots__ = (
        "_counts",
        "_covariance",
        "_empty",
        "_ends",
        "_finite",
        "_finite_hits",
        "_finite_length",
        "_full",
        "_hits",
        "_length",
        "_lengths",
        "_level",
        "_longest",
        "_loss",
        "_mc",
        "_mean",
        "_missing",
        "_nominal",
        "_pinball",
        "_spread",
        "_steps",
        "_streak",
        "_streaks",
        "_support",
        "_windows",
        "_winkler",
    )

    def __init__(
        self,
        level: float,
        window: int = 250,
        *,
        confidence_level: float | None = None,
        support: tuple[float, float] = _EVERYTHING,
        keep_lengths: bool = True,
    ) -> None:
        self._level = level_of(level)
        self._nominal = nominal_of(self._level, confidence_level)
        self._support = interval(support, "support")
        self._windows = _RunningWindows(self._level, window)
        self._lengths = array("d") if keep_lengths else None
        self._counts: dict[Hashable, list[int]] = {}  # group: [steps, hits]
        self._steps = self._missing = self._hits = self._full = self._empty = 0
        self._streak = self._streaks = self._longest = self._mc = 0
        self._ends = 0  # steps that were intervals
        self._loss = self._length = self._pinball = self._winkler = 0.0
        self._finite = self._finite_hits = 0  # finite lengths, and hits among them
        self._finite_length = self._mean = self._spread = self._covariance = 0.0

    def update(
        self,
        lower: float,
        upper: float,
        y: float | None,
        loss: float | None = None,
        group: Hashable | None = None,
    ) -> None:
        """Add one interval and its label.

        Parameters
        ----------
        lower, upper
            The ends shown; ±inf allowed, crossed ends are the empty interval.
        y
            The label. NaN or `None` means not observed: the step is counted as missing.
        loss
            The loss of the step, NaN if there was nothing to judge; by default the 0-1
            miscoverage.
        group
            The step's group for ΔCoverage, anything hashable; `None` or NaN for none.
        """
        low, high = number(lower, "lower"), number(upper, "upper")
        if low != low or high != high:
            raise InputError(f"the ends must be numbers or ±inf, got ({low}, {high})")
        label = _observed(y, "y")
        hit = low <= label <= high
        cost = (0.0 if hit else 1.0) if loss is None else _observed(loss, "loss")
        key = group_key(group)
        if label != label or cost != cost:
            self._missing += 1
            return
        length = high - low if high > low else 0.0
        full = low <= self._support[0] and high >= self._support[1]
        empty = low > high or low == math.inf or high == -math.inf
        self._add(length, hit, cost, key, full, empty)
        below = low - label if low > label else 0.0
        above = label - high if label > high else 0.0
        missed = below + above
        tail = (1.0 - self._nominal) / 2.0
        pinball = (1.0 - tail) * missed
        if tail > 0.0:
            near = label - low if label > low else 0.0
            pinball += tail * (near + (high - label if high > label else 0.0))
        self._ends += 1
        self._pinball += pinball / 2.0
        self._winkler += length
        if missed > 0.0:
            self._winkler += missed / tail if tail > 0.0 else math.inf

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

        Parameters
        ----------
        size
            How large the set was: the number of labels, the mean width over pixels.
        covered
            Whether it did its duty; NaN or `None` if not observed. For an image whose loss is a
            share of pixels, say `loss <= level`.
        full, empty
            Whether it was full or empty; if not given, a set of size +inf, and one of size 0.

        `loss` and `group` are those of `update`.

        Examples
        --------
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
        key = group_key(group)
        if hit != hit or cost != cost:
            self._missing += 1
            return
        whole_set = length == math.inf if full is None else bool(full)
        nothing = length == 0.0 if empty is None else bool(empty)
        self._add(length, hit == 1.0, cost, key, whole_set, nothing)

    def _add(
        self, length: float, hit: bool, loss: float, group: Hashable | None, full: bool, empty: bool
    ) -> None:
        self._windows.update(self._steps + self._missing, loss)
        self._steps += 1
        self._loss += loss
        self._length += length
        self._full += full
        self._empty += empty
        if self._lengths is not None:
            self._lengths.append(length)
        if hit:
            self._hits += 1
            self._streak = 0
        else:
            self._streak += 1
            self._mc += self._streak
            self._streaks += self._streak == 1
            self._longest = max(self._longest, self._streak)
        if group is not None:
            count = self._counts.setdefault(group, [0, 0])
            count[0] += 1
            count[1] += hit
        if length < math.inf:
            self._finite_length += length
            # Welford's update of the squares and products about the running means.
            self._finite += 1
            self._finite_hits += hit
            away = length - self._mean
            self._mean += away / self._finite
            self._spread += away * (length - self._mean)
            self._covariance += away * (hit - self._finite_hits / self._finite)

    def by_group(self) -> GroupCoverage:
        """Coverage by group, as `delta_coverage` gives it."""
        return _from_counts(self._counts, self._nominal)

    def summary(self) -> Summary:
        """Every metric of the steps so far."""
        n = self._steps
        by_group = self.by_group()
        errors = self._windows.errors()
        finite_hits = self._finite_hits * (1.0 - _share(self._finite_hits, self._finite, 0.0))
        return Summary(
            level=self._level,
            confidence_level=self._nominal,
            window=self._windows.window,
            steps=n,
            missing=self._missing,
            risk=_share(self._loss, n),
            coverage=_share(self._hits, n),
            mean_length=_share(self._length, n),
            median_length=math.nan if self._lengths is None else median_length(self._lengths),
            mean_finite_length=_share(self._finite_length, self._finite),
            full=_share(self._full, n),
            empty=_share(self._empty, n),
            mc=_share(self._mc, n),
            msl=_share(n - self._hits, self._streaks, 0.0),
            streaks=self._streaks,
            longest_streak=self._longest,
            delta_coverage=by_group.delta,
            noise_floor=by_group.noise_floor,
            groups=len(by_group.sizes),
            pinball=_share(self._pinball, self._ends),
            winkler=_share(self._winkler, self._ends),
            worst_window=errors.worst,
            rms_window=errors.rms,
            worst_window_start=errors.start,
            correlation=_pearson(finite_hits, self._spread, self._covariance),
        )


def _share(total: float, count: int, nothing: float = math.nan) -> float:
    return total / count if count else nothing


def _observed(value: Any, name: str) -> float:
    """A finite float, or NaN where not observed."""
    if value is None:
        return math.nan
    got = number(value, name)
    if math.isinf(got):
        raise InputError(f"{name} must be finite, or NaN where not observed; got {got}")
    return got
