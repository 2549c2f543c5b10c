"""The account: what it costs that labels come late, evenly or not, and whether an outage heals.

Toy streams, whose noise grows and shrinks, and those of a file, each with the same mean delay in
several shapes. Steady delays are the measure of the others.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from comparison import RESULTS
from comparison.measures import measure
from comparison.rules import RULES
from comparison.streams import BURN_IN, Series, read
from setpoint_paper.pages import table
from setpoint_paper.work import each

__all__ = ["SHAPES", "account"]

Floats = NDArray[np.float64]
Delays = NDArray[np.int64]

_ROWS, _SEEDS, _TOY = 12_000, 6, 24
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
    given = "" if streams is None else f" --streams {Path(streams).name}"
    parts = ["# The account, by how labels come", f"    python -m comparison account{given}"]
    toys = [_toy(seed) for seed in range(_SEEDS)]
    parts += [f"## {_SEEDS} toy streams, {_TOY} rows late", _page(_measured(toys, jobs))]
    timely = np.mean([_one(replace(toy, delay=0)) for toy in toys], axis=0)
    parts.append(f"With labels in time the worst window covers {100 * timely[2]:.1f} %.")
    if streams is not None:
        late = [one for one in read(streams) if one.delay]
        least, most = (pick(one.delay for one in late) for pick in (min, max))
        title = f"## {len(late)} streams, {least} to {most} rows late"
        parts += [title, _page(_measured(late, jobs))]
    parts.append(
        "*Winkler* is the geometric mean of the shares of the score with steady delays, *largest* "
        "the largest of these shares; *worst window* is the mean over streams of the worst "
        "coverage of 250 rows. An outage lasts ten times the delay and 100 rows; on the toy "
        "streams the noise grows by 2.5 as it begins."
    )
    text = "\n\n".join(parts) + "\n"
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "account.md").write_text(text, encoding="utf-8")
    print(text)
    return text


def _toy(seed: int) -> Series:
    """Noise that is 2.5 times as large in every other 1,500 rows, and intervals that never move."""
    scale = np.where(np.arange(_ROWS) // 1_500 % 2, 1.0, 2.5)
    y = np.random.default_rng(seed).normal(size=_ROWS) * scale
    end = np.full(_ROWS, 1.645)
    return Series(f"toy {seed}", "dev", "synthetic", -end, end, y, _TOY)


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
