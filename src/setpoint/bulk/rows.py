"""A controller over a tape in plain Python, row by row: whatever its parts are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint.bulk.vectors import outward
from setpoint.controller import (
    Controller,
    State,
    aim,
    aim_each,
    aim_several,
    excess_of,
    laws_of,
    learn,
    learn_each,
    learn_several,
)
from setpoint.errors import InputError
from setpoint.predictions import Probabilities
from setpoint.sets import Interval
from setpoint.tape import Tape
from setpoint.tape.columns import Column

__all__ = ["Step", "columns_of", "is_narrow", "steps"]

_CHUNK = 1 << 14
"""How many rows become Python numbers at once."""


class Step(NamedTuple):
    """What happened in one row; `losses` is NaN where there was nothing to judge."""

    row: int
    lam: float
    theta: Sequence[float]
    shown: Any
    covered: bool
    losses: Sequence[float]


def columns_of(controller: Controller, tape: Tape) -> tuple[Column, ...]:
    """The columns of the predictions in the order in which the family takes them.

    Columns that are called as the family's own are told by their names. Other names tell nothing,
    and such columns are taken by their places.
    """
    wanted: tuple[str, ...] | None = getattr(controller.sets, "columns", None)
    names, given = tape.names, tape.prediction
    if wanted is None:
        return given
    if sorted(names) == sorted(wanted):
        return tuple(given[names.index(name)] for name in wanted)
    point = len(names) == 1 and wanted == ("lower", "upper")
    own = [place for place, name in enumerate(names) if name in wanted]
    fits = point or len(names) == len(wanted)
    if fits and all(not point and names[place] == wanted[place] for place in own):
        return given
    raise InputError(
        f"{type(controller.sets).__name__} needs the columns {', '.join(wanted)}, "
        f"the tape has {', '.join(names)}"
    )


def is_narrow(controller: Controller, columns: Sequence[Column]) -> bool:
    """Whether intervals are shown in float32, as where every number of a prediction is."""
    sets = controller.sets
    intervals = hasattr(sets, "ends") or getattr(sets, "shows", None) is Interval
    return intervals and all(
        isinstance(column, np.ndarray) and column.dtype == np.float32 for column in columns
    )


def steps(controller: Controller, tape: Tape, states: Iterable[State]) -> Iterator[Step | None]:
    """Every row, stream after stream, and None at the end of each stream.

    `states` has the state each stream begins in; the steps change it.
    """
    risks = len(controller.risks)
    family: Any = controller.sets
    combine, single, split = controller.combine, risks == 1, hasattr(family, "sides")
    columns = columns_of(controller, tape)
    narrowed = _Narrowed(family) if is_narrow(controller, columns) else None
    taped = getattr(family, "taped", family.label)
    draws = getattr(family, "draws", False)
    chances = tape.extras.get("u") if draws else None
    nothing = (nan,) * risks
    order, offsets = tape.segments
    rows = _rows(columns, tape.y, order)
    for state, length in zip(states, np.diff(offsets).tolist(), strict=True):
        own, laws = state.risks[0], laws_of(controller, state)
        sets = family if state.sets is None else state.sets
        for serial, (row, prediction, y) in enumerate(islice(rows, length)):
            if chances is not None:
                prediction = Probabilities(prediction, u=float(chances[row]))
            reading = sets.read(prediction)
            if draws:
                reading = sets.draw(reading, serial)
            theta = [each.theta for each in state.risks]
            lam: Any
            if single:
                lam, leader = aim(laws[0], own, state.stretch), 0
            elif split:
                lam, leader = aim_each(laws, state), 0
            else:
                lam, leader = aim_several(laws, combine, state)
            shown = sets.at(reading, lam)
            if narrowed is not None:
                shown = narrowed(shown)
            widest = max(lam) if split else lam
            if y != y:
                state.missing += 1
                yield Step(row, widest, theta, shown, False, nothing)
                continue
            label = taped(y)
            values: Any
            if single:
                values = (learn(laws[0], own, state, reading, shown, lam, label),)
            elif split:
                values = learn_each(laws, sets, state, reading, shown, label)
            else:
                values = learn_several(laws, combine, state, reading, shown, lam, leader, label)
            if hasattr(shown, "contains"):
                covered = bool(shown.contains(label))
            else:  # the set did its duty if its loss is at its level
                covered = values[0] is not None and excess_of(laws[0], values[0]) <= 0.0
            losses = [nan if value is None else value for value in values]
            yield Step(row, widest, theta, shown, covered, losses)
        yield None


def _rows(columns: Sequence[Column], y: Any, order: Any) -> Iterator[tuple[int, Any, float]]:
    """The number, the prediction and the label of each row, as a live stream is given them."""
    for start in range(0, len(y), _CHUNK):
        part: Any = slice(start, start + _CHUNK) if order is None else order[start : start + _CHUNK]
        places = range(start, len(y)) if order is None else part.tolist()
        held = [
            column[part].tolist() if isinstance(column, np.ndarray) else column[part]
            for column in columns
        ]
        predictions = held[0] if len(held) == 1 else zip(*held, strict=True)
        yield from zip(places, predictions, y[part].tolist(), strict=False)


class _Narrowed:
    """Intervals as they are shown where the data are float32: the support is rounded outwards."""

    def __init__(self, sets: Any) -> None:
        support: tuple[float, float] = getattr(sets, "support", (-inf, inf))
        self.low, self.high = support
        self.lowest, self.highest = outward((self.low, self.high))

    def __call__(self, shown: Any) -> Interval:
        with np.errstate(over="ignore"):
            lower, upper = float(np.float32(shown.lower)), float(np.float32(shown.upper))
        return Interval(
            self.lowest if shown.lower <= self.low else lower,
            self.highest if shown.upper >= self.high else upper,
        )
