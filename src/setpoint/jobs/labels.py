"""Which form of label sets suits a file: the one whose sets were smallest in its burn-in."""

from typing import Any

import numpy as np

from setpoint.bulk.replay import replay
from setpoint.jobs.job import Goal
from setpoint.sets import Cumulative, ScoreWindow
from setpoint.tape import Columns, Tape

__all__ = ["label_form"]

_LEAST = 50
"""How many labels are needed: fewer say nothing."""
_CLOSE, _BUDGET = 0.03, 10.0
"""How far below the coverage asked for a form may be and still be compared: a share of the labels,
or the misses that a budget lets through at first."""


def label_form(goal: Goal, columns: Columns, family: Any, past: Tape) -> tuple[Any, list[str]]:
    """The family of label sets to use for these probabilities, and a note of what was tried.

    Each form runs over the burn-in of every series as it would run live: probabilities above a
    threshold, the likeliest up to a mass, and those above a quantile of the last true ones. Of
    those that covered about what was asked for, the one with the smallest mean size is taken.
    """
    labels = int((~np.isnan(past.y)).sum())
    if labels < _LEAST:
        return family, []
    least = goal.share - max(_CLOSE, _BUDGET * len(past.streams) / labels)
    forms = {
        "threshold": family,
        "cumulative": Cumulative(classes=family.classes),
        "score window": ScoreWindow(family),
    }
    sizes = {}
    for name, form in forms.items():
        result = replay(goal.preset(columns, form), past).summary()
        if result.coverage >= least:
            sizes[name] = float(result.mean_length)
    best = min(sizes, key=lambda name: sizes[name], default="threshold")
    listed = ", ".join(f"{name} {size:.2f}" for name, size in sizes.items())
    note = f"label sets by {best}; labels in a set, on the first {len(past):,} rows: {listed}"
    return forms[best], [note] if sizes else []
