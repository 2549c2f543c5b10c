"""The watch over arrays: one more pass over the labels of streams, after they are controlled.

It needs no rule of the controller, so that one piece of machine code serves all of them.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from setpoint.bulk.compile import compiled, machine, plain
from setpoint.controller import Controller
from setpoint.correction import Correction
from setpoint.sets.family import Forecasts
from setpoint.watch import NOW, take

Array = np.ndarray[Any, Any]


def _looking(stamp: str) -> Any:
    """The pass as a closure over `stamp`, which makes code of another watch another code."""

    def run(
        z: Any, at: int, streams: Any, bounds: Any, events: Any, opened: Any, lower: Any,
        upper: Any, forecast: Any, y: Any, seen: Any,
    ) -> None:  # fmt: skip
        """Each stream through its answers; without events labels come at once.

        `z` has the states, `at` says where their memories begin, and `opened` how many predictions
        of each stream waited before. Where `seen` has rows, it gets the numbers after each label.
        """
        stamp  # noqa: B018
        for k in range(len(streams)):
            row, others = z[streams[k]], opened[k]
            held = row[at + NOW :]
            now: Any = (
                row[at], row[at + 1], row[at + 2], row[at + 3], row[at + 4],
                row[at + 5], row[at + 6], row[at + 7], row[at + 8], row[at + 9],
            )  # fmt: skip
            for j in range(bounds[k], bounds[k + 1]):
                i = events[j] if len(events) else j
                if len(events):
                    if i >= 0:
                        others += 1.0
                        continue
                    i = ~i
                    others -= 1.0
                low, high, label = lower[i], upper[i], y[i]
                width = high - low
                if (label == label) & (width >= 0.0) & (width < np.inf):
                    need, error = label - 0.5 * (low + high), label - forecast[i]
                    need = need if need > 0.0 else -need
                    error = need if error != error else error if error > 0.0 else -error
                    now = take(now, held, need, error, label, width, others)
                if len(seen):
                    cell = seen[i]
                    for m in range(NOW, len(cell)):
                        cell[m] = held[m - NOW]
            for m in range(NOW):
                row[at + m] = now[m]

    return run


@lru_cache(maxsize=1)
def _fast() -> Any:
    return machine(_looking)


_plain = plain(_looking)
_NONE = np.empty((0, 0))


def look(
    z: Array, at: int, streams: Array, bounds: Array, events: Array, opened: Array, lower: Array,
    upper: Array, forecast: Array, y: Array, seen: Array = _NONE, *, steps: float = 0.0,
) -> None:  # fmt: skip
    """Takes the labels of streams into their memories, which begin at `at` in each row of `z`."""
    if at == z.shape[1]:
        return  # nothing is watched
    run = _fast() if compiled(max(steps, len(bounds) and bounds[-1])) else _plain
    run(z, at, streams, bounds, events, opened, lower, upper, forecast, y, seen)


def forecasts(controller: Controller, rows: Array, bases: Array | None = None) -> Array:
    """The forecast of each row, as the model gave it; of a correction's bases, where they are kept.

    >>> import setpoint as sp
    >>> forecasts(sp.intervals(), np.array([[1.0, 3.0, np.nan], [2.0, 8.0, np.nan]]))
    array([2., 5.])
    """
    reader: Any = controller.reader
    if isinstance(reader, Correction) and bases is None:
        with np.errstate(all="ignore"):
            return np.asarray(0.5 * (rows[:, 0] + rows[:, 1]))
    if not isinstance(reader, Forecasts):
        return np.full(len(rows), np.nan)
    given = rows if bases is None or not isinstance(reader, Correction) else bases
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(reader.forecast(given.T))
