"""A controller over a tape in plain Python, row by row: whatever its parts are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import nan
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint._rules import has_several, support_of
from setpoint.bulk.groups import Membership
from setpoint.bulk.labels import true_labels
from setpoint.bulk.layout import outward
from setpoint.bulk.states import columns_of, is_narrow
from setpoint.controller import Controller
from setpoint.errors import LabelError, PredictionError
from setpoint.losses import declaration
from setpoint.parts import Capability
from setpoint.plan import plan
from setpoint.predictions import Probabilities, Row
from setpoint.sets import Interval
from setpoint.sets.family import Columns, Taped
from setpoint.state import State
from setpoint.tape import Tape
from setpoint.tape.columns import Column

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


def steps(
    controller: Controller, tape: Tape, states: Iterable[State], groups: Membership | None = None
) -> Iterator[Step | None]:
    """Every row, stream after stream, and None at the end of each stream.

    `states` has the state each stream begins in; the steps change it. A row comes once its label
    and those of all rows before it are taken in.
    """
    columns, made, reader = columns_of(controller, tape), plan(controller), controller.reader
    names = (reader.columns if isinstance(reader, Columns) else None) or ()
    sound = made.rules.sound if "phase" in names else None
    read = _reader(made.read, sound, tape.extras.get("u") if made.draws else None)
    narrow = is_narrow(controller, columns)
    (order, offsets), schedule = tape.segments, tape.schedule
    events = None if schedule is None else schedule.events(offsets)
    truth = true_labels(controller, tape) if has_several(controller.sets) else tape.y
    rows = _rows(columns, truth, order)
    for state, first, last in zip(states, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        run = _Run(controller, state, narrow, groups)
        if events is None:
            for serial in range(last - first):
                row, prediction, y = next(rows)
                yield run.answer(run.ask(row, read(row, prediction), y, serial, 0), 0)
        else:
            waiting: dict[int, _Held] = {}
            finished: dict[int, Step] = {}
            done = 0
            for event in events[2 * first : 2 * last].tolist():
                if event >= 0:
                    row, prediction, y = next(rows)
                    reading, serial = read(row, prediction), event - first
                    waiting[serial] = run.ask(row, reading, y, serial, len(waiting))
                    continue
                held = waiting.pop(~event - first)
                finished[~event - first] = run.answer(held, len(waiting))
                while done in finished:
                    yield finished.pop(done)
                    done += 1
        yield None


def _reader(read: Any, sound: Any, chances: Any) -> Callable[[int, Any], Any]:
    """Reads the prediction of a row as a live stream would be given it."""

    def reading(row: int, prediction: Any) -> Any:
        if chances is not None:
            prediction = Probabilities(prediction, u=float(chances[row]))
        if sound is not None and isinstance(prediction, tuple):  # arranged as rows are read
            if sound(prediction):
                return prediction
            prediction = Row(prediction[:2], prediction[2], prediction[3:])
        try:
            return read(prediction)
        except PredictionError as error:
            raise PredictionError(f"row {row}: {error}") from None

    return reading


class _Run:
    """One stream of a tape, asked and answered as a live one is."""

    def __init__(
        self, controller: Controller, state: State, narrow: bool, groups: Membership | None
    ) -> None:
        self.groups = groups
        family: Any = controller.sets
        self.plan, self.state, self.risk = plan(controller), state, controller.risks[0]
        self.sets = family if state.sets is None else state.sets
        self.narrowed = _Narrowed(support_of(controller)) if narrow else None
        self.label = family.taped if isinstance(family, Taped) else family.label
        if has_several(family):
            self.label = lambda y: family.label(np.array(y))
        self.nothing = (nan,) * len(controller.risks)

    def ask(self, row: int, reading: Any, y: Any, serial: int, others: int) -> "_Held":
        """A row with the set that is shown for it."""
        state, names = self.state, None if self.groups is None else self.groups.of(row)
        theta = [risk[0] for risk in state.position[0]]
        state.position, state.memory, receipt = self.plan.ask(
            state, self.sets, reading, serial, others, state.position, names, state.groups
        )
        state.peak = max(state.peak, others + 1)
        _, reading, shown, lam, leader, habits, named, _ = receipt
        if self.narrowed is not None:
            shown = self.narrowed(shown)
        return _Held(row, reading, shown, lam, leader, habits, named, theta, y)

    def answer(self, held: "_Held", others: int) -> Step:
        """A row with its label taken in, while others wait for theirs."""
        row, reading, shown, lam, leader, habits, named, theta, y = held
        widest = max(lam) if self.plan.rules.members > 1 else lam
        if y != y or (isinstance(y, list) and y[-1] != y[-1]):
            self.state.missing += 1
            self.state.position = self.plan.give_up(
                self.state.position, lam, named, self.state.groups
            )
            return Step(row, widest, theta, shown, False, self.nothing)
        try:
            label = self.label(y)
        except LabelError as error:
            raise LabelError(f"row {row}: {error}") from None
        values = self.plan.take_in(
            self.state, reading, shown, label, lam, leader, habits, named, others=float(others)
        )
        return Step(row, widest, theta, shown, self._in_order(shown, label, values[0]), values)

    def _in_order(self, shown: Any, label: Any, loss: float) -> bool:
        """Whether a set holds its label; for one that cannot tell, if its loss is at level."""
        if isinstance(shown, Holds):
            return bool(shown.contains(label))
        excess = loss - self.risk.level
        return loss == loss and (-excess if declaration(self.risk.loss).grows else excess) <= 0.0


class _Held(NamedTuple):
    """What a row leaves for its label."""

    row: int
    reading: Any
    shown: Any
    lam: Any
    leader: int
    habits: tuple[float, ...]
    named: tuple[Any, ...]
    theta: Sequence[float]
    y: Any


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
