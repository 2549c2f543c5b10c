"""Label sets on streams that drift: three with one class a row, one with several labels.

stream → online classifier → its probabilities (`tapes`) → every method (`methods`) → results and
figures (`report`); and what becomes of F1 (`f1`).
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from setpoint.errors import InputError
from setpoint_paper.classification.f1 import Held, lock_in
from setpoint_paper.classification.methods import methods, paces
from setpoint_paper.classification.report import Result, draw, write_csv
from setpoint_paper.classification.tapes import LABEL_STREAMS, record
from setpoint_paper.rows import written

__all__ = ["STREAMS", "reproduce"]

STREAMS = LABEL_STREAMS
"""gas_drift, outdoor and power_supply at 90 % coverage, yeast at 10 % false negatives."""


def reproduce(
    *,
    streams: Sequence[str] = STREAMS,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
) -> list[Result]:
    """Runs the experiment and stores its results and figures.

    Writes `classification.csv`, `f1.csv` and a figure for each stream; `-quick` follows the names
    of a quick run.

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
    results, end = [], "-quick" * quick
    for name in asked:
        began = time.perf_counter()
        recorded = record(name, quick=quick)
        result = Result(recorded, methods(recorded), paces(recorded))
        draw(result, folder / f"classification{end}_{name}.png")
        results.append(result)
        print(
            f"{name}: {len(recorded.y):,} rows in {time.perf_counter() - began:.0f} s", flush=True
        )
    write_csv(results, folder / f"classification{end}.csv")
    if "yeast" in asked:
        (folder / f"f1{end}.csv").write_text(written(Held, lock_in(quick)), encoding="utf-8")
    print(f"Results: {folder / f'classification{end}.csv'}; `setpoint-paper summary` judges them.")
    return results
