"""Corrections as the steps of a stream call them: a base for a row, then what its label teaches."""

from typing import Any, NamedTuple

import numpy as np

from setpoint._rules import check_memory, support_of, tried
from setpoint.controller import Controller
from setpoint.correction import Rebases, Rescores
from setpoint.correction.compiled import Arrays, rules_once_many
from setpoint.errors import InputError
from setpoint.recursion import Memory
from setpoint.sets.labels import place_of
from setpoint.state import State


class Stage(NamedTuple):
    """A correction with its numbers: `predict` and `learn` take `params` first.

    The family of sets reads a part of the `size` numbers of a base, from `begins` to `ends`.
    `annex` numbers come into being once the first number of a memory is positive.
    """

    params: Memory
    predict: Any
    learn: Any
    begins: int
    ends: int
    size: int
    annex: int

    def based(self, state: State, row: Any, waiting: float) -> tuple[Memory, Memory]:
        """What is remembered once a row is shown, and its base."""
        arrays = state.arrays
        if arrays is not None:
            arrays.base = own = np.empty(self.size)
            memory = arrays.predict(
                self.params, state.memory, arrays.table, arrays.annex, row, float(waiting), own
            )
            arrays.made = made = tuple(own.tolist())
            return memory, made
        base = [0.0] * self.size
        memory = self.predict(
            self.params, state.memory, state.own_table, state.own_annex, row, waiting, base
        )
        return memory, tuple(base)

    def taught(self, state: State, base: Memory, y: float) -> None:
        """Lets a state learn from a label."""
        arrays = state.arrays
        if arrays is not None:
            own = arrays.base if base is arrays.made else np.array(base)
            state.memory = memory = arrays.learn(
                self.params, state.memory, arrays.table, arrays.annex, own, y
            )
            if self.annex and memory[0] > 0.0:
                arrays.begin(self.annex)
            return
        table, annex = state.own_table, state.own_annex
        memory = self.learn(self.params, state.memory, table, annex, base, y)
        if len(memory) != len(state.memory):
            check_memory(memory, len(state.memory), "the correction")
        state.memory = memory
        if self.annex and memory[0] > 0.0 and not annex:
            annex = state.own_annex = [0.0] * self.annex
        fast = rules_once_many(self.predict, self.params, memory, table, annex, base)
        if fast is not None:
            state.arrays = Arrays(fast, table, annex)


class Rescoring(NamedTuple):
    """A correction of label sets, as steps call it.

    The base of a row is what its family reads, and all that `predict` wrote as one array.
    """

    params: Memory
    predict: Any
    learn: Any
    begins: int
    ends: int
    sizes: Any

    def based(self, state: State, reading: Any, waiting: float) -> Any:
        """What is remembered once a row is shown, and its base."""
        values, names = reading[0], reading[1]
        count, table = len(values), state.own_table
        memory, made = table.predict(self.params, state.memory, names, -values, waiting)
        return memory, (made[:count], names, float(made[count]), made)

    def taught(self, state: State, base: Any, y: Any) -> None:
        """Lets a state learn from a label, or from several."""
        table = state.own_table
        places = [place_of(base, label) for label in (y if self.params[1] else (y,))]
        for place in sorted([-1 if place is None else place for place in places]):
            state.memory = table.learn(self.params, state.memory, base[1], base[3], place)
        if table.fast is None and table.straight(base[1], len(base[0])):
            table.fast = rules_once_many(
                self.predict, self.params, state.memory, table.numbers, None, base[3],
                2.0 + 0.01 * len(base[0]),
            )  # fmt: skip


class Rebasing(NamedTuple):
    """A correction of paths, as steps call it."""

    predict: Any
    learn: Any
    begins: int
    ends: int

    def based(self, state: State, reading: Any, waiting: float) -> Any:
        """What is remembered once a path is shown, and its base."""
        return self.predict(state.memory, state.table, reading, waiting)

    def taught(self, state: State, base: Any, heard: Any) -> None:
        """Lets a state learn from what is known of a path."""
        state.memory = self.learn(state.memory, state.table, base, heard)


def staged(controller: Controller, stage: Any) -> Stage | Rescoring | Rebasing:
    """A correction as steps call it, tried once."""
    if isinstance(stage, Rescores):
        ends = len(stage.gives)
        return Rescoring(stage.params, stage.predict, stage.learn, 0, ends, stage.sizes)
    if isinstance(stage, Rebases):
        return Rebasing(*stage.rules(controller.sets), 0, len(stage.gives))
    params, name = (*stage.params, *support_of(controller)), type(stage).__name__
    (memory, table), base = stage.init(), [0.0] * stage.base
    first, annex = tuple(memory), [0.0] * stage.annex
    row = next(filter(stage.sound, _sample_rows(len(stage.columns))), None)
    if row is None:
        raise InputError(f"{name}.sound takes none of the rows that are tried, such as (0, 1, 1)")
    begins, ends = stage.begins, stage.begins + len(stage.gives)
    if len(base) < ends:
        raise InputError(
            f"a base of {name} must have {', '.join(stage.gives)} from place {begins} on, "
            f"got {base!r}"
        )
    memory = tried(stage, stage.predict, params, first, table, annex, row, 0.0, base)
    check_memory(memory, len(first), name)
    after = tried(stage, stage.learn, params, memory, table, annex, tuple(base), 0.5)
    check_memory(after, len(first), name)
    return Stage(params, stage.predict, stage.learn, begins, ends, len(base), stage.annex)


def _sample_rows(columns: int) -> list[Memory]:
    """Rows to try a correction on."""
    return [(first, *(rest,) * (columns - 1)) for first in (0.0, 1.0) for rest in (1.0, 0.0, 2.0)]
