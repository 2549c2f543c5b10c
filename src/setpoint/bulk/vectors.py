"""A controller and its states as plain vectors, on which bulk loops run.

Controllers made of the same scalar rules share a layout, and so a loop: their numbers differ, the
text of the loop does not.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from math import inf
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from setpoint.controller import Controller, State, cells_of, memory_of
from setpoint.errors import InputError
from setpoint.laws import numbers_of, rules_of
from setpoint.losses import Counts
from setpoint.parts import trusted
from setpoint.recursion import Numbers, Position, Rules
from setpoint.sets.family import Learns, Scalar, seasonal
from setpoint.tape.schedule import Schedule

__all__ = [
    "PEAK", "REST", "Counters", "Layout", "functions", "layout_of", "outward", "pack_rest",
    "params_of", "rest_fields", "scalar", "unpack_rest", "waiting",
]  # fmt: skip


def scalar(controller: Controller) -> bool:
    """Whether a controller is made of scalar rules only, and so runs in bulk loops."""
    sets, stretch = controller.sets, controller.stretch
    if not isinstance(sets, Scalar):
        return False
    rules = [sets.ends, sets.score, sets.sound, stretch.phi, controller.combine.rule]
    if isinstance(sets, Learns):
        rules += [sets.prepare, sets.observe]
    if seasonal(sets):
        rules += [sets.phase, sets.turn]
    for risk in controller.risks:
        if risk.step is None or not isinstance(risk.loss, Counts):
            return False
        rules += [risk.step.rule, risk.loss.rule]
    return all(isinstance(rule, FunctionType) for rule in rules) and (
        stretch.move is None or isinstance(stretch.move, FunctionType)
    )


def functions(rules: Rules) -> Iterator[Any]:
    """The rules that are functions, however they are nested."""
    options = (rules.phi, rules.merge, rules.ends, rules.score, rules.sound)
    yield from (*options, *rules.step, *(rules.judge or ()))
    learning = (rules.prepare, rules.observe, rules.phase, rules.turn)
    yield from (rule for rule in (rules.move, *learning) if rule is not None)


class Counters(NamedTuple):
    """What a bulk loop counts of a stream."""

    judged: Any
    full: Any
    empty: Any
    torn: Any
    missing: Any


class Layout(NamedTuple):
    """Where the numbers of controllers and states lie, for all made of the same rules.

    `numbers`, `position` and `counters` have the shape of what they are named for, with places
    instead of values. `doubted` says which losses are a user's own, whose promises are checked.
    `columns` names the numbers of a prediction; `readings` counts those of its reading that a
    label will ask for. `cells` is the place of a season's first cell, behind all else: that of a
    phase has as many numbers as `cell` counts, and there are `phases` of them.
    """

    rules: Rules
    numbers: Any
    position: Any
    counters: Counters
    doubted: tuple[bool, ...]
    columns: tuple[str, ...]
    readings: range
    cells: int = 0
    cell: range = range(0)
    phases: int = 0

    @property
    def risks(self) -> int:
        """How many risks there are."""
        return len(self.rules.risks)

    @property
    def fields(self) -> tuple[str, ...]:
        """The name of each number of a state: theta0, step0_0, stretch_0, judged."""
        places = zip(Position._fields, self.position, strict=True)
        cells = (f"cell{phase}_{k}" for phase in range(self.phases) for k in self.cell)
        first = (n for name, place in places for n in _names(name, place))
        return (*first, *Counters._fields, *cells)

    def begin(self, controller: Controller) -> list[float]:
        """The numbers of the state before the first step."""
        cells = (number for cell in cells_of(controller.sets) for number in cell)
        return [*_flat(controller.position), *(0.0 for _ in self.counters), *cells]

    def pack(self, state: State) -> list[float]:
        """The numbers of a state."""
        counts = [state.full, state.empty, state.torn, state.missing]
        cells = (number for cell in state.cells for number in cell)
        return [*_flat(state.position), state.risks[0].judged, *counts, *cells]

    def unpack(self, vector: Iterable[float], into: State) -> State:
        """Puts the numbers of `vector` into a state."""
        values = [float(value) for value in vector]
        into.move(_filled(self.position, values))
        counts = Counters(*(int(values[place]) for place in self.counters))
        into.full, into.empty = counts.full, counts.empty
        into.torn, into.missing = counts.torn, counts.missing
        for risk in into.risks:
            risk.judged = counts.judged
        width = len(self.cell)
        starts = (self.cells + width * phase for phase in range(self.phases))
        into.cells = [tuple(values[start : start + width]) for start in starts]
        return into


REST = ("dropped", "expired", "inherited", "peak", "fresh")
"""The counts of a state that no step of a bulk loop changes."""
PEAK = REST.index("peak") - len(REST)
"""Where the most that waited at once lies in the numbers of `pack_rest`."""


def rest_fields(risks: int) -> tuple[str, ...]:
    """The name of each number of `pack_rest`: first0, unjudged0, dropped."""
    return (*(f"{name}{i}" for i in range(risks) for name in ("first", "unjudged")), *REST)


def pack_rest(state: State) -> list[float]:
    """The numbers of a state that no step of a bulk loop changes."""
    firsts = [value for risk in state.risks for value in (risk.first, risk.unjudged)]
    return [*firsts, *(getattr(state, name) for name in REST)]


def unpack_rest(vector: Iterable[float], into: State) -> State:
    """Puts the numbers of `pack_rest` into a state."""
    values = iter(float(value) for value in vector)
    for risk in into.risks:
        risk.first, risk.unjudged = next(values), int(next(values))
    for name in REST:
        setattr(into, name, int(next(values)))
    into.fresh = bool(into.fresh)
    return into


def layout_of(controller: Controller) -> Layout:
    """The layout a controller shares with all that are made of the same rules."""
    if not scalar(controller):
        raise InputError(f"{controller!r} has a part that is not a scalar rule")
    kind = _kind(controller)
    layout = _layouts.get(kind)
    if layout is None:
        while len(_layouts) >= _MOST:
            _layouts.pop(next(iter(_layouts)), None)
        layout = _layouts[kind] = _layout(controller)
    return layout


_layouts: dict[Any, Layout] = {}
_MOST = 256
"""How many layouts are remembered; the oldest is forgotten."""


def _kind(controller: Controller) -> tuple[Any, ...]:
    """What controllers of one layout share: their rules, and how many numbers these have."""
    sets: Any = controller.sets
    stretch, combine = controller.stretch, controller.combine
    risks: list[tuple[Any, Any]] = [(risk.loss, risk.step) for risk in controller.risks]
    return (
        (type(sets), sets.ends, sets.score, sets.sound, tuple(sets.columns)),
        (sets.support == (-inf, inf), len(memory_of(sets))),
        (sets.prepare, sets.observe, len(sets.params)) if isinstance(sets, Learns) else (),
        (sets.phase, sets.turn, len(sets.cell), sets.period) if seasonal(sets) else (),
        (stretch.phi, stretch.move, len(stretch.params), len(stretch.init())),
        (combine.rule, combine.empty_if, combine.anti_windup is None),
        *(
            (
                *(type(loss), loss.rule, trusted(loss), len(loss.params), len(memory_of(loss))),
                *(type(step), step.rule, len(step.params), len(memory_of(step))),
            )
            for loss, step in risks
        ),
    )


def _layout(controller: Controller) -> Layout:
    sets: Any = controller.sets
    rules, places, state = rules_of(controller), count(), count()
    reading, cells = (0.0,) * len(sets.columns), cells_of(sets)
    if isinstance(sets, Learns):
        reading = sets.prepare(sets.params, sets.init() + (cells[0] if cells else ()), reading)
    return Layout(
        rules,
        _numbered(numbers_of(controller), places),
        _numbered(controller.position, state),
        Counters(*(next(state) for _ in Counters._fields)),
        tuple(not trusted(risk.loss) for risk in controller.risks),
        tuple(sets.columns),
        range(len(reading) if rules.scored or rules.observe is not None else 0),
        next(state),
        range(len(cells[0]) if cells else 0),
        len(cells),
    )


def params_of(controller: Controller) -> np.ndarray:
    """The numbers of a controller, as a column."""
    numbers = numbers_of(controller)
    numbers = numbers._replace(outward=outward(numbers.support))
    return np.array(_flat(numbers))[:, None]


def waiting(layout: Layout, schedule: Schedule | None) -> tuple[np.ndarray, ...]:
    """What loops take to know when labels come: delays, order, upto, and the ring of what waits."""
    width = 3 + len(layout.readings)
    if schedule is None:
        none = np.empty(0, np.int64)
        return none, none, none, np.empty((1, width))
    return (*schedule[:3], np.empty((schedule.slots, width)))


@lru_cache(maxsize=64)
def outward(support: tuple[float, float]) -> tuple[float, float]:
    """The smallest interval with float32 ends that holds the support.

    >>> outward((0.1, 2.0)) == (float(np.nextafter(np.float32(0.1), np.float32(0))), 2.0)
    True
    """
    with np.errstate(over="ignore"):
        low, high = (np.float32(end) for end in support)
        if float(low) > support[0]:
            low = np.nextafter(low, np.float32(-inf))
        if float(high) < support[1]:
            high = np.nextafter(high, np.float32(inf))
    return float(low), float(high)


def _flat(value: tuple[Any, ...]) -> list[float]:
    """The numbers of nested tuples in order."""
    numbers: list[float] = []
    for inner in value:
        if isinstance(inner, tuple):
            numbers += _flat(inner)
        else:
            numbers.append(inner)
    return numbers


def _numbered(value: Any, places: Iterator[int]) -> Any:
    """Nested tuples of the same shape, with places instead of numbers."""
    if not isinstance(value, tuple):
        return next(places)
    inner = [_numbered(part, places) for part in value]
    return type(value)(*inner) if isinstance(value, Numbers | Position) else tuple(inner)


def _filled(places: Any, values: list[float]) -> Any:
    """Nested tuples of the same shape, with numbers instead of places."""
    if not isinstance(places, tuple):
        return values[places]
    inner = [_filled(part, values) for part in places]
    return Position(*inner) if isinstance(places, Position) else tuple(inner)


def _names(name: str, place: Any) -> Iterator[str]:
    """The names of the numbers in one field of a position."""
    shared = name in ("stretch", "family")
    for i, inner in enumerate(place):
        if shared:
            yield f"{name}_{i}"
        elif isinstance(inner, tuple):
            yield from (f"{name}{i}_{j}" for j in range(len(inner)))
        else:
            yield f"{name}{i}"
