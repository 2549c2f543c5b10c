"""Where the streams of a tape begin and end, and the columns of a tape as loops take them."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from setpoint._rules import support_of
from setpoint.bulk.compile import loops
from setpoint.bulk.groups import Pairs
from setpoint.bulk.labels import classes_kept, fitting, layout_at, widened
from setpoint.bulk.layout import Annexes, Layout, layout_of
from setpoint.controller import Controller, given_up, matching
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import Row
from setpoint.sets import Interval
from setpoint.sets.family import Arranges, Columns, InParts, Scalar, Shows, whole_of
from setpoint.state import Id, State
from setpoint.tape import Tape
from setpoint.tape.columns import Column

Array = np.ndarray[Any, Any]
"""Any numpy array."""

Start = State | Mapping[Hashable, State] | None
"""Where a run begins: one state for all streams, one for each key, or none."""


class States(Mapping[Hashable, State]):
    """States of streams by id, kept as vectors and unpacked when they are asked for."""

    def __init__(
        self,
        controller: Controller,
        streams: Sequence[Hashable],
        vectors: Array,
        annexes: Annexes | None = None,
        groups: Pairs | None = None,
    ) -> None:
        self.controller, self.vectors, self.terms = controller, vectors, controller.terms
        self.annexes = Annexes(len(vectors), 0) if annexes is None else annexes
        self.groups = groups
        self.places = {stream: place for place, stream in enumerate(streams)}
        self._unpacked: dict[Hashable, State] = {}

    def __getitem__(self, stream: Hashable) -> State:
        if stream not in self._unpacked:
            place = self.places[stream]
            layout = layout_at(self.controller, self.vectors.shape[1])
            state = layout.unpack(self.vectors[place], self.terms, self.annexes.of(place))
            if layout.classes is not None:
                state = classes_kept(self.controller, state)
            if self.groups is not None:
                state.groups = self.groups.of(self.controller, place)
            self._unpacked[stream] = state
        return self._unpacked[stream]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, stream: object) -> bool:
        return stream in self.places

    def __repr__(self) -> str:
        return f"<the states of {len(self):,} streams>"

    def packed(self, controller: Controller, ids: Sequence[Hashable]) -> tuple[Array, Annexes]:
        """The numbers of these states, one for each id, if they are those of a controller."""
        if controller != self.controller:
            raise InputError(f"the states are those of another controller, {self.controller!r}")
        places = np.array([self.places[id] for id in ids], dtype=np.int64)
        return self.vectors[places], self.annexes.taken(places)

    def alike(self) -> tuple[Array, Array]:
        """Places of states that differ in more than what was learnt, and which is whose.

        A certificate does not ask what a correction learnt: one is enough for all that are alike.
        """
        if self.groups is not None:
            return np.arange(len(self)), np.arange(len(self))
        asked = np.ascontiguousarray(self.vectors[:, : layout_of(self.controller).at[1]])
        keys = asked.view(f"V{asked.shape[1] * asked.itemsize}").ravel()
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        return first, which


class Begin:
    """The state in which each stream of a tape begins."""

    def __init__(self, controller: Controller, streams: Sequence[Hashable], start: Start) -> None:
        self.controller, self.streams = controller, streams
        self.common = controller.init()
        self.ended: States | None = None
        self.by_stream: dict[Hashable, State] = {}
        if isinstance(start, State):
            self.common = matching(controller, start)
        elif isinstance(start, Mapping):
            self._take(start)
        elif start is not None:
            raise InputError(f"state must be a State or a mapping of them by id, got {start!r}")

    def _take(self, states: Mapping[Hashable, State]) -> None:
        known = set(self.streams)
        strange = {id: None for id in states if id not in known}
        # The states of an earlier trace may be those of streams that have ended since.
        if strange and not isinstance(states, States):
            raise InputError(
                f"the tape has no stream {listed(strange)}, for which a state was given; "
                f"it has {listed(dict.fromkeys(self.streams))}"
            )
        if isinstance(states, States) and states.controller == self.controller:
            self.ended = states
            return
        for id, state in states.items():
            if id in strange:
                continue
            if not isinstance(state, State):
                raise InputError(f"the state of {id!r} must be a State, got {state!r}")
            self.by_stream[id] = matching(self.controller, state)

    def __iter__(self) -> Iterator[State]:
        """A state for each stream that nobody else holds, made when it is asked for."""
        states: Mapping[Hashable, State] = self.by_stream if self.ended is None else self.ended
        return (states.get(stream, self.common).copy() for stream in self.streams)

    @property
    def groups(self) -> dict[int, Mapping[Id, Any]]:
        """The groups that streams begin with, by their places; those without any are left out."""
        if self.ended is not None and self.ended.groups is None:
            return {}
        if self.ended is None and not self.by_stream and not self.common.groups:
            return {}
        return {
            place: {name: given_up(self.controller, risks) for name, risks in state.groups.items()}
            for place, state in enumerate(self)
            if state.groups
        }

    def fits(self, classes: int) -> bool:
        """Whether loops can go on from here with this number of classes."""
        if self.ended is not None:
            count = layout_at(self.controller, self.ended.vectors.shape[1]).classes
            if count is None or count > classes:
                return count is None
        return fitting(self.controller, classes, (self.common, *self.by_stream.values()))

    def vectors(self, layout: Layout) -> tuple[Array, Annexes]:
        """The numbers of all states, one row for each stream, and their annexes."""
        vectors = np.repeat(np.array([layout.pack(self.common)]), len(self.streams), axis=0)
        places = np.full(len(self.streams), -1)
        if self.ended is not None:
            places = np.array([self.ended.places.get(s, -1) for s in self.streams], dtype=np.int64)
            vectors[places >= 0] = widened(self.ended.vectors[places[places >= 0]], layout)
            annexes = self.ended.annexes.taken(places)
        else:
            annexes = Annexes(len(self.streams), layout.annex)
        for place, stream in enumerate(self.streams if self.by_stream or self.common.annex else ()):
            state = self.by_stream.get(stream, self.common)
            if state is not self.common:
                vectors[place] = layout.pack(state)
            if places[place] < 0:
                annexes.put(place, state.annex)
        layout.give_up_all(vectors)
        return vectors, annexes


def listed(ids: Mapping[Hashable, Any]) -> str:
    """The first few ids."""
    first = [repr(id) for id, _ in zip(ids, range(5), strict=False)]
    return ", ".join([*first, "…"] if len(ids) > 5 else first)


def columns_of(controller: Controller, tape: Tape) -> tuple[Column, ...]:
    """The columns of the predictions in the order in which the family takes them.

    Columns that are called as the family's own are told by their names. Other names tell nothing,
    and such columns are taken by their places.
    """
    sets = controller.reader
    if isinstance(sets, InParts):
        raise InputError("paths run over a tape of several horizons by setpoint.replay_paths")
    wanted = sets.columns if isinstance(sets, Columns) else None
    names, columns = tape.names, tape.prediction
    if wanted is None:
        return columns
    known = [name for name in wanted if name in tape.extras]  # features lie beside predictions
    if known and not set(names) & set(wanted):  # other names tell nothing
        names = {1: ("point",), 2: ("lower", "upper")}.get(len(names), names)
    names, columns = (*names, *known), (*columns, *(tape.extras[name] for name in known))
    for form in sets.forms if isinstance(sets, Arranges) else (wanted,):
        if sorted(names) == sorted(form):
            ordered = tuple(columns[names.index(name)] for name in form)
            return sets.arranged(form, ordered) if isinstance(sets, Arranges) else ordered
        short = len(names) == len(form) < len(wanted) and form == wanted[: len(form)]
        if short and isinstance(sets, Arranges) and not set(names) & set(wanted):
            return sets.arranged(form, columns)
    point = len(names) == 1 and wanted[:2] == ("lower", "upper")
    own = [place for place, name in enumerate(names) if name in wanted]
    fits = (point or len(names) == len(wanted)) and ("phase" in wanted or "phase" not in names)
    if fits and all(not point and names[place] == wanted[place] for place in own):
        return columns
    needed = [name for name in wanted if name != "phase"]  # which may be left out
    raise InputError(
        f"{type(sets).__name__} needs the columns {', '.join(needed)}, "
        f"the tape has {', '.join(names)}"
    )


def is_narrow(controller: Controller, columns: Sequence[Column]) -> bool:
    """Whether intervals are shown in float32, as where every number of a prediction is."""
    sets = whole_of(controller.sets)
    intervals = isinstance(sets, Scalar) or (isinstance(sets, Shows) and sets.shows is Interval)
    ends = columns if controller.correction is None else columns[:2]
    return intervals and all(
        isinstance(column, np.ndarray) and column.dtype == np.float32 for column in ends
    )


def scalar_columns(
    controller: Controller, layout: Layout, tape: Tape
) -> tuple[tuple[Array, ...], Array]:
    """The columns of the predictions as a scalar family wants them, every row of them sound.

    And the same as rows side by side, stream after stream.
    """
    columns = columns_of(controller, tape)
    arrays = tuple(column for column in columns if isinstance(column, np.ndarray))
    reader = controller.reader
    if len(arrays) < len(columns):
        raise InputError(
            f"{type(reader).__name__} needs one number a row in each of "
            f"{', '.join(reader.columns)}, the tape has a ragged column"
        )
    if len(arrays) < layout.columns:
        (point,) = arrays
        if not np.isfinite(point).all():
            row = int((~np.isfinite(point)).argmax())
            raise PredictionError(f"row {row}: a point forecast must be finite, got {point[row]}")
        arrays = point, point
        if isinstance(reader, Arranges):
            arrays = reader.arranged(("lower", "upper"), arrays)
        return arrays, rows_of([tape.by_stream(column) for column in arrays])
    rows = rows_of([tape.by_stream(column) for column in arrays])
    unsound = first_unsound(layout, rows)
    if unsound is not None:
        order = tape.segments.order
        if order is not None:  # the first as the tape has them
            unsound = first_unsound(layout, rows_of(arrays)) or 0
        raise PredictionError(f"row {unsound}: {refusal(controller, arrays, unsound)}")
    return arrays, rows


def rows_of(columns: Sequence[Array]) -> Array:
    """Columns side by side in float64, one row for each prediction."""
    rows = np.empty((len(columns[0]), len(columns)))
    for place, column in enumerate(columns):
        rows[:, place] = column
    return rows


def first_unsound(layout: Layout, rows: Array) -> int | None:
    """The first row that is no prediction."""
    found = np.zeros(1, dtype=np.int64)
    loops(layout, len(rows)).unsound(rows, found)
    return None if found[0] < 0 else int(found[0])


def refusal(controller: Controller, columns: Sequence[Array], row: int) -> str:
    """Why the family refuses a row, in its own words."""
    values: Any = tuple(float(column[row]) for column in columns)
    reader = controller.reader
    if "phase" in reader.columns:
        values = Row(values[:2], values[2], values[3:])
    try:
        reader.read(values)
    except PredictionError as error:
        return str(error)
    return f"{values} is no prediction for {reader!r}"


def check_labels(controller: Controller, y: Array) -> None:
    """Raises the error of the first label outside the support."""
    low, high = support_of(controller)
    if (low, high) == (-inf, inf):
        return
    bad = (y < low) | (y > high)
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"row {row}: a label must lie in the support [{low}, {high}], got {y[row]}"
        )
