"""What figures draw: the rows of one series, and curves with few points that keep every peak."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from setpoint import metrics, watch
from setpoint._html import named
from setpoint.bulk.trace import Trace, delays_of, middle_of
from setpoint.bulk.watching import costs_of, look
from setpoint.errors import InputError
from setpoint.sets.family import Supports, size_of
from setpoint.sets.fan import Fan

Array = np.ndarray[Any, Any]

_POINTS = 2_000
"""About how many points a curve has at most."""
_DETAIL = 5_000
"""How many of the last rows are drawn one by one; older ones are drawn as envelopes."""
_BINS, _LEAST = 240, 20
_GAP, _GAPS = 20.0, 20
"""A step so many times the usual one is time without rows, and that many of them are left out."""
_BLOCK = 1 << 16

_kept: WeakKeyDictionary[Trace, dict[Hashable, Any]] = WeakKeyDictionary()
"""What several figures of a trace need: arrays, none of which holds the trace."""


def once(trace: Trace, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives, worked out once for each trace."""
    kept = _kept.setdefault(trace, {})
    if key not in kept:
        kept[key] = make()
    return kept[key]


def hits_of(trace: Trace) -> Array:
    """1 where the set held its label, 0 where not, NaN where there was none."""
    hits: Array = np.where(trace.observed, trace.covered, nan)
    return hits


def sizes_of(trace: Trace, rows: Any = slice(None)) -> Array:
    """The lengths of intervals or the sizes of other sets; NaN where a set does not tell."""
    if trace.shown is None:
        return metrics.lengths(trace.lower[rows], trace.upper[rows])
    shown = trace.shown
    sizes: Array = once(trace, "sizes", lambda: np.array([*map(size_of, shown)], np.float64))[rows]
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Rows of one series of a trace."""

    trace: Trace
    stream: Hashable
    rows: Array  # places in the tape, in the order to draw
    x: Array  # what the horizontal axis shows, row for row
    axis: str  # its name

    @property
    def name(self) -> str:
        """Which series it is, to go behind a title; nothing where that goes without saying."""
        return "" if len(self.trace.states) == 1 else f", series {named(self.stream)}"

    @property
    def hits(self) -> Array:
        return hits_of(self.trace)[self.rows]

    @property
    def y(self) -> Array:
        return self.trace.tape.y[self.rows]

    @property
    def sizes(self) -> Array:
        return sizes_of(self.trace, self.rows)

    def losses(self, risk: int) -> Array:
        """The losses of one risk, NaN where nothing was judged."""
        return _losses(self.trace, risk)[self.rows]

    def part(self, places: slice) -> "View":
        """The same view of fewer rows."""
        return View(self.trace, self.stream, self.rows[places], self.x[places], self.axis)


def _losses(trace: Trace, risk: int) -> Array:
    last = len(trace.controller.risks) - 1
    if not 0 <= risk <= last:
        raise InputError(f"risk must be the number of a risk, from 0 to {last}, got {risk!r}")
    return np.asarray(trace.losses[risk])


def view_of(trace: Trace, stream: Hashable = None, risk: int = 0) -> View:
    """The rows of one series; of several the one with the most trouble, if none is named."""
    if len(trace.lam) == 0:
        raise InputError("a report needs rows, the trace has none")
    tape = trace.tape
    if stream is None:
        streams = by_stream(trace, risk)
        stream = streams.ids[0 if len(streams.ids) == 1 else streams.worst_first(trace)[0]]
    rows = np.asarray(tape.rows(stream))
    if tape.time is None:
        return View(trace, stream, rows, np.arange(len(rows)), "row")
    return View(trace, stream, rows, coarse(tape.time[rows]), "time")


def coarse(time: Array) -> Array:
    """Times as coarse as they are: fewer characters in the file, and easier to read."""
    if time.dtype.kind != "M":
        return time
    for unit in ("m", "s"):
        coarse = time.astype(f"datetime64[{unit}]")
        if (coarse == time).all():
            return coarse
    return time.astype("datetime64[ms]")


def summary_of(trace: Trace, risk: int, window: int) -> metrics.Summary:
    """The metrics of a trace, worked out once."""
    found: metrics.Summary = once(
        trace, ("summary", risk, window), lambda: trace.summary(risk, window=window)
    )
    return found


class Streams(NamedTuple):
    """One number for each series of a trace, in the order of the tape's streams."""

    ids: list[Any]
    labels: Array
    risk: Array
    coverage: Array
    length: Array

    def worst_first(self, trace: Trace) -> list[int]:
        """Places of the series by trouble, then by risk; those without labels are last."""
        risks = np.where(np.isnan(self.risk), -inf, self.risk)
        trouble = np.zeros(len(risks)) if trace.uses is None else trace.uses.trouble
        return [int(place) for place in np.lexsort((-risks, -trouble))]


def by_stream(trace: Trace, risk: int = 0) -> Streams:
    """What came out in each series by itself."""
    found: Streams = once(trace, ("streams", risk), lambda: _by_stream(trace, risk))
    return found


def _by_stream(trace: Trace, risk: int) -> Streams:
    numbers, count = stream_numbers(trace), len(trace.tape.streams)

    def means(values: Array) -> tuple[Array, Array]:
        known = np.isfinite(values)
        counts = np.bincount(numbers, known, count)
        totals = np.bincount(numbers, np.where(known, values, 0.0), count)
        return np.divide(totals, counts, out=np.full(count, nan), where=counts > 0), counts

    risks, labels = means(_losses(trace, risk))
    length, coverage = means(sizes_of(trace))[0], means(hits_of(trace))[0]
    return Streams(list(trace.tape.streams), labels, risks, coverage, length)


def stream_numbers(trace: Trace) -> Array:
    """The place of each row's stream among the streams of the tape."""
    counts = np.diff(trace.tape.segments.offsets)
    return trace.tape.by_row(np.repeat(np.arange(len(counts)), counts))


# Curves


def thinned(values: Array, most: int = _POINTS) -> Array:
    """Places of at most about `most` values that keep every peak: each bin's least and greatest.

    >>> import numpy as np
    >>> thinned(np.array([0.0, 9.0, 1.0, 2.0, -5.0, 3.0, 3.0, 3.0]), 4).tolist()
    [0, 1, 4, 5, 7]
    """
    size = len(values)
    if size <= most:
        return np.arange(size)
    width = -(-size // max(most // 2, 1))
    padded = np.full(-(-size // width) * width, nan)
    padded[:size] = values
    table = padded.reshape(-1, width)
    first = np.arange(len(table)) * width
    lowest = first + np.where(np.isnan(table), inf, table).argmin(axis=1)
    highest = first + np.where(np.isnan(table), -inf, table).argmax(axis=1)
    return np.unique(np.concatenate([[0, size - 1], lowest, highest]))


def broken(places: Array, x: Array, *curves: Array) -> tuple[Array, ...]:
    """Curves with a NaN where time is missing, so that no line is drawn across it; `x` first.

    `places` are the rows of the points: between points further apart time may pass.

    >>> import numpy as np
    >>> x, y = broken(np.arange(5), np.array([0, 1, 2, 100, 101]), np.arange(5.0))
    >>> x.tolist(), y.tolist()
    ([0, 1, 2, 2, 100, 101], [0.0, 1.0, 2.0, nan, 3.0, 4.0])
    """
    steps = np.diff(x).astype(np.float64) / np.diff(places)
    usual = float(np.median(steps)) if len(steps) else 0.0
    gaps = np.flatnonzero((steps > _GAP * usual) & (usual > 0.0)) + 1
    gaps = np.sort(gaps[np.argsort(steps[gaps - 1], kind="stable")[-_GAPS:]])
    lines = (np.insert(curve.astype(np.float64), gaps, nan) for curve in curves)
    return np.insert(x, gaps, x[gaps - 1]), *lines


class Band(NamedTuple):
    """The ends of the sets of one level, and what it is called."""

    name: str
    lower: Array
    upper: Array


def fan(trace: Trace) -> list[Band]:
    """The intervals of a trace as they are drawn, the outermost first; none of other sets.

    Quantiles are taken in pairs from the outside in; one without a pair is a line.

    >>> import setpoint as sp
    >>> tape = sp.Tape.from_arrays({"point": [0.0] * 4}, [1.0, 2.0, 3.0, 4.0])
    >>> [level.name for level in fan(sp.replay(sp.quantiles([0.1, 0.5, 0.9]), tape))]
    ['10 to 90 %', '50 %']
    """
    if trace.shown is not None:
        return []
    sets = trace.controller.sets
    if isinstance(sets, Fan) and not sets.pairs:
        ends = [trace.ends[name] for name in sets.named]
        percent = [f"{100.0 * level:g}" for level in sets.taus]
        last = len(ends) - 1
        pairs = [(k, last - k) for k in range(last // 2 + 1)]
        names = [" to ".join(dict.fromkeys((percent[a], percent[b]))) for a, b in pairs]
        named_pairs = zip(names, pairs, strict=True)
        return [Band(f"{name} %", ends[a], ends[b]) for name, (a, b) in named_pairs]
    every = list(zip(*trace.levels, strict=True))
    names = [f"level {place + 1}" for place in range(len(every))]
    if isinstance(sets, Fan):
        names = [f"{100.0 * level:g} %" for level in sets.levels]
    return [Band(name, *ends) for name, ends in zip(names, every, strict=True)][::-1]


def bands_of(view: View) -> list[Band]:
    """The ends of a view's intervals; of several levels the outermost first."""
    rows = view.rows
    return [Band(b.name, *(e[rows].astype(np.float64) for e in b[1:])) for b in fan(view.trace)]


class Rows(NamedTuple):
    """Sets and labels row by row, those of a long trace that nobody looks at first as envelopes."""

    begins: Array  # the rows at which points begin
    bands: list[Band]  # the outermost first; empty where sets are no intervals
    sizes: Array  # of such sets
    labels: Array  # the rows whose labels are drawn
    misses: Array  # the rows whose misses are drawn
    together: int  # rows in an envelope


def rows(view: View, looked_at: slice = slice(0, 0)) -> Rows:
    """The rows of a view; the last ones and those looked at first are drawn one by one."""
    size, y = len(view.rows), view.y
    together = max(1, -(-(size - _DETAIL) // (_POINTS // 2)))
    alone = np.zeros(size, bool)
    alone[max(size - _DETAIL, 0) :] = alone[looked_at] = True
    behind = np.concatenate([[True], alone[:-1]])
    begins = np.flatnonzero(alone | behind | (np.arange(size) % together == 0))
    bands = [
        Band(name, np.minimum.reduceat(lower, begins), np.maximum.reduceat(upper, begins))
        for name, lower, upper in bands_of(view)
    ]
    missed = np.flatnonzero(view.hits == 0.0)
    _, one_of_each = np.unique(np.searchsorted(begins, missed, "right"), return_index=True)
    return Rows(
        begins,
        bands,
        np.empty(0) if bands else np.maximum.reduceat(view.sizes, begins),
        np.union1d(thinned(y), np.flatnonzero(alone)),
        missed[one_of_each],
        together,
    )


def extremes(view: View) -> tuple[int, int]:
    """How many of the sets are full, and how many are empty."""
    trace, lam = view.trace, view.trace.lam[view.rows]
    full, empty = lam == inf, lam == -inf
    if trace.shown is None:
        _, low, high = bands_of(view)[0]
        sets = trace.controller.sets
        least, most = sets.support if isinstance(sets, Supports) else (-inf, inf)
        full, empty = full | ((low <= least) & (high >= most)), empty | (low > high)
    else:
        full, empty = full | trace.whole[view.rows], empty | (view.sizes == 0.0)
    return int(full.sum()), int(empty.sum())


def closed(band: Band, low: float, high: float) -> tuple[Array, Array]:
    """Ends that can be drawn: open ones beyond the plot, empty sets without width."""
    empty = band.lower > band.upper
    lower, upper = np.clip(band.lower, low, high), np.clip(band.upper, low, high)
    if empty.any():
        middle = np.where(empty, nan, (lower + upper) / 2.0)
        place = np.maximum.accumulate(np.where(empty, 0, np.arange(len(middle))))
        middle = np.nan_to_num(middle[place], nan=(low + high) / 2.0)
        lower, upper = np.where(empty, middle, lower), np.where(empty, middle, upper)
    return lower, upper


class Lengths(NamedTuple):
    """How large sets are: each (`low` and `high` None), or the middle and 10–90 % of bunches."""

    begins: Array
    middle: Array  # the median of lengths, the mean of sizes, which are small whole numbers
    low: Array | None
    high: Array | None
    together: int  # rows in a bunch
    infinite: int  # sets that are left out


def lengths(view: View) -> Lengths:
    """The lengths or sizes along a view."""
    sizes = view.sizes
    infinite = int(np.isinf(sizes).sum())
    if len(sizes) <= 2 * _BINS:
        each = np.where(np.isinf(sizes), nan, sizes)
        return Lengths(np.arange(len(sizes)), each, None, None, 1, infinite)
    together = max(-(-len(sizes) // _BINS), _LEAST)
    begins = np.arange(0, len(sizes), together)
    table = np.full((len(begins), 3), nan)
    for place, start in enumerate(begins.tolist()):
        bunch = sizes[start : start + together]
        bunch = bunch[np.isfinite(bunch)]
        if len(bunch):
            table[place] = np.quantile(bunch, (0.1, 0.5, 0.9))
            if view.trace.shown is not None:
                table[place, 1] = bunch.mean()
    low, middle, high = table.T
    return Lengths(begins, middle, low, high, together, infinite)


class Prices(NamedTuple):
    """What sets, model and world cost beside the reference; NaN before there is one."""

    sets: Array
    model: Array
    world: Array
    reference: tuple[int, int] | None  # its rows
    alarms: list[tuple[int, str]]  # the rows at which they began, and their kinds


def prices(view: View) -> Prices | None:
    """The price along a view that shows intervals, from its first row on."""
    trace = view.trace
    middle = middle_of(trace.controller, trace.tape)
    if trace.shown is not None or middle is None or not trace.controller.watched:
        return None
    place = list(trace.tape.streams).index(view.stream)
    late = delays_of(trace.tape)[place : place + 1].astype(np.float64)
    z, count = np.array([watch.begin()]), len(view.rows)
    phase, began = np.empty(count), np.empty((count, len(watch.KINDS)))
    costs = np.empty((3, count))
    for start in range(0, count, _BLOCK):  # the whole memory of every row would be too much
        part = slice(start, min(start + _BLOCK, count))
        lower, upper, y, model = (
            np.asarray(each[view.rows[part]], np.float64)
            for each in (trace.lower, trace.upper, trace.tape.y, middle)
        )
        seen, bounds = np.empty((len(y), watch.SIZE)), np.array([0, len(y)])
        asked = costs_of(trace.controller, (lower, upper), y, None, model, y)
        look(z, 0, np.arange(1), bounds, np.empty(0, np.int64), late, asked, seen, steps=count)
        memory = seen[:, watch.NOW :].T
        phase[part] = memory[watch.PHASE]
        began[part] = memory[watch.BEGAN : watch.BEGAN + len(watch.KINDS)].T
        with np.errstate(invalid="ignore", divide="ignore"):
            costs[:, part] = (
                memory[watch.WIDTH] / memory[watch.WIDE],
                memory[watch.RAW + 1],
                memory[watch.WORLD] / memory[watch.MOVES],
            )
    ready, reference = phase == 2.0, None
    if ready.any():
        reference = int((phase >= 1.0).argmax()), int(ready.argmax())
    new = (began > 0.0) & (np.vstack([np.zeros((1, len(watch.KINDS))), began[:-1]]) == 0.0)
    alarms = [(int(row), watch.KINDS[kind]) for row, kind in np.argwhere(new)]
    sets, model, world = np.where(ready, costs, nan)
    return Prices(sets, model, world, reference, alarms)


class Window(NamedTuple):
    """A run of labels and its mean loss; `start` and `stop` are its first and last row."""

    start: int
    stop: int
    risk: float


class Rolling(NamedTuple):
    """The mean loss over each window, by the row of its last label, and the worst ones, apart."""

    rows: Array
    risk: Array
    window: int
    level: float
    worst: list[Window]  # the furthest from the level, those above it first

    def shaded(self, rows: int) -> list[Window]:
        """Which of the worst windows to shade in a plot of so many rows: never most of it."""
        return self.worst[: 3 if rows > 12 * self.window else int(rows > 2 * self.window)]

    def covered(self) -> "Rolling":
        """The same as coverage, where the risk is the share of labels missed."""
        worst = [window._replace(risk=1.0 - window.risk) for window in self.worst]
        return self._replace(risk=1.0 - self.risk, level=1.0 - self.level, worst=worst)


def rolling(view: View, risk: int, window: int, count: int = 5) -> Rolling:
    """The windows of a view; rows are places in it."""
    losses = view.losses(risk)
    at = np.flatnonzero(~np.isnan(losses))
    level = view.trace.controller.risks[risk].level
    width = min(window, len(at))
    if not width:
        return Rolling(at, np.empty(0), 0, level, [])
    totals = np.cumsum(np.concatenate([[0.0], losses[at]]))
    means = (totals[width:] - totals[:-width]) / width
    away = np.abs(means - level)
    worst: list[Window] = []
    while len(worst) < count and away.max() > 0.0:
        place = int(away.argmax())
        worst.append(Window(int(at[place]), int(at[place + width - 1]), float(means[place])))
        away[max(0, place - width + 1) : place + width] = 0.0
    worst.sort(key=lambda one: (one.risk < level, -abs(one.risk - level)))
    drawn = thinned(means)
    return Rolling(at[drawn + width - 1], means[drawn], width, level, worst)


def finite_range(values: Array, *others: Array) -> tuple[float, float]:
    """A range to draw: all of `values`, nearly all of the others, and some air."""
    parts = [values[np.isfinite(values)]]
    for other in others:
        other = other[np.isfinite(other)]
        parts.append(np.quantile(other, (0.01, 0.99)) if len(other) else other)
    every = np.concatenate(parts)
    if not len(every):
        return -1.0, 1.0
    low, high = float(every.min()), float(every.max())
    air = 0.06 * (high - low) or 0.1 * max(abs(high), 1.0)
    return low - air, high + air
