"""What came out by group or by day of the week, as numbers."""

from math import nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import nominal
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.report._view import WEEKDAYS, View, keys_of

__all__ = ["Group", "Grouped", "grouped"]


class Group(NamedTuple):
    """One group: its labels, coverage and mean loss."""

    key: Any
    labels: int
    coverage: float
    risk: float


class Grouped(NamedTuple):
    """The groups of a view, by what they are made, and which of their numbers to judge.

    `coverage` says whether coverage is what the first risk is about; else it is the mean loss.
    """

    by: str
    groups: list[Group]
    coverage: bool
    goal: float
    delta: float
    noise_floor: float


def grouped(seen: View) -> Grouped | None:
    """What came out by group or day of the week; None where rows have neither."""
    found = keys_of(seen)
    if found is None:
        return None
    by, codes, keys = found
    hits, losses = seen.hits, seen.losses(0)
    controller = seen.trace.controller
    goal = nominal(controller)
    cover = metrics.delta_coverage(np.where(codes < 0, nan, hits), codes, goal)
    judged = (codes >= 0) & ~np.isnan(losses)
    counts = np.bincount(codes[judged], minlength=len(keys))
    totals = np.bincount(codes[judged], weights=losses[judged], minlength=len(keys))
    groups = [
        Group(
            keys[place],
            cover.sizes[place],
            cover.coverage[place],
            float(totals[place] / counts[place]) if counts[place] else nan,
        )
        for place in cover.sizes
        if isinstance(place, int)
    ]
    about_coverage = isinstance(controller.risks[0].loss, Miscoverage | MiscoverageCounter)
    groups.sort(key=lambda group: _rank(group.key))
    return Grouped(
        by,
        groups,
        about_coverage,
        goal if about_coverage else controller.risks[0].level,
        cover.delta,
        cover.noise_floor,
    )


def _rank(key: Any) -> tuple[int, float, str]:
    """Weekdays as in the week, numbers by size, then words."""
    if key in WEEKDAYS:
        return 0, WEEKDAYS.index(key), ""
    if isinstance(key, int | float):
        return 1, float(key), ""
    return 2, 0.0, str(key)
