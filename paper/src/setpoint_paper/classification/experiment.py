"""Label sets on streams that drift: three with one class a row, one with several labels.

stream → online classifier → its probabilities (`_classification_tapes`) → every method
(`_classification_methods`) → tables and figures (`_classification_report`).
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from setpoint.errors import InputError
from setpoint_paper.classification.methods import methods, paces
from setpoint_paper.classification.report import Result, draw, report, write_csv
from setpoint_paper.classification.tapes import LABEL_STREAMS, record

__all__ = ["STREAMS", "reproduce"]

STREAMS = LABEL_STREAMS
"""gas_drift, outdoor and power_supply at 90 % coverage, yeast at 10 % false negatives."""


def reproduce(
    *,
    streams: Sequence[str] = STREAMS,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
) -> list[Result]:
    """Runs the experiment, prints its report and stores it with its figures.

    Writes `classification.md`, `classification.csv` and a figure for each stream.

    Parameters
    ----------
    streams
        Some of `STREAMS`.
    quick
        Only the first rows of each stream.
    out
        The folder for tables and figures.
    """
    asked = tuple(dict.fromkeys(streams))
    if not asked or not set(asked) <= set(STREAMS):
        raise InputError(
            f"streams must be some of {', '.join(STREAMS)}, got {', '.join(streams)!r}"
        )
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for name in asked:
        began = time.perf_counter()
        recorded = record(name, quick=quick)
        result = Result(recorded, methods(recorded), paces(recorded))
        draw(result, folder / f"classification_{name}.png")
        results.append(result)
        print(
            f"{name}: {len(recorded.y):,} rows in {time.perf_counter() - began:.0f} s", flush=True
        )
    page = report(results, _command(asked, quick, folder), quick, folder)
    write_csv(results, folder / "classification.csv")
    (folder / "classification.md").write_text(page, encoding="utf-8")
    print(f"\n{page}")
    return results


def _command(streams: Sequence[str], quick: bool, out: Path) -> str:
    """What to type for the same result."""
    parts = ["setpoint-paper classification"]
    if tuple(streams) != STREAMS:
        parts.append(f"--streams {','.join(streams)}")
    return " ".join([*parts, *(["--quick"] if quick else []), f"--out {out.as_posix()}"])
