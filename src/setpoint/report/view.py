"""Which rows of a trace a figure is about, in which order, and along which axis."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import Trace
from setpoint.bulk.states import size_of
from setpoint.errors import InputError
from setpoint.sets import Interval, Levels

__all__ = [
    "Array", "Streams", "View", "by_stream", "shows_intervals", "stream_numbers", "view_of",
]  # fmt: skip

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Some rows of a trace: those of one stream, or all of them in the order they happened.

    `rows` are places in the tape, in the order to draw. `x` is what the horizontal axis shows, row
    for row, and `axis` its name. `streams` are the ids whose rows these are.
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

    @property
    def lam(self) -> Array:
        """The λ of each set, ±inf where the safeguard chose it."""
        return self.trace.lam[self.rows]

    @property
    def thetas(self) -> Array:
        """θ of each risk."""
        return self.trace.theta[:, self.rows]

    @property
    def sizes(self) -> Array:
        """The lengths of intervals or the sizes of other sets; NaN where a set does not tell."""
        return _sizes(self.trace, self.rows)

    def losses(self, risk: int) -> Array:
        """The losses of one risk, NaN where nothing was judged."""
        return np.asarray(_losses(self.trace, risk)[self.rows])

    def part(self, places: slice) -> "View":
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
        risks = np.where(np.isnan(self.risk), -inf, self.risk)
        return [int(place) for place in np.argsort(-risks)]


def view_of(trace: Trace, stream: Hashable = None, *, alone: bool = False, risk: int = 0) -> View:
    """The rows of one stream, or, if none is named, of all of them.

    With `alone` the view is of one stream in any case: of several, the one with the highest risk.
    """
    if len(trace.lam) == 0:
        raise InputError("a report needs rows, the trace has none")
    tape = trace.tape
    if stream is None and len(trace.states) == 1:
        stream, alone = next(iter(trace.states)), True
    elif stream is None and alone:
        streams = by_stream(trace, risk)
        stream = streams.ids[streams.worst_first()[0]]
    if stream is not None or alone:
        rows = np.asarray(tape.rows(stream))
        x, axis = np.arange(len(rows)), "row"
        streams_shown: tuple[Hashable, ...] = (stream,)
    else:
        steps = _steps(trace)
        rows = np.argsort(steps if tape.time is None else tape.time, kind="stable")
        x, axis = steps[rows], "step"
        streams_shown = tuple(trace.states)
    if tape.time is not None:
        x, axis = _whole_times(tape.time[rows]), "time"
    return View(trace, rows, x, axis, streams_shown)


def _whole_times(time: Array) -> Array:
    """Times as coarse as they are: fewer characters in the file, and easier to read."""
    if time.dtype.kind != "M":
        return time
    for unit in ("m", "s"):
        coarse = time.astype(f"datetime64[{unit}]")
        if (coarse == time).all():
            return coarse
    return time.astype("datetime64[ms]")


def stream_numbers(trace: Trace) -> Array:
    """The place of each row's stream among the streams of the tape."""
    order, offsets = trace.tape.segments
    return _by_row(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), order)


def _steps(trace: Trace) -> Array:
    """How many rows of its stream came before each row."""
    order, offsets = trace.tape.segments
    steps = np.arange(len(trace.lam)) - np.repeat(offsets[:-1], np.diff(offsets))
    return _by_row(steps, order)


def _by_row(column: Array, order: Array | None) -> Array:
    """A column that lies stream after stream, in the order of the rows."""
    if order is None:
        return column
    rows = np.empty_like(column)
    rows[order] = column
    return rows


def _losses(trace: Trace, risk: int) -> Array:
    count = len(trace.controller.risks)
    if not 0 <= risk < count:
        raise InputError(f"risk must be the number of a risk, from 0 to {count - 1}, got {risk!r}")
    return np.asarray(trace.losses[risk])


def _hits(trace: Trace) -> Array:
    return np.where(trace.observed, trace.covered, nan)


def _sizes(trace: Trace, rows: Array) -> Array:
    if trace.shown is None:
        return metrics.lengths(trace.lower[rows], trace.upper[rows])
    return np.array([size_of(trace.shown[row]) for row in rows.tolist()], dtype=np.float64)


def shows_intervals(trace: Trace) -> bool:
    """Whether the sets have two ends; nested ones do if each of them does."""
    if trace.shown is None:
        return True
    first = trace.shown[0]
    return isinstance(first, Levels) and all(isinstance(part, Interval) for part in first)


def by_stream(trace: Trace, risk: int = 0) -> Streams:
    """What came out in each stream by itself."""
    numbers, count = stream_numbers(trace), len(trace.tape.streams)

    def means(values: Array) -> tuple[Array, Array]:
        known = ~np.isnan(values)
        counts = np.bincount(numbers[known], minlength=count)
        totals = np.bincount(numbers[known], values[known], count)
        return np.divide(totals, counts, out=np.full(count, nan), where=counts > 0), counts

    risks, labels = means(_losses(trace, risk))
    coverage, _ = means(_hits(trace))
    sizes = _sizes(trace, np.arange(len(trace.lam)))
    length, _ = means(np.where(np.isfinite(sizes), sizes, nan))
    return Streams(list(trace.tape.streams), labels, risks, coverage, length)
