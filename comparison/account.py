"""The account: what it costs that labels come late, evenly or not, and whether an outage heals.

On toy streams, whose noise grows and shrinks, the default stands beside an account that remembers
the most that ever waited. On those of a file the same mean delay comes in several shapes, and
steady delays are the measure of the others.
"""

import heapq
import os
from collections.abc import Callable
from dataclasses import replace
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from comparison import RESULTS, command, keep
from comparison.measures import measure
from comparison.rules import RULES
from comparison.streams import BURN_IN, Series, read
from setpoint_paper.pages import table
from setpoint_paper.work import each

__all__ = ["SHAPES", "account"]

Floats = NDArray[np.float64]
Delays = NDArray[np.int64]

_ROWS, _SEEDS, _LATE, _FIRST = 12_000, 6, 24, 500
(_DEFAULT,) = (rule.ends for rule in RULES if rule.name == "default")


def _steady(rows: int, mean: int, _: np.random.Generator) -> Delays:
    return np.full(rows, mean)


def _jittery(rows: int, mean: int, world: np.random.Generator) -> Delays:
    return world.integers(0, 2 * mean, rows, endpoint=True)


def _geometric(rows: int, mean: int, world: np.random.Generator) -> Delays:
    return world.geometric(1.0 / (mean + 1.0), rows) - 1


def _batches(rows: int, mean: int, _: np.random.Generator) -> Delays:
    """All labels of twice as many rows come at once, after the last of them."""
    return 2 * mean - 1 - np.arange(rows) % (2 * mean)


def _outage(rows: int, mean: int, _: np.random.Generator) -> Delays:
    """Steady, but for a while in the first half no label comes."""
    start, length = rows // 4, 10 * mean + 100
    place = np.arange(rows)
    out = (start <= place) & (place < start + length)
    return np.where(out, np.maximum(start + length - place, mean), mean)


SHAPES: dict[str, Callable[[int, int, np.random.Generator], Delays]] = {
    "steady": _steady,
    "jitter": _jittery,
    "geometric": _geometric,
    "batches": _batches,
    "outage": _outage,
}
"""How late each label is, by the number of rows, the mean and a source of chance."""


def account(
    *,
    streams: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = RESULTS,
) -> str:
    """Measures every shape on toy streams and on a file of streams; prints and stores the page.

    Parameters
    ----------
    streams
        A file of streams, as `streams.read` reads it; those whose labels are late are taken.
    jobs
        How many processes.
    out
        The folder for `account.md`.
    """
    made_by = command("account", streams, out)
    parts = ["# The account, by how labels come", f"    {made_by}"]
    parts += [f"## {_SEEDS} toy streams", _toys(jobs)]
    if streams is not None:
        late = [one for one in read(streams) if one.delay]
        least, most = (pick(one.delay for one in late) for pick in (min, max))
        title = f"## {len(late)} streams, {least} to {most} rows late"
        parts += [title, _page(_measured(late, jobs))]
    parts.append(
        "*Winkler* is the geometric mean of the shares of the score with steady delays, *largest* "
        "the largest of these shares; *worst window* is the mean over streams of the worst "
        "coverage of 250 rows. An outage lasts ten times the delay and 100 rows. A *running "
        "maximum* is an account whose room is that of the most labels that ever waited at once."
    )
    return keep("\n\n".join(parts) + "\n", out, "account.md")


TOYS = (
    "24 late", "19 to 30 late", "geometric, 24 late", "a day's labels at once", "200 missing once",
    "200 missing, errors double", "24 late, 300 missing once",
)  # fmt: skip


def _toy(kind: str, seed: int) -> tuple[Floats, Delays]:
    """Actual values around 0, and the row before which each is known."""
    world, row = np.random.default_rng(seed), np.arange(_ROWS)
    missing, odd = "missing" in kind, row // 1_500 % 2 == 1
    scale = np.where(odd != missing, 2.5, 1.0)
    if missing:  # before row 6,000 the noise only grows where errors double as the outage begins
        scale[:6_000] = 1.0
        scale[3_000:6_000] = 2.0 if "double" in kind else 1.0
    known = row + 1 if kind.startswith("200") else row + _LATE
    if kind.startswith("19"):
        known = row + 1 + world.integers(18, 30, _ROWS)
    elif kind.startswith("geometric"):
        known = row + 1 + world.geometric(1.0 / _LATE, _ROWS)
    elif kind.startswith("a day"):
        known = (row // _LATE + 1) * _LATE
    elif missing:
        end, again = (3_200, 3_200) if kind.startswith("200") else (3_300, 3_324)
        known = np.where((row >= 3_000) & (row < end), np.maximum(known, again), known)
    return scale * world.normal(size=_ROWS), known


def _running_maximum(y: Floats, known: Delays) -> Floats:
    """Half the width of each interval, by an account that remembers the most that ever waited."""
    account, most, missed, size, waiting = 0.0, 0, 0.1, 1.0, 0
    pending: list[tuple[int, int, float]] = []
    half = np.empty(len(y))
    for row in range(len(y)):
        while pending and pending[0][0] <= row:
            _, one, shown = heapq.heappop(pending)
            loss = float(abs(y[one]) > shown)
            account = max(account + loss - 0.1, -(10.0 + most))
            missed += (loss - missed) / (1.0 + most)
            size += 0.02 / (1.0 + most / 3.0) * (abs(y[one]) / 0.798 - size)
            waiting -= shown < inf
        most = max(most, len(pending))
        room = 10.0 + 4.0 * most + 0.9 * (most - waiting)
        if account >= room:
            half[row] = inf
        else:
            waiting += 1
            wall = 1.0 - (max(account, 0.0) / room) ** 8
            lam = 0.15 / (1.0 + most / 2.0) * (account + 4.0 * most * (missed - 0.1)) / wall
            half[row] = 1.645 * size * exp(min(max(lam, -50.0), 50.0))
        heapq.heappush(pending, (int(known[row]), row, half[row]))
    return half


def _toy_measures(kind: str, seed: int) -> Floats:
    """Worst window, Winkler score and unlimited intervals: running maximum, then default."""
    y, known = _toy(kind, seed)
    half, end = _running_maximum(y, known), np.full(_ROWS, 1.645)
    series = Series(kind, "dev", "synthetic", -end, end, y, delays=known - np.arange(_ROWS) - 1)
    lower, upper = _DEFAULT(series)
    found = []
    for low, high, first in ((-half, half, _FIRST), (lower, upper, _FIRST - BURN_IN)):
        rows = y[_FIRST:]
        told, _ = measure(low[first:], high[first:], rows, np.zeros_like(rows))
        found += [100.0 * told.worst, told.winkler, told.infinite * len(rows)]
    return np.array(found)


def _toys(jobs: int) -> str:
    asked = [(kind, seed) for kind in TOYS for seed in range(_SEEDS)]
    found = np.stack(each(_toy_measures, asked, jobs, "measuring"))
    head = ["labels", *(f"{who}: {what}" for who in ("running maximum", "default")
            for what in ("worst window %", "Winkler", "unlimited"))]  # fmt: skip
    rows = []
    for kind, one in zip(TOYS, found.reshape(len(TOYS), _SEEDS, -1).mean(axis=1), strict=True):
        rows.append([kind, *(f"{one[at]:.{digits}f}" for at, digits in enumerate((1, 2, 0) * 2))])
    return table(head, rows)


def _measured(series: list[Series], jobs: int) -> Floats:
    """For each stream and shape: coverage, Winkler score, worst window, share of unlimited sets."""
    late = [
        (replace(one, delays=shape(len(one.y), one.delay, np.random.default_rng(place))),)
        for place, one in enumerate(series)
        for shape in SHAPES.values()
    ]
    found = np.stack(each(_one, late, jobs, "measuring"))
    return found.reshape(len(series), len(SHAPES), -1)


def _one(series: Series) -> Floats:
    lower, upper = _DEFAULT(series)
    told, _ = measure(lower, upper, series.y[BURN_IN:], series.point[BURN_IN:])
    return np.array([told.coverage, told.winkler, told.worst, told.infinite])


def _page(found: Floats) -> str:
    shares = found[:, :, 1] / found[:, :1, 1]
    head = ["labels", "coverage %", "Winkler", "largest", "worst window %", "unlimited %"]
    rows = []
    for place, name in enumerate(SHAPES):
        coverage, _, worst, infinite = 100.0 * found[:, place].mean(axis=0)
        mean, largest = np.exp(np.log(shares[:, place]).mean()), shares[:, place].max()
        rows.append([name, f"{coverage:.1f}", f"{mean:.3f}", f"{largest:.3f}", f"{worst:.1f}",
                     f"{infinite:.2f}"])  # fmt: skip
    return table(head, rows)
