"""The watch over arrays: one more pass over the labels of streams, after they are controlled.

It needs no rule of the controller, so that one piece of machine code serves all of them.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from setpoint.bulk.compile import compiled, machine, plain
from setpoint.bulk.labels import LabelSets, unknown
from setpoint.bulk.layout import Layout
from setpoint.controller import Controller
from setpoint.correction import Correction
from setpoint.correction.labels import LEAST
from setpoint.sets.family import Forecasts
from setpoint.watch import MOST, NOW, take

Array = np.ndarray[Any, Any]


class Costs(NamedTuple):
    """What each label needed of its set and of the forecast, itself, and how large the set was."""

    needs: Array
    errors: Array
    values: Array
    sizes: Array


def _looking(stamp: str) -> Any:
    """The pass as a closure over `stamp`, which makes code of another watch another code."""

    def run(
        z: Any, at: int, streams: Any, bounds: Any, events: Any, opened: Any, needs: Any,
        errors: Any, values: Any, sizes: Any, seen: Any,
    ) -> None:  # fmt: skip
        """Each stream through its answers; without events labels come at once.

        `z` has the states, `at` says where their memories begin, and `opened` how many predictions
        of each stream waited before. Where `seen` has rows, it gets the memory after each label.
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
                size, need = sizes[i], needs[i]
                if (need == need) & (size >= 0.0) & (size < MOST):
                    now = take(now, held, need, errors[i], values[i], size, others)
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
    z: Array, at: int, streams: Array, bounds: Array, events: Array, opened: Array, costs: Costs,
    seen: Array = _NONE, *, steps: float = 0.0,
) -> None:  # fmt: skip
    """Takes the labels of streams into their memories, which begin at `at` in each row of `z`."""
    run = _fast() if compiled(max(steps, len(bounds) and bounds[-1])) else _plain
    run(z, at, streams, bounds, events, opened, *costs, seen)


def given(
    controller: Controller, layout: Layout, rows: Array, bases: Array | None = None
) -> Array | None:
    """What the model gave: the forecast of each row, or how likely it holds each class.

    From rows as they came, or from the bases of a correction where these are kept.

    >>> import setpoint as sp
    >>> from setpoint.bulk.layout import layout_of
    >>> controller = sp.intervals()
    >>> rows = np.array([[1.0, 3.0, np.nan], [2.0, 8.0, np.nan]])
    >>> given(controller, layout_of(controller), rows)
    array([2., 5.])
    """
    reader: Any = controller.reader
    if not layout.watch or (layout.classes is not None and controller.correction is None):
        return None
    if layout.classes is not None:
        logs = 2 * layout.classes + 1  # in a base: see `correction.labels.predict`
        return np.maximum(rows, LEAST) if bases is None else bases[:, logs : logs + layout.classes]
    if not isinstance(reader, Forecasts):
        return None
    with np.errstate(all="ignore"):
        if isinstance(reader, Correction) and bases is None:
            other = 1 if reader.columns[:2] == ("lower", "upper") else 0
            return np.asarray(0.5 * (rows[:, 0] + rows[:, other]))
        return _forecasts(reader, bases if isinstance(reader, Correction) else rows)


def _forecasts(reader: Forecasts, rows: Any) -> Array:
    """The forecast of each row: of all at once, or one by one where the method takes one only."""
    try:
        found = np.ascontiguousarray(reader.forecast(rows.T), float)
    except (TypeError, ValueError):  # as float() and `if` say of a column
        found = np.empty(0)
    if found.shape == rows.shape[:1]:
        return found
    return np.array([reader.forecast(row) for row in map(tuple, rows.tolist())], float)


def costs_of(
    controller: Controller, ends: tuple[Array, Array], lam: Array, values: Array | None,
    model: Array | None, y: Array,
) -> Costs:  # fmt: skip
    """What labels cost, from the ends of their sets; of label sets from `values` and λ."""
    with np.errstate(all="ignore"):
        if values is None:
            lower, upper = ends
            needs = np.abs(y - 0.5 * (lower + upper))
            errors = needs if model is None else np.abs(y - model)
            return Costs(needs, np.where(errors == errors, errors, needs), y, upper - lower)
        known, last = ~unknown(y), values.shape[1] - 1
        true = y > 0.0 if y.ndim > 1 else np.arange(last) == y[:, None]
        unnamed = known & (y >= last) if y.ndim == 1 else np.zeros(len(y), bool)
        worst = np.where(true, values[:, :-1], -np.inf).max(axis=1, initial=-np.inf)
        worst = np.where(unnamed, values[:, -1], worst)
        count = true.sum(axis=1) + unnamed
        needs = _before(values[:, :-1] <= worst[:, None], count)
        errors = needs
        if model is not None:
            own = np.where(true, model, np.inf).min(axis=1, initial=np.inf)
            errors = _before(model >= np.where(unnamed, -np.inf, own)[:, None], count)
        sizes = LabelSets(controller.sets, values, lam).sizes.astype(np.float64)
        return Costs(np.where(known, needs, np.nan), errors, np.zeros(len(y)), sizes)


def _before(among: Array, true: Array) -> Array:
    """How many wrong classes come before the last true one, and a tenth: `Threshold.needs`."""
    return np.asarray(0.1 + np.maximum(np.count_nonzero(among, axis=1) - true, 0))
