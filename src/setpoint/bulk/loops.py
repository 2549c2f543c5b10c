"""Bulk loops: the recursion over arrays.

    along     each stream of a tape from its first row to its last, with everything written down
    sweep     one configuration after the other over a tape, with tallies instead of traces
    fleet     many streams side by side, one row of a time-major tape after the other
    aim_row   one row of sets for many streams, and
    learn_row one row of labels
    events    predictions and labels of many streams in the order in which they came
    unsound   the first row that is no prediction

`bulk.compile` makes a function of each for one layout: it works out what `rules`, `places`, `rows`
and `narrow` say, unrolls loops over them, and hands the rest to numba, or to Python as it is.
Columns of a tape come in a tuple. `told` is how a loop reports back.
"""

from math import inf, nan
from typing import Any

from numpy import float32, float64

from setpoint.bulk.vectors import Layout
from setpoint.metrics.tally import NOTHING, count, measure, restarted
from setpoint.recursion import Numbers, Position, Rules, aim, heed, judge, learn, show

__all__ = [
    "aim_row", "along", "beyond", "events", "fleet", "learn_row", "note", "numbers_at",
    "position_at", "prepared", "put_position", "risky", "shown", "sweep", "taught", "unsound",
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
                position, values = taught(rules, numbers, position, reading, y, False, lam, leader)
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
    negative, in that column of `given`. `totals` has the sum of each risk's losses, `extremes` what
    `note` keeps of each risk whose loss is a user's own.
    """
    for j in range(p.shape[1]):
        numbers = numbers_at(rules, places, p, j)
        tally = NOTHING
        for s in range(len(offsets) - 1):
            tally = restarted(tally)
            position = position_at(rules, places, begin, j)
            if which[s] >= 0:
                position = position_at(rules, places, given, which[s])
            for t in range(offsets[s], offsets[s + 1]):
                y = float64(labels[t])
                row = tuple([float64(columns[i][t]) for i in rules.columns])
                reading = prepared(rules, numbers, position, row)
                lam, leader = aim(rules, numbers, position)
                lower, upper = shown(rules, narrow, numbers, reading, lam)
                if y != y:
                    continue
                length, whole, nothing, near, apart = measure(
                    lower, upper, y, numbers.support[0], numbers.support[1]
                )
                if (lower <= y) & (y <= upper):
                    position, values = taught(
                        rules, numbers, position, reading, y, False, lam, leader
                    )
                    tally = count(tally, length, whole, nothing, near, apart, False)
                else:
                    position, values = taught(
                        rules, numbers, position, reading, y, True, lam, leader
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
            reading = prepared(rules, numbers, position, row)
            lam, leader = aim(rules, numbers, position)
            lower, upper = shown(rules, narrow, numbers, reading, lam)
            lowers[s], uppers[s] = lower, upper
            missed = not ((lower <= y) & (y <= upper))
            position, _ = taught(rules, numbers, position, reading, y, missed, lam, leader)
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


def aim_row(
    rules: Rules,
    places: Layout,
    narrow: bool,
    p: Array,
    z: Array,
    rows: Array,
    others: Array,
    columns: tuple[Array, ...],
    out_reading: Array,
    out_lower: Array,
    out_upper: Array,
    out_lam: Array,
    out_leader: Array,
    told: Array,
) -> None:
    """One row of sets for the streams in `rows`; `told[0]` is the number of wrong predictions.

    `others` says how many other predictions of each stream wait; it is empty where no rule asks.
    `out_reading` takes what the receipts hold: one row for each number of a reading, none where
    the label needs nothing of it.
    """
    numbers = numbers_at(rules, places, p, 0)
    wrong = 0
    for j in range(len(rows)):
        row = tuple([float64(columns[i][j]) for i in rules.columns])
        wrong += 0 if rules.sound(row) else 1
        position = position_at(rules, places, z, rows[j])
        if rules.heeds:
            position = heed(rules, numbers, position, others[j])
            put_position(rules, places, z, rows[j], position)
        reading = prepared(rules, numbers, position, row)
        lam, leader = aim(rules, numbers, position)
        lower, upper = shown(rules, narrow, numbers, reading, lam)
        out_lower[j], out_upper[j], out_lam[j], out_leader[j] = lower, upper, lam, leader
        for k in places.readings:
            out_reading[k, j] = reading[k]
    told[0] = wrong


def learn_row(
    rules: Rules,
    places: Layout,
    p: Array,
    z: Array,
    rows: Array,
    held: Array,
    labels: Array,
    late: bool,
    waits: Array,
    lowers: Array,
    uppers: Array,
    lams: Array,
    leaders: Array,
    out_loss: Array,
    told: Array,
) -> None:
    """One row of labels for the streams in `rows`: NaN leaves a stream as it is.

    `told[0]` is the number of labels that are wrong or answer what does not wait; if there are
    any, nothing is done. `told[1]` is how many still wait.
    """
    numbers = numbers_at(rules, places, p, 0)
    wrong, left = 0, 0
    for j in range(len(rows)):
        y = float64(labels[j])
        infinite = (y == inf) | (y == -inf) | beyond(rules, numbers, y)
        wrong += 1 if infinite | ((y == y) & (not waits[j])) else 0
    told[0] = wrong
    if wrong > 0:
        return
    for j in range(len(rows)):
        y, lam, leader, s = float64(labels[j]), lams[j], leaders[j], rows[j]
        lower, upper = float64(lowers[j]), float64(uppers[j])
        reading = tuple([held[k, j] for k in places.readings])
        missed = not ((lower <= y) & (y <= upper))
        position = position_at(rules, places, z, s)
        position, values = taught(rules, numbers, position, reading, y, missed, lam, leader)
        put_position(rules, places, z, s, position)
        seen = y == y
        for i in rules.risks:
            out_loss[i, j] = values[i]
        z[places.counters.judged, s] += 1.0 if seen else 0.0
        z[places.counters.full, s] += 1.0 if seen & (lam == inf) else 0.0
        z[places.counters.empty, s] += 1.0 if seen & (lam == -inf) else 0.0
        z[places.counters.torn, s] += 1.0 if seen & (leader < 0) else 0.0
        is_open = waits[j] & (not seen)
        z[places.counters.missing, s] += 1.0 if is_open & (not late) else 0.0
        waits[j] = is_open & late
        left += 1 if is_open & late else 0
    told[1] = left


def events(
    rules: Rules,
    places: Layout,
    narrow: bool,
    p: Array,
    z: Array,
    peaks: Array,
    waiting: Array,
    rows: Array,
    slots: Array,
    asks: Array,
    columns: tuple[Array, ...],
    labels: Array,
    held: Array,
    lowers: Array,
    uppers: Array,
    lams: Array,
    leaders: Array,
    out_loss: Array,
) -> None:
    """Predictions and labels of many streams in the order in which they came.

    Event j belongs to the stream in column `rows[j]`. Where `asks[j]`, it is a prediction, which
    leaves what its label will ask for in `slots[j]`; else the label of what lies in that slot,
    where NaN says that none will come. `waiting` counts what each stream awaits, and `peaks` the
    most it ever did.
    """
    numbers = numbers_at(rules, places, p, 0)
    for j in range(len(rows)):
        s, k = rows[j], slots[j]
        position = position_at(rules, places, z, s)
        if asks[j]:
            if waiting[s] >= peaks[s]:
                if rules.heeds:
                    position = heed(rules, numbers, position, waiting[s])
                    put_position(rules, places, z, s, position)
                peaks[s] = waiting[s] + 1.0
            waiting[s] += 1.0
            row = tuple([float64(columns[i][j]) for i in rules.columns])
            reading = prepared(rules, numbers, position, row)
            lam, leader = aim(rules, numbers, position)
            lowers[k], uppers[k] = shown(rules, narrow, numbers, reading, lam)
            lams[k], leaders[k] = lam, leader
            for i in places.readings:
                held[i, k] = reading[i]
        else:
            waiting[s] -= 1.0
            y, lam, leader = float64(labels[j]), lams[k], leaders[k]
            reading = tuple([held[i, k] for i in places.readings])
            missed = not ((lowers[k] <= y) & (y <= uppers[k]))
            position, values = taught(rules, numbers, position, reading, y, missed, lam, leader)
            put_position(rules, places, z, s, position)
            for i in rules.risks:
                out_loss[i, j] = values[i]
            seen = y == y
            z[places.counters.judged, s] += 1.0 if seen else 0.0
            z[places.counters.full, s] += 1.0 if seen & (lam == inf) else 0.0
            z[places.counters.empty, s] += 1.0 if seen & (lam == -inf) else 0.0
            z[places.counters.torn, s] += 1.0 if seen & (leader < 0) else 0.0
            z[places.counters.missing, s] += 0.0 if seen else 1.0
