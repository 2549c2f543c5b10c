"""Forecasts of series by a few candidates, mixed by how well each of them lately did.

A forecast h steps ahead of row t knows the labels up to row t − h, and the features of row t. Each
candidate gives a point and two ends for every row and horizon, by a model for each horizon. The
ends are corrected as self-adjusting intervals are. A mixture of them is handed on, in which a
candidate weighs the more, the smaller its recent interval score is; one that diverges weighs
nothing. Everything is worked out in blocks of rows, for many horizons and series at once.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
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

__all__ = ["AUTO", "CANDIDATES", "Absence", "Mixture", "fits", "forecast"]

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
_SHARPNESS, _YOUNG = 24.0, 5.0
"""Weights go with this power of one over the recent score; the score of a young series fades within
so large a part of it."""
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
_CELLS, _FLOATS = 1_500_000, 6_000_000
"""How many rows of all horizons are mixed at once, and how many numbers features may have."""


class Absence(NamedTuple):
    """A candidate was left out of the first horizon from row `start` to `stop`: it diverged."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The point and the ends of every horizon and row, how much each candidate weighed there."""

    lower: Array
    point: Array
    upper: Array
    names: tuple[str, ...]
    weights: Array
    absences: tuple[Absence, ...]
    periods: tuple[int, ...]
    """The season found in each series, in rows; 0 for none."""


class _Epoch(NamedTuple):
    """Rows up to `stop` with features that stay the same; they are used from `start` on."""

    start: int
    stop: int
    features: Array
    seasonal: Array


class _Task(NamedTuple):
    """Pairs of a series and a horizon, of equal length: what candidates are made from."""

    x: Array
    y: Array
    labels: Array
    clock: Array | None
    ahead: Array
    lengths: Array
    periods: list[list[int]]
    most: int

    @property
    def bounds(self) -> list[int]:
        """Where the known part has doubled, and what was found in it may change."""
        bounds = [0, 31 + self.most]
        while bounds[-1] < self.y.shape[1]:
            bounds.append(2 * bounds[-1])
        return bounds


def forecast(
    x: Any,
    y: Any,
    *,
    horizons: Sequence[int] = (1,),
    offsets: Any = None,
    late: Sequence[int] = (),
    clock: Any = None,
    models: Sequence[str] = AUTO,
    level: float = 0.1,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture:
    """Forecasts each label of one series or several before it is known.

    Parameters
    ----------
    x
        The features of each row, (n, d), finite.
    y
        The labels, NaN where there is none.
    horizons
        How many steps ahead: h steps ahead, the labels up to h rows before are known.
    offsets
        Where the series begin that lie one behind the other, and the number of rows.
    late
        The columns of x that are known with the label of their row, and not before.
    clock
        When each row was, in the usual distance of two rows. Seasons are then found by time, and
        gaps do not shift them.
    models
        Names of `CANDIDATES`. Those that are not installed are left out, unless they are alone.
    level
        The share of labels that may lie outside the ends.
    progress
        Called with the rows done and their number.

    Examples
    --------
    >>> hours = np.arange(2000)
    >>> y = np.sin(hours / 24 * 2 * np.pi) + np.random.default_rng(0).normal(0, 0.1, 2000)
    >>> result = forecast(np.zeros((2000, 0)), y, horizons=(1, 12), models=("last", "linear"))
    >>> inside = (result.lower <= y) & (y <= result.upper)
    >>> (inside[:, 500:].mean(axis=1) > 0.9).tolist()
    [True, True]
    >>> ((result.upper - result.lower)[:, 500:].mean(axis=1) < 0.45).tolist()
    [True, True]
    """
    rows, labels = rows_and_labels(x, y)
    ahead = np.array([whole(horizon, "a horizon", 1) for horizon in horizons], np.int64)
    finite(level, "level")
    for name in models:
        if name not in CANDIDATES:
            raise InputError(f"models must be of {', '.join(CANDIDATES)}, got {name!r}")
    names = [name for name in models if len(models) == 1 or name != "boosting" or _has("sklearn")]
    every = tuple(dict.fromkeys(("last", *names)))
    starts = np.array([0, len(labels)] if offsets is None else offsets, np.int64)
    times = None if clock is None else np.asarray(clock, np.float64)
    shape = (len(ahead), len(labels))
    ends, weights = np.zeros((3, *shape)), np.zeros((*shape, len(every)))
    absences: list[Absence] = []
    periods = [0] * (len(starts) - 1)
    done, levels = 0, (level / 2.0, 0.5, 1.0 - level / 2.0)
    for series in _chunks(np.diff(starts), len(ahead)):
        places = [np.arange(*starts[one : one + 2]) for one in series]
        found = [_periods(labels[rows_of], int(ahead.max())) for rows_of in places]
        task = _task(rows, labels, times, places, ahead, list(late), found)
        with _one_thread():
            ends_of = _candidates(task, every, levels)
        mixed, shares, gone = _mixed(task, names, ends_of, level)
        for place, (one, rows_of) in enumerate(zip(series, places, strict=True)):
            items = slice(place * len(ahead), (place + 1) * len(ahead))
            ends[:, :, rows_of] = mixed[:, items, : len(rows_of)]
            weights[:, rows_of] = np.moveaxis(shares[:, items, : len(rows_of)], 0, -1)
            periods[one] = found[place][-1]
            for name, flags in zip(every, gone[:, items.start, : len(rows_of)], strict=True):
                runs = ((a, b) for a, b in _runs(flags) if b >= _SETTLED + ahead[0])
                absences += [Absence(name, int(starts[one]) + a, int(starts[one]) + b)
                             for a, b in runs]  # fmt: skip
        done += sum(map(len, places))
        if progress is not None:
            progress(done, len(labels))
    return Mixture(ends[0], ends[1], ends[2], every, weights, tuple(absences), tuple(periods))


def fits(rows: int) -> float:
    """About how many fits boosting takes over so many rows.

    >>> fits(100), round(fits(10_000))
    (0.0, 7)
    """
    return max(log(rows / FIRST) / log(GROWTH), 0.0) if rows else 0.0


@cache
def _has(library: str) -> bool:
    from importlib.util import find_spec

    return find_spec(library) is not None


def _one_thread() -> AbstractContextManager[Any]:
    """For matrices and trees this small, threads that wait for each other take far longer."""
    if not _has("threadpoolctl"):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


# Series of about the same length, side by side


def _chunks(lengths: Array, horizons: int) -> Iterator[list[int]]:
    """Series that are worked out together, the shortest first."""
    chunk: list[int] = []
    for one in np.argsort(lengths, kind="stable").tolist():
        if chunk and (len(chunk) + 1) * max(int(lengths[one]), 1) * horizons > _CELLS:
            yield chunk
            chunk = []
        chunk.append(one)
    if chunk:
        yield chunk


def _task(
    x: Array, y: Array, clock: Array | None, places: list[Array], ahead: Array, late: list[int],
    found: list[list[int]],
) -> _Task:  # fmt: skip
    """Every series at every horizon; shorter ones go on with rows that have no label."""
    lengths = np.repeat([len(rows) for rows in places], len(ahead))
    items = np.tile(ahead, len(places))
    size = int(lengths.max(initial=0))
    labels, times = np.full((len(items), size), np.nan), np.zeros((len(items), size))
    features = np.zeros((len(items), size, x.shape[1]))
    for item, first in enumerate(items.tolist()):
        rows = places[item // len(ahead)]
        labels[item, : len(rows)] = y[rows]
        features[item, : len(rows)] = x[rows]
        if late:
            features[item, : min(first, len(rows))][:, late] = 0.0
            features[item, first : len(rows), late] = x[rows[: len(rows) - first]][:, late].T
        if clock is not None and len(rows):
            times[item, : len(rows)] = clock[rows]
            times[item, len(rows) :] = clock[rows[-1]] + 1.0 + np.arange(size - len(rows))
    moments = None if clock is None else times
    periods = [found[item // len(ahead)] for item in range(len(items))]
    return _Task(
        features, labels, _carried(labels), moments, items, lengths, periods, int(ahead.max())
    )


def _some(task: _Task, items: slice) -> _Task:
    """Some of the pairs."""
    return _Task(
        task.x[items], task.y[items], task.labels[items],
        None if task.clock is None else task.clock[items],
        task.ahead[items], task.lengths[items], task.periods[items], task.most,
    )  # fmt: skip


def _shifted(values: Array, rows: Array, fill: float) -> Array:
    """The values (…, items, n) so many rows later, each item by its own number."""
    out = np.full(values.shape, fill)
    for item, count in enumerate(rows.tolist()):
        if count < values.shape[-1]:
            out[..., item, count:] = values[..., item, : values.shape[-1] - count]
    return out


def _carried(y: Array) -> Array:
    """The last label known at each row, 0 before the first."""
    last = np.where(np.isnan(y), -1, np.arange(y.shape[-1]))
    last = np.maximum.accumulate(last, axis=-1)
    return np.where(last >= 0, np.take_along_axis(y, np.maximum(last, 0), -1), 0.0)


# Features


def _periods(y: Array, most: int) -> list[int]:
    """The season of a series as it is found at each of the bounds of its task."""
    labels, periods, bound = _carried(y[None])[0], [0], 31 + most
    while True:
        known = bound - most
        past = labels[max(0, known - _SEEN) : known]
        periods.append(find_period(past) if bound < len(y) else periods[-1])
        if bound >= len(y):
            return periods
        bound *= 2


def _epochs(task: _Task) -> Iterator[_Epoch]:
    """The rows cut where what is found in the known part has changed, with their features."""
    bounds, start = task.bounds, 0
    chosen = _chosen(task, 0)
    for place, bound in enumerate(bounds[1:], 1):
        last = bound >= task.y.shape[1]
        now = chosen if last else _chosen(task, place)
        if last or any(not np.array_equal(a, b) for a, b in zip(chosen, now, strict=True)):
            stop = min(bound, task.y.shape[1])
            yield _epoch(task, start, stop, *chosen)
            start = stop
        chosen = now


def _chosen(task: _Task, place: int) -> tuple[Array, Array, Array]:
    """What is found by a bound: the season of each item, whether it has weeks, its features."""
    known = max(task.bounds[place] - task.most, 0)
    periods = np.array([found[min(place, len(found) - 1)] for found in task.periods], np.int64)
    season = periods * -(-task.ahead // np.maximum(periods, 1))
    weeks = (periods > 0) & (known > 21 * season)
    past = slice(max(0, known - _SEEN), known)
    columns = [_columns(x[past], y[past]) for x, y in zip(task.x, task.labels, strict=True)]
    return season, weeks, np.array(columns).reshape(len(columns), -1)


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
    task: _Task, start: int, stop: int, season: Array, weeks: Array, columns: Array
) -> _Epoch:
    """What is known at each row: the last labels, those of past seasons, and the features."""
    row, first = np.arange(stop), task.ahead[:, None]
    known, labels = row - first, task.labels[:, :stop]

    def at(places: Array) -> Array:
        """The labels at these rows, as far as they are known."""
        places = np.maximum(np.minimum(places, known), 0)
        return np.where(known >= 0, np.take_along_axis(labels, places, 1), 0.0)

    def ago(steps: Array) -> Array:
        """The rows so long ago."""
        if task.clock is None:
            return row - steps[:, None]
        then = task.clock[:, :stop] - steps[:, None] + 0.25
        pairs = zip(task.clock[:, :stop], then, strict=True)
        return np.array([np.searchsorted(times, when, side="right") for times, when in pairs]) - 1

    last, before = at(known), np.maximum(known, 0)
    seen = [last, *(at(known - lag) - last for lag in range(1, _LAGS))]
    seasonal = np.full(last.shape, np.nan)
    if season.any():
        here = (season > 0)[:, None]
        for steps, some in ((season, here), (7 * season, weeks[:, None])):
            if not some.any():
                continue
            place = ago(steps)
            then = at(place)
            moved = then - at(np.take_along_axis(place, before, 1))
            near = (at(ago(steps + k)) - last for k in (-1, 1))
            seen += [np.where(some, part, 0.0) for part in (then - last, moved, *near)]
            if steps is season:
                seasonal = np.where(here, then, np.nan)
        seen.append(np.where(here, at(ago(2 * season)) - last, 0.0))
        sums = np.concatenate((np.zeros((len(labels), 1)), np.cumsum(labels, axis=1)), axis=1)
        upto, since = np.maximum(known + 1, 0), np.maximum(known + 1 - season[:, None], 0)
        total = np.take_along_axis(sums, upto, 1) - np.take_along_axis(sums, since, 1)
        seen.append(np.where(here, total / np.maximum(upto - since, 1) - last, 0.0))
    if task.clock is not None:
        clock = task.clock[:, :stop]
        gone = clock - np.take_along_axis(clock, before, 1)
        seen.append(np.minimum(gone, 10.0 * first))
    chosen = np.take_along_axis(task.x[:, :stop], columns[:, None], 2)
    return _Epoch(start, stop, np.concatenate((np.stack(seen, axis=2), chosen), axis=2), seasonal)


def _blocks(task: _Task, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Rows between two fits: few at first, at most 128; the same for all parts of a series."""
    place = 0
    bounds = iter([*task.bounds, stop])
    bound = next(bounds)
    while place < stop:
        while bound <= place:
            bound = next(bounds)
        size = 1 if place < 4 else min(max(place // 32, 8), 128)
        end = min(place + size, bound, stop)
        if place >= start:
            yield place, end
        place = end


# Candidates


def _candidates(task: _Task, names: Sequence[str], levels: tuple[float, ...]) -> dict[str, Array]:
    """The ends (3, items, n) of each candidate."""
    shape = (3, *task.y.shape)
    ends = {name: np.full(shape, np.nan) for name in names}
    needs_linear = {"linear", "boosting"} & set(names)
    done = np.full(shape, np.nan)  # the last label, the regression, and the size of its errors
    width = _LAGS + 11 + task.x.shape[2]
    step = max(_FLOATS // max(width * task.y.shape[1], 1), 1)
    for first in range(0, len(task.y), step):
        items = slice(first, first + step)
        part = _some(task, items)
        epochs = list(_epochs(part))
        known = _shifted(np.cumsum(~np.isnan(part.y), axis=1) * 1.0, part.ahead, 0.0)
        last = _shifted(part.labels, part.ahead, 0.0)
        last[known == 0.0] = np.nan  # there is nothing to go on from
        done[0, items] = last
        ends["last"][:, items] = _around(part, last, _scale(part, last), levels)
        if "seasonal" in names:
            centre = np.full(last.shape, np.nan)
            for epoch in epochs:
                centre[:, epoch.start : epoch.stop] = epoch.seasonal[:, epoch.start :]
            centre[known == 0.0] = np.nan
            ends["seasonal"][:, items] = _around(part, centre, _scale(part, centre), levels)
        if needs_linear:
            centre, scale, spread = _linear(part, epochs, last)
            done[1:, items] = centre, scale
            if "linear" in names:
                ends["linear"][:, items] = _around(part, centre, spread, levels)
    if "boosting" in names:
        for one in range(0, len(task.y), count := _horizons(task)):
            items = slice(one, one + count)
            ends["boosting"][:, items] = _boosting(_some(task, items), done[:, items], levels)
    return ends


def _horizons(task: _Task) -> int:
    """How many horizons every series of a task has."""
    return len(np.unique(task.ahead))


def _linear(task: _Task, epochs: list[_Epoch], last: Array) -> tuple[Array, Array, Array]:
    """A regression of y, the size of its errors lately, and a regression of that size."""
    change = _regressed(task, task.y - last, [epoch.features for epoch in epochs], epochs)
    centre = last + change
    scale, usual = _scale(task, centre), _scale(task, centre, half_life=500.0)
    size = np.log(np.abs(task.y - centre) / scale + 1e-3)
    more = np.nan_to_num(np.stack([np.log(scale), np.log(scale / usual)], axis=2))
    seen = [np.concatenate([e.features, more[:, : e.stop]], axis=2) for e in epochs]
    sizes = _regressed(task, size, seen, epochs)
    return centre, scale, scale * np.exp(np.clip(sizes, -3.0, 3.0))


def _regressed(task: _Task, target: Array, seen: list[Array], epochs: list[_Epoch]) -> Array:
    """A ridge regression on rows that fade, fitted anew at each block; 0 before the first fit."""
    fitted, keep = np.zeros(target.shape), 0.5 ** (1.0 / _HALF_LIFE)
    counts = ~np.isnan(target)
    for features, epoch in zip(seen, epochs, strict=True):
        part = counts[:, : epoch.stop, None]
        rows = np.concatenate(
            [
                np.ones(part.shape),
                features - features[:, :1],
                np.where(part, target[:, : epoch.stop, None], 0.0),
            ],
            axis=2,
        )
        used = (rows[:, :, 1:-1] != 0.0).any(axis=1).sum(axis=1)
        known = np.zeros(rows.shape)
        for item, ahead in enumerate(task.ahead.tolist()):
            known[item, ahead - 1 :] = (rows[item] * part[item])[: max(epoch.stop - ahead + 1, 0)]
        moments, taken = np.zeros((len(rows), rows.shape[2], rows.shape[2])), 0
        for start, stop in _blocks(task, epoch.start, epoch.stop):
            new = known[:, taken:start]
            weights = keep ** np.arange(new.shape[1] - 1.0, -1.0, -1.0)
            moments *= keep ** new.shape[1]
            moments += (new * weights[:, None]).transpose(0, 2, 1) @ new
            taken = start
            ready = moments[:, 0, 0] >= 2.0
            if not ready.any():
                continue
            some = moments if ready.all() else moments[ready]
            slopes, base, *_ = ridge(some, 10.0 + used[ready] ** 2 / some[:, 0, 0])
            now = rows[ready, start:stop, 1:-1] if not ready.all() else rows[:, start:stop, 1:-1]
            fitted[ready, start:stop] = base[:, None] + (now @ slopes[..., None])[..., 0]
    return fitted


def _boosting(task: _Task, done: Array, levels: tuple[float, ...]) -> Array:
    """Quantiles of the next move of one series, by boosted trees that see the regression too.

    The horizons share the trees, which see how far ahead they look.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    ends, (last, centre, scale) = np.full((3, *task.y.shape), np.nan), done
    target, many = task.y - last, len(task.y)
    models: list[Any] = []
    epochs = [list(_epochs(_some(task, slice(item, item + 1)))) for item in range(many)]
    for parts in zip(*epochs, strict=True):
        epoch = parts[0]
        rows = [
            np.column_stack(
                [
                    part.features[0],
                    (centre - last)[item, : part.stop],
                    np.log(scale[item, : part.stop]),
                    np.full(part.stop, float(task.ahead[item])),
                ][: None if many > 1 else 3]
            )
            for item, part in enumerate(parts)
        ]
        start = max(epoch.start, FIRST + task.most - 1)
        while start < epoch.stop:
            stop = min(int(start * GROWTH), epoch.stop)
            past = []
            for item, ahead in enumerate(task.ahead.tolist()):
                known = start - ahead + 1
                some = np.arange(known - 1 - item, max(0, known - _FITTED) - 1, -many)[::-1]
                past.append(some[~np.isnan(target[item, some])])
            if sum(map(len, past)) >= FIRST // 2:
                models = [
                    HistGradientBoostingRegressor(
                        loss="quantile", quantile=level, max_iter=60, max_leaf_nodes=15,
                        early_stopping=False, random_state=0,
                    )
                    for level in levels
                ]  # fmt: skip
                seen = np.concatenate([part[some] for part, some in zip(rows, past, strict=True)])
                moves = np.concatenate([target[item, some] for item, some in enumerate(past)])
                for model in models:
                    model.fit(seen, moves)
            elif start == epoch.start:  # other features: the trees do not know them
                models = []
            now = np.concatenate([part[start:stop] for part in rows])
            for side, model in enumerate(models):
                ends[side, :, start:stop] = model.predict(now).reshape(many, -1)
            start = stop
    return np.asarray(np.sort(ends, axis=0) + last)


# Errors of late


def _faded(values: Array, half_life: float, ahead: Array, young: float = 0.0) -> Array:
    """The fading mean of the values (…, items, n) whose labels are known at each row; else NaN.

    Of `young` series it fades faster: its half-life is the number of rows, divided by that.
    """
    lives = np.clip(np.arange(values.shape[-1]) / young, 10.0, half_life) if young else half_life
    keep, counts = 0.5 ** (1.0 / np.broadcast_to(lives, values.shape[-1:])), ~np.isnan(values)
    means = np.full(values.shape, np.nan)
    total, weight = np.zeros((*values.shape[:-1], 1)), np.zeros((*values.shape[:-1], 1))
    size = int(16 * (10.0 if young else half_life))  # beyond, powers are too small to divide by
    for start in range(0, values.shape[-1], size):
        part = values[..., start : start + size]
        here = counts[..., start : start + size]
        fade = np.cumprod(keep[start : start + size])
        sums = fade * (total + np.cumsum(np.where(here, part, 0.0) / fade, axis=-1))
        weights = fade * (weight + np.cumsum(here / fade, axis=-1))
        np.divide(sums, weights, means[..., start : start + size], where=weights > 0.0)
        total, weight = sums[..., -1:], weights[..., -1:]
    return _shifted(means, ahead, np.nan)


def _scale(task: _Task, centre: Array, half_life: float = _RECENT) -> Array:
    """How large the errors of late are, not far below their usual size; NaN before the first."""
    errors = np.abs(task.y - centre)
    recent, usual = (_faded(errors, life, task.ahead) for life in (half_life, _USUAL))
    return np.where(recent >= 0.0, np.maximum(np.fmax(recent, 0.05 * usual), _TINY), np.nan)


def _around(task: _Task, centre: Array, scale: Array, levels: tuple[float, ...]) -> Array:
    """Ends at the quantiles of past errors in units of a scale, (3, items, n)."""
    errors = np.clip((task.y - centre) / scale, -_WILD, _WILD)
    errors = _shifted(errors, task.ahead - 1, np.nan)
    tails = np.empty((3, *centre.shape))
    unknown = np.broadcast_to(_UNKNOWN, (len(errors), 2))
    item = np.arange(len(errors))
    for start, stop in _blocks(task, 0, centre.shape[1]):
        past = np.concatenate((errors[:, max(0, start - _WINDOW) : start], unknown), axis=1)
        past.sort(axis=1)  # numbers that are missing come last
        highest = (past == past).sum(axis=1) - 1
        for side, level in enumerate(levels):
            place = level * highest
            low = place.astype(np.int64)
            share = place - low
            tail = (1.0 - share) * past[item, low] + share * past[item, np.ceil(place).astype(int)]
            tails[side, :, start:stop] = tail[:, None]
    return np.asarray(centre + np.where(np.isnan(scale), 0.0, scale) * tails)


# The mixture


def _mixed(
    task: _Task, names: Sequence[str], ends: dict[str, Array], level: float
) -> tuple[Array, Array, Array]:
    """The ends of the candidates, weighed by their scores of late; the weights; who diverged."""
    y, ahead, every = task.y, task.ahead, list(ends)
    lower, point, upper = (np.stack([ends[name][side] for name in every]) for side in range(3))
    missing = np.isnan(lower) | np.isnan(upper)
    outside, (low, high) = _outside(task, lower, upper), _reach(task)
    errors = np.abs(y - 0.5 * (np.clip(lower, low, high) + np.clip(upper, low, high)))
    recent = _faded(errors, _RECENT, ahead)
    usual = np.fmax(recent[:1], _faded(errors[:1], _USUAL, ahead))
    with np.errstate(invalid="ignore"):
        diverged = outside | (recent > _FAR * usual) & (recent > 0.0)
    diverged[0] = False
    if len(names) > 1:
        lower, upper = _corrected(task, lower, upper, ~missing & ~outside, level)
    lower, point, upper = (np.clip(end, low, high) for end in (lower, point, upper))
    beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    allowed = np.array([name in names for name in every])[:, None, None] & ~missing & ~diverged

    def weighed(losses: Array) -> Array:
        # Who is not there yet has to earn its weight: it counts as the last label does.
        scores = _faded(np.where(np.isnan(losses), losses[:1], losses), _JUDGED, ahead, _YOUNG)
        able = np.concatenate([allowed] * (len(losses) // len(allowed)))
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.fmin.reduce(np.where(able, scores, np.inf), axis=0) / scores
            weights = np.where(able, np.nan_to_num(ratio, nan=1.0), 0.0) ** _SHARPNESS
        weights[0] += weights.sum(axis=0) == 0.0
        return np.asarray(weights / weights.sum(axis=0))

    weights = weighed(upper - lower + 2.0 / level * beyond)
    least, most = ((np.where(missing, 0.0, end) * weights).sum(axis=0) for end in (lower, upper))
    points = np.concatenate([point, 0.5 * (lower + upper)])  # as they came, and as corrected
    best = (np.nan_to_num(points) * weighed(np.abs(y - points))).sum(axis=0)
    usual = _faded(most - least, _USUAL, ahead)
    more = 0.5 * np.maximum(np.nan_to_num(_NARROW * usual) - (most - least), 0.0)
    return np.stack([least - more, best, most + more]), weights, diverged & ~missing


def _corrected(
    task: _Task, lower: Array, upper: Array, sound: Array, level: float
) -> tuple[Array, Array]:
    """The ends of candidates as the self-adjusting intervals correct them, but for a budget.

    So a candidate is judged by what its sets will be, and not by errors that are easily mended.
    """
    real = sound & (np.arange(task.y.shape[1]) < task.lengths[:, None])
    name, item, row = np.nonzero(real)
    columns = {"lower": lower[real], "upper": upper[real]}
    tape = Tape.from_arrays(
        columns, task.y[item, row], series=name * len(task.y) + item, delay=task.ahead[item] - 1
    )
    trace = replay(intervals(1.0 - level, limit=1e9, steadiness=1e-9), tape)
    ends = [lower.copy(), upper.copy()]
    for end, corrected in zip(ends, (trace.lower, trace.upper), strict=True):
        end[real] = np.where(np.isfinite(corrected), corrected, end[real])
    return ends[0], ends[1]


def _reach(task: _Task) -> tuple[Array, Array]:
    """How far ends may go at each row: once the range of the known labels beyond it."""
    low, high = (
        np.nan_to_num(_shifted(bound.accumulate(task.y, axis=1), task.ahead, 0.0))
        for bound in (np.fmin, np.fmax)
    )
    return low - (high - low), high + (high - low)


def _outside(task: _Task, lower: Array, upper: Array) -> Array:
    """Where a forecast is no number or far from all labels, once there are some."""
    low, high = _reach(task)
    labels = _shifted(np.cumsum(~np.isnan(task.y), axis=1) * 1.0, task.ahead, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        centre = 0.5 * (lower + upper)
        far = ~((centre >= low) & (centre <= high))
    return far & (labels >= 20)


def _runs(flags: Array, gap: int = 100, least: int = 10) -> Iterator[tuple[int, int]]:
    """Where flags are set: from and up to which rows, short gaps and short runs passed over."""
    places = np.flatnonzero(flags)
    if not len(places):
        return
    ends = np.flatnonzero(np.diff(places) > gap)
    for first, last in zip([0, *(ends + 1)], [*ends, len(places) - 1], strict=True):
        if last - first >= least:
            yield int(places[first]), int(places[last]) + 1
