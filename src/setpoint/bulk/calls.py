"""Loops behind the calls of a fleet: one row of sets for many streams, and one row of labels."""

from math import inf
from typing import Any

from numpy import float64

from setpoint.bulk.loops import (
    beyond,
    numbers_at,
    position_at,
    prepared,
    put_position,
    shown,
    taught,
)
from setpoint.bulk.vectors import Layout
from setpoint.recursion import Rules, aim, heed, turn

__all__ = ["aim_row", "learn_row"]

Array = Any


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
    go_on: bool,
    waits: Array,
    lowers: Array,
    uppers: Array,
    lams: Array,
    leaders: Array,
    out_loss: Array,
    told: Array,
) -> None:
    """One row of labels for the streams in `rows`: NaN leaves a stream as it is.

    `go_on` says that predictions without a label go on waiting.

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
        z[places.counters.missing, s] += 1.0 if is_open & (not go_on) else 0.0
        waits[j] = is_open & go_on
        left += 1 if is_open & go_on else 0
    told[1] = left
