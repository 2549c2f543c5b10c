"""Forecasts of a series by a few candidates, mixed by how well each of them lately did.

Row t is forecast from the labels up to row t − 1 − delay and from the features of row t. Whatever
depends on such rows alone is worked out in blocks, so that long series take seconds. Each candidate
gives two ends, which are corrected as self-adjusting intervals are. A mixture of them is handed on,
in which a candidate weighs the more, the smaller its recent interval score is; one that diverges
weighs nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import finite, whole
from setpoint.bulk.replay import replay
from setpoint.errors import InputError
from setpoint.models.linear import ridge
from setpoint.models.online import rows_and_labels
from setpoint.presets import find_period, intervals
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]

CANDIDATES = {
    "last": "the last label",
    "seasonal": "the label one season ago",
    "linear": "linear regression on the features, the last labels and those of past seasons",
    "boosting": "gradient boosting of quantiles on the same (extra sklearn)",
}
"""The candidates by name."""

AUTO = tuple(CANDIDATES)
"""Those that are tried where none is named."""

_LAGS = 6
"""How many past labels are features."""
_MOST = 60
"""How many other features there are at most; of more, those most correlated with y."""
_SEEN = 5_000
"""How many of the last labels choose the features and the season."""
_HALF_LIFE = 5_000.0
"""After how many rows a row weighs half in the regression."""
_RECENT, _USUAL, _JUDGED = 30.0, 2_000.0, 200.0
"""Half-lives of the recent and the usual size of errors, and of the score that gives weights."""
_SHARPNESS = 24.0
"""Weights go with this power of one over the recent score."""
_WINDOW = 1_000
"""How many of the last errors give the tails of a candidate."""
FIRST, GROWTH, _FITTED = 300, 1.6, 10_000
"""Boosting: its first fit, how much longer a series is at each later one, the rows it is given."""
_TINY = 1e-100
_NARROW = 0.05
"""Ends are at least this share of their usual distance apart: no forecast is that sure."""
_SETTLED = 200
"""Up to which row nobody is told that a candidate was left out: there is little to learn from."""
_FAR = 10.0
"""How many times the error of the last label a candidate may have before it is left out."""


_WILD = 50.0
"""An error is counted as at most so many times the size of those before it."""
_UNKNOWN = (-4.0, 4.0)
"""Errors in units of their size that are taken to have been seen, so that first ends are wide."""


class Absence(NamedTuple):
    """A candidate was left out from row `start` up to row `stop`, because it had diverged."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The ends of every row, how much each candidate weighed there, and who was left out."""

    lower: Array
    upper: Array
    names: tuple[str, ...]
    weights: Array
    absences: tuple[Absence, ...]


class _Epoch(NamedTuple):
    """Rows for which the features are the same: these, and the forecasts that need no fit."""

    start: int
    stop: int
    features: Array
    points: dict[str, Array]


class _Task(NamedTuple):
    """What candidates are made from."""

    x: Array
    y: Array
    levels: tuple[float, float]
    delay: int
    epochs: list[_Epoch]
    done: dict[str, Array]
    """The centres of candidates that others go on from."""


def forecast(
    x: Any,
    y: Any,
    *,
    clock: Any = None,
    models: Sequence[str] = AUTO,
    level: float = 0.1,
    delay: int = 0,
) -> Forecast:
    """Forecasts each label of a series before it is known.

    Parameters
    ----------
    x
        The features of each row, (n, d), finite; what is known before its label.
    y
        The labels, NaN where there is none.
    clock
        When each row was, in the usual distance of two rows. Seasons are then found by time, and
        gaps do not shift them.
    models
        Names of `CANDIDATES`. Those that are not installed are left out, unless they are alone.
    level
        The share of labels that may lie outside the ends.
    delay
        How many labels before the last one are not known yet either: for row t those up to
        t − 1 − delay are known.

    Examples
    --------
    >>> hours = np.arange(2000)
    >>> y = np.sin(hours / 24 * 2 * np.pi) + np.random.default_rng(0).normal(0, 0.1, 2000)
    >>> result = forecast(np.zeros((2000, 0)), y, models=("last", "seasonal", "linear"))
    >>> inside = (result.lower <= y) & (y <= result.upper)
    >>> bool(inside[500:].mean() > 0.9), float((result.upper - result.lower)[500:].mean()) < 0.45
    (True, True)
    """
    rows, labels = rows_and_labels(x, y)
    whole(delay, "delay", 0)
    finite(level, "level")
    for name in models:
        if name not in CANDIDATES:
            raise InputError(f"models must be of {', '.join(CANDIDATES)}, got {name!r}")
    names = [name for name in models if len(models) == 1 or name != "boosting" or _has_sklearn()]
    times = None if clock is None else np.asarray(clock, np.float64)
    levels = (level / 2.0, 1.0 - level / 2.0)
    epochs = list(_epochs(rows, labels, times, delay))
    task = _Task(rows, labels, levels, delay, epochs, {})
    ends = {name: _MAKERS[name](task, name) for name in dict.fromkeys(("last", *names))}
    return _mixed(task, names, ends, level)


def fits(rows: int) -> float:
    """About how many fits boosting takes over so many rows.

    >>> fits(100), round(fits(10_000))
    (0.0, 7)
    """
    return max(log(rows / FIRST) / log(GROWTH), 0.0) if rows else 0.0


def _has_sklearn() -> bool:
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


# Features


def _carried(y: Array) -> Array:
    """The last label known at each row, 0 before the first."""
    last = np.maximum.accumulate(np.where(np.isnan(y), -1, np.arange(len(y))))
    return np.where(last >= 0, y[np.maximum(last, 0)], 0.0)


def _epochs(x: Array, y: Array, clock: Array | None, delay: int) -> Iterator[_Epoch]:
    """The series cut where its known part has doubled, and what was found there has changed."""
    labels, bounds = _carried(y), [0]
    while bounds[-1] < len(y):
        bounds.append(max(2 * bounds[-1], 32 + delay))
    previous, start = None, 0
    for bound in bounds:
        known = max(bound - delay, 0)
        past = slice(max(0, known - _SEEN), known)
        period = find_period(labels[past]) if known >= 16 else 0
        columns = _columns(x[past], labels[past])
        if previous is not None and (
            bound >= len(y) or period != previous[0] or not np.array_equal(columns, previous[1])
        ):
            stop = min(bound, len(y))
            yield _epoch(start, stop, x[:, previous[1]], labels, clock, previous[0], delay)
            start = stop
        previous = period, columns


def _columns(x: Array, labels: Array) -> Array:
    """Which features are used: all, or those that go most with y or with its movement."""
    if x.shape[1] <= _MOST:
        return np.arange(x.shape[1])
    if len(labels) < 3:
        return np.arange(_MOST)
    spread = x - x.mean(axis=0)
    size = np.sqrt((spread * spread).sum(axis=0))
    size[size <= 1e-9 * np.abs(x).max(axis=0, initial=0.0)] = np.inf
    moves = np.diff(labels, prepend=labels[0])
    both = [np.abs((aim - aim.mean()) @ spread) / size for aim in (labels, moves)]
    ranks = [score / (score.max() or 1.0) for score in both]
    chosen: Array = np.sort(np.argsort(-np.maximum(*ranks), kind="stable")[:_MOST])
    return chosen


def _epoch(
    start: int, stop: int, x: Array, labels: Array, clock: Array | None, period: int, delay: int
) -> _Epoch:
    """What is known at each row: the last labels, those of past seasons, and the features."""
    row, first = np.arange(len(labels)), 1 + delay

    def at(places: Array) -> Array:
        """The labels at these rows, as far as they are known."""
        places = np.clip(np.minimum(places, row - first), 0, None)
        return np.where(row >= first, labels[places], 0.0)

    def ago(rows: int) -> Array:
        """The rows so long ago."""
        if clock is None:
            return row - rows
        return np.searchsorted(clock, clock - rows + 0.25, side="right") - 1

    last = at(row - first)
    columns = [last, *(at(row - first - lag) - last for lag in range(1, _LAGS))]
    points = {"last": last}
    if period:
        season, before = period * -(-first // period), np.maximum(row - first, 0)
        seasons = (season, 7 * season) if len(labels) > 21 * season else (season,)
        for rows in seasons:
            then = at(ago(rows))
            moved = then - at(ago(rows)[before])
            columns += [then - last, moved, *(at(ago(rows + k)) - last for k in (-1, 1))]
            if rows == season:
                points["seasonal"] = then
        columns.append(at(ago(2 * season)) - last)
        sums = np.concatenate(([0.0], np.cumsum(labels)))
        since = np.maximum(row - first - season + 1, 0)
        known = np.maximum(row - first + 1, 0)
        columns.append((sums[known] - sums[since]) / np.maximum(known - since, 1) - last)
    if clock is not None:
        columns.append(np.minimum(clock - clock[np.maximum(row - first, 0)], 10.0 * first))
    return _Epoch(start, stop, np.column_stack([*columns, x]), points)


def _blocks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Rows between two fits: few at first, at most 128."""
    while start < stop:
        size = 1 if start < 4 else min(max(start // 32, 8), 128)
        yield start, min(start + size, stop)
        start += size


# Candidates


def _simple(task: _Task, name: str) -> Array:
    """A candidate that needs no fit; its tails are those of its errors of late."""
    centre = np.full(len(task.y), np.nan)
    for epoch in task.epochs:
        if name in epoch.points:
            centre[epoch.start : epoch.stop] = epoch.points[name][epoch.start : epoch.stop]
    known = np.concatenate((np.zeros(1 + task.delay), np.cumsum(~np.isnan(task.y))))
    centre[known[: len(centre)] == 0] = np.nan  # there is nothing to go on from
    task.done[name] = centre
    return _around(task, centre, _scale(task, centre))


def _linear(task: _Task, name: str) -> Array:
    """A regression of y, and one of how large its errors are."""
    last = task.done["last"]
    change = _regressed(task, task.y - last, lambda epoch: epoch.features)
    task.done[name] = centre = last + change
    scale = _scale(task, centre)
    usual = _scale(task, centre, half_life=500.0)
    size = np.log(np.abs(task.y - centre) / scale + 1e-3)
    more = np.nan_to_num(np.column_stack([np.log(scale), np.log(scale / usual)]))
    sizes = _regressed(task, size, lambda epoch: np.column_stack([epoch.features, more]))
    return _around(task, centre, scale * np.exp(np.clip(sizes, -3.0, 3.0)))


def _regressed(task: _Task, target: Array, features_of: Callable[[_Epoch], Array]) -> Array:
    """A ridge regression on rows that fade, fitted anew at each block; 0 before the first fit."""
    fitted, keep = np.zeros(len(target)), 0.5 ** (1.0 / _HALF_LIFE)
    counts = ~np.isnan(target)
    for epoch in task.epochs:
        rows = features_of(epoch)
        rows = np.column_stack([np.ones(len(rows)), rows - rows[0], np.where(counts, target, 0.0)])
        moments, taken = np.zeros((rows.shape[1], rows.shape[1])), 0
        slopes, intercept = np.zeros(rows.shape[1] - 2), 0.0
        for start, stop in _blocks(epoch.start, epoch.stop):
            known = max(start - task.delay, 0)
            if known > taken:
                new = rows[taken:known]
                weights = keep ** np.arange(len(new) - 1.0, -1.0, -1.0) * counts[taken:known]
                moments *= keep ** len(new)
                moments += (new * weights[:, None]).T @ new
                taken = known
                if moments[0, 0] >= 2.0:
                    slopes, intercept, *_ = ridge(moments, 10.0 + len(slopes) ** 2 / moments[0, 0])
            fitted[start:stop] = intercept + rows[start:stop, 1:-1] @ slopes
    return fitted


def _boosting(task: _Task, _: str) -> Array:
    """Quantiles of the next move, by boosted trees that see the regression too."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    if "linear" not in task.done:
        _linear(task, "linear")
    centre, last = task.done["linear"], task.done["last"]
    more = np.column_stack([centre - last, np.log(_scale(task, centre))])
    ends, target = np.full((len(task.y), 2), np.nan), task.y - last
    models: list[Any] = []
    for epoch in task.epochs:
        rows = np.column_stack([epoch.features, more])
        start = max(epoch.start, FIRST + task.delay)
        while start < epoch.stop:
            stop = min(int(start * GROWTH), epoch.stop)
            known = start - task.delay
            past = np.arange(max(0, known - _FITTED), known)
            past = past[~np.isnan(target[past])]
            if len(past) >= FIRST // 2:
                models = [
                    HistGradientBoostingRegressor(
                        loss="quantile", quantile=level, max_iter=60, max_leaf_nodes=15,
                        early_stopping=False, random_state=0,
                    )
                    for level in task.levels
                ]  # fmt: skip
                with threadpool_limits(1):  # threads that wait for each other take far longer
                    for model in models:
                        model.fit(rows[past], target[past])
            elif start == epoch.start:  # other features: the trees do not know them
                models = []
            for side, model in enumerate(models):
                ends[start:stop, side] = last[start:stop] + model.predict(rows[start:stop])
            start = stop
    return np.sort(ends, axis=1)


_MAKERS: dict[str, Callable[[_Task, str], Array]] = {
    "last": _simple,
    "seasonal": _simple,
    "linear": _linear,
    "boosting": _boosting,
}


# Errors of late


def _faded(values: Array, half_life: float, delay: int) -> Array:
    """The fading mean, at each row, of the values (n, k) whose labels are known; NaN for none."""
    keep, counts = 0.5 ** (1.0 / half_life), ~np.isnan(values)
    sums, weights = np.zeros(values.shape), np.zeros(values.shape)
    total, weight = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    size = max(int(16 * half_life), 1)  # beyond, the powers would be too small to divide by
    for start in range(0, len(values), size):
        part = slice(start, start + size)
        fade = keep ** np.arange(1.0, len(values[part]) + 1.0)[:, None]
        sums[part] = fade * (total + np.cumsum(np.where(counts[part], values[part], 0) / fade, 0))
        weights[part] = fade * (weight + np.cumsum(counts[part] / fade, 0))
        total, weight = sums[part][-1], weights[part][-1]
    means = np.full(values.shape, np.nan)
    first = 1 + delay
    np.divide(sums[:-first], weights[:-first], means[first:], where=weights[:-first] > 0.0)
    return means


def _scale(task: _Task, centre: Array, half_life: float = _RECENT) -> Array:
    """How large the errors of late are, not far below their usual size; NaN before the first."""
    errors = np.abs(task.y - centre)[:, None]
    recent, usual = (_faded(errors, life, task.delay)[:, 0] for life in (half_life, _USUAL))
    return np.where(recent >= 0.0, np.maximum(np.fmax(recent, 0.05 * usual), _TINY), np.nan)


def _around(task: _Task, centre: Array, scale: Array) -> Array:
    """Ends at the quantiles of past errors in units of a scale."""
    errors = np.clip((task.y - centre) / scale, -_WILD, _WILD)
    scale = np.where(np.isnan(scale), 0.0, scale)
    ends = np.repeat(centre[:, None], 2, axis=1)
    for start, stop in _blocks(0, len(centre)):
        known = max(start - task.delay, 0)
        past = errors[max(0, known - _WINDOW) : known]
        past = np.concatenate((past[~np.isnan(past)], _UNKNOWN))
        ends[start:stop] += scale[start:stop, None] * np.quantile(past, task.levels)
    return ends


# The mixture


def _mixed(task: _Task, names: Sequence[str], ends: dict[str, Array], level: float) -> Forecast:
    """The ends of the candidates, weighed by their interval scores of late."""
    y, delay, every = task.y, task.delay, list(ends)
    lower, upper = (np.column_stack([ends[name][:, side] for name in every]) for side in (0, 1))
    missing = np.isnan(lower) | np.isnan(upper)
    outside, reach = _outside(task, lower, upper), _reach(task)
    errors = np.abs(y[:, None] - 0.5 * (np.clip(lower, *reach) + np.clip(upper, *reach)))
    recent = _faded(errors, _RECENT, delay)
    usual = np.fmax(recent[:, :1], _faded(errors[:, :1], _USUAL, delay))
    with np.errstate(invalid="ignore"):
        diverged = outside | (recent > _FAR * usual) & (recent > 0.0)
    diverged[:, 0] = False
    if len(names) > 1:
        lower, upper = _corrected(task, lower, upper, ~missing & ~outside, level)
    lower, upper = (np.clip(end, *reach) for end in (lower, upper))
    beyond = np.maximum(lower - y[:, None], 0.0) + np.maximum(y[:, None] - upper, 0.0)
    scores = upper - lower + 2.0 / level * beyond
    # Who is not there yet has to earn its weight: it counts as the last label does.
    scores = _faded(np.where(np.isnan(scores), scores[:, :1], scores), _JUDGED, delay)
    allowed = np.array([name in names for name in every]) & ~missing & ~diverged
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.fmin.reduce(np.where(allowed, scores, np.inf), axis=1)[:, None] / scores
        weights = np.where(allowed, np.nan_to_num(ratio, nan=1.0), 0.0) ** _SHARPNESS
    weights[:, 0] += weights.sum(axis=1) == 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    low, high = ((np.where(missing, 0.0, end) * weights).sum(axis=1) for end in (lower, upper))
    usual = _faded((high - low)[:, None], _USUAL, delay)[:, 0]
    more = 0.5 * np.maximum(np.nan_to_num(_NARROW * usual) - (high - low), 0.0)
    absences = [
        Absence(name, *run)
        for place, name in enumerate(every)
        for run in _runs(diverged[:, place] & ~missing[:, place])
        if run[1] > _SETTLED + delay
    ]
    return Forecast(low - more, high + more, tuple(every), weights, tuple(absences))


def _corrected(
    task: _Task, lower: Array, upper: Array, sound: Array, level: float
) -> tuple[Array, Array]:
    """The ends of candidates (n, k) as the self-adjusting intervals correct them, but for a budget.

    So a candidate is judged by what its sets will be, and not by errors that are easily mended.
    """
    row, name = np.nonzero(sound)
    columns = {"lower": lower[row, name], "upper": upper[row, name]}
    tape = Tape.from_arrays(columns, task.y[row], series=name, delay=task.delay)
    trace = replay(intervals(1.0 - level, limit=1e9, steadiness=1e-9), tape)
    ends = [lower.copy(), upper.copy()]
    for end, corrected in zip(ends, (trace.lower, trace.upper), strict=True):
        end[row, name] = np.where(np.isfinite(corrected), corrected, end[row, name])
    return ends[0], ends[1]


def _reach(task: _Task) -> tuple[Array, Array]:
    """How far ends may go at each row: once the range of the known labels beyond it."""
    first = 1 + task.delay
    low, high = (
        np.concatenate((np.zeros(first), bound.accumulate(task.y)))[: len(task.y)]
        for bound in (np.fmin, np.fmax)
    )
    low, high = np.nan_to_num(low), np.nan_to_num(high)
    return (low - (high - low))[:, None], (high + (high - low))[:, None]


def _outside(task: _Task, lower: Array, upper: Array) -> Array:
    """Where a forecast is no number or far from all labels, once there are some."""
    low, high = _reach(task)
    labels = np.concatenate((np.zeros(1 + task.delay), np.cumsum(~np.isnan(task.y))))
    with np.errstate(invalid="ignore", over="ignore"):
        centre = 0.5 * (lower + upper)
        far = ~((centre >= low) & (centre <= high))
    return far & (labels[: len(task.y), None] >= 20)


def _runs(flags: Array, gap: int = 100, least: int = 10) -> Iterator[tuple[int, int]]:
    """Where flags are set: from and up to which rows, short gaps and short runs passed over."""
    places = np.flatnonzero(flags)
    if not len(places):
        return
    ends = np.flatnonzero(np.diff(places) > gap)
    for first, last in zip([0, *(ends + 1)], [*ends, len(places) - 1], strict=True):
        if last - first >= least:
            yield int(places[first]), int(places[last]) + 1
