"""What the figures draw: views of a trace, and curves with few points that keep every peak."""

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
from setpoint.guarantee import Certificate
from setpoint.losses import declaration
from setpoint.report.levels import fan
from setpoint.sets.family import Supports, size_of

Array = np.ndarray[Any, Any]

_POINTS = 2_000
"""About how many points a curve has at most."""
_DETAIL = 5_000
"""How many rows are drawn one by one; older ones are drawn as envelopes."""
_BINS, _LEAST = 240, 20
_GAP, _GAPS = 20.0, 20
"""A step so many times the usual one is time without rows, and that many of them are left out."""

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


def broken(x: Array, *curves: Array, exact: int | None = None) -> tuple[Array, ...]:
    """Curves with a NaN where time is missing, so that no line is drawn across it; `x` first.

    The last `exact` points lie closer together than the others, and have a usual step of their own.

    >>> import numpy as np
    >>> x, y = broken(np.array([0, 1, 2, 100, 101]), np.arange(5.0))
    >>> x.tolist(), y.tolist()
    ([0, 1, 2, 2, 100, 101], [0.0, 1.0, 2.0, nan, 3.0, 4.0])
    """
    steps = np.diff(x).astype(np.float64)
    older = 0 if exact is None else max(len(x) - exact, 0)
    usual = [float(np.median(part)) if len(part) else 0.0 for part in np.split(steps, [older])]
    limit = _GAP * np.where(np.arange(len(steps)) < older, *usual)
    gaps = np.flatnonzero((steps > limit) & (limit > 0.0)) + 1
    gaps = np.sort(gaps[np.argsort(steps[gaps - 1], kind="stable")[-_GAPS:]])
    lines = (np.insert(curve.astype(np.float64), gaps, nan) for curve in curves)
    return np.insert(x, gaps, x[gaps - 1]), *lines


class Risks(NamedTuple):
    """The mean loss up to each label, and where the guarantee says it lies.

    `low` and `high` are None where nothing is guaranteed from that side. `earlier` labels were
    judged before the first row of the trace: the state came from elsewhere.
    """

    x: Array
    risk: Array
    low: Array | None
    high: Array | None
    level: float
    labels: int
    earlier: int

    def covered(self) -> "Risks":
        """The same as coverage, where the risk is the share of labels missed."""
        low, high = (None if side is None else 1.0 - side for side in (self.high, self.low))
        return self._replace(risk=1.0 - self.risk, low=low, high=high, level=1.0 - self.level)


def risks(view: View, risk: int) -> Risks:
    """The running risk of a view.

    Σ(l − r) of a stream stays within constants; over several streams the constants add up, each
    from the first label of its stream on.
    """
    key = ("risks", risk, None if view.several else view.streams, len(view.rows))
    told: Risks = once(view.trace, key, lambda: _risks(view, risk))
    return told


def _risks(view: View, risk: int) -> Risks:
    trace = view.trace
    losses = view.losses(risk)
    judged = np.flatnonzero(~np.isnan(losses))
    level = trace.controller.risks[risk].level
    counts, totals = np.ones(len(judged)), losses[judged].astype(np.float64)
    certificates, first, seen, sums = _by_certificate(view, judged, totals)
    told = [certificate.risks[risk] for certificate in certificates]
    before = np.array([one.judged for one in told], dtype=np.int64) - seen
    late = before > 0
    counts[first[late]] += before[late]
    means = np.array([one.mean for one in told])
    totals[first[late]] += (means * (seen + before) - sums)[late]
    earlier = int(before[late].sum())

    def added(constants: list[float | None]) -> Array | None:
        if None in constants:
            return None
        side = np.zeros(len(judged))
        side[first] = constants
        return side

    low = added([one.constant_lower for one in told])
    high = added([one.constant_upper for one in told])
    labels = np.cumsum(counts)
    running = np.cumsum(totals) / labels
    drawn = thinned(running)
    if len(running) > _POINTS:  # the bound falls like 1/T: most of its bend is at the beginning
        early = np.unique(np.geomspace(1, len(running), 200).astype(np.int64)) - 1
        drawn = np.union1d(drawn, early)
    promise = declaration(trace.controller.risks[risk].loss)

    def edge(side: Array | None) -> Array | None:
        if side is None:
            return None
        ends = level + np.cumsum(side)[drawn] / labels[drawn]
        return np.clip(ends, promise.low, promise.high)

    x = view.x[judged[drawn]]
    return Risks(x, running[drawn], edge(low), edge(high), level, len(judged), earlier)


def _by_certificate(
    view: View, judged: Array, losses: Array
) -> tuple[list[Certificate], Array, Array, Array]:
    """The certificates of streams with labels: the place of the first, how many, and their sum."""
    trace = view.trace
    if not view.several or not len(judged):
        streams = view.streams if len(judged) else ()
        first, count = np.zeros(len(streams), np.int64), np.full(len(streams), len(judged))
        total = np.full(len(streams), losses.sum())
        return [trace.certificate(stream) for stream in streams], first, count, total
    numbers = stream_numbers(trace)[view.rows[judged]]
    count = np.bincount(numbers)
    first = np.zeros(len(count), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several places the first stays
    seen = np.flatnonzero(count)
    certificates = [trace.certificates[number] for number in seen.tolist()]
    return certificates, first[seen], count[seen], np.bincount(numbers, losses)[seen]


def risk_range(curve: Risks, *, share: bool = False) -> list[float]:
    """Room for the line once it has settled, the level, and the band where that is not too much."""
    settled = curve.risk[len(curve.risk) // 20 :]
    away = float(np.abs(settled - curve.level).max(initial=0.02 * abs(curve.level)))
    at_end = [
        abs(float(side[-1]) - curve.level)
        for side in (curve.low, curve.high)
        if side is not None and len(side)
    ]
    away = 1.15 * max(away, min(max(at_end, default=0.0), 6.0 * away)) or 0.05
    low, high = curve.level - away, curve.level + away
    if low < 0.0 <= curve.level:
        low = max(low, -0.02 * away)
    return [low, min(high, 1.0 + 0.02 * away) if share else high]


class Band(NamedTuple):
    """The ends of the sets of one level."""

    lower: Array
    upper: Array


class Rows(NamedTuple):
    """Sets and labels row by row, the older ones of a long trace as envelopes.

    `bands` has the outermost sets first and is empty where the sets are no intervals: then
    `sizes` has their sizes. `at` and `y` are the labels, `misses` the rows of those that were
    missed. `exact` is the number of rows at the end that are drawn one by one, and `together` how
    many of the older rows make one envelope.
    """

    x: Array
    bands: list[Band]
    sizes: Array
    at: Array
    y: Array
    misses: Array
    exact: int
    together: int


def rows(view: View) -> Rows:
    """The rows of a view of one stream."""
    size = len(view.rows)
    exact = min(size, _DETAIL)
    older = size - exact
    together = max(1, -(-older // (_POINTS // 2)))
    begin, tail = np.arange(0, older, together), np.arange(older, size)

    def envelope(values: Array, outermost: Any) -> Array:
        """The outermost of each bunch of older rows, then the others as they are."""
        if not older:
            return values
        return np.concatenate([outermost.reduceat(values[:older], begin), values[older:]])

    bands = [
        Band(envelope(band.lower, np.minimum), envelope(band.upper, np.maximum))
        for band in _bands(view)
    ]
    y = view.trace.tape.y[view.rows]
    places = np.concatenate([thinned(y[:older], _POINTS // 2), tail]) if older else tail
    missed = np.flatnonzero(view.hits == 0.0)
    _, one_of_each = np.unique(missed[missed < older] // together, return_index=True)
    return Rows(
        view.x[np.concatenate([begin, tail])],
        bands,
        np.empty(0) if bands else envelope(view.sizes, np.maximum),
        view.x[places],
        y[places],
        np.concatenate([missed[one_of_each], missed[missed >= older]]),
        exact,
        together,
    )


def extremes(view: View) -> tuple[int, int]:
    """How many of the sets are full, and how many are empty."""
    trace = view.trace
    full, empty = view.lam == inf, view.lam == -inf
    if trace.shown is None:
        low, high = _bands(view)[0]
        sets = trace.controller.sets
        least, most = sets.support if isinstance(sets, Supports) else (-inf, inf)
        full, empty = full | ((low <= least) & (high >= most)), empty | (low > high)
    elif not shows_intervals(trace):
        full, empty = full | trace.whole[view.rows], empty | (view.sizes == 0.0)
    return int(full.sum()), int(empty.sum())


def _bands(view: View) -> list[Band]:
    """Lower and upper ends of the intervals shown; of several levels the outermost first."""
    trace = view.trace
    if trace.shown is not None:
        return []
    return [Band(*(end[view.rows].astype(np.float64) for end in ends)) for _, *ends in fan(trace)]


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
    """How large the sets are: each (`low` and `high` None), or the middle and 10–90 % of bunches.

    The middle is the median of lengths, and the mean of sizes, which are small whole numbers.
    `infinite` of the sets have no finite length and are left out. Lengths of several streams are
    multiples of the median of their stream.
    """

    x: Array
    middle: Array
    low: Array | None
    high: Array | None
    together: int
    infinite: int


def lengths(view: View) -> Lengths:
    """The lengths or sizes along a view."""
    sizes = view.sizes
    infinite = int(np.isinf(sizes).sum())
    if view.several and shows_intervals(view.trace):
        usual, numbers = _medians(view.trace), stream_numbers(view.trace)[view.rows]
        sizes = np.divide(sizes, usual[numbers], out=np.full(len(sizes), nan),
                          where=usual[numbers] > 0.0)  # fmt: skip
    if len(sizes) <= 2 * _BINS:
        return Lengths(view.x, np.where(np.isinf(sizes), nan, sizes), None, None, 1, infinite)
    together = max(-(-len(sizes) // _BINS), _LEAST)
    begin = range(0, len(sizes), together)
    table = np.full((len(begin), 3), nan)
    for place, start in enumerate(begin):
        bunch = sizes[start : start + together]
        bunch = bunch[np.isfinite(bunch)]
        if len(bunch):
            table[place] = np.quantile(bunch, (0.1, 0.5, 0.9))
            if not shows_intervals(view.trace):
                table[place, 1] = bunch.mean()
    low, middle, high = table.T
    return Lengths(view.x[np.array(begin)], middle, low, high, together, infinite)


def _medians(trace: Trace) -> Array:
    """The median finite length of each stream; NaN where there is none."""
    every = np.arange(len(trace.lam))
    sizes, numbers = View(trace, every, every, "row", ()).sizes, stream_numbers(trace)
    finite = np.flatnonzero(np.isfinite(sizes))
    counts = np.bincount(numbers[finite], minlength=len(trace.tape.streams))
    ordered = sizes[finite][np.lexsort((sizes[finite], numbers[finite]))]
    begins, some = np.cumsum(counts) - counts, counts > 0
    medians = np.full(len(counts), nan)
    pair = [begins[some] + (counts[some] - 1) // 2, begins[some] + counts[some] // 2]
    medians[some] = ordered[np.array(pair)].mean(axis=0)
    return medians


class Prices(NamedTuple):
    """What sets, model and world cost row for row, beside the reference; NaN before there is one.

    `reference` has the rows of the reference, and `alarms` the rows at which alarms began, by kind.
    """

    x: Array
    sets: Array
    model: Array
    world: Array
    reference: tuple[int, int] | None
    alarms: list[tuple[int, str]]


def prices(view: View) -> Prices | None:
    """The price along a view of one stream that shows intervals, from its first row on."""
    trace = view.trace
    middle = middle_of(trace.controller, trace.tape)
    if trace.shown is not None or middle is None or not trace.controller.watched:
        return None
    lower, upper, y = (each[view.rows] for each in (trace.lower, trace.upper, trace.tape.y))
    ends = lower.astype(np.float64), upper.astype(np.float64)
    costs = costs_of(trace.controller, ends, y, None, middle[view.rows], y)
    place = list(trace.tape.streams).index(view.streams[0])
    late = delays_of(trace.tape)[place : place + 1].astype(np.float64)
    count, none, seen = len(y), np.empty(0, np.int64), np.empty((len(y), watch.SIZE))
    z = np.array([watch.begin()])
    look(z, 0, np.arange(1), np.array([0, count]), none, late, costs, seen)
    held = seen[:, watch.NOW :]
    ready = held[:, watch.PHASE] == 2.0
    with np.errstate(invalid="ignore", divide="ignore"):
        sets = np.where(ready, held[:, watch.WIDTH] / held[:, watch.WIDE], nan)
        world = np.where(ready, held[:, watch.WORLD] / held[:, watch.MOVES], nan)
    model = np.where(ready, held[:, watch.RAW + 1], nan)
    reference = None
    if ready.any():
        reference = int((held[:, watch.PHASE] >= 1.0).argmax()), int(ready.argmax())
    began = held[:, watch.BEGAN : watch.BEGAN + len(watch.KINDS)]
    new = (began > 0.0) & (np.vstack([np.zeros((1, len(watch.KINDS))), began[:-1]]) == 0.0)
    alarms = [(int(row), watch.KINDS[kind]) for row, kind in np.argwhere(new)]
    return Prices(view.x, sets, model, world, reference, alarms)


class Window(NamedTuple):
    """A run of labels and its mean loss; `start` and `stop` are its first and last row."""

    start: int
    stop: int
    risk: float


class Rolling(NamedTuple):
    """The mean loss over each window, by its last label, and the worst windows, apart.

    These are the furthest from the level, those above it first.
    """

    x: Array
    risk: Array
    window: int
    level: float
    worst: list[Window]

    def shaded(self, rows: int) -> list[Window]:
        """Which of the worst windows to shade in a plot of so many rows: never most of it."""
        return self.worst[: 3 if rows > 12 * self.window else int(rows > 2 * self.window)]

    def covered(self) -> "Rolling":
        """The same as coverage, where the risk is the share of labels missed."""
        worst = [window._replace(risk=1.0 - window.risk) for window in self.worst]
        return self._replace(risk=1.0 - self.risk, level=1.0 - self.level, worst=worst)


def rolling(view: View, risk: int, window: int, count: int = 5) -> Rolling:
    """The windows of a view of one stream; rows of `worst` are places in the view."""
    losses = view.losses(risk)
    at = np.flatnonzero(~np.isnan(losses))
    level = view.trace.controller.risks[risk].level
    width = min(window, len(at))
    if not width:
        return Rolling(view.x[:0], np.empty(0), 0, level, [])
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
    return Rolling(view.x[at[drawn + width - 1]], means[drawn], width, level, worst)


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
