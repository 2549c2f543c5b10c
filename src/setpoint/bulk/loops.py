"""Bulk loops: the recursion over arrays.

    along     each stream of a tape from its first row to its last, with everything written down
    sweep     one configuration after the other over a tape, with tallies instead of traces
    fleet     many streams side by side, one row of a time-major tape after the other
    aim_row   one row of sets for many streams, and
    learn_row one row of labels
    unsound   the first row that is no prediction

`bulk.compile` makes a function of each for one layout: it works out what `rules`, `places`, `rows`
and `narrow` say, unrolls loops over them, and hands the rest to numba, or to Python as it is.
Columns of a tape come in a tuple. `told` is how a loop reports back.
"""

from math import inf, nan
from typing import Any

from numpy import float32, float64

from setpoint.bulk.vectors import Layout
from setpoint.metrics.tally import Tally, count, measure
from setpoint.recursion import Numbers, Position, Rules, aim, judge, learn, show

__all__ = ["along", "aim_row", "fleet", "learn_row", "sweep", "unsound"]

Array = Any


# What loops share.


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
        if rules.lifts:
            z[places.position.lifts[i], s] = position.lifts[i]
            z[places.position.lifted[i], s] = position.lifted[i]
    if rules.move is not None:
        for k in range(len(places.position.stretch)):
            z[places.position.stretch[k], s] = position.stretch[k]
    for k in range(len(places.position.family)):
        z[places.position.family[k], s] = position.family[k]


def prepared(
    rules: Rules, numbers: Numbers, position: Position, row: tuple[float, ...]
) -> tuple[float, ...]:
    """A row as its receipt holds it."""
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
    numbers: Numbers,
    position: Position,
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
    family = position.family
    if rules.observe is not None:
        learnt = rules.observe(numbers.family, family, reading, y) if y == y else family
        family = learnt
    scores = tuple([score for i in rules.risks])
    after = learn(rules, numbers, position, losses, memories, scores, lam, leader, family)
    return after, losses


# A tape.


def along(
    rules: Rules,
    places: Layout,
    narrow: bool,
    p: Array,
    z: Array,
    offsets: Array,
    columns: tuple[Array, ...],
    labels: Array,
    out_lower: Array,
    out_upper: Array,
    out_lam: Array,
    out_covered: Array,
    out_theta: Array,
    out_loss: Array,
) -> None:
    """Each stream of a tape, with everything written down; `out_covered` comes filled with True."""
    numbers = numbers_at(rules, places, p, 0)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        position = position_at(rules, places, z, s)
        rows = tuple([columns[i][first:last] for i in rules.columns])
        y_of, covered = labels[first:last], out_covered[first:last]
        lowers, uppers, lams = out_lower[first:last], out_upper[first:last], out_lam[first:last]
        thetas = tuple([out_theta[i, first:last] for i in rules.risks])
        losses = tuple([out_loss[i, first:last] for i in rules.risks])
        judged, full, empty, torn, missing = 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(last - first):
            y = float64(y_of[t])
            row = tuple([float64(rows[i][t]) for i in rules.columns])
            reading = prepared(rules, numbers, position, row)
            lam, leader = aim(rules, numbers, position)
            lower, upper = shown(rules, narrow, numbers, reading, lam)
            lowers[t], uppers[t], lams[t] = lower, upper, lam
            for i in rules.risks:
                thetas[i][t] = position.theta[i]
            if not (y == y):
                for i in rules.risks:
                    losses[i][t] = nan
                covered[t] = False
                missing += 1.0
                continue
            # In each branch the loss is a constant, so that whatever follows from it alone is
            # computed once. `covered` is written in one of them: a compiler then keeps the branch,
            # and the next θ need not wait for this λ.
            if (lower <= y) & (y <= upper):
                position, values = taught(
                    rules, numbers, position, reading, y, False, lam, leader
                )
            else:
                position, values = taught(rules, numbers, position, reading, y, True, lam, leader)
                covered[t] = False
            for i in rules.risks:
                losses[i][t] = values[i]
            judged += 1.0
            full += 1.0 if lam == inf else 0.0
            empty += 1.0 if lam == -inf else 0.0
            torn += 1.0 if leader < 0 else 0.0
        put_position(rules, places, z, s, position)
        z[places.counters.judged, s] += judged
        z[places.counters.full, s] += full
        z[places.counters.empty, s] += empty
        z[places.counters.torn, s] += torn
        z[places.counters.missing, s] += missing


def sweep(
    rules: Rules,
    places: Layout,
    narrow: bool,
    p: Array,
    begin: Array,
    given: Array,
    which: Array,
    offsets: Array,
    columns: tuple[Array, ...],
    labels: Array,
    tallies: Array,
    totals: Array,
    extremes: Array,
) -> None:
    """One configuration after the other over the same tape.

    A stream begins in `begin`, where each configuration has a state, or, if `which` is not
    negative, in that column of `given`. `totals` has the sum of each risk's losses; `extremes` has
    four rows for each risk whose loss is a user's own: its least and largest value, and its worst
    on full and on empty sets.
    """
    for j in range(p.shape[1]):
        numbers = numbers_at(rules, places, p, j)
        tally = Tally(
            tallies[0, j], tallies[1, j], tallies[2, j], tallies[3, j], tallies[4, j],
            tallies[5, j], tallies[6, j], tallies[7, j], tallies[8, j], tallies[9, j],
            tallies[10, j], tallies[11, j],
        )  # fmt: skip
        for s in range(len(offsets) - 1):
            position = position_at(rules, places, begin, j)
            if which[s] >= 0:
                position = position_at(rules, places, given, which[s])
            before = position.total
            streak = 0.0
            for t in range(offsets[s], offsets[s + 1]):
                y = float64(labels[t])
                row = tuple([float64(columns[i][t]) for i in rules.columns])
                reading = prepared(rules, numbers, position, row)
                lam, leader = aim(rules, numbers, position)
                lower, upper = shown(rules, narrow, numbers, reading, lam)
                if not (y == y):
                    continue
                length, whole, nothing, near, apart = measure(
                    lower, upper, y, numbers.support[0], numbers.support[1]
                )
                if (lower <= y) & (y <= upper):
                    position, values = taught(
                        rules, numbers, position, reading, y, False, lam, leader
                    )
                    tally = count(tally, length, whole, nothing, near, apart, False, streak)
                    streak = 0.0
                else:
                    position, values = taught(
                        rules, numbers, position, reading, y, True, lam, leader
                    )
                    tally = count(tally, length, whole, nothing, near, apart, True, streak)
                    streak += 1.0
                for i in rules.risks:
                    if places.doubted[i]:
                        note(rules, i, extremes, j, values[i], lam)
            for i in rules.risks:
                totals[i, j] += position.total[i]
        for k in range(12):
            tallies[k, j] = tally[k]
