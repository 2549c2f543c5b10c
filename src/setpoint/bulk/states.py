"""What replays and sweeps share: where streams begin and end, and the columns of a tape."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from setpoint.bulk.rows import columns_of
from setpoint.bulk.vectors import Layout, layout_of
from setpoint.controller import Controller, State, matching
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.tape import Tape

__all__ = [
    "LENGTHS",
    "Array",
    "Begin",
    "Start",
    "States",
    "check_labels",
    "listed",
    "numbers_of",
    "ordered",
    "size_of",
]

Array = np.ndarray[Any, Any]
Start = State | Mapping[Hashable, State] | None

LENGTHS = ("mean_length", "mean_finite_length")
"""The metrics that nothing is known of where a set does not tell how large it is."""


class Begin:
    """The state in which each stream of a tape begins."""

    def __init__(self, controller: Controller, tape: Tape, given: Start) -> None:
        self.controller, self.streams = controller, tape.streams
        self.common = controller.init()
        self.ended: States | None = None
        self.own: dict[Hashable, State] = {}
        if isinstance(given, State):
            self.common = matching(controller, given)
        elif isinstance(given, Mapping):
            known = set(self.streams)
            strange = {id: None for id in given if id not in known}
            # The states of an earlier trace may be those of streams that have ended since.
            if strange and not isinstance(given, States):
                raise InputError(
                    f"the tape has no stream {listed(strange)}, for which a state was given; "
                    f"it has {listed(dict.fromkeys(self.streams))}"
                )
            if isinstance(given, States) and given.controller == controller:
                self.ended = given
            else:
                for id, state in given.items():
                    if id in strange:
                        continue
                    if not isinstance(state, State):
                        raise InputError(f"the state of {id!r} must be a State, got {state!r}")
                    self.own[id] = matching(controller, state)
        elif given is not None:
            raise InputError(f"state must be a State or a mapping of them by id, got {given!r}")

    def __iter__(self) -> Iterator[State]:
        """A state for each stream that nobody else holds, made when it is asked for."""
        own: Mapping[Hashable, State] = self.own if self.ended is None else self.ended
        return (own.get(stream, self.common).copy() for stream in self.streams)

    def vectors(self, layout: Layout) -> tuple[Array, Array]:
        """The numbers of all states, one column for each stream."""
        count = len(self.streams)
        made, rest = (
            np.repeat(np.array(numbers, dtype=np.float64)[:, None], count, axis=1)
            for numbers in (layout.pack(self.common), layout.pack_rest(self.common))
        )
        if self.ended is not None:
            places = [self.ended.places.get(stream, -1) for stream in self.streams]
            there = np.array(places, dtype=np.int64)
            made[:, there >= 0] = self.ended.vectors[:, there[there >= 0]]
            rest[:, there >= 0] = self.ended.rest[:, there[there >= 0]]
        elif self.own:
            for place, stream in enumerate(self.streams):
                if stream in self.own:
                    made[:, place] = layout.pack(self.own[stream])
                    rest[:, place] = layout.pack_rest(self.own[stream])
        return made, rest


class States(Mapping[Hashable, State]):
    """The states that streams ended in, kept as numbers and made when they are asked for."""

    def __init__(
        self, controller: Controller, streams: Sequence[Hashable], vectors: Array, rest: Array
    ) -> None:
        self.controller, self.vectors, self.rest = controller, vectors, rest
        self.places = {stream: place for place, stream in enumerate(streams)}
        self._made: dict[Hashable, State] = {}
        self._blank = controller.init()

    def __getitem__(self, stream: Hashable) -> State:
        if stream not in self._made:
            place, layout = self.places[stream], layout_of(self.controller)
            state = layout.unpack(self.vectors[:, place], self._blank.copy())
            self._made[stream] = layout.unpack_rest(self.rest[:, place], state)
        return self._made[stream]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, stream: object) -> bool:
        return stream in self.places

    def __repr__(self) -> str:
        return f"<the states of {len(self):,} streams>"


def listed(ids: Mapping[Hashable, Any]) -> str:
    first = [repr(id) for id, _ in zip(ids, range(5), strict=False)]
    return ", ".join([*first, "…"] if len(ids) > 5 else first)


def numbers_of(controller: Controller, tape: Tape) -> list[Array]:
    """The numbers of the predictions as a scalar family wants them, checked as a whole."""
    sets: Any = controller.sets
    columns = columns_of(controller, tape)
    found = [column for column in columns if isinstance(column, np.ndarray)]
    if len(found) < len(columns):
        raise InputError(
            f"{type(sets).__name__} needs one number a row in each of {', '.join(sets.columns)}, "
            "the tape has a ragged column"
        )
    if len(found) < len(sets.columns):
        (point,) = found
        if not np.isfinite(point).all():
            row = int((~np.isfinite(point)).argmax())
            raise PredictionError(f"row {row}: a point forecast must be finite, got {point[row]}")
        return [point, point]
    if sets.columns[0] == "centre":
        centre, *scales = found
        bad = ~np.isfinite(centre)
        for column in scales:
            bad |= ~((column >= 0.0) & np.isfinite(column))
        if bad.any():
            row = int(bad.argmax())
            sets.read(tuple(float(column[row]) for column in found))
    return found


def check_labels(controller: Controller, y: Array) -> None:
    """Raises the error of the first label outside the support."""
    low, high = controller.sets.support  # type: ignore[attr-defined]
    if (low, high) == (-inf, inf):
        return
    bad = (y < low) | (y > high)
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"row {row}: a label must lie in the support [{low}, {high}], got {y[row]}"
        )


def ordered(column: Array, order: Array | None) -> Array:
    return np.ascontiguousarray(column if order is None else column[order])


def size_of(shown: Any) -> float:
    """How large a set is that has no ends; NaN if it does not tell."""
    return float(getattr(shown, "size", getattr(shown, "length", nan)))
