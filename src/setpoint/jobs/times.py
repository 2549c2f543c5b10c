"""When the labels of a file become known, several horizons in one row, the season of its times."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.errors import DataError
from setpoint.presets import find_period
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import Rows

Array = np.ndarray[Any, Any]


def horizons(rows: Rows, patterns: Mapping[str, str]) -> list[int]:
    """The horizons of a file with several in one row: the numbers in place of * in its names."""
    found: dict[str, set[int]] = {}
    for role, pattern in patterns.items():
        sign = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
        matches = [match for name in rows.names if (match := sign.fullmatch(name))]
        found[role] = {int(match.group(1)) for match in matches}
        named = {pattern.replace("*", str(number)) for number in found[role]}
        if not found[role] or not named <= set(rows.names):
            raise DataError(
                f"{option(role)} {pattern!r} stands for columns with the horizon in place of *, "
                "such as "
                f"{pattern.replace('*', '1')!r}, and {rows.path} has none; its columns are "
                f"{', '.join(map(repr, rows.names[:15]))}"
            )
    shared = set.intersection(*found.values())
    for role, numbers in found.items():
        if numbers != shared:
            alone = patterns[role].replace("*", str(min(numbers - shared)))
            raise DataError(f"{rows.path} has {alone!r} and no other end of that horizon")
    if min(shared) < 1:
        raise DataError(f"a horizon is a whole number from 1, got {min(shared)} in {rows.path}")
    return sorted(shared)


def several(columns: Sequence[Array]) -> Array:
    """The columns of all horizons, one behind the other."""
    return np.concatenate([np.asarray(column) for column in columns])


def issued_every(tape: Tape) -> int:
    """Of forecasts for several horizons: how many steps of time lie between two of one horizon.

    A step is the usual one between times of the file: one hour for forecasts that are made once a
    day for each hour, if the time is that of the label.
    """
    if tape.horizon is None or tape.known is not None or tape.time is None:
        return 1
    moments = _moments(tape.time)
    steps = np.diff(np.unique(moments))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return max(round(_spacing(tape, moments) / usual), 1) if usual > 0.0 else 1


def label_notes(tape: Tape, columns: Columns, every: int = 1) -> list[str]:
    """When labels are taken to be known, in words; forecasts are made `every` so many steps."""
    if columns.known:
        made = columns.time or "the number of the row"
        notes = [f"each label is taken in at its time in {columns.known!r}, and each forecast is "
                 f"taken to be made at its time in {made!r}"]  # fmt: skip
        if not _any_late(tape):
            notes.append(
                "no label is later than the next row of its series: is "
                f"{made!r} when a forecast was made, or the time it is for?"
            )
        return notes
    if columns.delay:
        return [f"each label is taken to be known {columns.delay:,} rows late, in its series"]
    if tape.horizon is not None:
        steps = np.unique(tape.horizon).tolist()
        listed = ", ".join(map(str, steps[:10])) + (", …" if len(steps) > 10 else "")
        late = "h − 1 rows late"
        if every > 1:
            late = f"h steps later, and forecasts to be made every {every} steps"
        return [
            f"each horizon ({listed}) is a series of its own; a label h steps ahead is taken to be "
            f"known {late}; if that is not so, say by {option('known')} when labels were known"
        ]
    return [
        "each label is taken to be known before the next row of its series; if it comes later, say "
        f"so by {option('delay')}, {option('horizon')} or {option('known')}"
    ]


def _any_late(tape: Tape) -> bool:
    """Whether the label of any row is known after the next row of its series."""
    schedule, offsets = tape.schedule, tape.segments.offsets
    if schedule is None:
        return False
    if not len(schedule.upto):
        return bool(schedule.delays.any())
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    return bool((schedule.upto < within).any())


def known_part(tape: Tape, counts: Array) -> Tape:
    """The first rows of each stream, with the labels that are known when the next row comes."""
    past, _ = tape.split(counts)
    schedule, offsets = tape.schedule, tape.segments.offsets
    if schedule is None:
        return past
    early, unknown = np.zeros((2, len(tape)), dtype=bool)
    for stream, count in enumerate(counts.tolist()):
        first = int(offsets[stream])
        late = schedule.answers(stream, offsets)[schedule.due(stream, offsets, count) :]
        unknown[first + np.array(late, dtype=np.int64)] = True
        early[first : first + count] = True
    early, unknown = tape.by_row(early), tape.by_row(unknown)
    return past.hidden(unknown[early])


# Seasons


def phased(tape: Tape) -> Tape:
    """The tape with the number of each row's step of time as its phase, so that gaps count.

    A tape without times stays as it is: its rows are counted.
    """
    if tape.time is None or len(tape) < 2:
        return tape
    steps = _steps(tape)
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    return tape.with_prediction({**columns, "phase": steps})


def _steps(tape: Tape, rows: Any = slice(None)) -> Array:
    """How many steps of time each of the rows is after the first; a step is the usual one."""
    moments = _moments(tape.time)
    some = moments[rows]
    return np.asarray(np.rint((some - some.min()) / _spacing(tape, moments)))


def _moments(time: Any) -> Array:
    """Times as numbers."""
    given = np.asarray(time)
    return given.astype("datetime64[us]").astype(np.int64) if given.dtype.kind == "M" else given


def _spacing(tape: Tape, moments: Array) -> float:
    """The usual distance in time of two rows of the longest stream, 1 if there is none."""
    gaps = np.diff(moments[_longest(tape)])
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else 1.0


def _longest(tape: Tape) -> Array:
    """The rows of the longest stream."""
    return tape.rows(tape.streams[int(np.diff(tape.segments.offsets).argmax())])


def season(tape: Tape) -> int:
    """The season of the errors of a tape in steps of time; 0 if they have none."""
    rows = _longest(tape)
    named = zip(tape.names, map(np.asarray, tape.prediction), strict=True)
    middle = np.mean([column[rows] for name, column in named if name != "phase"], axis=0)
    errors = tape.y[rows] - middle
    steps = np.arange(len(rows)) if tape.time is None else _steps(tape, rows)
    if steps[-1] >= 20 * len(rows):
        return 0  # the times have no step
    steps = steps.astype(np.int64)
    values = np.full(int(steps[-1]) + 1, np.nan)
    values[steps] = np.where(np.isfinite(errors), errors, np.nan)
    return find_period(values)
