"""What survives a step: where each risk stands, what the parts remember, and counts."""

from math import inf
from typing import Any

from setpoint.recursion import Memory, RiskState

__all__ = ["COUNTS", "State"]

COUNTS = ("full", "empty", "torn", "missing", "dropped", "expired", "inherited", "peak")
"""The counts of a state."""


class State:
    """What survives a step.

    `position` is what the recursion moves: the risks and the memory of the stretch. `memory`,
    `table` and `annex`, empty until it is needed, are those of the correction; `sets` is the family
    at work, if it is one with a window, else None. Since the segment began: `full` and `empty`
    count the labels whose set the safeguard chose, `torn` those where one risk asked for the full
    set while another was below its lower bound; `missing`, `dropped` and `expired` count the
    predictions that were never judged; `peak` is the most that waited for a label at once, and
    `inherited` how many waited when it began.
    `terms` are those of the controller in force, and `fresh` says that the segment is the first.
    """

    __slots__ = ("annex", "fresh", "memory", "position", "sets", "table", "terms", *COUNTS)

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
        table: list[float] | None = None,
        annex: list[float] | None = None,
        sets: Any = None,
    ) -> None:
        self.position = position
        self.memory = memory
        self.table = [] if table is None else table
        self.annex = [] if annex is None else annex
        self.sets = sets
        self.begin(0, terms)
        self.fresh = True

    @property
    def risks(self) -> tuple[RiskState, ...]:
        """Where each risk stands."""
        return tuple([RiskState(*risk) for risk in self.position[0]])

    @property
    def stretch(self) -> Memory:
        """What the stretch remembers."""
        memory: Memory = self.position[1]
        return memory

    def put(self, index: int, **values: Any) -> None:
        """Puts other values in the place of some that a risk has: `put(0, theta=0.5)`."""
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
        for index, risk in enumerate(self.risks):
            self.put(
                index, first=risk.theta, judged=0.0, unjudged=0.0, total=0.0, lifts=0.0, lifted=0.0
            )

    def count(self, lams: tuple[float, ...], leader: int, values: tuple[float, ...]) -> None:
        """Counts a label whose set the safeguard chose, or of which one set of several was such."""
        judged = [lam for lam, value in zip(lams, values, strict=True) if value == value]
        self.full += inf in judged
        self.empty += -inf in judged
        self.torn += leader < 0 and bool(judged)

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        copy = State.__new__(State)
        for name in State.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.table, copy.annex = list(self.table), list(self.annex)
        if self.sets is not None:
            copy.sets = self.sets.copy()
        return copy

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many numbers it has where."""
        risks = [(len(risk.loss), len(risk.step)) for risk in self.risks]
        return risks, len(self.stretch), len(self.memory), len(self.table), self.sets is None
