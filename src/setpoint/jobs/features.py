"""What a model sees of each row: numbers, calendars and words, and none that is known too late."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.errors import DataError
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.rows import Rows
from setpoint.tape.text import weekday

Array = np.ndarray[Any, Any]

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

    @property
    def lagged(self) -> tuple[str, ...]:
        """What is seen as it was in the last row with a known label."""
        return tuple(self.names[place] for place in self.late)


def features(
    rows: Rows,
    tape: Tape,
    columns: Columns,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    known_ahead: Sequence[str] = (),
    ahead: bool = False,
) -> Features:
    """What a model sees: numbers, the calendar of dates, and words with few values.

    A missing number is taken to be the last one before it in its series. Of the time the calendar
    is taken and nothing else: a trend is the model's matter. A number that tells much of the label
    of its own row, and is not said to be known ahead, is known too late; `ahead`, where there are
    rows to come, so is everything but the time. A column that counts the rows is left out unless
    it is asked for.
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
        if isinstance(part, dict) and name in part and _counts(part[name], tape, ahead):
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
    doubtful = [place for place, source in enumerate(sources) if source not in sure]
    if not ahead:
        plain = [place for place in doubtful if tuple(seen)[place] in parts]
        doubtful = _telling(values, plain, tape)
    used = tuple(name for name in parts if name not in left_out)
    return Features(values, tuple(seen), used, left_out, tuple(doubtful))


def _counts(numbers: Array, tape: Tape, ahead: bool) -> bool:
    """Whether a column counts the rows of the file or of each series, some of which may be gone.

    It goes one way by whole steps, and most of them are alike.
    """
    within = np.diff(tape.by_stream(numbers[tape.places]))
    within = np.delete(within, tape.segments.offsets[1:-1] - 1)
    for steps in (np.diff(numbers), within):
        steps = steps[~np.isnan(steps)] if ahead else steps  # rows to come have no number
        if len(steps) < 2 or not ((steps > 0.0).all() or (steps < 0.0).all()):
            continue
        usual = np.median(steps)
        if (steps % usual == 0.0).all() and (steps == usual).mean() > 0.5:
            return True
    return False


_TELLING, _TELLING_TOGETHER, _LITTLE = 0.3, 0.5, 0.1
"""What share of the surprise in y a column may explain, or all of them, before they count as known
too late; and how little is left then."""
_LOOKED_AT = 5_000


def _telling(values: Array, columns: Sequence[int], tape: Tape) -> list[int]:
    """Which columns explain much of what the rows before leave open in the label of their row.

    By themselves or together, as the parts of a sum do. Only the first half of each series is
    looked at, so that late labels change nothing early.
    """
    offsets = tape.segments.offsets
    lengths = np.diff(offsets)
    place = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    early = (place > 0) & (place < np.repeat(lengths, lengths) // 2)
    y = tape.by_stream(tape.y)
    rows = np.flatnonzero(early & ~np.isnan(y) & ~np.isnan(np.roll(y, 1)))[:_LOOKED_AT]
    if len(rows) < 20:
        return []
    telling, others, surprises = [], [], []
    for place in columns:
        column = tape.by_stream(values[:, place])
        past = np.column_stack([np.ones(len(rows)), y[rows - 1], column[rows - 1]])
        both = np.column_stack([y[rows], column[rows]])
        scale = np.abs(past).max(axis=0)
        past /= np.where(scale > 0.0, scale, 1.0)
        surprise = both - past @ np.linalg.lstsq(past, both, rcond=None)[0]
        least = np.maximum(1e-9 * np.abs(both).max(axis=0), 1e-150)
        if (np.abs(surprise).max(axis=0) <= least).any():
            continue
        ranks = surprise.argsort(axis=0).argsort(axis=0)
        if max(float(np.corrcoef(pair.T)[0, 1]) ** 2 for pair in (surprise, ranks)) > _TELLING:
            telling.append(place)
        else:
            others.append(place)
            surprises.append(surprise)
    if len(rows) > 20 * len(others):
        telling += [others[place] for place in _telling_together(surprises)]
    return sorted(telling)


def _telling_together(surprises: Sequence[Array]) -> list[int]:
    """Which columns tell much together, of pairs of a surprise in y and one in a column.

    If all of them do, one after the other goes until the rest tells little.
    """
    if len(surprises) < 2:
        return []
    label = np.mean([pair[:, 0] for pair in surprises], axis=0)
    table = np.corrcoef(np.column_stack([label, *(pair[:, 1] for pair in surprises)]).T)

    def explained(places: list[int]) -> float:
        at = [place + 1 for place in places]
        among, with_y = table[np.ix_(at, at)], table[at, 0]
        return float(with_y @ np.linalg.lstsq(among, with_y, rcond=1e-9)[0])

    left, gone = list(range(len(surprises))), []
    if explained(left) <= _TELLING_TOGETHER:
        return []
    while left and explained(left) > _LITTLE:
        without = [explained([other for other in left if other != place]) for place in left]
        gone.append(left.pop(int(np.argmin(without))))
    return gone


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
    for name, phase, times in turns:
        cycles[f"{name} sin{times}"] = np.sin(2.0 * pi * phase)
        cycles[f"{name} cos{times}"] = np.cos(2.0 * pi * phase)
        if name == "of week" and span > 14 * _DAY:
            cycles["weekend"] = (days >= 5).astype(np.float64)
    return cycles
