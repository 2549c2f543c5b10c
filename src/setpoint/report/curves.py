"""What the figures draw, as plain arrays: few enough points for a page, none of the peaks lost."""

from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint.losses import declaration
from setpoint.report.view import Array, View, shows_intervals, stream_numbers
from setpoint.sets.family import Supports

__all__ = [
    "Band", "Lengths", "Risks", "Rolling", "Rows", "Window", "broken", "closed", "extremes",
    "finite_range", "lengths", "risk_range", "risks", "rolling", "rows", "streaks", "thinned",
]  # fmt: skip

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


def risks(view: View, risk: int) -> Risks:
    """The running risk of a view.

    Σ(l − r) of a stream stays within constants; over several streams the constants add up, each
    from the first label of its stream on.
    """
    trace = view.trace
    losses = view.losses(risk)
    judged = np.flatnonzero(~np.isnan(losses))
    level = trace.controller.risks[risk].level
    counts, totals = np.ones(len(judged)), losses[judged].astype(np.float64)
    low: Array | None = np.zeros(len(judged))
    high: Array | None = np.zeros(len(judged))
    earlier = 0
    for stream, first, count, total in _first_labels(view, judged, totals):
        certificate = trace.certificate(stream).risks[risk]
        before = certificate.judged - count
        if before > 0:
            earlier += before
            counts[first] += before
            totals[first] += certificate.mean * certificate.judged - total
        low = _raised(low, first, certificate.constant_lower)
        high = _raised(high, first, certificate.constant_upper)
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
        return np.clip(level + np.cumsum(side) / labels, promise.low, promise.high)[drawn]

    x = view.x[judged[drawn]]
    return Risks(x, running[drawn], edge(low), edge(high), level, len(judged), earlier)


def _first_labels(view: View, judged: Array, losses: Array) -> list[tuple[Any, int, int, float]]:
    """The streams that have labels: place of the first, how many, and the sum of their losses."""
    if not len(judged):
        return []
    if not view.several:
        return [(view.streams[0], 0, len(judged), float(losses.sum()))]
    numbers, first, inverse = np.unique(
        stream_numbers(view.trace)[view.rows[judged]], return_index=True, return_inverse=True
    )
    counts, totals = np.bincount(inverse), np.bincount(inverse, weights=losses)
    ids = [view.trace.tape.streams[number] for number in numbers.tolist()]
    return list(zip(ids, first.tolist(), counts.tolist(), totals.tolist(), strict=True))


def _raised(side: Array | None, place: int, constant: float | None) -> Array | None:
    if side is None or constant is None:
        return None
    side[place] += constant
    return side


def risk_range(curve: Risks) -> list[float]:
    """Room for the line once it has settled, the level, and the band where that is not too much."""
    settled = curve.risk[len(curve.risk) // 20 :]
    away = float(np.abs(settled - curve.level).max(initial=0.02 * abs(curve.level)))
    at_end = [
        abs(float(side[-1]) - curve.level)
        for side in (curve.low, curve.high)
        if side is not None and len(side)
    ]
    away = 1.15 * max(away, min(max(at_end, default=0.0), 6.0 * away)) or 0.05
    low = curve.level - away
    return [max(low, -0.02 * away) if low < 0.0 <= curve.level else low, curve.level + away]


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
        ((low, high),) = _bands(view)
        sets = trace.controller.sets
        least, most = sets.support if isinstance(sets, Supports) else (-inf, inf)
        full, empty = full | ((low <= least) & (high >= most)), empty | (low > high)
    elif not shows_intervals(trace):
        empty = empty | (view.sizes == 0.0)
    return int(full.sum()), int(empty.sum())


def _bands(view: View) -> list[Band]:
    """Lower and upper ends of the intervals shown; of several levels the outermost first."""
    trace = view.trace
    if trace.shown is None:
        ends = (end[view.rows].astype(np.float64) for end in (trace.lower, trace.upper))
        return [Band(*ends)]
    if not shows_intervals(trace):
        return []
    shown = [trace.shown[row] for row in view.rows.tolist()]
    return [
        Band(
            np.array([levels[place].lower for levels in shown]),
            np.array([levels[place].upper for levels in shown]),
        )
        for place in reversed(range(len(shown[0])))
    ]


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
    `infinite` of the sets have no finite length and are left out.
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


@dataclass(frozen=True, slots=True)
class Window:
    """A run of labels and its mean loss; `start` and `stop` are its first and last row."""

    start: int
    stop: int
    risk: float


class Rolling(NamedTuple):
    """The mean loss over each window, by its last label, and the worst windows, apart."""

    x: Array
    risk: Array
    window: int
    level: float
    worst: list[Window]


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
    drawn = thinned(means)
    return Rolling(view.x[at[drawn + width - 1]], means[drawn], width, level, worst)


def streaks(view: View) -> Array:
    """The lengths of the streaks of misses, none of which spans two streams."""
    if not view.several:
        return metrics.streaks(view.hits)
    order, offsets = view.trace.tape.segments
    hits = np.where(view.trace.observed, view.trace.covered, nan)
    hits = hits if order is None else hits[order]
    return metrics.streaks(np.insert(hits, offsets[1:-1], 1.0))


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
