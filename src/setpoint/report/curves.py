"""What the figures draw: rows of a view, curves with few points and none of the peaks lost."""

from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import watch
from setpoint.bulk.trace import Trace, delays_of, middle_of
from setpoint.bulk.watching import costs_of, look
from setpoint.guarantee import Certificate
from setpoint.losses import declaration
from setpoint.report.levels import fan
from setpoint.report.views import Array, View, once, shows_intervals, stream_numbers
from setpoint.sets.family import Supports

_POINTS = 2_000
"""About how many points a curve has at most."""
_DETAIL = 5_000
"""How many rows are drawn one by one; older ones are drawn as envelopes."""
_BINS, _LEAST = 240, 20
_GAP, _GAPS = 20.0, 20
"""A step so many times the usual one is time without rows, and that many of them are left out."""


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
    sizes = trace.tape.by_stream(View(trace, every, every, "row", ()).sizes)
    begins, counts = trace.tape.segments.offsets[:-1], np.diff(trace.tape.segments.offsets)
    medians = np.full(len(counts), nan)
    for count in np.unique(counts[counts > 0]).tolist():  # streams of one length in one table
        which = np.flatnonzero(counts == count)
        table = np.sort(sizes[begins[which, None] + np.arange(count)], axis=1)
        finite = np.isfinite(table).sum(axis=1)  # the others are sorted behind them
        which, table, finite = which[finite > 0], table[finite > 0], finite[finite > 0]
        pair = np.take_along_axis(table, np.stack([(finite - 1) // 2, finite // 2], 1), axis=1)
        medians[which] = pair.mean(axis=1)
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
