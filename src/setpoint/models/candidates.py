"""Candidates that forecast series: what they know of each row, and the ends that they give.

A task has pairs of a series and a horizon side by side; whatever depends on past rows alone is
worked out in blocks of rows, for all pairs at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from math import log
from typing import Any, NamedTuple

import numpy as np

from setpoint.models.linear import ridge
from setpoint.presets import find_period

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
RECENT, USUAL = 30.0, 2_000.0
"""Half-lives of the recent and the usual size of errors."""
_WINDOW = 1_000
"""How many of the last errors give the tails of a candidate."""
FIRST, GROWTH, _FITTED = 300, 1.6, 10_000
"""Boosting: its first fit, how much longer a series is at each later one, the rows it is given."""
_TINY = 1e-100
_WILD = 50.0
"""An error is counted as at most so many times the size of those before it."""
_UNKNOWN = (-4.0, 4.0)
"""Errors in units of their size that are taken to have been seen, so that first ends are wide."""
_FLOATS = 6_000_000
"""How many numbers the features of a task may have."""


class _Epoch(NamedTuple):
    """Rows up to `stop` with features that stay the same; they are used from `start` on."""

    start: int
    stop: int
    features: Array
    seasonal: Array


class Task(NamedTuple):
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


def fits(rows: int) -> float:
    """About how many fits boosting takes over so many rows.

    >>> fits(100), round(fits(10_000))
    (0.0, 7)
    """
    return max(log(rows / FIRST) / log(GROWTH), 0.0) if rows else 0.0


@cache
def has(library: str) -> bool:
    return find_spec(library) is not None


def one_thread() -> AbstractContextManager[Any]:
    """For matrices and trees this small, threads that wait for each other take far longer."""
    if not has("threadpoolctl"):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def task_of(
    x: Array, y: Array, clock: Array | None, places: list[Array], ahead: Array, late: list[int],
    found: list[list[int]],
) -> Task:  # fmt: skip
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
    return Task(
        features, labels, _carried(labels), moments, items, lengths, periods, int(ahead.max())
    )


def _some(task: Task, items: slice) -> Task:
    """Some of the pairs."""
    return Task(
        task.x[items], task.y[items], task.labels[items],
        None if task.clock is None else task.clock[items],
        task.ahead[items], task.lengths[items], task.periods[items], task.most,
    )  # fmt: skip


def shifted(values: Array, rows: Array, fill: float) -> Array:
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


def periods_of(y: Array, most: int) -> list[int]:
    """The season of a series as it is found at each of the bounds of its task."""
    labels, periods, bound = _carried(y[None])[0], [0], 31 + most
    while True:
        known = bound - most
        past = labels[max(0, known - _SEEN) : known]
        periods.append(find_period(past) if bound < len(y) else periods[-1])
        if bound >= len(y):
            return periods
        bound *= 2


def _epochs(task: Task, *, every: bool = False) -> Iterator[_Epoch]:
    """The rows cut where what is found in the known part has changed, or at every bound."""
    bounds, start = task.bounds, 0
    chosen = _chosen(task, 0)
    for place, bound in enumerate(bounds[1:], 1):
        last = bound >= task.y.shape[1]
        now = chosen if last else _chosen(task, place)
        if last or every or any(not np.array_equal(a, b) for a, b in zip(chosen, now, strict=True)):
            stop = min(bound, task.y.shape[1])
            yield _epoch(task, start, stop, *chosen[:3])
            start = stop
        chosen = now


def _chosen(task: Task, place: int) -> tuple[Array, Array, Array, Array]:
    """What is found by a bound: the season of each item, whether it has weeks, its features."""
    known = max(task.bounds[place] - task.most, 0)
    periods = np.array([found[min(place, len(found) - 1)] for found in task.periods], np.int64)
    season = periods * -(-task.ahead // np.maximum(periods, 1))
    longest = periods * -(-task.most // np.maximum(periods, 1))
    weeks = (periods > 0) & (known > 21 * longest)
    past = slice(max(0, known - _SEEN), known)
    columns = [_columns(x[past], y[past]) for x, y in zip(task.x, task.labels, strict=True)]
    return season, weeks, np.array(columns).reshape(len(columns), -1), periods


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
    task: Task, start: int, stop: int, season: Array, weeks: Array, columns: Array
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


def _blocks(task: Task, start: int, stop: int) -> Iterator[tuple[int, int]]:
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


def candidates(task: Task, names: Sequence[str], levels: tuple[float, ...]) -> dict[str, Array]:
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
        known = shifted(np.cumsum(~np.isnan(part.y), axis=1) * 1.0, part.ahead, 0.0)
        last = shifted(part.labels, part.ahead, 0.0)
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


def _horizons(task: Task) -> int:
    """How many horizons every series of a task has."""
    return len(np.unique(task.ahead))


def _linear(task: Task, epochs: list[_Epoch], last: Array) -> tuple[Array, Array, Array]:
    """A regression of y, the size of its errors lately, and a regression of that size."""
    change = _regressed(task, task.y - last, [epoch.features for epoch in epochs], epochs)
    centre = last + change
    near = np.clip(centre, *reach(task))  # one wild row is not to spoil the thousands behind it
    scale, usual = _scale(task, near), _scale(task, near, half_life=500.0)
    size = np.log(np.abs(task.y - near) / scale + 1e-3)
    more = np.nan_to_num(np.stack([np.log(scale), np.log(scale / usual)], axis=2))
    seen = [np.concatenate([e.features, more[:, : e.stop]], axis=2) for e in epochs]
    sizes = _regressed(task, size, seen, epochs)
    return centre, scale, scale * np.exp(np.clip(sizes, -3.0, 3.0))


def _regressed(task: Task, target: Array, seen: list[Array], epochs: list[_Epoch]) -> Array:
    """A ridge regression on rows that fade, fitted anew at each block; 0 before the first fit."""
    fitted, keep = np.zeros(target.shape), 0.5 ** (1.0 / _HALF_LIFE)
    counts = ~np.isnan(target)
    for features, epoch in zip(seen, epochs, strict=True):
        part = counts[:, : epoch.stop, None]
        moved = features - features[:, :1]
        moved[np.abs(moved) <= 1e-12 * np.abs(features[:, :1])] = 0.0  # what rounding leaves
        aim = np.where(part, target[:, : epoch.stop, None], 0.0)
        rows = np.concatenate([np.ones(part.shape), moved, aim], axis=2)
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


def _boosting(task: Task, done: Array, levels: tuple[float, ...]) -> Array:
    """Quantiles of the next move of one series, by boosted trees that see the regression too.

    The horizons share the trees, which see how far ahead they look.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    ends, (last, centre, scale) = np.full((3, *task.y.shape), np.nan), done
    target, many = task.y - last, len(task.y)
    models: list[Any] = []
    chosen = task.x.shape[2] > _MOST  # then horizons may choose other features
    epochs = [
        list(_epochs(_some(task, slice(item, item + 1)), every=chosen)) for item in range(many)
    ]
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
                with one_thread():
                    for model in models:
                        model.fit(seen, moves)
            elif start == epoch.start:  # other features: the trees do not know them
                models = []
            now = np.concatenate([part[start:stop] for part in rows])
            with one_thread():
                for side, model in enumerate(models):
                    ends[side, :, start:stop] = model.predict(now).reshape(many, -1)
            start = stop
    return np.asarray(np.sort(ends, axis=0) + last)


# Errors of late


def reach(task: Task) -> tuple[Array, Array]:
    """How far ends may go at each row: once the range of the known labels beyond it."""
    low, high = (
        np.nan_to_num(shifted(bound.accumulate(task.y, axis=1), task.ahead, 0.0))
        for bound in (np.fmin, np.fmax)
    )
    return low - (high - low), high + (high - low)


def faded(values: Array, half_life: float, ahead: Array, young: float = 0.0) -> Array:
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
    return shifted(means, ahead, np.nan)


def _scale(task: Task, centre: Array, half_life: float = RECENT) -> Array:
    """How large the errors of late are, not far below their usual size; NaN before the first."""
    errors = np.abs(task.y - centre)
    recent, usual = (faded(errors, life, task.ahead) for life in (half_life, USUAL))
    return np.where(recent >= 0.0, np.maximum(np.fmax(recent, 0.05 * usual), _TINY), np.nan)


def _around(task: Task, centre: Array, scale: Array, levels: tuple[float, ...]) -> Array:
    """Ends at the quantiles of past errors in units of a scale, (3, items, n)."""
    errors = np.clip((task.y - centre) / scale, -_WILD, _WILD)
    errors = shifted(errors, task.ahead - 1, np.nan)
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
