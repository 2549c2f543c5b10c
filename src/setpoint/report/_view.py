"""Which rows of a trace a figure is about, in which order, and along which axis."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import Trace
from setpoint.errors import InputError
from setpoint.metrics.groups import coded

__all__ = [
    "WEEKDAYS",
    "Streams",
    "View",
    "by_stream",
    "keys_of",
    "shows_intervals",
    "sizes_of",
    "stream_at",
    "view",
]

Array = np.ndarray[Any, Any]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Some rows of a trace: those of one stream, or all of them in the order they happened.

    Parameters
    ----------
    trace
        The whole trace.
    rows
        Places in the tape, in the order to draw.
    x, axis
        What the horizontal axis shows, row for row, and its name.
    streams
        The ids whose rows these are.
    """

    trace: Trace
    rows: Array
    x: Array
    axis: str
    streams: tuple[Hashable, ...]

    @property
    def several(self) -> bool:
        """Whether it shows more than one stream."""
        return len(self.streams) > 1

    @property
    def name(self) -> str:
        """Which stream it is, to go behind a title; nothing where that goes without saying."""
        if self.several or len(self.trace.states) == 1:
            return ""
        return f", stream {self.streams[0]}"

    @property
    def hits(self) -> Array:
        """1 where the set held its label, 0 where not, NaN where there was none."""
        return _hits(self.trace)[self.rows]

    def losses(self, risk: int) -> Array:
        """The losses of one risk, NaN where nothing was judged."""
        return np.asarray(self.trace.losses[_checked(self.trace, risk)][self.rows])

    def taken(self, places: Any) -> "View":
        """The same view of fewer rows."""
        return View(self.trace, self.rows[places], self.x[places], self.axis, self.streams)


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """One number for each stream of a trace, in the order of the tape's streams."""

    ids: list[Any]
    labels: Array
    risk: Array
    coverage: Array
    length: Array

    def worst_first(self) -> list[int]:
        """Places of the streams, the one with the highest risk first, those without labels last."""
        return [int(s) for s in np.argsort(-np.where(np.isnan(self.risk), -np.inf, self.risk))]


def view(trace: Trace, stream: Hashable = None, *, alone: bool = False, risk: int = 0) -> View:
    """The rows of one stream, or, if none is named, of all of them.

    With `alone` the view is of one stream in any case: of several, the one with the highest risk.
    """
    if len(trace.lam) == 0:
        raise InputError("a report needs rows, the trace has none")
    tape = trace.tape
    if stream is None and len(trace.states) > 1 and alone:
        found = by_stream(trace, risk)
        stream = found.ids[found.worst_first()[0]]
    if stream is not None or len(trace.states) == 1:
        name = next(iter(trace.states)) if stream is None else stream
        places = np.asarray(tape.rows(name))
        return View(trace, places, *_axis(trace, places, "row"), (name,))
    if tape.time is not None:
        places = np.argsort(tape.time, kind="stable")
    else:
        places = np.argsort(_steps(trace), kind="stable")
    return View(trace, places, *_axis(trace, places, "step"), tuple(trace.states))


def _axis(trace: Trace, places: Array, name: str) -> tuple[Array, str]:
    """What the horizontal axis shows: times if there are any, else a count from 0."""
    time = trace.tape.time
    if time is not None:
        return _whole_times(time[places]), "time"
    return (np.arange(len(places)) if name == "row" else _steps(trace)[places]), name


def _whole_times(time: Array) -> Array:
    """Times as coarse as they are: fewer characters in the file, and easier to read."""
    if time.dtype.kind != "M":
        return time
    for unit in ("m", "s"):
        coarse = time.astype(f"datetime64[{unit}]")
        if (coarse == time).all():
            return coarse
    return time.astype("datetime64[ms]")


def _steps(trace: Trace) -> Array:
    """How many rows of its stream came before each row."""
    order, offsets = trace.tape.segments
    within: Array = np.arange(len(trace.lam)) - np.repeat(offsets[:-1], np.diff(offsets))
    if order is None:
        return within
    steps: Array = np.empty_like(within)
    steps[order] = within
    return steps


def _checked(trace: Trace, risk: int) -> int:
    count = len(trace.controller.risks)
    if not 0 <= risk < count:
        raise InputError(f"risk must be the number of a risk, from 0 to {count - 1}, got {risk!r}")
    return risk


def _hits(trace: Trace) -> Array:
    return np.where(trace.observed, trace.covered, nan)


def _size(shown: Any) -> float:
    """How large a set is: its length, the number of its labels; of nested sets, the largest's."""
    if not hasattr(shown, "length") and not hasattr(shown, "size") and hasattr(shown, "parts"):
        shown = shown.parts[-1]
    return float(getattr(shown, "size", getattr(shown, "length", nan)))


def sizes_of(trace: Trace, rows: Array | slice = slice(None)) -> Array:
    """The lengths of intervals or the sizes of other sets; NaN where a set does not tell."""
    if trace.shown is None:
        return metrics.lengths(trace.lower[rows], trace.upper[rows])
    places = np.arange(len(trace.lam))[rows]
    return np.array([_size(trace.shown[place]) for place in places.tolist()], dtype=np.float64)


def shows_intervals(trace: Trace) -> bool:
    """Whether the sets have two ends; nested ones do if each of them does."""
    if trace.shown is None:
        return True
    parts = getattr(trace.shown[0], "parts", ())
    return bool(parts) and all(hasattr(part, "lower") for part in parts)


def by_stream(trace: Trace, risk: int = 0) -> Streams:
    """What came out in each stream by itself."""
    order, offsets = trace.tape.segments
    rows: Any = slice(None) if order is None else order

    def means(values: Array) -> tuple[Array, Array]:
        held = ~np.isnan(values)
        begin = offsets[:-1]
        counts = np.add.reduceat(held.astype(np.int64), begin)
        totals = np.add.reduceat(np.where(held, values, 0.0), begin)
        return np.divide(totals, counts, out=np.full(len(counts), nan), where=counts > 0), counts

    risks, labels = means(trace.losses[_checked(trace, risk)][rows])
    coverage, _ = means(_hits(trace)[rows])
    sizes = sizes_of(trace, rows)
    length, _ = means(np.where(np.isfinite(sizes), sizes, nan))
    return Streams(list(trace.tape.streams), labels, risks, coverage, length)


def stream_at(trace: Trace, row: int) -> Hashable:
    """The stream that a row of the tape belongs to."""
    order, offsets = trace.tape.segments
    place = row if order is None else int(np.flatnonzero(order == row)[0])
    found: Hashable = trace.tape.streams[int(np.searchsorted(offsets, place, side="right")) - 1]
    return found


def keys_of(seen: View) -> tuple[str, Array, list[Any]] | None:
    """What the rows can be grouped by, the place of each row's key, −1 for none, and the keys.

    They are groups, or else the days of the week.
    """
    tape = seen.trace.tape
    if tape.group is not None:
        codes, keys = coded(tape.group[seen.rows], len(seen.rows))
        dates = tape.group.dtype.kind in "mM"
        return "group", codes, [str(key) for key in keys] if dates else keys
    if tape.time is not None and tape.time.dtype.kind == "M":
        days = tape.time[seen.rows].astype("datetime64[D]").astype(np.int64)
        return "weekday", (days + 3) % 7, list(WEEKDAYS)  # 1970-01-01 was a Thursday
    return None
