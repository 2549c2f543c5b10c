"""Forecasts of series by a few candidates, mixed by how well each of them lately did.

A forecast h steps ahead of row t knows the labels up to row t − h, and the features of row t. Each
candidate gives a point and two ends for every row and horizon, by a model for each horizon. The
ends are corrected as self-adjusting intervals are. A mixture of them is handed on, in which a
candidate weighs the more, the smaller its recent interval score is; one that diverges weighs
nothing. Everything is worked out in blocks of rows, for many horizons and series at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import finite, whole
from setpoint.bulk.replay import replay
from setpoint.errors import InputError
from setpoint.models.candidates import (
    AUTO,
    CANDIDATES,
    RECENT,
    USUAL,
    Task,
    candidates,
    faded,
    has,
    one_thread,
    periods_of,
    reach,
    shifted,
    task_of,
)
from setpoint.models.online import rows_and_labels
from setpoint.presets import intervals
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]


_JUDGED = 200.0
"""The half-life of the score that gives weights."""
_SHARPNESS, _YOUNG = 24.0, 5.0
"""Weights go with this power of one over the recent score; the score of a young series fades within
so large a part of it."""
_NARROW = 0.05
"""Ends are at least this share of their usual distance apart: no forecast is that sure."""
_SETTLED = 200
"""Up to which row nobody is told that a candidate was left out: there is little to learn from."""
_FAR = 10.0
"""How many times the error of the last label a candidate may have before it is left out."""
_CELLS = 1_500_000
"""How many rows of all horizons are mixed at once."""


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
    names = [name for name in models if len(models) == 1 or name != "boosting" or has("sklearn")]
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
        found = [periods_of(labels[rows_of], int(ahead.max())) for rows_of in places]
        task = task_of(rows, labels, times, places, ahead, list(late), found)
        with one_thread():
            ends_of = candidates(task, every, levels)
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


# The mixture


def _mixed(
    task: Task, names: Sequence[str], ends: dict[str, Array], level: float
) -> tuple[Array, Array, Array]:
    """The ends of the candidates, weighed by their scores of late; the weights; who diverged."""
    y, ahead, every = task.y, task.ahead, list(ends)
    lower, point, upper = (np.stack([ends[name][side] for name in every]) for side in range(3))
    missing = np.isnan(lower) | np.isnan(upper)
    outside, (low, high) = _outside(task, lower, upper), reach(task)
    errors = np.abs(y - 0.5 * (np.clip(lower, low, high) + np.clip(upper, low, high)))
    recent = faded(errors, RECENT, ahead)
    usual = np.fmax(recent[:1], faded(errors[:1], USUAL, ahead))
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
        scores = faded(np.where(np.isnan(losses), losses[:1], losses), _JUDGED, ahead, _YOUNG)
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
    usual = faded(most - least, USUAL, ahead)
    more = 0.5 * np.maximum(np.nan_to_num(_NARROW * usual) - (most - least), 0.0)
    return np.stack([least - more, best, most + more]), weights, diverged & ~missing


def _corrected(
    task: Task, lower: Array, upper: Array, sound: Array, level: float
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


def _outside(task: Task, lower: Array, upper: Array) -> Array:
    """Where a forecast is no number or far from all labels, once there are some."""
    low, high = reach(task)
    labels = shifted(np.cumsum(~np.isnan(task.y), axis=1) * 1.0, task.ahead, 0.0)
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
