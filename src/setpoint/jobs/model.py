"""The model of `forecast`: what it sees of each row, and what it says of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi
from typing import Any

import numpy as np

from setpoint._check import choice, option
from setpoint.errors import DataError
from setpoint.models.candidates import AUTO, CANDIDATES, fits
from setpoint.models.forecast import Mixture, forecast
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.rows import Rows
from setpoint.tape.text import weekday

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

WORDS = 30
"""A column of text with more distinct values is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What a model sees of each row of a tape: finite numbers, and what each column of them is.

    `columns` are those of the file that they are made of, `left_out` the others, with the reason.
    The numbers at the places `late` are known with the label of their row and not before it.
    """

    values: Array
    names: tuple[str, ...]
    columns: tuple[str, ...]
    left_out: dict[str, str]
    late: tuple[int, ...] = ()

    def notes(self) -> list[str]:
        """What the model sees, in words."""
        names = [_named(name) for name in self.columns]
        if len(names) > _LISTED:
            names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
        notes = [f"the model's inputs: {', '.join(names) or 'the last actual values only'}"]
        if self.late:
            notes.append(
                "in future rows every column but the time keeps its last known value; list those "
                f"you know in advance with {option('known_ahead')}"
            )
        if self.left_out:
            reasons = [f"{_named(name, repr)} {why}" for name, why in self.left_out.items()]
            notes.append(f"left out: {'; '.join(reasons)}")
        return notes


def _named(name: str, form: Callable[[str], str] = str) -> str:
    return form(name) if name else "a column without a name"


def features_of(
    rows: Rows,
    tape: Tape,
    columns: Columns,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    known_ahead: Sequence[str] = (),
) -> Features:
    """What a model sees: numbers, the calendar of dates, and words with few values.

    A missing number is taken to be the last one before it in its series. Of the time the calendar
    is taken and nothing else: a trend is the model's matter. All else that is not said to be known
    ahead is known with the label of its row. A column that counts the rows is left out unless it is
    asked for.
    """
    asked = {"features": only, "without": without, "known_ahead": known_ahead}
    for role, names in asked.items():
        for name in names:
            rows.column(name, role)
    time, keys = columns.time, several(columns.series or ())
    unseen = {columns.target, *keys, *without}
    wanted = [name for name in (only or rows.names) if name not in unseen]
    parts = {name: _feature(rows, name, name == time) for name in wanted}
    timely = () if time is None else rows.parts(time)
    for name in set(wanted) - {*only, *known_ahead, *timely}:
        part = parts[name]
        if isinstance(part, dict) and name in part and _counts(part[name], tape):
            parts[name] = "counts the rows"
    left_out = {name: part for name, part in parts.items() if isinstance(part, str)}
    if only and left_out:
        name, why = next(iter(left_out.items()))
        raise DataError(
            f"{option('features')} must be numbers, dates or few words, and {name!r} {why}"
        )
    seen: dict[str, Array] = {}
    sources: list[str] = []
    for source, part in parts.items():
        seen |= {} if isinstance(part, str) else part
        sources += [] if isinstance(part, str) else [source] * len(part)
    values = np.empty((len(rows), len(seen)))
    for place, column in enumerate(seen.values()):
        values[:, place] = _carried(column[tape.places], tape)
    sure = {*known_ahead, *timely}
    late = tuple(place for place, source in enumerate(sources) if source not in sure)
    used = tuple(name for name in parts if name not in left_out)
    return Features(values, tuple(seen), used, left_out, late)


def _counts(numbers: Array, tape: Tape) -> bool:
    """Whether a column counts the rows of the file or of each series, some of which may be gone.

    It goes one way by whole steps, and most of them are alike.
    """
    within = np.diff(tape.by_stream(numbers[tape.places]))
    within = np.delete(within, tape.segments.offsets[1:-1] - 1)
    for steps in (np.diff(numbers), within):
        steps = steps[~np.isnan(steps)]  # future rows have no number
        if len(steps) < 2 or not ((steps > 0.0).all() or (steps < 0.0).all()):
            continue
        usual = np.median(steps)
        if (steps % usual == 0.0).all() and (steps == usual).mean() > 0.5:
            return True
    return False


def _feature(rows: Rows, name: str, is_time: bool) -> dict[str, Array] | str:
    """The features of one column, or why there are none."""
    moments = rows.times(name, "time") if is_time else rows.moments(name)
    if moments is not None and moments.dtype.kind == "M":
        return {f"{name} {part}": column for part, column in calendar(moments).items()}
    if is_time:
        return "is the time, in numbers that have no calendar"
    if not rows.is_text(name):
        try:
            numbers = rows.numbers(name, "a feature")
        except DataError:
            return f"holds {rows.table[name].type}"
        numbers = np.where(np.isinf(numbers), np.nan, numbers)
        return "is empty" if np.isnan(numbers).all() else {name: numbers}
    words, codes = rows.words(name, "a feature")
    if len(words) > WORDS:
        many = f"holds {len(words):,} different words, and at most {WORDS} become features"
        return rows.no_dates(name) or many
    return {f"{name} = {word}": (codes == i).astype(np.float64) for i, word in enumerate(words)}


def _carried(values: Array, tape: Tape) -> Array:
    """Missing numbers replaced by the last one before them in their series, else by 0."""
    if not np.isnan(values).any():
        return values
    offsets = tape.segments.offsets
    column = tape.by_stream(values)
    known = np.where(np.isnan(column), -1, np.arange(len(column)))
    last = np.maximum.accumulate(known)
    there = last >= np.repeat(offsets[:-1], np.diff(offsets))
    return tape.by_row(np.where(there, column[np.maximum(last, 0)], 0.0))


_DAY, _YEAR = 86_400, 31_556_952
"""Seconds."""


def calendar(moments: Array) -> dict[str, Array]:
    """Where moments lie in the day, the week and the year, as numbers that run round.

    Cycles in which the moments do not move are left out: a daily series has no hours.

    >>> import numpy as np
    >>> hours = np.datetime64("2024-01-01", "h") + np.arange(48)
    >>> sorted(calendar(hours))
    ['of day cos', 'of day cos 2', 'of day sin', 'of day sin 2', 'of week cos', 'of week sin']
    """
    seconds = moments.astype("datetime64[s]").astype(np.int64)
    span = int(seconds.max() - seconds.min()) if len(seconds) else 0
    days = weekday(moments)
    turns = []
    if (seconds % _DAY != seconds[:1] % _DAY).any():
        turns = [
            ("of day", seconds % _DAY / _DAY, ""),
            ("of day", 2 * (seconds % _DAY) / _DAY, " 2"),
        ]
    if (days != days[:1]).any():
        turns.append(("of week", days / 7.0, ""))
    if span > _YEAR // 2:
        turns.append(("of year", seconds % _YEAR / _YEAR, ""))
    cycles: dict[str, Array] = {}
    for name, phase, times in turns:  # rounded, so that equal places are equal numbers
        cycles[f"{name} sin{times}"] = np.sin(2.0 * pi * phase).round(12)
        cycles[f"{name} cos{times}"] = np.cos(2.0 * pi * phase).round(12)
        if name == "of week" and span > 14 * _DAY:
            cycles["weekend"] = (days >= 5).astype(np.float64)
    return cycles


# What it is

_FITS, _TREES = 60, 2_000_000
"""How often boosting may be fitted where nobody asked for it, and for how many forecasts."""
_FAR, _FIRST = 10.0, 20
"""A value that lies further beyond all earlier ones than this many ranges of theirs is learnt from
as if it lay just that far."""
_LISTED = 12


def mixture_of(
    model: str,
    seen: Features,
    tape: Tape,
    level: float,
    horizons: Sequence[int],
    rows: Rows,
    progress: Progress | None,
) -> tuple[Mixture, list[str]]:
    """What a model forecasts of every row of a tape, in the order of its streams; and notes."""
    choice(model, "model", ("auto", *CANDIDATES))
    models, notes = AUTO if model == "auto" else (model,), []
    offsets = tape.segments.offsets
    many = sum(map(fits, np.diff(offsets).tolist())) > _FITS
    if model == "auto" and (many or len(horizons) * len(tape) > _TREES):
        models = tuple(name for name in AUTO if name != "boosting")
        notes.append("boosting is left out, to save time: it can be named as the model")
    clock = None
    if tape.time is not None:
        times = np.split(tape.by_stream(tape.time), offsets[1:-1])
        clocks = [part for part in map(clock_of, times) if part is not None]
        if len(clocks) == len(times):
            clock = np.concatenate(clocks)
    y, far = np.array(tape.by_stream(tape.y)), []
    for begin, end in pairwise(offsets.tolist()):
        far += [begin + row for row in _tamed(y[begin:end])]
    if far:
        place = rows.place(int(tape.by_stream(tape.places)[far[0]]))
        often = f", the first of {len(far):,} such values" if len(far) > 1 else ""
        notes.append(
            f"the value in {place} is far from all before it{often}: the model learns from it as "
            f"if it were {y[far[0]]:.6g}"
        )
    learnt = forecast(
        tape.by_stream(seen.values.T).T, y, horizons=horizons,
        offsets=offsets, late=seen.late, clock=clock, models=models, level=level, progress=progress,
    )  # fmt: skip
    return learnt, [*notes, *_told(model, learnt, tape, rows)]


def _tamed(y: Array) -> list[int]:
    """Brings values far from all before them nearer, in place; returns where.

    One typing error would otherwise spoil lags, seasons and errors for hundreds of rows. A level
    that has truly moved so far is reached in a few rows, for each of them widens the range.
    """
    places, changed = np.flatnonzero(~np.isnan(y)), []
    values = y[places]
    while len(values) > _FIRST:
        low, high = np.minimum.accumulate(values)[:-1], np.maximum.accumulate(values)[:-1]
        room = np.where(high > low, _FAR * (high - low), np.inf)
        room[: _FIRST - 1] = np.inf
        near = np.clip(values[1:], low - room, high + room)
        far = np.flatnonzero(near != values[1:])
        if not len(far):
            break
        values[far[0] + 1] = y[places[far[0] + 1]] = near[far[0]]
        changed.append(int(places[far[0] + 1]))
    return changed


def clock_of(time: Array) -> Array | None:
    """Times in units of the usual distance of two rows, if there is one."""
    moments = time.astype("datetime64[us]").astype(np.float64) if time.dtype.kind == "M" else time
    steps = np.diff(moments.astype(np.float64))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return (moments - moments[0]) / usual if usual > 0.0 else None


def _told(model: str, learnt: Mixture, tape: Tape, rows: Rows) -> list[str]:
    """What there is to say of the models; few rows, for finding one reads the file."""
    notes: list[str] = []
    weights = dict(zip(learnt.names, learnt.weights.mean(axis=(0, 1)).tolist(), strict=True))
    share = weights.get(model, 1.0)
    if model == "seasonal" and share < 0.5:
        notes.append(
            f"no season was known yet for {100 * (1 - share):.0f} % of the rows; for these, the "
            "forecast is the last actual value"
        )
    if model == "auto":
        shares = sorted(weights.items(), key=lambda item: -item[1])
        parts = [f"{name} {100 * share:.0f} %" for name, share in shares if share >= 0.005]
        notes.append(f"the forecast is a mixture, on average of {', '.join(parts)}")
    in_file, ends = tape.by_stream(tape.places).tolist(), {*tape.segments.offsets.tolist()}
    for name in dict.fromkeys(name for name, *_ in learnt.absences):
        (start, stop), *more = [pair for one, *pair in learnt.absences if one == name]
        until = "" if stop in ends else f" until {rows.place(in_file[stop], header=False)}"
        often = f"; and {len(more):,} more times" if more else ""
        notes.append(f"{name} diverged at {rows.place(in_file[start])}, left out{until}{often}")
    return notes
