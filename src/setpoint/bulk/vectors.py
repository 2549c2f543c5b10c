"""The states of many streams, one row each, and what moves them: how a `Fleet` computes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from setpoint.bulk import arrays
from setpoint.bulk.arrays import Array, Intervals, fixed
from setpoint.bulk.compile import SMALL, loops
from setpoint.bulk.groups import NO_GROUPS, Active, Pairs, check_risks
from setpoint.bulk.labels import (
    check_classes,
    check_places,
    class_rows,
    layout_at,
    most_classes,
    widened,
)
from setpoint.bulk.layout import EVERY_ROW, OPEN, Annexes, layout_of, params_of
from setpoint.bulk.loops import Loops
from setpoint.bulk.replay import Events, check_bases, joint, ran
from setpoint.bulk.states import States, first_unsound, refusal, rows_of
from setpoint.bulk.watching import costs_of, given, look
from setpoint.controller import Controller, matching
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.receipts import Batch
from setpoint.state import Id, State
from setpoint.tape.schedule import Schedule, steady

_TOGETHER = 1 << 11
"""How many streams of a batch move at once, so that their states stay in a cache."""
_CELLS = 1 << 14
"""How many cells of a time-major array are turned at once, so that they stay in the cache."""

Name = Callable[[int], str]
"""What a message calls the stream in a place of a call."""


class Vectors:
    """The states of streams under one controller: the rows of `array`, and their annexes."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.layout = layout_of(controller)
        self.params, self.stage = params_of(controller)
        self.array = np.empty((0, self.layout.size))
        self.annexes = Annexes(0, self.layout.annex)
        self.steps = 0
        self._everyone = fixed(np.arange(0))

    def __len__(self) -> int:
        return len(self.array)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "layout": self.layout.classes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.layout = layout_of(self.controller, state["layout"])

    @property
    def everyone(self) -> Array:
        """The rows of all streams."""
        if len(self._everyone) != len(self):
            self._everyone = fixed(np.arange(len(self)))
        return self._everyone

    # Streams come

    def make_room(self, classes: int | None) -> None:
        """Gives every stream room for more classes."""
        if classes is not None and classes > (self.layout.classes or 0):
            self.layout = layout_of(self.controller, classes)
            self.array = widened(self.array, self.layout)

    def add(self, new: list[Id], states: Sequence[State] | States | None) -> dict[Id, Any]:
        """Adds streams at the end; returns the groups that they bring with them."""
        groups: dict[Id, Any] = {}
        annexes = Annexes(len(new), self.layout.annex)
        if isinstance(states, States):
            added, annexes = states.packed(self.controller, new)
            self.make_room(layout_at(self.controller, added.shape[1]).classes)
            added = widened(added, self.layout)
            if states.groups is not None:
                groups = {id: states[id].groups for id in new}
        elif states is None:
            first = self.layout.pack(self.controller.init())
            added = np.repeat(np.array([first]), len(new), axis=0)
            annexes.begin(self.layout.born(added))
        else:
            given = [matching(self.controller, state) for state in states]
            if len(given) != len(new):
                raise InputError(f"got {len(given)} states for {len(new)} streams")
            if self.layout.classes is not None:
                self.make_room(most_classes(self.controller, given))
            added = np.array([self.layout.pack(state) for state in given])
            groups = {id: state.groups for id, state in zip(new, given, strict=True)}
            for place, state in enumerate(given):
                annexes.put(place, state.annex)
        added = added.reshape(-1, self.layout.size).copy()
        self.layout.give_up_all(added)
        thetas = added[:, self.layout.places("theta")]
        if not np.isfinite(thetas).all():
            raise InputError(f"θ must be finite, got {thetas[~np.isfinite(thetas)][0]}")
        self.array = np.concatenate([self.array, added])
        self.annexes = self.annexes.joined(annexes)
        return groups

    def keep(self, rows: Array) -> None:
        """Forgets all other streams."""
        self.array, self.annexes = self.array[rows], self.annexes.taken(rows)

    def states(self, ids: Sequence[Id], rows: Array, groups: Pairs | None = None) -> States:
        """The states of some streams, by ids; what they await is given up."""
        left = self.array[rows]
        self.layout.give_up_all(left)
        return States(self.controller, ids, left, self.annexes.taken(rows), groups)

    # What comes from outside

    def columns(
        self, prediction: Any, features: Mapping[str, Any] | None, shape: tuple[int, ...]
    ) -> tuple[Array, ...]:
        """The columns of a prediction; of label sets one array with the classes last."""
        if self.layout.classes is None:
            reader = self.controller.reader
            return arrays.prediction_columns(prediction, features, reader, shape[-1], len(shape))
        p = class_rows(self.controller, prediction, shape)
        if not self.layout.classes:
            self.make_room(p.shape[-1])
        if p.shape[-1] != self.layout.classes:
            raise PredictionError(
                f"the fleet has predictions of {self.layout.classes} classes, got {p.shape[-1]}"
            )
        return (p,)

    def read(self, columns: tuple[Array, ...], name: Name) -> Array:
        """The predictions of some streams as rows, every one of them sound."""
        if self.layout.classes is None:
            rows = rows_of(columns)
            place = first_unsound(self.layout, rows)
            if place is not None:
                wrong = refusal(self.controller, columns, place)
                raise PredictionError(f"{wrong} for {name(place)}")
            return rows
        sets: Any = self.controller.sets
        p = check_classes(self.controller, columns[0], name)
        return p if self.layout.base else sets.by_class(p)

    def check_labels(self, labels: Array, name: Name) -> None:
        """Raises the error of the first number that is no label."""
        if self.layout.classes is not None:
            check_places(self.controller, labels, name)
            return
        low, high = self.controller.sets.support  # type: ignore[attr-defined]
        bad = np.isinf(labels) | (labels < low) | (labels > high)
        if bad.any():
            place = int(bad.argmax())
            raise LabelError(
                f"a label must be finite and lie in [{low}, {high}], got {labels[place]} "
                f"for {name(place)}"
            )

    # What moves

    @contextmanager
    def undone(self, rows: Array) -> Iterator[None]:
        """Takes back how streams moved if an error follows, before anything was learnt."""
        part, head = slice(None) if self._are_all(rows) else rows, self.layout.watch_at
        before = self.array[part, :head].copy()
        try:
            yield
        except BaseException:
            self.array[part, :head] = before
            raise

    def move(
        self, held: Batch, places: Array, y: Array, losses: Array, narrow: bool, risks: Array,
        name: Name,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Moves streams by questions or answers, some at a time, so that they stay in a cache.

        `places` are those of the batch, or their complements where its labels are taken in. Returns
        the rows of `risks` that move, those of the groups of these predictions, with their risks.
        """
        layout, made = self.layout, self._loops(len(places))
        asks = bool(len(places) == 0 or places[0] >= 0)
        asked = places if asks else ~places
        named, active = held.which[asked], NO_GROUPS
        touched = np.unique(named[named >= 0])
        moved = risks[touched]
        if len(touched):
            which = np.where(held.which >= 0, np.searchsorted(touched, held.which), -1)
            active = Active.of(self.controller, moved, which)._replace(habits=held.group_habit)
        unused = np.empty((len(layout.risks), len(held.rows)))
        corrects = asks and layout.base > 0
        out = np.empty((len(held.rows), layout.family)) if corrects else held.reading
        for streams, bounds, events in self._parts(held, asked, places):
            if corrects:
                self._correct(made, streams, bounds, events, held, y, out)
            made.run(
                self.params, self.array, streams, bounds, events, out, y, narrow, held.lower,
                held.upper, held.lam, held.leader, held.habit, unused, losses, *active,
            )  # fmt: skip
        if corrects:
            check_bases(out, name)
            held.reading = out
        if len(touched):
            check_risks(self.controller, moved)
        return touched, moved

    def learn(self, held: Batch, places: Array, y: Array) -> None:
        """Takes labels into the correction and the watch; what they write cannot be taken back."""
        layout, made, rows = self.layout, self._loops(len(places)), held.rows[places]
        if layout.base:
            for part in self._parts(held, places, ~places):
                self._correct(made, *part, held, y, held.reading)
        if layout.watch:
            own: Any = slice(None) if len(places) == len(held.rows) else places
            ends = joint(layout, held.lower[:, own], held.upper[:, own])
            reading, controller = held.reading[own], self.controller
            model = given(controller, layout, reading, held.base[own])
            values = None if layout.classes is None else reading
            costs = costs_of(controller, ends, held.lam[-1, own], values, model, y[own])
            each, opened = np.arange(len(rows) + 1), self.array[rows, OPEN] + 1.0
            look(
                self.array, layout.watch_at, rows, each, ~each[:-1], opened, costs,
                steps=self.steps,
            )  # fmt: skip

    @staticmethod
    def _parts(held: Batch, places: Array, events: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Streams with an event each, some at a time: as loops take them."""
        bounds = np.arange(_TOGETHER + 1)
        for start in range(0, len(places), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            yield held.rows[places[part]], bounds, events[part]

    def shown(self, lower: Array, upper: Array, dtype: Any) -> Intervals:
        """Ends as they are handed out."""
        if not self.layout.rules.order or len(lower) == 1:
            lower, upper = joint(self.layout, lower, upper)
        with np.errstate(over="ignore"):
            ends = [end if dtype == np.float64 else end.astype(dtype) for end in (lower, upper)]
        return Intervals(*map(fixed, ends))

    def run(
        self, columns: Any, y: Array, lower: Array, upper: Array, at: Schedule | None, held: Any,
        which: Array,
    ) -> None:  # fmt: skip
        """A time-major tape, some streams at a time, each turned to rows of its own.

        `held` are the groups that its rows belong to, if they do, and `which` says to which.
        """
        vectors, annexes = self.array.copy(), self.annexes.copy()
        (steps, streams), end_type = y.shape[:2], lower.dtype
        narrow = bool(end_type == np.float32)
        made, size = self._loops(steps * streams), max(1, _CELLS // max(len(y), 1))
        for start in range(0, streams, size):
            part = slice(start, min(start + size, streams))
            count = part.stop - part.start
            labels, *given = (
                np.swapaxes(array[:, part], 0, 1).reshape((count * steps, *array.shape[2:]))
                for array in (y, *columns)
            )
            labels = labels.astype(np.float64)
            rows = rows_of(given) if self.layout.classes is None else given[0]
            offsets = np.arange(count + 1) * steps
            here = Events(np.arange(count), offsets, np.empty(0, np.int64), 1)
            here_rows, active = slice(part.start * steps, part.stop * steps), NO_GROUPS
            if at is not None or held is not None:
                own = steady(np.zeros(count, np.int64), offsets)
                if at is not None:
                    order, upto = at.order[here_rows], at.upto[here_rows]
                    own = Schedule(at.delays[part], order, upto, at.slots)
                here = Events(here.streams, 2 * offsets, own.events(offsets), own.slots)
            if held is not None:
                active = Active.of(self.controller, held.risks, which[here_rows])
            states, own_annexes = np.ascontiguousarray(vectors[part]), annexes.part(part)
            done = ran(
                self.controller, made, rows, labels, states, own_annexes, here, narrow, active
            )
            annexes.pool, vectors[part] = own_annexes.pool, states
            if done.values is not None:
                lower[:, part] = np.swapaxes(done.values.reshape(count, steps, -1), 0, 1)
                upper[:, part] = done.lam[0].reshape(count, steps).T
                continue
            for end, shown in zip((lower, upper), self.shown(*done[:2], end_type), strict=True):
                timed = shown.reshape((*shown.shape[:-1], count, steps))
                end[..., part] = np.swapaxes(timed, -1, -2)
        if held is not None:
            check_risks(self.controller, held.risks)
        self.array, self.annexes = vectors, annexes

    def _loops(self, steps: int) -> Loops:
        """Loops for one more call; a fleet that goes on for long is worth compiling for."""
        self.steps += steps
        return loops(self.layout, self.steps if self.steps >= SMALL else steps)

    def _correct(
        self, made: Loops, streams: Array, bounds: Array, events: Array, held: Batch, y: Array,
        out: Array,
    ) -> None:  # fmt: skip
        """Lets the correction read some predictions of a batch, or learn from their labels."""
        annexes = self.annexes
        annexes.room(len(streams))
        made.correct(
            self.stage, self.array, streams, bounds, events, held.reading, y, held.base, EVERY_ROW,
            out, annexes.pool, annexes.slots, annexes.used,
        )  # fmt: skip

    def _are_all(self, rows: Array) -> bool:
        return len(rows) == len(self) and np.array_equal(rows, self.everyone)

    # What is known

    @property
    def theta(self) -> Array:
        """θ of each stream; one row for each risk if there are several."""
        return _by_risk(self.array[:, self.layout.places("theta")].T)

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        totals, judged = (self.array[:, self.layout.places(n)].T for n in ("total", "judged"))
        return _by_risk(
            np.divide(totals, judged, out=np.full_like(totals, np.nan), where=judged > 0)
        )


def _by_risk(numbers: Array) -> Array:
    return numbers if len(numbers) > 1 else np.asarray(numbers[0])
