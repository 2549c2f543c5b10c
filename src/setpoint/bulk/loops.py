"""Bulk loops: the recursion over arrays.

    along     each stream of a tape from its first row to its last, with everything written down
    sweep     one configuration after the other over a tape, with tallies instead of traces
    fleet     many streams side by side, one row of a time-major tape after the other
    aim_row   one row of sets for many streams, and
    learn_row one row of labels
    events    predictions and labels of many streams in the order in which they came
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

from numpy import float64

from setpoint.bulk.moves import (
    answered,
    due,
    heeded,
    keep,
    numbers_at,
    position_at,
    prepared,
    put_position,
    shown,
    taught,
)
from setpoint.bulk.vectors import Layout
from setpoint.metrics.tally import NOTHING, count, measure, restarted
from setpoint.recursion import Numbers, Position, Rules, aim, heed, turn

__all__ = [
    "aim_row", "along", "beyond", "events", "fleet", "learn_row", "note", "risky", "sweep",
    "unsound",
]  # fmt: skip

Array = Any


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
    """One row of sets for the streams in `rows`.

    `told[0]` is the number of wrong predictions; if there are any, nothing is done.

    `others` says how many other predictions of each stream wait; it is empty where no rule asks.
    `out_reading` takes what the receipts hold: one row for each number of a reading, none where
    the label needs nothing of it.
    """
    numbers = numbers_at(rules, places, p, 0)
    wrong = 0
    for j in range(len(rows)):
        wrong += 0 if rules.sound(tuple([float64(columns[i][j]) for i in rules.columns])) else 1
    told[0] = wrong
    if wrong > 0:
        return
    for j in range(len(rows)):
        row = tuple([float64(columns[i][j]) for i in rules.columns])
        position = position_at(rules, places, z, rows[j])
        if rules.heeds:
            position = heed(rules, numbers, position, others[j])
        reading = prepared(rules, places, numbers, position, z, rows[j], row)
        position = turn(rules, numbers, position, reading)
        if rules.heeds | rules.turns:
            put_position(rules, places, z, rows[j], position)
        lam, leader = aim(rules, numbers, position)
        lower, upper = shown(rules, narrow, numbers, reading, lam)
        out_lower[j], out_upper[j], out_lam[j], out_leader[j] = lower, upper, lam, leader
        for k in places.readings:
            out_reading[k, j] = reading[k]


def learn_row(
    rules: Rules,
    places: Layout,
    p: Array,
    z: Array,
    rows: Array,
    held: Array,
    labels: Array,
    lasting: bool,
    waits: Array,
    lowers: Array,
    uppers: Array,
    lams: Array,
    leaders: Array,
    out_loss: Array,
    told: Array,
) -> None:
    """One row of labels for the streams in `rows`: NaN leaves a stream as it is.

    `lasting` says that a prediction without a label goes on waiting.
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
        position, values = taught(
            rules, places, numbers, position, z, s, reading, y, missed, lam, leader
        )
        put_position(rules, places, z, s, position)
        seen = y == y
        for i in rules.risks:
            out_loss[i, j] = values[i]
        z[places.counters.judged, s] += 1.0 if seen else 0.0
        z[places.counters.full, s] += 1.0 if seen & (lam == inf) else 0.0
        z[places.counters.empty, s] += 1.0 if seen & (lam == -inf) else 0.0
        z[places.counters.torn, s] += 1.0 if seen & (leader < 0) else 0.0
        is_open = waits[j] & (not seen)
        z[places.counters.missing, s] += 1.0 if is_open & (not lasting) else 0.0
        waits[j] = is_open & lasting
        left += 1 if is_open & lasting else 0
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
            position, peaks[s] = heeded(rules, numbers, position, waiting[s], peaks[s])
            waiting[s] += 1.0
            row = tuple([float64(columns[i][j]) for i in rules.columns])
            reading = prepared(rules, places, numbers, position, z, s, row)
            position = turn(rules, numbers, position, reading)
            if rules.heeds | rules.turns:
                put_position(rules, places, z, s, position)
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
            position, values = taught(
                rules, places, numbers, position, z, s, reading, y, missed, lam, leader
            )
            put_position(rules, places, z, s, position)
            for i in rules.risks:
                out_loss[i, j] = values[i]
            seen = y == y
            z[places.counters.judged, s] += 1.0 if seen else 0.0
            z[places.counters.full, s] += 1.0 if seen & (lam == inf) else 0.0
            z[places.counters.empty, s] += 1.0 if seen & (lam == -inf) else 0.0
            z[places.counters.torn, s] += 1.0 if seen & (leader < 0) else 0.0
            z[places.counters.missing, s] += 0.0 if seen else 1.0
