"""Where new series begin: with what the others had learnt by then."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from setpoint.bulk.replay import replay
from setpoint.controller import Controller
from setpoint.correction import Intervals
from setpoint.presets import start_from
from setpoint.state import State
from setpoint.tape import Tape

OTHERS = 20
"""How many other series there must be."""
LABELS = 5
"""How many labels each of them must have."""
_MOST = 500


def start_of_new(controller: Controller, states: Iterable[State]) -> State | None:
    """The state in which a new series begins beside others, None where they tell too little."""
    stage = controller.correction
    if not isinstance(stage, Intervals) or stage.prior:
        return None
    known = [state for state in states if state.risks[0].judged >= LABELS]
    if len(known) < OTHERS or not any(stage.learnt(state).usual > 0.0 for state in known):
        return None
    return start_from(controller, known).init()


def some(ids: list[Any]) -> list[Any]:
    """At most 500 of many, evenly."""
    return ids[:: -(-len(ids) // _MOST) or 1]


def starts(controller: Controller, tape: Tape) -> Mapping[Hashable, State]:
    """The states in which the series of a tape begin that begin later than others.

    Nothing is used of the others that was not known when a series began: for groups of series that
    begin at about one time, twice as many others each time, the rows before are replayed. Without
    times, or with late labels, there are none.
    """
    if tape.time is None or tape.schedule is not None or len(tape.streams) <= OTHERS:
        return {}
    firsts = tape.by_stream(tape.time)[tape.segments.offsets[:-1]]
    queue = np.sort(firsts)
    begun: dict[Hashable, State] = {}
    places = OTHERS * 2 ** np.arange(int(np.log2((len(queue) - 1) / OTHERS)) + 1)
    marks = [mark for mark in np.unique(queue[places]) if mark > queue[0]]
    group = np.searchsorted(np.array(marks, queue.dtype), firsts, side="right")
    for place, mark in enumerate(marks, 1):
        before = tape.between(stop=mark)
        known = set(before.streams)
        there = {id: state for id, state in begun.items() if id in known}
        states = replay(controller, before, there).states
        start = start_of_new(controller, map(states.__getitem__, some(list(states))))
        if start is not None:
            begun.update((tape.streams[i], start) for i in np.flatnonzero(group == place).tolist())
    return begun
