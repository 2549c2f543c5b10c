"""The last labels of a stream, as plain numbers: a few kilobytes, whatever its sets are."""

from array import array
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from setpoint.controller import Controller
from setpoint.sets import Bands, Fan, Interval
from setpoint.sets.family import size_of

RECENT = 250
"""How many of its last labels a live stream looks back on."""
_HEAD = 6  # lower, upper, size, y, forecast, how many waited; then losses, then ends of bands


class Label(NamedTuple):
    """A label with what was shown of it: NaN where there is no such number.

    `loss` is None where there was nothing to judge, a tuple of several risks. `lower` and `upper`
    are the ends of an interval, `size` how long or large a set was, and `full` whether it was the
    full set. `y` is the label, None for an image.
    """

    y: Any
    loss: Any
    lower: float
    upper: float
    size: float
    full: bool


class Recent:
    """The last labels, oldest first: a ring of floats."""

    __slots__ = ("_labels", "_limit", "_numbers", "_place", "_risks", "_width")

    def __init__(self, risks: int, ends: int = 0, limit: int = RECENT) -> None:
        self._risks, self._width, self._limit = risks, _HEAD + risks + ends, limit
        self._place = 0
        self._numbers, self._labels = array("d"), list[Any]()

    @classmethod
    def of(cls, controller: Controller) -> "Recent":
        """For the streams of a controller."""
        sets = controller.sets
        return cls(len(controller.risks), len(sets.taus) if isinstance(sets, Fan) else 0)

    def add(self, shown: Any, losses: Sequence[float], y: Any, forecast: float, late: int) -> None:
        """Takes in a label; losses are NaN where there was nothing to judge."""
        if type(shown) is Interval and type(y) is float:
            row = array("d", (shown.lower, shown.upper, nan, y, forecast, late, *losses))
        elif type(shown) is Bands:
            head = shown.lower, shown.upper, nan, y, forecast, late
            row = array("d", (*head, *losses, *shown.ends))
        else:
            size = size_of(shown)
            size = -size if getattr(shown, "whole", False) else size  # how a full set is noted
            ends = getattr(shown, "lower", nan), getattr(shown, "upper", nan)
            lower, upper = [end if type(end) is float else nan for end in ends]
            row = array("d", (lower, upper, size, nan, forecast, late, *losses))
            if len(self._labels) < self._limit:
                self._labels.append(y)
            else:
                self._labels[self._place] = y
        at = self._place * self._width
        self._numbers[at : at + self._width] = row
        self._place = (self._place + 1) % self._limit

    def clear(self) -> None:
        """Forgets everything."""
        self._place = 0
        del self._numbers[:], self._labels[:]

    def copy(self) -> "Recent":
        """Another one with the same labels."""
        twin = Recent(self._risks, self._width - _HEAD - self._risks, self._limit)
        twin._place, twin._numbers, twin._labels = self._place, self._numbers[:], self._labels[:]
        return twin

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    def table(self) -> np.ndarray[Any, Any]:
        """A row for each label: lower, upper, size, y, forecast, late, full, losses, ends."""
        rows = np.array(self._numbers).reshape(-1, self._width)
        rows = np.roll(rows, -self._place, axis=0) if len(rows) == self._limit else rows
        ends = np.isnan(rows[:, 2])
        with np.errstate(invalid="ignore"):
            rows[ends, 2] = np.maximum(rows[ends, 1] - rows[ends, 0], 0.0)
        full = (rows[:, 2] < 0.0) | np.isinf(rows[:, 2])
        rows[:, 2] = np.abs(rows[:, 2])
        return np.insert(rows, _HEAD, full, axis=1)

    def __iter__(self) -> Iterator[Label]:
        begin = self._place if len(self._labels) == self._limit else 0
        labels = iter(self._labels[begin:] + self._labels[:begin])
        for lower, upper, size, y, _, _, full, *losses in self.table().tolist():
            each = [None if loss != loss else loss for loss in losses[: self._risks]]
            loss = each[0] if len(each) == 1 else tuple(each)
            yield Label(next(labels) if y != y else y, loss, lower, upper, size, full > 0.0)
