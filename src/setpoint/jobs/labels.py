"""Which form of label sets suits a file: the one whose sets were smallest on its first rows."""

from typing import Any

import numpy as np

from setpoint.bulk.replay import replay
from setpoint.jobs.columns import Columns
from setpoint.jobs.job import Goal
from setpoint.sets import Cumulative, ScoreWindow
from setpoint.tape import Tape

__all__ = ["label_form"]

_LEAST, _MOST = 100, 1_000
"""How many rows are tried: fewer say nothing, and more are not needed."""
_CLOSE = 0.03
"""How far below the coverage asked for a form may be and still be compared."""


def label_form(goal: Goal, columns: Columns, family: Any, tape: Tape) -> tuple[Any, list[str]]:
    """The family of label sets to use for these probabilities, and a note of what was tried.

    Each form runs over the first rows of every series as it would run live: probabilities above a
    threshold, the likeliest up to a mass, and those above a quantile of the last true ones. Of
    those that covered about what was asked for, the one with the smallest mean size is taken.
    """
    lengths = np.diff(tape.segments.offsets)
    counts = np.minimum(lengths, np.maximum(lengths // 10, max(_MOST // len(lengths), 1)))
    counts = np.minimum(counts, _MOST)
    head, _ = tape.split(counts)
    if int((~np.isnan(head.y)).sum()) < _LEAST:
        return family, []
    forms = {
        "threshold": family,
        "cumulative": Cumulative(classes=family.classes),
        "score window": ScoreWindow(family),
    }
    sizes = {}
    for name, form in forms.items():
        result = replay(goal.preset(columns, form), head).summary()
        if result.coverage >= 1.0 - goal.level - _CLOSE:
            sizes[name] = float(result.mean_length)
    best = min(sizes, key=lambda name: sizes[name], default="threshold")
    listed = ", ".join(f"{name} {size:.2f}" for name, size in sizes.items())
    note = f"label sets by {best}; labels in a set, on the first {len(head):,} rows: {listed}"
    return forms[best], [note] if sizes else []
