"""A state as one flat vector, and the numbers of a controller as another: what loops run on.

Controllers made of the same rules share a layout, and so compiled loops: their numbers differ, the
loops do not. Packing a state, for a file, a fleet or Spark, is a copy.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setpoint._rules import Rules, by_class, class_rules, classes_of, scalar, support_of
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.plan import Rebasing, plan
from setpoint.recursion import RiskState
from setpoint.state import COUNTS, State, flat, risks_like

Array = np.ndarray[Any, Any]

OPEN = 0
"""Where a vector holds how many predictions of its stream wait for a label."""
EVERY_ROW = (1 << 62) - 1
"""A mask under which every row that waits has a place of its own."""
_NAMES = ("open", *COUNTS, "fresh")
HEAD = len(_NAMES)
"""Where the risks begin in a vector."""
_OWN = RiskState._fields[:-2]
"""The numbers of a risk besides its memories."""


class Layout(NamedTuple):
    """Where the numbers of controllers and states lie, for all made of the same rules.

    All are sizes: `risks` of the memories of loss and step, `numbers` of their parameters,
    `columns` of a row, `base` of a base, of which the family of sets reads `family` numbers from
    `begins` on. `classes` counts those of label sets, None of others.
    """

    rules: Rules
    risks: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    stretch: int
    stretch_params: int
    memory: int
    stage_params: int
    table: int
    annex: int
    columns: int
    family: int
    base: int
    begins: int
    watch: int
    classes: int | None = None

    @property
    def loops(self) -> "Layout":
        """The layout that loops are made for: one for any number of classes."""
        if self.classes is None:
            return self
        corrected = min(self.base, 1)
        return self._replace(table=0, columns=0, family=corrected, base=corrected, classes=1)

    @property
    def at(self) -> tuple[int, int, int]:
        """Where the stretch, the correction's memory and its table begin."""
        stretch = HEAD + sum(len(_OWN) + loss + step for loss, step in self.risks)
        memory = stretch + self.stretch
        return stretch, memory, memory + self.memory + self.watch

    @property
    def risk_places(self) -> list[int]:
        """Where each risk begins: its θ."""
        places, at = [], HEAD
        for loss, step in self.risks:
            places.append(at)
            at += len(_OWN) + loss + step
        return places

    def places(self, name: str) -> list[int]:
        """Where each risk holds one of its own numbers, such as "theta" or "total"."""
        return [at + _OWN.index(name) for at in self.risk_places]

    @property
    def books(self) -> list[int]:
        """Where the books of accounts begin: how many wait, then how many of them can miss."""
        return [at for at, _ in self._booked]

    @property
    def _booked(self) -> list[tuple[int, int]]:
        """Where the books begin, and the member that each is about."""
        places = zip(self.risk_places, self.risks, self.rules.links, strict=True)
        return [
            (at + len(_OWN) + loss, link.member)
            for at, (loss, _), link in places
            if link.book is not None
        ]

    def give_up(self, vectors: Array, rows: Array, lams: Array) -> None:
        """Notes that a prediction of each of these rows, which may repeat, will have no label.

        `lams` has a row for each member.
        """
        np.add.at(vectors[:, OPEN], rows, -1.0)
        self._leave(vectors, rows, lams, 0)

    def give_up_in(self, risks: Array, which: Array, lams: Array) -> None:
        """The same for the risks of the groups of each prediction, −1 for none."""
        for rows in which.T:
            self._leave(risks, rows[rows >= 0], lams[:, rows >= 0], HEAD)

    def _leave(self, vectors: Array, rows: Array, lams: Array, first: int) -> None:
        for at, member in self._booked:
            np.add.at(vectors[:, at - first], rows, -1.0)
            fewer = np.where(lams[member] == inf, 0.0, -1.0)
            np.add.at(vectors[:, at - first + 1], rows, fewer)

    def give_up_all(self, vectors: Array) -> None:
        """Notes that nothing that waits will have a label."""
        vectors[:, OPEN] = 0.0
        for at in self.books:
            vectors[:, at : at + 2] = 0.0

    def give_up_all_in(self, risks: Array) -> None:
        """The same for the risks of groups."""
        for at in self.books:
            risks[:, at - HEAD : at - HEAD + 2] = 0.0

    @property
    def group_fields(self) -> tuple[str, ...]:
        """The name of each number of the risks of a group."""
        return self.fields[HEAD : self.at[0]]

    @property
    def size(self) -> int:
        """How many numbers a state has."""
        return self.at[2] + self.table

    @property
    def watch_at(self) -> int:
        """Where what the sets cost begins, before the table."""
        return self.at[1] + self.memory

    @property
    def fields(self) -> tuple[str, ...]:
        """The name of each number of a state: peak, theta0, loss0_0, stretch_0."""
        names = list(_NAMES)
        for place, (loss, step) in enumerate(self.risks):
            names += [f"{name}{place}" for name in _OWN]
            names += [f"loss{place}_{k}" for k in range(loss)]
            names += [f"step{place}_{k}" for k in range(step)]
        names += [f"stretch_{k}" for k in range(self.stretch)]
        names += [f"memory_{k}" for k in range(self.memory)]
        names += [f"watch_{k}" for k in range(self.watch)]
        return (*names, *(f"table_{k}" for k in range(self.table)))

    def pack(self, state: State, waiting: int = 0) -> list[float]:
        """The numbers of a state."""
        counts = [waiting, *(getattr(state, name) for name in COUNTS), state.fresh]
        risks = flat(state.position[0])
        table = state.table
        if type(table) is not list:
            table = table.padded(self.classes)
        return [*counts, *risks, *state.stretch, *state.memory, *state.watched, *table]

    def born(self, vectors: Array) -> Array:
        """Which states need an annex."""
        return (vectors[:, self.at[1]] > 0.0) if self.annex else np.zeros(len(vectors), bool)

    def unpack(
        self, vector: Iterable[float], terms: tuple[Any, ...], annex: list[float] | None = None
    ) -> State:
        """The state whose numbers a vector and an annex hold."""
        values = [float(value) for value in vector]
        stretch, memory, table = self.at
        like = [(*(0.0,) * 7, (0.0,) * loss, (0.0,) * step) for loss, step in self.risks]
        position = risks_like(tuple(like), values[HEAD:stretch]), tuple(values[stretch:memory])
        watch = self.watch_at
        state = State(position, terms, tuple(values[memory:watch]), values[table:], annex)
        state.position, state.watched = position, values[watch:table]
        for name, value in zip(COUNTS, values[1:], strict=False):
            setattr(state, name, int(value))
        state.fresh = bool(values[HEAD - 1])
        return state


_layouts: dict[Any, Layout] = {}
_MOST = 256
"""How many layouts are remembered; the oldest is forgotten."""


def layout_of(controller: Controller, classes: int | None = None) -> Layout:
    """The layout a controller shares with all that are made of the same rules.

    Of label sets it is for a number of classes, by default those that the family names.
    """
    made = plan(controller)
    labels = made.packed.setdefault("by_class", by_class(controller))
    count = (classes_of(controller) if classes is None else classes) if labels else None
    key = "layout", count
    if key in made.packed:
        layout: Layout = made.packed[key]
        return layout
    if not (labels or scalar(controller)):
        raise InputError(f"{controller!r} has a part that is not a scalar rule")
    state = controller.init()
    risks, stretch_params, _ = made.numbers
    stage: Any = made.stage
    columns, begins = len(controller.reader.columns) if count is None else count, 0
    if count is not None:
        table, base = (0, 0) if stage is None else stage.sizes(count)
        family, annex = count + 1, 0
    elif stage is None:
        table, base, family, annex = 0, 0, columns, 0
    else:
        table, base, annex, begins = len(state.table), stage.size, stage.annex, stage.begins
        family = stage.ends - begins
    layout = Layout(
        made.rules if count is None else class_rules(controller),
        tuple((len(risk.loss), len(risk.step)) for risk in state.risks),
        tuple((len(risk[3]), len(risk[4])) for risk in risks),
        len(state.stretch),
        len(stretch_params),
        len(state.memory),
        0 if stage is None else len(stage.params),
        table,
        annex,
        columns,
        family,
        base,
        begins,
        len(state.watched),
        count,
    )
    known = _layouts.get(layout)
    if known is None:
        while len(_layouts) >= _MOST:
            _layouts.pop(next(iter(_layouts)), None)
        known = _layouts[layout] = layout
    made.packed[key] = known
    return known


def _fixed(numbers: Iterable[float]) -> Array:
    """Numbers as one row that nobody writes into."""
    row = np.array([tuple(numbers)])
    row.flags.writeable = False
    return row


def start_of(controller: Controller) -> Array:
    """The numbers of the state in which a controller begins, as one row."""
    layout, packed = layout_of(controller), plan(controller).packed
    if "start" not in packed:
        packed["start"] = _fixed(layout.pack(controller.init()))
    return np.array(packed["start"])


def params_of(controller: Controller) -> tuple[Array, np.ndarray]:
    """The numbers of a controller and of its correction, as one row each."""
    made = plan(controller)
    if "params" not in made.packed:
        support = support_of(controller)
        own = [*flat(made.numbers), *support, *outward(support)]
        stage = () if made.stage is None or isinstance(made.stage, Rebasing) else made.stage.params
        made.packed["params"] = _fixed(own), _fixed(stage)
    own_row, stage_row = made.packed["params"]
    return own_row, stage_row


def group_params_of(controller: Controller) -> Array:
    """The numbers of the risks of a controller in a group, as one row."""
    packed = plan(controller).packed
    if "group_params" not in packed:
        packed["group_params"] = _fixed(flat(plan(controller).groups.numbers))
    row: Array = packed["group_params"]
    return row


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


class Annexes:
    """Rows of a pool, and which of them belongs to which stream: −1 for none."""

    __slots__ = ("pool", "slots", "used")

    def __init__(self, streams: int, size: int) -> None:
        self.pool = np.zeros((1, max(size, 1)))
        self.slots = np.full(streams, -1)
        self.used = np.zeros(1, np.int64)

    def room(self, streams: int) -> None:
        """Makes sure that this many streams more can take a row."""
        if self.pool.shape[1] == 1:
            return
        needed = int(self.used[0]) + streams
        if needed > len(self.pool):
            pool = np.zeros((max(needed, len(self.pool) * 2), self.pool.shape[1]))
            pool[: self.used[0]] = self.pool[: self.used[0]]
            self.pool = pool

    def put(self, place: int, values: Sequence[float]) -> None:
        """Gives a stream these numbers; nothing if there are none."""
        if len(values):
            self.room(1)
            self.slots[place] = self.used[0]
            self.pool[self.used[0]] = values
            self.used[0] += 1

    def of(self, place: int) -> list[float]:
        """The numbers of a stream, none if it has not needed any."""
        slot = self.slots[place]
        numbers: list[float] = [] if slot < 0 else self.pool[slot].tolist()
        return numbers

    def begin(self, born: Array, places: Array | None = None) -> None:
        """Gives an empty row to each new stream that needs one from its start."""
        new = np.flatnonzero(born) if places is None else places[np.flatnonzero(born)]
        self.room(len(new))
        self.slots[new] = np.arange(self.used[0], self.used[0] + len(new))
        self.used[0] += len(new)

    def taken(self, places: Array) -> "Annexes":
        """Those of some streams, in this order, sharing nothing; −1 is a stream without one."""
        twin = Annexes(len(places), self.pool.shape[1])
        slots = np.where(places >= 0, self.slots[places], -1) if len(self.slots) else twin.slots
        there = np.flatnonzero(slots >= 0)
        twin.room(len(there))
        twin.slots[there] = np.arange(len(there))
        twin.pool[: len(there)] = self.pool[slots[there]] if len(there) else 0.0
        twin.used[0] = len(there)
        return twin

    def joined(self, other: "Annexes") -> "Annexes":
        """Those of two groups of streams, the second behind the first."""
        twin = self.taken(np.arange(len(self.slots)))
        there = np.flatnonzero(other.slots >= 0)
        twin.room(len(there))
        first = int(twin.used[0])
        twin.pool[first : first + len(there)] = other.pool[other.slots[there]]
        slots = np.full(len(other.slots), -1)
        slots[there] = first + np.arange(len(there))
        twin.slots = np.concatenate([twin.slots, slots])
        twin.used[0] += len(there)
        return twin

    def part(self, streams: slice) -> "Annexes":
        """Those of streams beside one another, in the same pool."""
        twin = Annexes(0, 0)
        twin.pool, twin.slots, twin.used = self.pool, self.slots[streams], self.used
        return twin

    @classmethod
    def restored(cls, pool: Array, slots: Array, streams: int, size: int) -> "Annexes":
        """What was saved, if it can be that of so many streams."""
        annexes = cls(streams, size)
        wide = pool.ndim == 2 and pool.shape[1] == annexes.pool.shape[1]
        own = np.sort(slots[slots >= 0]) if slots.shape == (streams,) else None
        if not wide or own is None or not np.array_equal(own, np.arange(len(pool))):
            raise ValueError("annexes do not fit their streams")
        annexes.room(len(pool))
        annexes.pool[: len(pool)] = pool
        annexes.slots[:], annexes.used[0] = slots, len(pool)
        return annexes

    def copy(self) -> "Annexes":
        """The same, sharing nothing."""
        return self.taken(np.arange(len(self.slots)))
