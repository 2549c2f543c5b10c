"""The comparison of rules: streams (`streams`) → every rule (`rules`) → measures → page (`report`).

What a stream gave is kept by the content of the stream and of the programs, so a run that was
stopped goes on where it was, and no old number survives a change of a rule.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import setpoint
from comparison import RESULTS
from comparison import streams as _streams
from comparison.measures import Measures, measure
from comparison.report import Results, draw, page, write_csv
from comparison.rules import RULES
from comparison.streams import BURN_IN, Series, made, read, write
from setpoint._check import whole
from setpoint.errors import InputError
from setpoint_paper.work import each, folder_of

__all__ = ["compare", "measured", "reproduce"]

Floats = NDArray[np.float64]


def reproduce(
    *,
    streams: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    quick: bool = False,
    out: str | os.PathLike[str] = RESULTS,
    kept: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs every rule on every stream, prints the page and stores it with its figures.

    Writes `comparison.md`, `comparison.csv` and `comparison.png`; of a file of streams and of a
    quick run, `comparison-NAME.md` and so on.

    Parameters
    ----------
    streams
        A file of streams, as `streams.read` reads it; by default those made of public data.
    jobs
        How many processes.
    quick
        A few short streams, in plain Python: less than a minute.
    out
        The folder for the page, the numbers and the figures.
    kept
        The folder of what was found before; by default below that of tapes.
    """
    folder = Path(out)
    store = folder_of(kept) / "comparison"
    whole(jobs, "jobs", 1)
    folder.mkdir(parents=True, exist_ok=True)
    store.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with _plain(quick):
        series = _series(streams, quick, store)
        short = [one.name for one in series if len(one.y) < 2 * BURN_IN]
        if short:
            raise InputError(f"a stream needs {2 * BURN_IN} rows, {short[0]} has fewer")
        found = each(_stored, [(one, store) for one in series], jobs, "comparing")
    name = "quick" if quick else "" if streams is None else Path(streams).stem
    stem = "-".join(filter(None, ("comparison", name)))
    results = compare(series, found)
    draw(results, folder / f"{stem}.png")
    write_csv(results, folder / f"{stem}.csv")
    text = page(results, _command(streams, quick, folder), f"{stem}.png")
    (folder / f"{stem}.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{len(series)} streams in {time.perf_counter() - began:.0f} s")
    return results


def compare(series: Iterable[Series], found: Iterable[tuple[Floats, Floats]]) -> Results:
    """What came out of the rules on each stream, as one value."""
    listed, pairs = list(series), list(found)
    values = np.stack([values for values, _ in pairs], axis=1)
    columns = dict(zip(Measures._fields, np.moveaxis(values, 2, 0), strict=True))
    return Results(RULES, tuple(listed), columns, [blocks for _, blocks in pairs])


def _series(path: str | os.PathLike[str] | None, quick: bool, store: Path) -> list[Series]:
    """The streams of a file, or those made, which are kept too."""
    if path is not None:
        return read(path)
    source = hashlib.sha256(Path(_streams.__file__).read_bytes()).hexdigest()[:16]
    file = store / f"streams-{'quick' if quick else 'all'}-{source}.npz"
    if not file.is_file():
        beside = file.with_suffix(".part.npz")
        write(made(quick=quick), beside)
        beside.replace(file)
    return read(file)


def _stored(series: Series, folder: Path) -> tuple[Floats, Floats]:
    """What the rules give on a stream, from the folder if it is there."""
    file = folder / f"{_digest(series)}.npz"
    if not file.is_file():
        values, blocks = measured(series)
        beside = file.with_suffix(".part.npz")
        np.savez_compressed(beside, values=values, blocks=blocks)
        beside.replace(file)
    with np.load(file) as stored:
        return stored["values"], stored["blocks"]


def measured(series: Series) -> tuple[Floats, Floats]:
    """Every rule on one stream: its measures, and its sums over blocks of rows."""
    y, point = series.y[BURN_IN:], series.point[BURN_IN:]
    told = [measure(*rule.ends(series), y, point) for rule in RULES]
    return np.array([values for values, _ in told]), np.array([blocks for _, blocks in told])


def _digest(series: Series) -> str:
    """Stands for a stream and for the programs of the library and of this comparison."""
    known = hashlib.sha256(f"{_programs()} {series.delay} {series.period}".encode())
    for column in (series.lower, series.upper, series.y):
        known.update(np.ascontiguousarray(column).tobytes())
    return known.hexdigest()[:24]


@cache
def _programs() -> str:
    library, here = Path(setpoint.__file__).parent, Path(__file__).parent
    files = [*sorted(library.rglob("*.py")), here / "rules.py", here / "measures.py"]
    text = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(text).hexdigest()


@contextmanager
def _plain(quick: bool) -> Iterator[None]:
    """Plain Python for a few short streams: compiling would take longer than running."""
    before = os.environ.get("SETPOINT_PLAIN")
    if quick:
        os.environ["SETPOINT_PLAIN"] = "1"
    try:
        yield
    finally:
        if quick:
            os.environ.pop("SETPOINT_PLAIN")
            if before is not None:
                os.environ["SETPOINT_PLAIN"] = before


def _command(streams: str | os.PathLike[str] | None, quick: bool, out: Path) -> str:
    """What to type for the same result."""
    words = ["python -m comparison"]
    if streams is not None:
        words.append(f"--streams {Path(streams).name}")
    place = [] if out == RESULTS else [f"--out {out.as_posix()}"]
    return " ".join([*words, *(["--quick"] if quick else []), *place])
