"""Whether sets are of use: a guarantee can hold with sets that tell nobody anything.

Intervals are compared with what a spreadsheet would give, the middle of the forecast plus and minus
a quantile of its latest errors, and with the range of y. Sets of labels are compared with the most
frequent labels that would do without any model. Nothing here has a unit.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import product
from math import ceil, inf, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import confidence, plain, whole
from setpoint._html import percent
from setpoint.errors import InputError
from setpoint.metrics.tally import Floats, Places, column, ends, observed, offsets_of

_BLOCK = 25
"""A baseline is made anew after so many rows."""
_LEAST = 30
"""How many past errors a baseline needs, and how many rows a verdict."""
_MOST_BLOCKS = 2000
_RECENT = 100
"""How many of the latest errors say whether a model diverged."""
_EVEN_SCORE = 1.005
"""Up to this score sets are better than the baseline, but for rounding."""
_POOR_SCORE, _POOR_SHARE, _POOR_FULL, _POOR_EMPTY = 1.25, 0.85, 0.05, 0.01


class Use(StrEnum):
    """A verdict on how useful sets are."""

    USEFUL = "useful"
    EVEN = "no better than a rolling quantile"
    POOR = "poor"
    USELESS = "useless"
    TOO_EARLY = "too early to tell"


@dataclass(frozen=True, slots=True)
class Usefulness:
    """Measures of how useful sets were; undefined values are NaN.

    >>> y = np.sin(np.arange(400.0))
    >>> print(usefulness(y - 0.1, y + 0.1, y, np.zeros(400)))  # doctest: +ELLIPSIS
    useful: over 370 labels the intervals take up 10.0 % of the range of y, and their ...
    """

    use: Use  # the verdict
    score: float  # the Winkler score over the baseline's; a full set counts as the range of y
    width: float  # the mean width over the baseline's
    share: float  # of the range of y; of labels, the mean size over how many do without a model
    full: float  # the share of full sets
    empty: float
    rows: int  # how many were compared
    diverged: int | None  # about the row from which errors scatter by more than the range of y
    words: str  # the verdict as a sentence

    def __str__(self) -> str:
        return f"{self.use}: {self.words}"

    def as_dict(self) -> dict[str, Any]:
        """Names and plain values; what is not a finite number is None."""
        values: dict[str, Any] = plain(asdict(self))
        return values


def usefulness(
    lower: ArrayLike,
    upper: ArrayLike,
    y: ArrayLike,
    middle: ArrayLike | None = None,
    *,
    coverage: float = 0.9,
    support: tuple[float, float] = (-inf, inf),
    offsets: ArrayLike | None = None,
    window: int = 300,
    delay: ArrayLike = 0,
) -> Usefulness:
    """How useful intervals were, of one stream or of several together.

    Parameters
    ----------
    lower, upper, y
        The ends shown and the label of each row; NaN where it was not observed.
    middle
        The forecast of each row, as it was given. Without it the baseline is the last label.
    coverage
        The coverage that was asked for.
    support
        The values y can take; an interval that holds them all is full.
    offsets
        Of several streams one after the other: where each begins, and the end of the last one.
    window
        How many past errors the baseline looks back on.
    delay
        By how many rows labels are late: one number, or one for each stream.
    """
    streams = of_streams(
        lower, upper, y, middle, coverage=coverage, support=support,
        offsets=offsets, window=window, delay=delay,
    )  # fmt: skip
    return streams.together()


class Streams(NamedTuple):
    """The numbers of `Usefulness` for each stream, as arrays.

    `diverged` is −1 where a model did not.
    """

    score: Floats
    width: Floats
    share: Floats
    full: Floats
    empty: Floats
    rows: Places
    diverged: Places

    def together(self) -> Usefulness:
        """One verdict on all streams; each counts by its rows.

        Share and score are medians over streams, so that a few do not hide the others. It is never
        "useful" where the sets of more than one stream in a hundred are useless, and "useless"
        only where those of more than half are.
        """
        rows = int(self.rows.sum())

        def weighted(values: Floats, middle: bool) -> float:
            known = (self.rows > 0) & ~np.isnan(values)
            weights, values = self.rows[known], values[known]
            if not weights.any():
                return nan
            if not middle:
                return float(np.average(values, weights=weights))
            order = np.argsort(values)
            below = np.cumsum(weights[order])
            return float(values[order][np.searchsorted(2 * below, below[-1])])

        means = [
            weighted(values, name in ("score", "share"))
            for name, values in zip(self._fields[:5], self[:5], strict=True)
        ]
        where = self.diverged[self.diverged >= 0]
        first = int(where.min()) if len(where) else None
        verdict = Usefulness(*_verdict(means, rows, first, len(where), len(self.rows)))
        bad, several = int((self.trouble == 2).sum()), len(self.rows) > 1
        if not several or not bad or verdict.use is Use.TOO_EARLY:
            return verdict
        good = verdict.use in (Use.USEFUL, Use.EVEN)
        use = Use.POOR if good and bad > 0.01 * len(self.rows) else verdict.use
        words = (
            f"{verdict.words}; the intervals of {bad:,} of {len(self.rows):,} series are useless"
        )
        return replace(verdict, use=use, words=words)

    @property
    def trouble(self) -> Places:
        """How bad each stream is: 2 if its sets are useless, 1 if they are poor, else 0."""
        poor = _poor(self.score, self.share, self.full, self.empty) | (self.diverged >= 0)
        bad = _useless(self.share, self.full)
        return np.where(self.rows < _LEAST, 0, np.where(bad, 2, np.where(poor, 1, 0)))

    def verdict(self, stream: int) -> Usefulness:
        """The verdict on one stream, by its place."""
        place = slice(stream, stream + 1)
        return Streams._make(values[place] for values in self).together()


def of_streams(
    lower: ArrayLike,
    upper: ArrayLike,
    y: ArrayLike,
    middle: ArrayLike | None = None,
    *,
    coverage: float = 0.9,
    support: tuple[float, float] = (-inf, inf),
    offsets: ArrayLike | None = None,
    window: int = 300,
    delay: ArrayLike = 0,
) -> Streams:
    """The numbers behind `usefulness` for each stream; parameters as there."""
    low, high = ends(lower, upper)
    labels = observed(y, "y", len(low))
    asked = confidence(coverage)
    forecast = None if middle is None else column(middle, "middle", len(low))
    seen, begins, counts, delays = _seen(labels, offsets, delay)
    if len(seen) < len(labels):
        low, high, labels = low[seen], high[seen], labels[seen]
        forecast = None if forecast is None else forecast[seen]
    if forecast is None:
        forecast = np.concatenate([labels[:1], labels[:-1]])
        forecast[begins[counts > 0]] = labels[begins[counts > 0]]
    errors = labels - forecast
    spans = np.zeros(len(counts))
    some = counts > 0
    if some.any():
        tops = np.maximum.reduceat(labels, begins[some])
        spans[some] = tops - np.minimum.reduceat(labels, begins[some])
    widths, plain, scores, plain_scores, full, empty, rows = np.zeros((7, len(counts)))
    diverged = np.full(len(counts), -1)
    tail = 2.0 / (1.0 - asked)
    blocks = _blocks(errors, begins, counts, delays, asked, window, _MOST_BLOCKS)
    for first, late, which, past, radius in blocks:
        # What the sets of this block and the baseline come to.
        here, inside = _rows(first, begins[which], counts[which])
        bottom, top, truth, off = low[here], high[here], labels[here], np.abs(errors[here])
        void = bottom > top
        wide = np.where(void, 0.0, top - bottom)
        wide = np.where(wide < inf, wide, spans[which, None])
        missed = np.where(void, off, np.maximum(np.maximum(bottom - truth, truth - top), 0.0))
        passed = np.maximum(off - radius[:, None], 0.0)
        number = inside.sum(axis=1)
        whole_sets = (bottom <= support[0]) & (top >= support[1])
        rows[which] += number
        widths[which] += (wide * inside).sum(axis=1)
        plain[which] += 2.0 * radius * number
        scores[which] += ((wide + tail * missed) * inside).sum(axis=1)
        plain_scores[which] += 2.0 * radius * number + tail * (passed * inside).sum(axis=1)
        full[which] += (whole_sets & inside).sum(axis=1)
        empty[which] += (void & inside).sum(axis=1)
        # A model whose errors scatter by more than the range of y.
        suspects = np.flatnonzero((radius > spans[which]) & (diverged[which] < 0))
        if len(suspects):
            recent, span = past[suspects, -_RECENT:], spans[which[suspects]]
            scatter = np.median(np.abs(recent - np.median(recent, axis=1, keepdims=True)), axis=1)
            wild = (scatter > span) & (span > 0.0)
            # The first error that is large: the others cannot scatter by so much.
            begun = (np.abs(recent[wild]) > span[wild, None] / 2.0).argmax(axis=1)
            start, series = first - late - recent.shape[1], which[suspects[wild]]
            diverged[series] = seen[begins[series] + start + begun]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Streams(
            scores / plain_scores, widths / plain, widths / (rows * spans), full / rows,
            empty / rows, rows.astype(np.int64), diverged,
        )  # fmt: skip


def rolling_quantile(
    y: ArrayLike,
    middle: ArrayLike,
    *,
    coverage: float = 0.9,
    offsets: ArrayLike | None = None,
    window: int = 300,
    delay: ArrayLike = 0,
) -> tuple[Floats, Floats]:
    """The ends that a spreadsheet would give: a forecast ± a quantile of its latest known errors.

    It is the baseline of `usefulness`, with its parameters. The quantile is taken anew every 25
    labels; the interval is the whole line until 30 errors are known, and where there is no label.

    >>> lower, upper = rolling_quantile([1.0, -1.0] * 30, [0.0] * 60)
    >>> lower[[0, 59]].tolist(), upper[[0, 59]].tolist()
    ([-inf, -1.0], [inf, 1.0])
    """
    labels = observed(y, "y")
    forecast = column(middle, "middle", len(labels))
    seen, begins, counts, delays = _seen(labels, offsets, delay)
    errors, radii = (labels - forecast)[seen], np.full(len(seen), inf)
    asked = confidence(coverage)
    for first, _, which, _, radius in _blocks(errors, begins, counts, delays, asked, window):
        here, inside = _rows(first, begins[which], counts[which])
        radii[here[inside]] = np.repeat(radius, inside.sum(axis=1))
    radius = np.full(len(labels), inf)
    radius[seen] = radii
    return forecast - radius, forecast + radius


def _seen(labels: Floats, offsets: ArrayLike | None, delay: ArrayLike) -> tuple[Any, ...]:
    """The rows with labels; where each stream begins among them, how many it has, its delay."""
    seen = np.flatnonzero(labels == labels)
    places = np.searchsorted(seen, offsets_of(offsets, len(labels)))
    begins, counts = places[:-1], np.diff(places)
    delays = np.broadcast_to(np.asarray(delay), len(counts))
    if delays.dtype.kind not in "iu" or (delays < 0).any():
        raise InputError(f"delay must be a whole number of at least 0, got {delay!r}")
    return seen, begins, counts, delays


def _blocks(
    errors: Floats,
    begins: Places,
    counts: Places,
    delays: Places,
    asked: float,
    window: int,
    most: int | None = None,
) -> Iterator[tuple[int, int, Places, Floats, Floats]]:
    """Blocks of rows that share a baseline, `most` of them at the most: the first row of each, the
    delay, the streams that have it, their past errors and the quantile of these."""
    whole(window, "window", _LEAST)
    blocks = -(-int(counts.max(initial=0)) // _BLOCK)
    chosen = range(0, blocks, -(-blocks // (most or blocks or 1)) or 1)
    for block, late in product(chosen, np.unique(delays).tolist()):
        first = _LEAST + late + block * _BLOCK
        size = min(first - late, window)
        which = np.flatnonzero((counts > first) & (delays == late))
        if size < _LEAST or not len(which):
            continue
        past = errors[begins[which, None] + np.arange(first - late - size, first - late)]
        rank = min(ceil(asked * (size + 1)), size) - 1
        yield first, late, which, past, np.partition(np.abs(past), rank, axis=1)[:, rank]


def _rows(first: int, begins: Places, counts: Places) -> tuple[Places, Any]:
    """The rows of a block, one line for each stream, and which of them there are."""
    here = begins[:, None] + np.arange(first, first + _BLOCK)
    inside = here < (begins + counts)[:, None]
    return np.where(inside, here, begins[:, None]), inside


def _poor(score: Any, share: Any, full: Any, empty: Any) -> Any:
    over = (score > _POOR_SCORE) | (share > _POOR_SHARE)
    return over | (full > _POOR_FULL) | (empty > _POOR_EMPTY)


def _useless(share: Any, full: Any) -> Any:
    return (share > 1.0) | (full > 0.5)


def _verdict(
    means: list[float], rows: int, diverged: int | None, wild: int, streams: int
) -> tuple[Any, ...]:
    score, _, share, full, empty = means
    if rows < _LEAST:
        words = f"fewer than {_LEAST} labels came after the first {_LEAST}"
        return Use.TOO_EARLY, *means, rows, diverged, words
    parts = []
    if share == share:
        size = percent(share, 1) if share < 10.0 else f"{share:.2g} times"
        parts.append(
            f"over {rows:,} labels the intervals{' of the median series' if streams > 1 else ''} "
            f"take up {size} of the range of y".replace("times of", "times")
        )
    if score == score and (streams > 1 or diverged is None):  # its errors are no yardstick
        parts.append(
            f"and their Winkler score is {score:.2f} times that of a rolling quantile of past "
            "errors (below 1 is better)"
        )
    words = ", ".join(parts) or "y and the forecast never move"
    use = Use.EVEN if score > _EVEN_SCORE else Use.USEFUL
    if _poor(score, share, full, empty) or diverged is not None:
        use = Use.POOR
    if _useless(share, full):
        use = Use.USELESS
    for what, found, most in (("full", full, _POOR_FULL), ("empty", empty, _POOR_EMPTY)):
        words += f"; {100.0 * found:.1f} % of them are {what}" if found > most else ""
    if diverged is not None:
        who = f"the model diverged: from about row {diverged:,} on its errors"
        if streams > 1:
            who = f"the models of {wild:,} of {streams:,} series diverged: their errors"
        words += f"; {who} scatter by more than the whole range of y"
    return use, *means, rows, diverged, words


def label_usefulness(
    sizes: ArrayLike, labels: ArrayLike, classes: int, *, coverage: float = 0.9
) -> Usefulness:
    """How useful sets of labels were.

    `sizes` has the size of each set, `labels` its label as a whole number, NaN where it was not
    observed; `classes` is how many labels there are.

    >>> print(label_usefulness([1.0] * 60, [0.0, 1.0, 2.0] * 20, 3))
    useful: over 60 labels a set contains 1.00 of 3 classes on average; without a model 3 would do
    """
    whole(classes, "classes", 1)
    truth = observed(labels, "labels")
    size = column(sizes, "sizes", len(truth))
    asked = confidence(coverage)
    seen = truth == truth
    rows = int(seen.sum())
    if rows < _LEAST:
        words = f"there are fewer than {_LEAST} labels"
        return Usefulness(Use.TOO_EARLY, nan, nan, nan, nan, nan, rows, None, words)
    size = np.minimum(size[seen], classes)
    frequent = np.sort(np.unique(truth[seen], return_counts=True)[1])[::-1]
    enough = int(np.searchsorted(np.cumsum(frequent), asked * rows - 1e-9)) + 1
    mean, full, empty = map(float, (size.mean(), (size >= classes).mean(), (size == 0).mean()))
    share = mean / enough
    words = (
        f"over {rows:,} labels a set contains {mean:.2f} of {classes} classes on average; without "
        f"a model {enough} would do"
    )
    use = Use.USEFUL if share < _POOR_SHARE else Use.POOR if share < 1.0 else Use.USELESS
    if empty > _POOR_FULL:
        use = Use.POOR if use is Use.USEFUL else use
        words += f"; {percent(empty, 1)} of the sets are empty"
    return Usefulness(use, nan, nan, share, full, empty, rows, None, words)
