"""Bulk loops: the recursion over arrays.

    along     each stream of a tape from its first row to its last, with everything written down
    sweep     one configuration after the other over a tape, with tallies instead of traces
    fleet     many streams side by side, one row of a time-major tape after the other
    unsound   the first row that is no prediction

`bulk.compile` makes a function of each for one layout: it works out what `rules`, `places`,
`narrow` and `late` say, unrolls loops over them, and hands the rest to numba, or to Python as it
is. Columns of a tape come in a tuple. `told` is how a loop reports back.

Where labels come late, `delays` has the delay of each stream; or `order` has the rows of each
stream in the order in which their labels become known, and `upto` how many of them are known when
the set of a row is made. What a row leaves for its label waits in a `ring`, in the slot of its
number.
"""

from math import inf, nan
from typing import Any

from numpy import float32, float64

from setpoint.bulk.vectors import Layout
from setpoint.metrics.tally import NOTHING, count, measure, restarted
from setpoint.recursion import Numbers, Position, Rules, aim, heed, judge, learn, show, turn

__all__ = [
    "along", "answered", "beyond", "due", "fleet", "heeded", "keep", "known",
    "note", "numbers_at", "position_at", "prepared", "put_position", "risky", "shown",
    "sweep", "taught", "unsound",
]  # fmt: skip

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


# A tape.


def along(
    rules: Rules,
    places: Layout,
    narrow: bool,
    late: bool,
    p: Array,
    z: Array,
    offsets: Array,
    delays: Array,
    order: Array,
    upto: Array,
    ring: Array,
    peaks: Array,
    columns: tuple[Array, ...],
    labels: Array,
    out_lower: Array,
    out_upper: Array,
    out_lam: Array,
    out_covered: Array,
    out_theta: Array,
    out_loss: Array,
) -> None:
    """Each stream of a tape, with everything written down; `out_covered` comes filled with True.

    `peaks` has the most that ever waited at once in each stream.
    """
    numbers = numbers_at(rules, places, p, 0)
    mask = ring.shape[0] - 1
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        position = position_at(rules, places, z, s)
        rows = tuple([columns[i][first:last] for i in rules.columns])
        y_of, covered = labels[first:last], out_covered[first:last]
        lowers, uppers, lams = out_lower[first:last], out_upper[first:last], out_lam[first:last]
        thetas = tuple([out_theta[i, first:last] for i in rules.risks])
        losses = tuple([out_loss[i, first:last] for i in rules.risks])
        judged, full, empty, torn, missing = 0.0, 0.0, 0.0, 0.0, 0.0
        if late:
            done, peak, order_of, upto_of = 0, peaks[s], order[first:last], upto[first:last]
        for t in range(last - first + (1 if late else 0)):
            if late:
                ready = due(t, last - first, delays[s], upto_of)
                while done < ready:
                    r = done if len(order_of) == 0 else order_of[done]
                    done += 1
                    y = float64(y_of[r])
                    if y != y:
                        missing += 1.0
                        continue
                    position, values, lam, leader = answered(
                        rules, places, numbers, position, z, s, ring, r & mask, y
                    )
                    for i in rules.risks:
                        losses[i][r] = values[i]
                    judged += 1.0
                    full += 1.0 if lam == inf else 0.0
                    empty += 1.0 if lam == -inf else 0.0
                    torn += 1.0 if leader < 0 else 0.0
                if t == last - first:
                    break
                position, peak = heeded(rules, numbers, position, float64(t - done), peak)
            y = float64(y_of[t])
            row = tuple([float64(rows[i][t]) for i in rules.columns])
            reading = prepared(rules, places, numbers, position, z, s, row)
            position = turn(rules, numbers, position, reading)
            lam, leader = aim(rules, numbers, position)
            lower, upper = shown(rules, narrow, numbers, reading, lam)
            lowers[t], uppers[t], lams[t] = lower, upper, lam
            for i in rules.risks:
                thetas[i][t] = position.theta[i]
            if late:
                covered[t] = (lower <= y) & (y <= upper)
                for i in rules.risks:
                    losses[i][t] = nan
                keep(places, ring, t & mask, reading, lam, leader, not covered[t])
                continue
            if y != y:
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
                    rules, places, numbers, position, z, s, reading, y, False, lam, leader
                )
            else:
                position, values = taught(
                    rules, places, numbers, position, z, s, reading, y, True, lam, leader
                )
                covered[t] = False
            for i in rules.risks:
                losses[i][t] = values[i]
            judged += 1.0
            full += 1.0 if lam == inf else 0.0
            empty += 1.0 if lam == -inf else 0.0
            torn += 1.0 if leader < 0 else 0.0
        put_position(rules, places, z, s, position)
        if late:
            peaks[s] = peak
        z[places.counters.judged, s] += judged
        z[places.counters.full, s] += full
        z[places.counters.empty, s] += empty
        z[places.counters.torn, s] += torn
        z[places.counters.missing, s] += missing


def sweep(
    rules: Rules,
    places: Layout,
    narrow: bool,
    late: bool,
    p: Array,
    begin: Array,
    given: Array,
    which: Array,
    work: Array,
    offsets: Array,
    delays: Array,
    order: Array,
    upto: Array,
    ring: Array,
    peaks: Array,
    columns: tuple[Array, ...],
    labels: Array,
    tallies: Array,
    totals: Array,
    extremes: Array,
) -> None:
    """One configuration after the other over the same tape.

    A stream begins in `begin`, where each configuration has a state, or, if `which` is not
    negative, in that column of `given`. `work` has a column for the cells of a season. `totals` has
    the sum of each risk's losses, `extremes` what `note` keeps of each risk whose loss is a user's
    own. `peaks` has the most that waited at once before each stream.
    """
    mask = ring.shape[0] - 1
    for j in range(p.shape[1]):
        numbers = numbers_at(rules, places, p, j)
        tally = NOTHING
        for s in range(len(offsets) - 1):
            tally = restarted(tally)
            position = position_at(rules, places, begin, j)
            if which[s] >= 0:
                position = position_at(rules, places, given, which[s])
            if rules.phase is not None:
                for k in range(places.cells, len(work)):
                    work[k, 0] = given[k, which[s]] if which[s] >= 0 else begin[k, j]
            first, last = offsets[s], offsets[s + 1]
            if late:
                done, peak, order_of, upto_of = 0, peaks[s], order[first:last], upto[first:last]
            for t in range(first, last + (1 if late else 0)):
                if late:
                    ready = due(t - first, last - first, delays[s], upto_of)
                    while done < ready:
                        r = done if len(order_of) == 0 else order_of[done]
                        done += 1
                        y = float64(labels[first + r])
                        if y != y:
                            continue
                        position, values, lam, _ = answered(
                            rules, places, numbers, position, work, 0, ring, r & mask, y
                        )
                        for i in rules.risks:
                            if places.doubted[i]:
                                sign = -1.0 if rules.grows[i] else 1.0
                                note(extremes, i, j, values[i], lam, sign)
                    if t == last:
                        break
                    waiting = float64(t - first - done)
                    position, peak = heeded(rules, numbers, position, waiting, peak)
                y = float64(labels[t])
                row = tuple([float64(columns[i][t]) for i in rules.columns])
                reading = prepared(rules, places, numbers, position, work, 0, row)
                position = turn(rules, numbers, position, reading)
                lam, leader = aim(rules, numbers, position)
                lower, upper = shown(rules, narrow, numbers, reading, lam)
                if late:
                    missed = not ((lower <= y) & (y <= upper))
                    keep(places, ring, (t - first) & mask, reading, lam, leader, missed)
                if y != y:
                    continue
                length, whole, nothing, near, apart = measure(
                    lower, upper, y, numbers.support[0], numbers.support[1]
                )
                if late:
                    tally = count(tally, length, whole, nothing, near, apart, missed)
                    continue
                if (lower <= y) & (y <= upper):
                    position, values = taught(
                        rules, places, numbers, position, work, 0, reading, y, False, lam, leader
                    )
                    tally = count(tally, length, whole, nothing, near, apart, False)
                else:
                    position, values = taught(
                        rules, places, numbers, position, work, 0, reading, y, True, lam, leader
                    )
                    tally = count(tally, length, whole, nothing, near, apart, True)
                for i in rules.risks:
                    if places.doubted[i]:
                        note(extremes, i, j, values[i], lam, -1.0 if rules.grows[i] else 1.0)
            for i in rules.risks:
                totals[i, j] += position.total[i]
        for k in range(12):
            tallies[k, j] = tally[k]


def note(extremes: Array, i: int, j: int, value: float, lam: float, sign: float) -> None:
    """What the promises of a loss are held against: its least and largest value, its worst on
    full and on empty sets, and whether it was ever no number."""
    extremes[i, 0, j] = value if value < extremes[i, 0, j] else extremes[i, 0, j]
    extremes[i, 1, j] = value if value > extremes[i, 1, j] else extremes[i, 1, j]
    if lam == inf:
        extremes[i, 2, j] = value if sign * (value - extremes[i, 2, j]) > 0.0 else extremes[i, 2, j]
    if lam == -inf:
        extremes[i, 3, j] = value if sign * (value - extremes[i, 3, j]) < 0.0 else extremes[i, 3, j]
    extremes[i, 4, j] += 0.0 if value == value else 1.0


def unsound(rules: Rules, columns: tuple[Array, ...], told: Array) -> None:
    """`told[0]` becomes the first row that is no prediction, −1 if there is none."""
    told[0] = -1
    for t in range(len(columns[0])):
        if not rules.sound(tuple([float64(columns[i][t]) for i in rules.columns])):
            told[0] = t
            return


# A fleet.


def risky(rules: Rules, numbers: Numbers, position: Position) -> bool:
    """Whether the safeguard may choose the next set: θ is outside, or φ may have overflowed."""
    outside = False
    for i in rules.risks:
        theta = position.theta[i]
        outside = outside | (theta > numbers.top[i]) | (theta < numbers.bottom[i])
        lam = rules.phi(numbers.phi, position.stretch, theta)
        outside = outside | (lam - lam != 0.0)
    return outside


def fleet(
    rules: Rules,
    places: Layout,
    narrow: bool,
    p: Array,
    z: Array,
    columns: tuple[Array, ...],
    labels: Array,
    out_lower: Array,
    out_upper: Array,
    told: Array,
) -> None:
    """Many streams side by side, one row of a time-major tape after the other.

    `told[0]` is 0 at the end, or the number of the row, from 1, at which a wrong prediction or
    label ended it. What is rare is counted apart: as long as no θ is outside its bounds, and
    almost always none is, no full or empty set needs counting.
    """
    numbers = numbers_at(rules, places, p, 0)
    steps, streams = labels.shape
    outside = 1
    for t in range(steps):
        row_of = tuple([columns[i][t] for i in rules.columns])
        y_of, lowers, uppers = labels[t], out_lower[t], out_upper[t]
        if outside > 0:
            for s in range(streams):
                lam, leader = aim(rules, numbers, position_at(rules, places, z, s))
                seen = y_of[s] == y_of[s]
                z[places.counters.full, s] += 1.0 if seen & (lam == inf) else 0.0
                z[places.counters.empty, s] += 1.0 if seen & (lam == -inf) else 0.0
                z[places.counters.torn, s] += 1.0 if seen & (leader < 0) else 0.0
        rare = 0
        for s in range(streams):
            y = float64(y_of[s])
            row = tuple([float64(row_of[i][s]) for i in rules.columns])
            position = position_at(rules, places, z, s)
            reading = prepared(rules, places, numbers, position, z, s, row)
            position = turn(rules, numbers, position, reading)
            lam, leader = aim(rules, numbers, position)
            lower, upper = shown(rules, narrow, numbers, reading, lam)
            lowers[s], uppers[s] = lower, upper
            missed = not ((lower <= y) & (y <= upper))
            position, _ = taught(
                rules, places, numbers, position, z, s, reading, y, missed, lam, leader
            )
            put_position(rules, places, z, s, position)
            odd = (not rules.sound(row)) | (y - y != 0.0) | beyond(rules, numbers, y)
            rare += 1 if odd | risky(rules, numbers, position) else 0
        outside = 0
        if rare > 0:
            wrong = 0
            for s in range(streams):
                y = float64(y_of[s])
                row = tuple([float64(row_of[i][s]) for i in rules.columns])
                infinite = (y == inf) | (y == -inf) | beyond(rules, numbers, y)
                wrong += 1 if infinite | (not rules.sound(row)) else 0
                outside += 1 if risky(rules, numbers, position_at(rules, places, z, s)) else 0
                hidden = 0.0 if y == y else 1.0
                z[places.counters.missing, s] += hidden
                z[places.counters.judged, s] -= hidden
            if wrong > 0:
                told[0] = t + 1
                return
    for s in range(streams):
        z[places.counters.judged, s] += steps


def beyond(rules: Rules, numbers: Numbers, y: float) -> bool:
    """Whether a label lies outside the support."""
    if rules.cuts:
        return (y < numbers.support[0]) | (y > numbers.support[1])
    return False
