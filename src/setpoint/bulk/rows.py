"""A controller over a tape in plain Python, row by row: whatever its parts are."""

from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint._rules import has_several, support_of
from setpoint.bulk.groups import Membership
from setpoint.bulk.labels import true_labels
from setpoint.bulk.layout import outward
from setpoint.bulk.states import Begin, columns_of, is_narrow
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.errors import LabelError, PredictionError
from setpoint.losses import declaration
from setpoint.parts import Capability
from setpoint.plan import Plan, plan
from setpoint.predictions import Probabilities, Row
from setpoint.sets import Interval
from setpoint.sets.family import Columns, Taped
from setpoint.state import Id, State
from setpoint.tape import Tape
from setpoint.tape.columns import Column
from setpoint.tape.schedule import steady

_CHUNK = 1 << 14
"""How many rows become Python numbers at once."""


class _Held(NamedTuple):
    """What a row leaves for its label."""

    row: int
    receipt: tuple[Any, ...]
    y: Any


def by_rows(
    controller: Controller, tape: Tape, begin: Begin, groups: Membership | None = None
) -> Trace:
    """A trace by steps in plain Python."""
    columns, made, family = columns_of(controller, tape), plan(controller), controller.sets
    read = _reader(controller, made, tape)
    narrow, support = is_narrow(controller, columns), support_of(controller)
    several = has_several(family)
    truth = true_labels(controller, tape) if several else tape.y
    label_of = family.taped if isinstance(family, Taped) else family.label
    (order, offsets), schedule, count = tape.segments, tape.schedule, len(tape)
    if schedule is None:
        schedule = steady(np.zeros(len(offsets) - 1, np.int64), offsets)
    events, rows = schedule.events(offsets), _rows(columns, truth, order)
    lower, upper, lams = (np.full(count, nan) for _ in range(3))
    theta, losses = (np.full((len(controller.risks), count), nan) for _ in range(2))
    covered, sets_shown = np.zeros(count, bool), [None] * count
    states = list(begin)
    for state, first, last in zip(states, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        sets: Any = family if state.sets is None else state.sets
        waiting: dict[int, _Held] = {}
        for event in events[2 * first : 2 * last].tolist():
            if event >= 0:
                row, prediction, y = next(rows)
                theta[:, row] = [risk[0] for risk in state.position[0]]
                names = None if groups is None else groups.of(row)
                reading, others = read(row, prediction), len(waiting)
                receipt = shown_to(made, state, sets, reading, event - first, others, names)
                waiting[event] = _Held(row, receipt, y)
                lam = receipt[3]
                lams[row] = max(lam) if isinstance(lam, tuple) else lam
                continue
            row, (_, reading, shown, lam, leader, habits, named, _), y = waiting.pop(~event)
            shown = _narrowed(shown, *support) if narrow else shown
            sets_shown[row] = shown
            if isinstance(shown, Ends):
                lower[row], upper[row] = shown.lower, shown.upper
            if y != y or (isinstance(y, list) and y[-1] != y[-1]):
                state.missing += 1
                state.position = made.give_up(state.position, lam, named, state.groups)
                continue
            try:
                label = label_of(np.array(y) if several else y)
            except LabelError as error:
                raise LabelError(f"row {row}: {error}") from None
            losses[:, row] = values = made.take_in(
                state, reading, shown, label, lam, leader, habits, named,
                others=float(len(waiting)),
            )  # fmt: skip
            covered[row] = _in_order(controller, shown, label, values[0])
    ends_type = np.float32 if narrow else np.float64
    intervals = all(isinstance(shown, Ends) for shown in sets_shown)
    return Trace(
        controller, tape, lower.astype(ends_type), upper.astype(ends_type),
        None if intervals else tuple(sets_shown), lams, covered, theta, losses,
        dict(zip(tape.streams, states, strict=True)),
    )  # fmt: skip


def shown_to(
    made: Plan, state: State, sets: Any, reading: Any, name: Id, others: int,
    groups: tuple[Id, ...] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The receipt of a prediction, beside which others wait; the state moves."""
    state.position, state.memory, receipt = made.ask(
        state, sets, reading, name, others, state.position, groups, state.groups
    )
    state.peak = max(state.peak, others + 1)
    return receipt


def _reader(controller: Controller, made: Plan, tape: Tape) -> Callable[[int, Any], Any]:
    """Reads the prediction of a row as a live stream would be given it."""
    reader = controller.reader
    names = (reader.columns if isinstance(reader, Columns) else None) or ()
    sound = made.rules.sound if "phase" in names else None
    chances = tape.extras.get("u") if made.draws else None

    def reading(row: int, prediction: Any) -> Any:
        if chances is not None:
            prediction = Probabilities(prediction, u=float(chances[row]))
        if sound is not None and isinstance(prediction, tuple):  # arranged as rows are read
            if sound(prediction):
                return prediction
            prediction = Row(prediction[:2], prediction[2], prediction[3:])
        try:
            return made.read(prediction)
        except PredictionError as error:
            raise PredictionError(f"row {row}: {error}") from None

    return reading


def _in_order(controller: Controller, shown: Any, label: Any, loss: float) -> bool:
    """Whether a set holds its label; for one that cannot tell, if its loss is at level."""
    if isinstance(shown, Holds):
        return bool(shown.contains(label))
    risk = controller.risks[0]
    excess = loss - risk.level
    return loss == loss and (-excess if declaration(risk.loss).grows else excess) <= 0.0


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


def _rows(columns: Sequence[Column], y: Any, order: Any) -> Iterator[tuple[int, Any, Any]]:
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


def _narrowed(shown: Any, low: float, high: float) -> Interval:
    """An interval where the data are float32: the support is rounded outwards."""
    lowest, highest = outward((low, high))
    with np.errstate(over="ignore"):
        lower, upper = float(np.float32(shown.lower)), float(np.float32(shown.upper))
    return Interval(
        lowest if shown.lower <= low else lower, highest if shown.upper >= high else upper
    )
