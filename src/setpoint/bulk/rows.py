"""A controller over a tape in plain Python, row by row: whatever its parts are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import nan
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint.bulk.states import columns_of, is_narrow, support_of
from setpoint.bulk.vectors import outward
from setpoint.controller import Controller, State
from setpoint.errors import LabelError, PredictionError
from setpoint.laws import Law, Laws, aim_one, learn_one, prepared, turned
from setpoint.parts import Capability
from setpoint.predictions import Phased, Probabilities
from setpoint.sets import Interval
from setpoint.sets.family import Draws, Learns, Sides, Taped, seasonal
from setpoint.tape import Tape
from setpoint.tape.columns import Column

__all__ = ["Ends", "Holds", "Step", "steps"]

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


def steps(controller: Controller, tape: Tape, states: Iterable[State]) -> Iterator[Step | None]:
    """Every row, stream after stream, and None at the end of each stream.

    `states` has the state each stream begins in; the steps change it. A row comes once its label
    and those of all rows before it are taken in.
    """
    family: Any = controller.sets
    single, split = len(controller.risks) == 1, isinstance(family, Sides)
    learns, phased = isinstance(family, Learns), seasonal(family)
    columns = columns_of(controller, tape)
    narrowed = _Narrowed(support_of(controller)) if is_narrow(controller, columns) else None
    taped = family.taped if isinstance(family, Taped) else family.label
    draws = isinstance(family, Draws) and family.draws
    chances = tape.extras.get("u") if draws else None
    nothing = (nan,) * len(controller.risks)
    (order, offsets), schedule = tape.segments, tape.schedule
    rows = _rows(columns, tape.y, order)
    for number, (state, length) in enumerate(zip(states, np.diff(offsets).tolist(), strict=True)):
        risk, laws = state.risks[0], Laws(controller, state.sets)
        law, sets = laws.each[0], family if state.sets is None else state.sets

        def answered(held: _Held, state: State = state, laws: Laws = laws) -> Step:
            """A row with its label taken in."""
            row, reading, shown, lam, leader, theta, y = held
            widest = max(lam) if split else lam
            if y != y:
                state.missing += 1
                return Step(row, widest, theta, shown, False, nothing)
            try:
                label = taped(y)
            except LabelError as error:
                raise LabelError(f"row {row}: {error}") from None
            law = laws.each[0]
            values: tuple[float | None, ...]
            if single:
                values = (learn_one(law, state.risks[0], state, reading, shown, lam, label),)
            else:
                values = laws.learn(state, reading, shown, lam, leader, label)
            covered = _did_its_duty(law, shown, label, values[0])
            losses = [nan if value is None else value for value in values]
            return Step(row, widest, theta, shown, covered, losses)

        waiting: dict[int, _Held] = {}
        finished: dict[int, Step] = {}
        answers = () if schedule is None else schedule.answers(number, offsets)
        done = told = 0
        for serial, (row, prediction, y) in enumerate(islice(rows, length)):
            if schedule is not None:
                for serial_of in answers[done : schedule.due(number, offsets, serial)]:
                    finished[serial_of] = answered(waiting.pop(serial_of))
                    done += 1
                while told in finished:
                    yield finished.pop(told)
                    told += 1
                if len(waiting) >= state.peak:
                    state.peak = len(waiting) + 1
                    if laws.rules.heeds:
                        laws.heed(state, len(waiting))
            if chances is not None:
                prediction = Probabilities(prediction, u=float(chances[row]))
            if phased:
                prediction = Phased(prediction[:2], prediction[2])
            try:
                reading = sets.read(prediction)
            except PredictionError as error:
                raise PredictionError(f"row {row}: {error}") from None
            if draws:
                reading = sets.draw(reading, serial)
            if learns:
                reading = prepared(law, state, reading)
            theta = [risk.theta for risk in state.risks]
            lam: Any
            lam, leader = (aim_one(law, risk, state.stretch), 0) if single else laws.aim(state)
            shown = sets.at(reading, lam)
            if law.seasonal:
                turned(law, state, reading)
            if narrowed is not None:
                shown = narrowed(shown)
            held = _Held(row, reading, shown, lam, leader, theta, y)
            if schedule is None:
                yield answered(held)
            else:
                waiting[serial] = held
        for serial_of in answers[done:]:
            finished[serial_of] = answered(waiting.pop(serial_of))
        yield from (finished[serial] for serial in sorted(finished))
        yield None


class _Held(NamedTuple):
    """What a row leaves for its label."""

    row: int
    reading: Any
    shown: Any
    lam: Any
    leader: int
    theta: Sequence[float]
    y: float


def _did_its_duty(law: Law, shown: Any, label: Any, loss: float | None) -> bool:
    """Whether a set holds its label; for one that cannot tell, whether its loss is at its level."""
    if isinstance(shown, Holds):
        return bool(shown.contains(label))
    return loss is not None and (law.level - loss if law.grows else loss - law.level) <= 0.0


@runtime_checkable
class Ends(Protocol, metaclass=Capability):
    """A shown set with two ends."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


@runtime_checkable
class Holds(Protocol, metaclass=Capability):
    """A shown set that tells whether it holds a label."""

    def contains(self, y: Any) -> bool: ...


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

    def __init__(self, support: tuple[float, float]) -> None:
        self.low, self.high = support
        self.lowest, self.highest = outward(support)

    def __call__(self, shown: Any) -> Interval:
        with np.errstate(over="ignore"):
            lower, upper = float(np.float32(shown.lower)), float(np.float32(shown.upper))
        return Interval(
            self.lowest if shown.lower <= self.low else lower,
            self.highest if shown.upper >= self.high else upper,
        )
