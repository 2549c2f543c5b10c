"""Label sets on streams that drift: three with one class a row, one with several labels.

stream → online classifier → its probabilities (`tapes`) → the paper's families (`methods`) →
results and figures; and what becomes of F1 (`f1`).
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setpoint.errors import InputError
from setpoint_paper.classification.f1 import Held, lock_in
from setpoint_paper.classification.methods import LEVEL, Outcome, Row, judged
from setpoint_paper.classification.tapes import LABEL_STREAMS, Recorded, record
from setpoint_paper.plotting import COLOURS, figure, legend, mark, save
from setpoint_paper.rows import written

STREAMS = LABEL_STREAMS
"""gas_drift, outdoor and power_supply at 90 % coverage, yeast at 10 % false negatives."""
_WINDOW = 250


def reproduce(
    *,
    streams: Sequence[str] = STREAMS,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
) -> list[Row]:
    """Runs the experiment and stores its results and figures.

    Writes `classification.csv`, `f1.csv` and a figure for each stream; `-quick` follows the names
    of a quick run.

    The parameters are the options of `setpoint-paper classification`; a quick run has the first
    rows of each stream.
    """
    asked = tuple(dict.fromkeys(streams))
    if not asked or not set(asked) <= set(STREAMS):
        raise InputError(
            f"streams must be some of {', '.join(STREAMS)}, got {', '.join(streams)!r}"
        )
    folder, end = Path(out), "-quick" * quick
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in asked:
        recorded = record(name, quick=quick)
        outcomes = judged(recorded)
        draw(recorded, outcomes, folder / f"classification{end}_{name}.png")
        rows += [each.row for each in outcomes]
        print(f"{name}: {len(recorded.y):,} rows", flush=True)
    path = folder / f"classification{end}.csv"
    path.write_text(written(Row, rows), encoding="utf-8")
    if "yeast" in asked:
        (folder / f"f1{end}.csv").write_text(written(Held, lock_in(quick)), encoding="utf-8")
    print(f"Results: {path}; `setpoint-paper summary` judges them.")
    return rows


def draw(recorded: Recorded, outcomes: Sequence[Outcome], path: Path) -> Path:
    """Coverage (or false negatives) in % and set size, means over windows, one panel each."""
    made, panels = figure(2, 1, sharex=True, height=2.1)
    upper, lower = panels[:, 0]
    moments = [row for row in recorded.marks if row > recorded.begin]
    mark(upper, level=100.0 * (LEVEL if recorded.several else 1.0 - LEVEL), at=moments)
    mark(lower, at=moments)
    for each, colour in zip(outcomes, ("blue", "vermilion"), strict=False):
        losses = each.losses if recorded.several else 1.0 - each.losses
        for panel, values in ((upper, 100.0 * losses), (lower, each.masks.sum(axis=1))):
            known = np.where(np.isnan(values), np.nanmean(values), values)
            width = min(_WINDOW, len(known))
            means = np.convolve(known, np.ones(width) / width, "valid")
            rows = recorded.begin + width + np.arange(len(means))
            panel.plot(rows, means, color=COLOURS[colour], linewidth=1.1, label=each.row.family)
    upper.set_title(recorded.name)
    upper.set_ylabel("false negatives, %" if recorded.several else "coverage, %")
    lower.set_ylabel("labels in a set")
    lower.set_xlabel("row")
    return save(legend(made), path)
