"""Views of a trace for reports: the rows of one stream, or of all, and what they come to."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from setpoint import metrics
from setpoint._html import named
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.sets.family import size_of

Array = np.ndarray[Any, Any]

_kept: WeakKeyDictionary[Trace, dict[Hashable, Any]] = WeakKeyDictionary()
"""What several figures of a trace need: arrays, none of which holds the trace."""


def once(trace: Trace, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives, worked out once for each trace."""
    kept = _kept.setdefault(trace, {})
    if key not in kept:
        kept[key] = make()
    return kept[key]


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
        return f", series {named(self.streams[0])}"

    @property
    def hits(self) -> Array:
        """1 where the set held its label, 0 where not, NaN where there was none."""
        rows, trace = self.rows, self.trace
        return np.where(trace.observed[rows], trace.covered[rows], nan)

    @property
    def lam(self) -> Array:
        """The λ of each set, ±inf where the safeguard chose it."""
        return self.trace.lam[self.rows]

    @property
    def sizes(self) -> Array:
        """The lengths of intervals or the sizes of other sets; NaN where a set does not tell."""
        trace = self.trace
        if trace.shown is None:
            return metrics.lengths(trace.lower[self.rows], trace.upper[self.rows])
        return np.array([size_of(trace.shown[row]) for row in self.rows.tolist()], np.float64)

    def losses(self, risk: int) -> Array:
        """The losses of one risk, NaN where nothing was judged."""
        last = len(self.trace.controller.risks) - 1
        if not 0 <= risk <= last:
            raise InputError(f"risk must be the number of a risk, from 0 to {last}, got {risk!r}")
        return np.asarray(self.trace.losses[risk])[self.rows]

    def part(self, places: slice) -> "View":
        """The same view of fewer rows."""
        return View(self.trace, self.rows[places], self.x[places], self.axis, self.streams)


class Streams(NamedTuple):
    """One number for each stream of a trace, in the order of the tape's streams."""

    ids: list[Any]
    labels: Array
    risk: Array
    coverage: Array
    length: Array

    def worst_first(self, trouble: Array | None = None) -> list[int]:
        """Places of the streams by trouble, then by risk; those without labels are last."""
        risks = np.where(np.isnan(self.risk), -inf, self.risk)
        first = np.zeros(len(risks)) if trouble is None else trouble
        return [int(place) for place in np.lexsort((-risks, -first))]


def view_of(trace: Trace, stream: Hashable = None, *, alone: bool = False, risk: int = 0) -> View:
    """The rows of one stream, or, if none is named, of all of them.

    With `alone` the view is of one stream in any case: of several, the one with the most trouble.
    """
    if len(trace.lam) == 0:
        raise InputError("a report needs rows, the trace has none")
    tape = trace.tape
    if stream is None and len(trace.states) == 1:
        stream, alone = next(iter(trace.states)), True
    elif stream is None and alone:
        streams, uses = by_stream(trace, risk), trace.uses
        stream = streams.ids[streams.worst_first(None if uses is None else uses.trouble)[0]]
    if stream is not None or alone:
        rows = np.asarray(tape.rows(stream))
        x, axis = np.arange(len(rows)), "row"
        streams_shown: tuple[Hashable, ...] = (stream,)
    else:
        rows, x = once(trace, "in order", lambda: _in_order(trace))
        axis, streams_shown = "step", tuple(trace.states)
    if tape.time is not None:
        x, axis = (_whole_times(tape.time[rows]) if len(streams_shown) == 1 else x), "time"
    return View(trace, rows, x, axis, streams_shown)


def summary_of(trace: Trace, risk: int, window: int) -> metrics.Summary:
    """The metrics of a trace, worked out once."""
    told: metrics.Summary = once(
        trace, ("summary", risk, window), lambda: trace.summary(risk, window=window)
    )
    return told


def _in_order(trace: Trace) -> tuple[Array, Array]:
    """The rows of all streams in the order they happened, and the step or the time of each."""
    steps, time = _steps(trace), trace.tape.time
    rows = np.argsort(steps if time is None else time, kind="stable")
    return rows, steps[rows] if time is None else _whole_times(time[rows])


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
    counts = np.diff(trace.tape.segments.offsets)
    numbers: Array = once(
        trace, "numbers", lambda: trace.tape.by_row(np.repeat(np.arange(len(counts)), counts))
    )
    return numbers


def _steps(trace: Trace) -> Array:
    """How many rows of its stream came before each row."""
    offsets = trace.tape.segments.offsets
    return trace.tape.by_row(np.arange(len(trace.lam)) - np.repeat(offsets[:-1], np.diff(offsets)))


def shows_intervals(trace: Trace) -> bool:
    """Whether the sets have two ends."""
    return trace.shown is None


def by_stream(trace: Trace, risk: int = 0) -> Streams:
    """What came out in each stream by itself."""
    told: Streams = once(trace, ("streams", risk), lambda: _by_stream(trace, risk))
    return told


def _by_stream(trace: Trace, risk: int) -> Streams:
    numbers, count = stream_numbers(trace), len(trace.tape.streams)
    rows = np.arange(len(numbers))
    every = View(trace, rows, rows, "row", tuple(trace.states))

    def means(values: Array) -> tuple[Array, Array]:
        known = np.isfinite(values)
        counts = np.bincount(numbers, known, count)
        totals = np.bincount(numbers, np.where(known, values, 0.0), count)
        return np.divide(totals, counts, out=np.full(count, nan), where=counts > 0), counts

    risks, labels = means(every.losses(risk))
    length, _ = means(every.sizes)
    return Streams(list(trace.tape.streams), labels, risks, means(every.hits)[0], length)
