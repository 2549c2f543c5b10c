"""The state of a stream: the risks, the memories of the parts, and counts."""

from collections.abc import Sequence
from math import inf
from typing import Any

from setpoint.recursion import Memory, RiskState
from setpoint.watch import NOW

Id = int | str | tuple[int | str, ...]
"""What a prediction, a stream or a group may be called: a whole number, text, a tuple of them."""

COUNTS = ("full", "empty", "torn", "missing", "dropped", "expired", "inherited", "peak")
"""The counts of a state."""


class State:
    """Everything a stream keeps from one step to the next.

    `position` is what the recursion moves: the risks and the memory of the stretch. `memory`,
    `table` and `annex` are those of the correction, `sets` is a family with a window, and `groups`
    has where each risk stands in each group. Since the segment began, `full` and `empty` count the
    labels whose set the safeguard chose, `torn` those where risks asked for opposite ends;
    `missing`, `dropped` and `expired` count predictions that were never judged; `peak` is the most
    that waited at once, `inherited` how many waited at its beginning. `fresh` says that it is the
    first. `watch` is what the sets cost, None where nobody looks. Once the correction runs as
    machine code, `arrays` has its table and annex, and reading these copies them.
    """

    __slots__ = (
        "arrays", "fresh", "groups", "memory", "own_annex", "own_table", "position", "sets",
        "terms", "watch", *COUNTS,
    )  # fmt: skip

    full: int
    empty: int
    torn: int
    missing: int
    dropped: int
    expired: int
    inherited: int
    peak: int

    def __init__(
        self,
        position: Any,
        terms: tuple[Any, ...],
        memory: Memory = (),
        table: Any = None,
        annex: list[float] | None = None,
        sets: Any = None,
    ) -> None:
        self.position = position
        self.memory = memory
        self.arrays: Any = None
        self.own_table: Any = [] if table is None else table
        self.own_annex = [] if annex is None else annex
        self.sets = sets
        self.groups: dict[Id, Any] = {}
        self.watch: tuple[Memory, list[float]] | None = None
        self.begin(0, terms)
        self.fresh = True

    @property
    def table(self) -> Any:
        """The table of the correction."""
        return self.own_table if self.arrays is None else self.arrays.table.tolist()

    @property
    def annex(self) -> list[float]:
        """The annex of the correction."""
        return self.own_annex if self.arrays is None else self.arrays.listed

    def learns(self, memory: Memory, table: Any, annex: list[float]) -> None:
        """Replaces the correction's memory."""
        self.memory, self.own_table, self.own_annex, self.arrays = memory, table, annex, None

    @property
    def risks(self) -> tuple[RiskState, ...]:
        """The state of each risk."""
        return tuple([RiskState(*risk) for risk in self.position[0]])

    @property
    def stretch(self) -> Memory:
        """The stretch's memory."""
        memory: Memory = self.position[1]
        return memory

    @property
    def watched(self) -> list[float]:
        """The numbers kept by `watch`; empty if nothing is watched."""
        return [] if self.watch is None else [*self.watch[0], *self.watch[1]]

    @watched.setter
    def watched(self, numbers: Sequence[float]) -> None:
        self.watch = (tuple(numbers[:NOW]), list(numbers[NOW:])) if len(numbers) else None

    def placed(self, risks: tuple[Any, ...]) -> "State":
        """The state with a group's risks instead of the overall ones."""
        state = self._twin()
        state.position = risks, *self.position[1:]
        return state

    def put(self, index: int, **values: Any) -> None:
        """Replaces some values of a risk: `put(0, theta=0.5)`."""
        risks, *rest = self.position
        placed = list(risks)
        placed[index] = tuple(RiskState(*risks[index])._replace(**values))
        self.position = (tuple(placed), *rest)

    def begin(self, waiting: int, terms: tuple[Any, ...]) -> None:
        """Begins a segment: θ and the memories go on, the counts start again."""
        self.terms = terms
        self.fresh = False
        for name in COUNTS:
            setattr(self, name, 0)
        self.inherited, self.peak = waiting, max(waiting, 1)
        self.position = tuple(map(_begun, self.position[0])), *self.position[1:]
        self.groups = {name: tuple(map(_begun, risks)) for name, risks in self.groups.items()}

    def count(self, lams: tuple[float, ...], leader: int, values: tuple[float, ...]) -> None:
        """Counts a label if the safeguard chose its set, or one of its sets."""
        judged = [lam for lam, value in zip(lams, values, strict=True) if value == value]
        self.full += inf in judged
        self.empty += -inf in judged
        self.torn += leader < 0 and bool(judged)

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        twin = self._twin()
        twin.learns(self.memory, self.table.copy(), list(self.annex))
        twin.watched = self.watched
        twin.groups = dict(self.groups)
        if self.sets is not None:
            twin.sets = self.sets.copy()
        return twin

    def _twin(self) -> "State":
        twin = State.__new__(State)
        for name in State.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of its parts."""
        risks = [(len(risk.loss), len(risk.step)) for risk in self.risks]
        table = len(self.table) if type(self.table) is list else None
        return risks, len(self.stretch), len(self.memory), table, self.sets is None


def _begun(risk: Any) -> Any:
    """A risk where a segment begins: θ and the memories go on, the counts start again."""
    return (risk[0], risk[0], 0.0, 0.0, 0.0, 0.0, 0.0, risk[7], risk[8])


def flat(value: tuple[Any, ...]) -> list[float]:
    """The numbers of nested tuples in order."""
    numbers: list[float] = []
    for inner in value:
        numbers += flat(inner) if isinstance(inner, tuple) else [inner]
    return numbers


def risks_like(risks: tuple[Any, ...], numbers: Sequence[float]) -> tuple[Any, ...]:
    """Risks of the shape of others, from their numbers in order."""
    placed, at = [], 0
    for risk in risks:
        ends = [at + 7, at + 7 + len(risk[7]), at + 7 + len(risk[7]) + len(risk[8])]
        own, loss, step = (tuple(numbers[a:b]) for a, b in zip([at, *ends], ends, strict=False))
        placed.append((*own, loss, step))
        at = ends[-1]
    return tuple(placed)
