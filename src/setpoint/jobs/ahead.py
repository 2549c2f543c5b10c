"""Future rows: those that a file has, and those that are added, with their times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._check import option, whole
from setpoint._html import named
from setpoint.errors import DataError, InputError
from setpoint.jobs.columns import timed
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.rows import Rows
from setpoint.tape.text import arrow

Array = np.ndarray[Any, Any]

_LEAST = 20
"""How many actual values a model needs."""
_LIMITS = (-1e100, 1e100)
"""Beyond them squares have no room."""
_MOST = 40_000_000
"""How many forecasts, of all rows at all steps, are replayed at most."""


def target_of(rows: Rows, target: str, support: tuple[float, float] | None) -> Array:
    """The actual values, if there are enough of them and all lie in the support."""
    (least, most), y = support or _LIMITS, rows.labels(target)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"a forecast needs at least {_LEAST} actual values, and {option('target')} {target!r} "
            f"of {rows.path} has {known} in {len(y):,} rows"
        )
    if (beyond := (y < least) | (y > most)).any():
        row, said = int(beyond.argmax()), support and f" as {option('support')} says"
        raise DataError(
            f"{target!r} of {rows.path} holds {y[row]:g} in {rows.place(row)}, and must lie "
            f"from {least:g} to {most:g}{said or ''}"
        )
    return y


def last_known(tape: Tape) -> Array:
    """The place in its stream of the last row with a label, −1 where there is none."""
    offsets = tape.segments.offsets
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    within[np.isnan(tape.by_stream(tape.y))] = -1
    return np.asarray(np.maximum.reduceat(within, offsets[:-1]))


def to_come(tape: Tape) -> Array:
    """Which rows of the file lie behind the last actual value of their series."""
    offsets = tape.segments.offsets
    lengths = np.diff(offsets)
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths)
    flags = np.zeros(len(tape), dtype=bool)
    flags[tape.by_stream(tape.places)] = within > np.repeat(last_known(tape), lengths)
    return flags


def extended(
    rows: Rows, tape: Tape, columns: Columns, steps: int | None, totals: tuple[int, ...]
) -> tuple[Rows, Columns, list[str]]:
    """The rows with as many to come in each series as were asked for, and notes."""
    offsets, last = tape.segments.offsets, last_known(tape)
    if (last < 0).any():
        name = tape.streams[int((last < 0).argmax())]
        raise DataError(
            f"{rows.path} has no actual value of {columns.target!r} for series {named(name)}: "
            "leave its rows out"
        )
    come, notes = np.diff(offsets) - 1 - last, []
    if steps is None and not come.any():
        steps = max(totals, default=1)
        if not totals:
            notes.append(f"the next row is forecast; for more, give {option('steps')}")
    wanted = 0 if steps is None else whole(steps, "steps", 1)
    needed = np.maximum(wanted - come, 0)
    most = int((come + needed).max())
    replayed = most * (len(rows) + int(needed.sum()))
    if replayed > _MOST:
        raise InputError(
            f"every row is forecast at every step, {replayed:,} times for {most:,} future rows of "
            f"{rows.path}, and at most {_MOST:,} fit: ask for fewer {option('steps')}"
        )
    if tape.time is not None and len(last) > 1:
        ends = tape.by_stream(tape.time)[offsets[:-1] + last]
        early = int((ends < ends.max()).sum())
        if early:
            notes.append(
                f"{early:,} of {len(last):,} series end before the others: each is forecast from "
                "its own last actual value"
            )
    if not needed.any():
        return rows, columns, notes
    pa, table, target = arrow(), rows.table, columns.target
    newest = pa.array(np.repeat(tape.by_stream(tape.places)[offsets[1:] - 1], needed))
    behind = pa.table({target: pa.nulls(len(newest), table[target].type)})
    for name in several(columns.series or ()):
        behind = behind.append_column(name, table[name].take(newest))
    if tape.time is not None and columns.time is not None:
        moments = np.empty(len(rows), tape.time.dtype)
        moments[tape.places] = tape.time
        streams = np.split(tape.by_stream(tape.time), offsets[1:-1])
        usual = _usual(tape.time)
        later = [_times_to_come(*pair, usual) for pair in zip(streams, needed, strict=True)]
        if moments.dtype.kind == "f" and all(not (each % 1.0).any() for each in (moments, *later)):
            moments, later = moments.astype(np.int64), [each.astype(np.int64) for each in later]
        name, *clock = rows.parts(columns.time)
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(moments)).drop_columns(clock)
        behind = behind.append_column(name, pa.array(np.concatenate(later)))
        columns = replace(columns, time=name)
    table = pa.concat_tables([table, behind], promote_options="default")
    return Rows(replace(rows.file, table=table), rows.frame), columns, notes


def _usual(times: Array) -> Any:
    """The usual distance of two times, one where there is none."""
    gaps = np.diff(np.unique(times))
    return np.median(gaps.astype(np.int64 if gaps.dtype.kind == "m" else float)) if len(gaps) else 1


def _times_to_come(times: Array, count: int, usual: Any) -> Array:
    """The times after these: the same distance apart, by months or without weekends where so."""
    step = _usual(times) if len(times) > 1 else usual
    ahead = np.arange(1, count + 1)
    if times.dtype.kind != "M":
        return np.asarray(times[-1] + ahead * step, np.float64)
    day = 86_400_000_000
    last = times[-1]
    if step >= 28 * day and (np.diff(times.astype("datetime64[M]")).astype(int) > 0).all():
        months = times.astype("datetime64[M]")
        apart = round(float(np.median(np.diff(months).astype(int))))
        at_end = ((times.astype("datetime64[D]") + 1).astype("datetime64[M]") > months).all()
        then = months[-1] + ahead * apart
        clock = last - last.astype("datetime64[D]").astype(times.dtype)
        begins = then.astype(times.dtype)
        ends = (then + 1).astype(times.dtype) - np.timedelta64(day, "us") + clock
        if at_end:
            return np.asarray(ends)
        within = (times - months.astype(times.dtype)).max()
        return np.asarray(np.minimum(begins + within, ends))
    days = (times.astype("datetime64[D]").view("int64") + 3) % 7
    if step == day and len(times) >= 10 and (days < 5).all():
        date = last.astype("datetime64[D]")
        later = np.busday_offset(date, ahead)
        return np.asarray(later.astype(times.dtype) + (last - date.astype(times.dtype)))
    return np.asarray(last + (ahead * step).astype("timedelta64[us]"))


def check_known(rows: Rows, tape: Tape, known_ahead: Sequence[str]) -> None:
    """Raises an error where a column that is known ahead is empty in future rows."""
    come = to_come(tape)
    for name in known_ahead:
        column = rows.column(name, "known_ahead")
        gaps = np.asarray(column.is_null()) & come
        if rows.table.schema.field(name).type == arrow().string():
            gaps |= np.array([not str(cell or "").strip() for cell in column.to_pylist()]) & come
        if gaps.any():
            raise DataError(
                f"{option('known_ahead')} names {name!r}, which is empty in {int(gaps.sum()):,} of "
                f"the future rows: add rows with it and an empty target to {rows.path}, or "
                "leave it out"
            )


def check_new(rows: Rows, old: int, columns: Columns, new: Rows) -> None:
    """Raises an error if new rows are not later than those before."""
    columns, _ = timed(rows, columns)
    if columns.time is None:
        return
    times, series = rows.times(columns.time, "time"), columns.series
    keys = [""] * len(rows) if series is None else rows.series(series).tolist()
    latest: dict[Any, Any] = {}
    for key, when in zip(keys[:old], times[:old].tolist(), strict=True):
        latest[key] = max(latest.get(key, when), when)
    for row, (key, when) in enumerate(zip(keys[old:], times[old:].tolist(), strict=True)):
        if key in latest and when <= latest[key]:
            raise DataError(
                f"{new.path} has {when} in {new.place(row)}, and the forecast knows the rows up to "
                f"{latest[key]}: give only newer rows"
            )
