"""When the labels of a file become known, several horizons in one row, the season of its times."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs.rows import Rows
from setpoint.presets import find_period
from setpoint.tape import Tape

__all__ = ["horizons", "known_part", "label_notes", "phased", "season", "several"]

Array = np.ndarray[Any, Any]


def horizons(rows: Rows, patterns: Mapping[str, str]) -> list[int]:
    """The horizons of a file with several in one row: the numbers in place of * in its names."""
    found: dict[str, set[int]] = {}
    for option, pattern in patterns.items():
        sign = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
        matches = [match for name in rows.names if (match := sign.fullmatch(name))]
        found[option] = {int(match.group(1)) for match in matches}
        named = {pattern.replace("*", str(number)) for number in found[option]}
        if not found[option] or not named <= set(rows.names):
            raise DataError(
                f"{option} {pattern!r} stands for columns with the horizon in place of *, such as "
                f"{pattern.replace('*', '1')!r}, and {rows.path} has none; its columns are "
                f"{', '.join(map(repr, rows.names[:15]))}"
            )
    shared = set.intersection(*found.values())
    for option, numbers in found.items():
        if numbers != shared:
            alone = patterns[option].replace("*", str(min(numbers - shared)))
            raise DataError(f"{rows.path} has {alone!r} and no other end of that horizon")
    if min(shared) < 1:
        raise DataError(f"a horizon is a whole number from 1, got {min(shared)} in {rows.path}")
    return sorted(shared)


def several(columns: Sequence[Array]) -> Array:
    """The columns of all horizons, one behind the other."""
    return np.concatenate([np.asarray(column) for column in columns])


def label_notes(tape: Tape, names: Mapping[str, Any]) -> list[str]:
    """When labels are taken to be known, in words."""
    if names.get("known"):
        return [f"each label is taken in at its time in {names['known']!r}"]
    late = names.get("delay")
    if late:
        return [f"each label is taken to be known {late:,} rows late, in its series"]
    if tape.horizon is not None:
        listed = ", ".join(map(str, np.unique(tape.horizon)[:10].tolist()))
        return [
            f"each horizon ({listed}) is a series of its own; a label h steps ahead is taken to be "
            "known h − 1 rows late"
        ]
    return [
        "each label is taken to be known before the next row of its series; if it comes later, say "
        "so by --delay, --horizon or --known"
    ]


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
    if "prediction" in columns:
        columns["point"] = columns.pop("prediction")
    return tape.with_prediction({**columns, "phase": steps.astype(np.float64)})


def _steps(tape: Tape) -> Array:
    """How many steps of time each row is after the first; a step is the usual one in a stream."""
    time = np.asarray(tape.time)
    kept = time.astype("datetime64[us]").astype(np.int64) if time.dtype.kind == "M" else time
    gaps = np.diff(np.asarray(tape.by_stream(kept)))
    inside = np.ones(len(gaps), dtype=bool)
    inside[tape.segments.offsets[1:-1] - 1] = False
    gaps = gaps[inside & (gaps > 0)]
    step = float(np.median(gaps)) if len(gaps) else 1.0
    return np.asarray(np.rint((kept - kept.min()) / step))


def season(tape: Tape) -> int:
    """The season of the errors of a tape in steps of time; 0 if they have none."""
    named = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    named.pop("phase", None)
    errors = tape.y - np.mean(list(named.values()), axis=0)
    longest = int(np.diff(tape.segments.offsets).argmax())
    rows = tape.rows(tape.streams[longest])
    steps = np.arange(len(rows)) if tape.time is None else _steps(tape)[rows].astype(np.int64)
    steps = steps - steps[0]
    if steps[-1] >= 20 * len(rows):
        return 0  # the times have no step
    values = np.full(int(steps[-1]) + 1, np.nan)
    values[steps] = np.where(np.isfinite(errors[rows]), errors[rows], np.nan)
    return find_period(values)
