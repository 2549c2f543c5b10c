"""What the figures draw, as plain arrays: few enough points for a page, none of the peaks lost."""

from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint.losses import declaration
from setpoint.report._view import View, shows_intervals, sizes_of

__all__ = [
    "DETAIL",
    "POINTS",
    "Band",
    "Lengths",
    "Risks",
    "Rolling",
    "Rows",
    "Window",
    "broken",
    "closed",
    "extremes",
    "finite_range",
    "lengths",
    "risk_range",
    "risks",
    "rolling",
    "rows",
    "streaks",
    "thinned",
]

Array = np.ndarray[Any, Any]

POINTS = 2_000
"""About how many points a curve has at most."""

DETAIL = 5_000
"""How many rows are drawn one by one; older ones are drawn as envelopes."""

_BINS, _LEAST = 240, 20
_GAP, _GAPS = 20.0, 20
"""A step so many times the usual one is time without rows, and that many of them are left out."""


def thinned(values: Array, most: int = POINTS) -> Array:
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
    least = first + np.where(np.isnan(table), inf, table).argmin(axis=1)
    most_of = first + np.where(np.isnan(table), -inf, table).argmax(axis=1)
    return np.unique(np.concatenate([[0, size - 1], least, most_of]))


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
    held = (np.insert(curve.astype(np.float64), gaps, nan) for curve in curves)
    return np.insert(x, gaps, x[gaps - 1]), *held


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


def risks(seen: View, risk: int) -> Risks:
    """The running risk of a view.

    Σ(l − r) of a stream stays within constants; over several streams the constants add up, each
    from the first label of its stream on.
    """
    trace = seen.trace
    losses = seen.losses(risk)
    judged = np.flatnonzero(~np.isnan(losses))
    values, level = losses[judged], trace.controller.risks[risk].level
    counts, totals = np.ones(len(judged)), values.astype(np.float64)
    low: Array | None = np.zeros(len(judged))
    high: Array | None = np.zeros(len(judged))
    before = 0
    for stream, first, own_count, own_total in _begins(seen, judged, values):
        held = trace.certificate(stream).risks[risk]
        before += held.judged - own_count
        counts[first] += held.judged - own_count
        totals[first] += held.mean * held.judged - own_total if held.judged > own_count else 0.0
        low = _raised(low, first, held.constant_lower)
        high = _raised(high, first, held.constant_upper)
    labels = np.cumsum(counts)
    running = np.cumsum(totals) / labels
    promise = declaration(trace.controller.risks[risk].loss)
    edges = [
        None if side is None else np.clip(level + np.cumsum(side) / labels, *promise[:2])
        for side in (low, high)
    ]
    drawn = thinned(running)
    if len(running) > POINTS:  # the bound falls like 1/T: most of its bend is at the beginning
        early = np.unique(np.geomspace(1, len(running), 200).astype(np.int64)) - 1
        drawn = np.union1d(drawn, early)
    return Risks(
        seen.x[judged[drawn]],
        running[drawn],
        None if edges[0] is None else edges[0][drawn],
        None if edges[1] is None else edges[1][drawn],
        level,
        len(judged),
        before,
    )


def _begins(seen: View, judged: Array, values: Array) -> list[tuple[Any, int, int, float]]:
    """The streams that have labels: place of the first, how many, and their sum."""
    if not len(judged):
        return []
    if not seen.several:
        return [(seen.streams[0], 0, len(judged), float(values.sum()))]
    order, offsets = seen.trace.tape.segments
    number = np.repeat(np.arange(len(seen.streams)), np.diff(offsets))
    if order is not None:
        number[order] = number.copy()
    held, first, inverse = np.unique(
        number[seen.rows[judged]], return_index=True, return_inverse=True
    )
    counts, totals = np.bincount(inverse), np.bincount(inverse, weights=values)
    ids = seen.trace.tape.streams
    return [
        (ids[s], int(place), int(count), float(total))
        for s, place, count, total in zip(held, first, counts, totals, strict=True)
    ]


def _raised(side: Array | None, place: int, constant: float | None) -> Array | None:
    if side is not None and constant is not None:
        side[place] += constant
        return side
    return None


def risk_range(found: Risks) -> list[float]:
    """Room for the line once it has settled, the level, and the band where that is not too much."""
    settled = found.risk[len(found.risk) // 20 :]
    away = float(np.abs(settled - found.level).max(initial=0.02 * abs(found.level)))
    at_end = [
        abs(float(side[-1]) - found.level)
        for side in (found.low, found.high)
        if side is not None and len(side)
    ]
    away = 1.15 * max(away, min(max(at_end, default=0.0), 6.0 * away)) or 0.05
    low = found.level - away
    return [max(low, -0.02 * away) if low < 0.0 <= found.level else low, found.level + away]


class Band(NamedTuple):
    """The ends of the sets of one level."""

    lower: Array
    upper: Array


class Rows(NamedTuple):
    """Sets and labels row by row, the older ones of a long trace as envelopes.

    `bands` has the outermost sets first and is empty where the sets are no intervals: then
    `sizes` has their sizes. `exact` is the number of rows at the end that are drawn one by one,
    and `together` how many of the older rows make one envelope. `misses`, `full` and `empty` are
    rows, by their place in `at`.
    """

    x: Array
    bands: list[Band]
    sizes: Array | None
    at: Array
    y: Array
    misses: Array
    full: Array
    empty: Array
    exact: int
    together: int


def rows(seen: View, detail: int = DETAIL) -> Rows:
    """The rows of a view of one stream."""
    size = len(seen.rows)
    exact = min(size, detail)
    older = size - exact
    together = max(1, -(-older // (POINTS // 2)))
    begin = np.arange(0, older, together)
    tail = np.arange(older, size)
    bands = [
        Band(_envelope(low, begin, older, np.minimum), _envelope(high, begin, older, np.maximum))
        for low, high in _ends(seen)
    ]
    sizes = None
    if not bands:
        every = sizes_of(seen.trace, seen.rows)
        sizes = _envelope(every, begin, older, np.maximum)
    y = seen.trace.tape.y[seen.rows]
    places = np.concatenate([thinned(y[:older], POINTS // 2), tail]) if older else tail
    missed = np.flatnonzero(seen.hits == 0.0)
    lam = seen.trace.lam[seen.rows]
    return Rows(
        seen.x[np.concatenate([begin, tail])],
        bands,
        sizes,
        seen.x[places],
        y[places],
        _spread(missed, older, together),
        _spread(np.flatnonzero(lam == inf), older, together),
        _spread(np.flatnonzero(lam == -inf), older, together),
        exact,
        together,
    )


def extremes(seen: View) -> tuple[int, int]:
    """How many of the sets are full, and how many are empty."""
    lam = seen.trace.lam[seen.rows]
    full, empty = lam == inf, lam == -inf
    if seen.trace.shown is None:
        (low, high), (least, most) = next(iter(_ends(seen))), support(seen.trace)
        full, empty = full | ((low <= least) & (high >= most)), empty | (low > high)
    elif not shows_intervals(seen.trace):
        empty = empty | (sizes_of(seen.trace, seen.rows) == 0.0)
    return int(full.sum()), int(empty.sum())


def support(trace: Any) -> tuple[float, float]:
    """Where labels can lie, as far as the family tells."""
    low, high = getattr(trace.controller.sets, "support", (-inf, inf))
    return low, high


def _ends(seen: View) -> list[tuple[Array, Array]]:
    """Lower and upper ends of the intervals shown; of several levels the outermost first."""
    trace = seen.trace
    if trace.shown is None:
        return [(trace.lower[seen.rows].astype(np.float64), trace.upper[seen.rows] * 1.0)]
    if not shows_intervals(trace):
        return []
    shown: Any = trace.shown
    parts = [shown[row].parts for row in seen.rows.tolist()]
    return [
        (
            np.array([own[place].lower for own in parts]),
            np.array([own[place].upper for own in parts]),
        )
        for place in reversed(range(len(parts[0])))
    ]


def _envelope(values: Array, begin: Array, older: int, outermost: Any) -> Array:
    """The outermost of each bunch of older rows, then the others as they are."""
    if not len(begin):
        return values
    return np.concatenate([outermost.reduceat(values[:older], begin), values[older:]])


def _spread(places: Array, older: int, together: int) -> Array:
    """All places among the exact rows, and one of each bunch of older rows."""
    old = places[places < older]
    _, first = np.unique(old // together, return_index=True)
    return np.concatenate([old[first], places[places >= older]])


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


def lengths(seen: View) -> Lengths:
    """The lengths or sizes along a view."""
    sizes = sizes_of(seen.trace, seen.rows)
    infinite = int(np.isinf(sizes).sum())
    if len(sizes) <= 2 * _BINS:
        return Lengths(seen.x, np.where(np.isinf(sizes), nan, sizes), None, None, 1, infinite)
    together = max(-(-len(sizes) // _BINS), _LEAST)
    begin = range(0, len(sizes), together)
    table = np.full((len(begin), 3), nan)
    for place, start in enumerate(begin):
        own = sizes[start : start + together]
        own = own[np.isfinite(own)]
        if len(own):
            table[place] = np.quantile(own, (0.1, 0.5, 0.9))
            if not shows_intervals(seen.trace):
                table[place, 1] = own.mean()
    low, middle, high = table.T
    return Lengths(seen.x[np.array(begin)], middle, low, high, together, infinite)


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


def rolling(seen: View, risk: int, window: int, count: int = 5) -> Rolling:
    """The windows of a view of one stream; rows of `worst` are places in the view."""
    losses = seen.losses(risk)
    at = np.flatnonzero(~np.isnan(losses))
    level = seen.trace.controller.risks[risk].level
    width = min(window, len(at))
    if not width:
        return Rolling(seen.x[:0], np.empty(0), 0, level, [])
    totals = np.cumsum(np.concatenate([[0.0], losses[at]]))
    means = (totals[width:] - totals[:-width]) / width
    away = np.abs(means - level)
    worst: list[Window] = []
    while len(worst) < count and away.max() > 0.0:
        place = int(away.argmax())
        worst.append(Window(int(at[place]), int(at[place + width - 1]), float(means[place])))
        away[max(0, place - width + 1) : place + width] = 0.0
    drawn = thinned(means)
    return Rolling(seen.x[at[drawn + width - 1]], means[drawn], width, level, worst)


def streaks(seen: View) -> Array:
    """The lengths of the streaks of misses, none of which spans two streams."""
    if not seen.several:
        return metrics.streaks(seen.hits)
    order, offsets = seen.trace.tape.segments
    hits = np.where(seen.trace.observed, seen.trace.covered, nan)
    hits = hits if order is None else hits[order]
    return metrics.streaks(np.insert(hits, offsets[1:-1], 1.0))


def finite_range(values: Array, *others: Array) -> tuple[float, float]:
    """A range to draw: all of `values`, nearly all of the others, and some air."""
    kept = [values[np.isfinite(values)]]
    for other in others:
        other = other[np.isfinite(other)]
        kept.append(np.quantile(other, (0.01, 0.99)) if len(other) else other)
    every = np.concatenate(kept)
    if not len(every):
        return -1.0, 1.0
    low, high = float(every.min()), float(every.max())
    air = 0.06 * (high - low) or 0.1 * max(abs(high), 1.0)
    return low - air, high + air
