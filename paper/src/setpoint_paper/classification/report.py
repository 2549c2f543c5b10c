"""The results of the classification experiment as a table on disk, and its figures."""

import csv
from collections.abc import Sequence
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.metrics import set_sizes
from setpoint_paper.classification.methods import LEVEL, OURS, Outcome, balance, rolling
from setpoint_paper.classification.tapes import Recorded
from setpoint_paper.plotting import COLOURS, figure, legend, mark, save
from setpoint_paper.statistics import Estimate

__all__ = ["Result", "draw", "write_csv"]

_LINES = (
    ("uncalibrated", None, "uncalibrated", "grey", ":"),
    ("fixed threshold", "Threshold", "fixed threshold", "orange", "-."),
    ("fixed threshold", "Multilabel", "fixed threshold", "orange", "-."),
    ("controlled", "Threshold", "controlled, Threshold", "blue", "-"),
    ("controlled", "Cumulative", "controlled, Cumulative", "vermilion", "--"),
    ("controlled", "Multilabel", "controlled, Multilabel", "blue", "-"),
    (OURS, "Threshold", "self-adjusting (ours), Threshold", "green", "-"),
    (OURS, "Multilabel", "self-adjusting (ours), Multilabel", "green", "-"),
)
"""What a figure shows: method, family, name, colour, stroke."""


class Result:
    """One stream: what its classifier said, what every method made of it, and the step sizes."""

    def __init__(
        self, recorded: Recorded, outcomes: list[Outcome], paces: list[tuple[float, Outcome]]
    ) -> None:
        self.recorded, self.outcomes, self.paces = recorded, outcomes, paces

    def controlled(self, family: str) -> Outcome | None:
        """The paper's method with a family of sets; None where a row may have several labels."""
        wanted = ("controlled", family)
        return next((each for each in self.outcomes if (each.method, each.family) == wanted), None)

    @cached_property
    def gain(self) -> Estimate | None:
        """How much better cumulative sets are balanced than threshold sets, in points."""
        threshold, cumulative = self.controlled("Threshold"), self.controlled("Cumulative")
        if threshold is None or cumulative is None:
            return None
        labels = self.recorded.y[self.recorded.begin :]
        return balance(labels, 1.0 - threshold.losses, 1.0 - cumulative.losses)


def write_csv(results: Sequence[Result], path: Path) -> None:
    """Every number of the tables, unrounded.

    What cumulative sets gain in balance, and the ends of its interval, are in points and stand in
    the row of the threshold: controlled, with the step size chosen.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ["stream", "method", "family", "kind", "pace", "rows", "level", "risk", "worst_window",
             "best_window", "mean_size", "empty", "full", "msl", "gamma", "bound", "identity_gap",
             "unbalanced", "floor", "balance_gain", "balance_low", "balance_high",
             "chosen_by_the_safeguard", "certificate"]
        )  # fmt: skip
        for result in results:
            every = [(1.0, each) for each in result.outcomes]
            every += [(pace, each) for pace, each in result.paces if pace != 1.0]
            for pace, each in every:
                verdict = "" if each.certificate is None else each.certificate.verdict
                gain = Estimate(nan, nan, nan, 0)
                if each is result.controlled("Threshold") and result.gain is not None:
                    gain = result.gain
                numbers = (each.risk, each.worst, each.calmest, each.mean_size, each.empty,
                           each.full, each.msl, each.gamma, each.bound, each.gap,
                           each.unbalanced, each.floor, *gain[:3])  # fmt: skip
                cells = ["" if isnan(value) else repr(float(value)) for value in numbers]
                rows.writerow(
                    [each.stream, each.method, each.family, each.kind, f"{pace:g}",
                     len(each.losses), LEVEL, *cells, each.chosen, verdict]
                )  # fmt: skip


def draw(result: Result, path: Path) -> Path:
    """Coverage (or false negatives) in % and set size, over windows, one panel each."""
    recorded = result.recorded
    made, panels = figure(2, 1, sharex=True, height=2.1)
    upper, lower = panels[:, 0]
    moments = [row for row, _ in recorded.marks if row > recorded.begin]
    mark(upper, level=100.0 * (LEVEL if recorded.several else 1.0 - LEVEL), at=moments)
    mark(lower, at=moments)
    for method, family, name, colour, stroke in _LINES:
        for each in result.outcomes:
            if each.method == method and family in (None, each.family):
                look: Any = {"color": COLOURS[colour], "linestyle": stroke, "linewidth": 1.1}
                losses = rolling(each.losses)
                held = losses if recorded.several else 1.0 - losses
                rows = recorded.begin + len(each.losses) - np.arange(len(held))[::-1]
                upper.plot(rows, 100.0 * held, label=name, **look)
                lower.plot(rows, rolling(set_sizes(each.masks).astype(float)), **look)
    upper.set_title(recorded.name)
    upper.set_ylabel("false negatives, %" if recorded.several else "coverage, %")
    lower.set_ylabel("labels in a set")
    lower.set_xlabel("row")
    return save(legend(made), path)
