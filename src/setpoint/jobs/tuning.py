"""Tuning on a file: step sizes and stretchings side by side, and how the chosen one does later."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import finite
from setpoint._files import put
from setpoint.bulk.replay import replay
from setpoint.errors import InputError
from setpoint.jobs import files
from setpoint.jobs.calibrating import split
from setpoint.jobs.choosing import Choice, Goal, choose
from setpoint.jobs.columns import Columns
from setpoint.jobs.taping import read, timed
from setpoint.metrics import Summary

__all__ = ["TunedFile", "tune"]

_MOST = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class TunedFile:
    """What a search on a file found.

    Parameters
    ----------
    name
        The file.
    choice
        The controller and everything that was tried.
    later
        How the controller does on the rows that were not looked at.
    """

    name: str
    choice: Choice
    later: Summary

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values; what is not a finite number is None."""
        later = {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in self.later.as_dict().items()
        }
        return {
            "name": self.name,
            "rows": self.choice.rows,
            "tried": list(self.choice.tried),
            "later": later,
            "controller": self.choice.toml(),
        }

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the controller as TOML, whole or not at all."""
        return put(path, self.choice.toml())

    def __str__(self) -> str:
        lines = [f"{self.name}: tried on {self.choice.rows:,} rows, best first", ""]
        lines.append(
            f"  {'stretch':<32}{'γ':>12}{'pinball':>12}{'risk':>9}{'coverage':>10}{'MSL':>7}"
        )
        for row in self.choice.tried:
            mark = "→" if row["chosen"] else " "
            lines.append(
                f"{mark} {row['stretch']:<32}{row['gamma']:>12.4g}{row['objective']:>12.5g}"
                f"{row['risk']:>9.4f}{row['coverage']:>10.4f}{row['msl']:>7.2f}"
            )
        found = self.later
        lines += [
            "",
            "→ the fastest of those within 2 % of the best; on the "
            f"{found.steps:,} labels after them: risk {found.risk:.4f}, coverage "
            f"{found.coverage:.4f}, MSL {found.msl:.2f}, length {found.mean_finite_length:.4g}",
            "",
            self.choice.toml().rstrip(),
        ]
        return "\n".join(lines)


def tune(
    path: str | os.PathLike[str],
    columns: Columns,
    goal: Goal | None = None,
    *,
    share: float = 0.5,
    gammas: Sequence[float] = (),
) -> TunedFile:
    """Tries step sizes and stretchings on the first part of a file, and the best on the rest.

    Parameters
    ----------
    path, columns, goal
        As for `calibrate`.
    share
        How much of each series is the first part; of a long one its last 20,000 rows count.
    gammas
        The step sizes to try.
    """
    goal = Goal() if goal is None else goal
    if not 0.0 < finite(share, "share") < 1.0:
        raise InputError(f"share must lie between 0 and 1, both excluded, got {share:g}")
    rows = files.read(path)
    columns, _ = timed(rows, columns)
    tape, _, _ = read(rows, columns)
    order, offsets = tape.segments
    lengths = np.diff(offsets)
    place = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths)
    early = place < np.repeat((share * lengths).astype(np.int64), lengths)
    if order is not None:
        early[order] = early.copy()
    first, rest = split(tape, early)
    labels = int(np.median(np.diff(rest.segments.offsets)))
    choice = choose(columns.family(goal), goal, first, labels, gammas=gammas, most=_MOST)
    return TunedFile(Path(path).name, choice, replay(choice.controller, rest).summary())
