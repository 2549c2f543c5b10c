"""What bulk loops do with one row: read a controller and a state from arrays, prepare, show, learn.

Columns hold one controller or one stream each; `z` and `s` are the states and the column of one.
"""

from math import nan
from typing import Any

from numpy import float32, float64

from setpoint.bulk.vectors import Layout
from setpoint.recursion import Numbers, Position, Rules, heed, judge, learn, show

__all__ = [
    "answered", "due", "heeded", "keep", "known", "numbers_at", "position_at", "prepared",
    "put_position", "shown", "taught",
]  # fmt: skip

Array = Any


def numbers_at(rules: Rules, places: Layout, p: Array, j: int) -> Numbers:
    """The numbers of the controller in column j."""
    return Numbers(
        tuple([p[k, j] for k in places.numbers.phi]),
        tuple([p[k, j] for k in places.numbers.level]),
        tuple([p[k, j] for k in places.numbers.bottom]),
        tuple([p[k, j] for k in places.numbers.top]),
        tuple([tuple([p[k, j] for k in places.numbers.step[i]]) for i in rules.risks]),
        tuple([tuple([p[k, j] for k in places.numbers.judge[i]]) for i in rules.risks]),
        tuple([p[k, j] for k in places.numbers.family]),
        p[places.numbers.delta, j],
        (p[places.numbers.support[0], j], p[places.numbers.support[1], j]),
        (p[places.numbers.outward[0], j], p[places.numbers.outward[1], j]),
    )


def position_at(rules: Rules, places: Layout, z: Array, s: int) -> Position:
    """The position of the stream in column s."""
    return Position(
        tuple([z[k, s] for k in places.position.theta]),
        tuple([tuple([z[k, s] for k in places.position.step[i]]) for i in rules.risks]),
        tuple([tuple([z[k, s] for k in places.position.loss[i]]) for i in rules.risks]),
        tuple([z[k, s] for k in places.position.stretch]),
        tuple([z[k, s] for k in places.position.family]),
        tuple([z[k, s] for k in places.position.total]),
        tuple([z[k, s] for k in places.position.lifts]),
        tuple([z[k, s] for k in places.position.lifted]),
    )


def put_position(rules: Rules, places: Layout, z: Array, s: int, position: Position) -> None:
    """Writes a position into column s: what a step can change."""
    for i in rules.risks:
        z[places.position.theta[i], s] = position.theta[i]
        z[places.position.total[i], s] = position.total[i]
        for k in range(len(places.position.step[i])):
            z[places.position.step[i][k], s] = position.step[i][k]
        for k in range(len(places.position.loss[i])):
            z[places.position.loss[i][k], s] = position.loss[i][k]
        if rules.lifts | rules.floored:
            z[places.position.lifts[i], s] = position.lifts[i]
            z[places.position.lifted[i], s] = position.lifted[i]
    if rules.move is not None:
        for k in range(len(places.position.stretch)):
            z[places.position.stretch[k], s] = position.stretch[k]
    for k in range(len(places.position.family)):
        z[places.position.family[k], s] = position.family[k]


def prepared(
    rules: Rules,
    places: Layout,
    numbers: Numbers,
    position: Position,
    z: Array,
    s: int,
    row: tuple[float, ...],
) -> tuple[float, ...]:
    """A row as its receipt holds it; the cells of a season lie in column s."""
    if rules.phase is not None:
        phase = int(rules.phase(numbers.family, position.family, row))
        first = places.cells + len(places.cell) * phase
        cell = tuple([z[first + k, s] for k in places.cell])
        seasonal: tuple[float, ...] = rules.prepare(numbers.family, position.family + cell, row)
        return seasonal
    if rules.prepare is not None:
        reading: tuple[float, ...] = rules.prepare(numbers.family, position.family, row)
        return reading
    return row


def shown(
    rules: Rules, narrow: bool, numbers: Numbers, reading: tuple[float, ...], lam: float
) -> tuple[float, float]:
    """The ends as they are shown; in float32 the support is rounded outwards."""
    lower, upper = show(rules, numbers, reading, lam)
    if narrow:
        lowest, highest = lower <= numbers.support[0], upper >= numbers.support[1]
        lower = numbers.outward[0] if lowest else float64(float32(lower))
        upper = numbers.outward[1] if highest else float64(float32(upper))
    return lower, upper


def taught(
    rules: Rules,
    places: Layout,
    numbers: Numbers,
    position: Position,
    z: Array,
    s: int,
    reading: tuple[float, ...],
    y: float,
    missed: bool,
    lam: float,
    leader: int,
) -> tuple[Position, tuple[float, ...]]:
    """The position after a label, and its losses; NaN says that there is no label."""
    losses, memories = judge(rules, numbers, position, missed)
    losses = tuple([losses[i] if y == y else nan for i in rules.risks])
    score = rules.score(reading, y) if rules.scored else 0.0
    scores = tuple([score for i in rules.risks])
    family = known(rules, places, numbers, position, z, s, reading, y)
    after = learn(rules, numbers, position, losses, memories, scores, lam, leader, family)
    return after, losses


def known(
    rules: Rules,
    places: Layout,
    numbers: Numbers,
    position: Position,
    z: Array,
    s: int,
    reading: tuple[float, ...],
    y: float,
) -> tuple[float, ...]:
    """What the family remembers after a label; the cell of its phase is written into column s."""
    if rules.phase is not None:
        first = places.cells + len(places.cell) * int(reading[-1])
        memory = position.family + tuple([z[first + k, s] for k in places.cell])
        next_memory = rules.observe(numbers.family, memory, reading, y) if y == y else memory
        for k in places.cell:
            z[first + k, s] = next_memory[len(position.family) + k]
        return tuple([next_memory[k] for k in range(len(places.position.family))])
    if rules.observe is not None:
        learnt: tuple[float, ...] = (
            rules.observe(numbers.family, position.family, reading, y)
            if y == y
            else position.family
        )
        return learnt
    return position.family


# Labels that come late.


def due(t: int, length: int, delay: int, upto: Array) -> int:
    """How many labels of a stream are known when the set of row t is made: all of them at its end.

    `upto` is empty where every label comes `delay` rows late.
    """
    if t == length:
        return length
    return t - delay if len(upto) == 0 else upto[t]


def heeded(
    rules: Rules, numbers: Numbers, position: Position, waiting: float, peak: float
) -> tuple[Position, float]:
    """The position when a set is made beside `waiting` others, and the most that ever waited."""
    if rules.heeds and waiting >= peak:
        position = heed(rules, numbers, position, waiting)
    return position, (waiting + 1.0 if waiting >= peak else peak)


def keep(
    places: Layout,
    ring: Array,
    slot: int,
    reading: tuple[float, ...],
    lam: float,
    leader: int,
    missed: bool,
) -> None:
    """What a row leaves for its label."""
    ring[slot, 0], ring[slot, 1], ring[slot, 2] = lam, leader, 1.0 if missed else 0.0
    for k in places.readings:
        ring[slot, 3 + k] = reading[k]


def answered(
    rules: Rules,
    places: Layout,
    numbers: Numbers,
    position: Position,
    z: Array,
    s: int,
    ring: Array,
    slot: int,
    y: float,
) -> tuple[Position, tuple[float, ...], float, int]:
    """The position after a late label, its losses, and the λ and leader of its set."""
    lam, leader = ring[slot, 0], int(ring[slot, 1])
    reading = tuple([ring[slot, 3 + k] for k in places.readings])
    missed = ring[slot, 2] > 0.0
    position, values = taught(
        rules, places, numbers, position, z, s, reading, y, missed, lam, leader
    )
    return position, values, lam, leader
