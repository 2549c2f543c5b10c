"""Bulk loops: the recursion over arrays, made of a layout by closure.

    correct   the correction over a tape: a base for every row, before any controller
    along     labels at once: each stream from its first row to its last, its state in registers
    run       anything late: each stream through its events, e ≥ 0 asks row e, e < 0 answers row ~e
    sweep     one configuration after the other over the same rows, tallies instead of traces
    unsound   the first row that is no prediction

The same closures run in plain Python and compiled. Vectors lie one row a stream; arrays are indexed
one axis at a time, so that lists serve as well. The risks of groups lie one row a group; without
groups these arrays are None, and a compiler leaves out what is about them.
"""

from math import inf, nan
from typing import Any, NamedTuple

from numpy import float64

from setpoint.bulk import chains
from setpoint.bulk.chains import Access, Wrap
from setpoint.bulk.layout import HEAD, OPEN, Layout
from setpoint.metrics.tally import NOTHING, Tally, count, measure, restarted
from setpoint.recursion import Recursion, RiskState
from setpoint.sets.family import outermost
from setpoint.sets.fan_arithmetic import apart
from setpoint.state import COUNTS

_FULL, _EMPTY, _TORN, _MISSING = (1 + COUNTS.index(n) for n in ("full", "empty", "torn", "missing"))
_PEAK = 1 + COUNTS.index("peak")
_TALLIED = len(Tally._fields)
_OWN = len(RiskState._fields) - 2


class Loops(NamedTuple):
    """The loops of one layout."""

    correct: Any
    along: Any
    run: Any
    sweep: Any
    unsound: Any


def loops_of(
    layout: Layout,
    closures: Recursion,
    *,
    mark: Wrap,
    jit: Wrap,
    access: Access,
    stamp: str,
) -> Loops:
    """The loops of a layout; `stamp` makes compiled code of other rules another code."""
    aim, learn, drop, glance, enter, judged, leave = closures
    rules, risks, (reader, writer) = layout.rules, len(layout.risks), access
    members, single = rules.members, rules.members == 1
    lowest_of, highest_of = outermost(rules.order or (0,))
    joined, apart_from = bool(rules.order), not (single or rules.order)
    ordered: Any = apart(rules.order, rules.free, mark) if rules.order else None
    stretch_at, memory_at, table_at = layout.at
    stretch_size, memory_size = layout.stretch, layout.memory
    columns, family, grows = layout.columns, layout.family, layout.annex > 0
    begins = layout.begins
    labels, several = layout.classes is not None, rules.several
    simple = single and not several
    stage_params, stretch_params = layout.stage_params, layout.stretch_params
    lists: list[list[Any]] = [[] for _ in range(8)]
    loads, saves, own_loads, own_saves, reads, puts, shuts, numbered = lists
    first = end = 0
    for place, at in enumerate(layout.risk_places):
        (loss, step), (judge, step_params) = layout.risks[place], layout.numbers[place]
        for begin, load_each, save_each in ((at, loads, saves), (at - HEAD, own_loads, own_saves)):
            parts = (begin, _OWN), (begin + _OWN, loss), (begin + _OWN + loss, step)
            load_each.append(chains.reading(*(reader(*part) for part in parts)))
            save_each.append(chains.writing(place, *(writer(*part) for part in parts)))
        reads.append(reader(*parts[2]))
        puts.append(chains.putting_book(place, writer(*parts[2])))
        shuts.append(chains.putting_step(place, writer(*parts[2])))
        first, end = end, end + 3 + judge + step_params
        params = (first, 3), (first + 3, judge), (first + 3 + judge, step_params)
        numbered.append(chains.reading(*(reader(*part) for part in params)))
    numbers_end = end
    load_risks, load_group, read_books, number_risks = (
        chains.gathered(each, mark) for each in (loads, own_loads, reads, numbered)
    )
    save_risks, save_group, put_books, put_steps = (
        chains.in_turn(each, mark) for each in (saves, own_saves, puts, shuts)
    )
    each_risk, each_member = range(risks), range(members)
    split, split_sets = (
        chains.gathered(map(chains.cutting, each), mark) for each in (each_risk, each_member)
    )
    put_values, put_sets = (
        chains.in_turn(map(chains.putting, each), mark) for each in (each_risk, each_member)
    )
    get_sets = chains.gathered(map(chains.getting, each_member), mark)
    put_thetas = chains.in_turn(map(chains.putting_theta, each_risk), mark)
    add_totals = chains.in_turn(map(chains.totalling, each_risk), mark)
    note = chains.in_turn([chains.noting(k, rules.links[k].member) for k in each_risk], mark)
    flags = chains.gathered(map(chains.flag, each_member), mark)
    missed = chains.gathered(map(chains.missing, each_member), mark)
    missed = mark(chains.left_out) if several else missed
    show_ends: Any = None
    narrowed: Any = None
    for place in reversed(each_member):
        show_ends = mark(chains.showing(rules.ends[place], show_ends))
        narrowed = mark(chains.narrowing(narrowed))
    unknown, number = (mark(each) for each in (chains.of_several if several else chains.of_one))
    among = mark(chains.among)
    nothing, lowest, sound = (nan,) * risks, (-inf,) * risks, rules.sound
    read_base, read_row = reader(0, 0 if labels else family), reader(0, columns)
    read_stretch, put_stretch = (each(stretch_at, stretch_size) for each in (reader, writer))
    read_memory, put_memory = (each(memory_at, memory_size) for each in (reader, writer))
    booked = drop is not None
    read_habits, put_habits = reader(0, risks), writer(0, risks)
    held_at = 1 + 2 * members
    read_held, put_held = reader(held_at, risks), writer(held_at, risks)
    read_lams, put_lams = reader(1, members), writer(1, members)
    put_missed, read_missed = writer(1 + members, members), reader(1 + members, members)
    read_stage, read_params = reader(0, stage_params), reader(numbers_end, stretch_params)
    predict, teach = rules.predict, rules.learn
    teach = mark(chains.teaching(teach)) if several and teach is not None else teach

    @mark
    def load(z: Any, s: int) -> Any:
        return load_risks(z, s), read_stretch(z, s)

    @mark
    def save(z: Any, s: int, position: Any) -> None:
        row = z[s]
        save_risks(row, position[0])
        put_stretch(row, position[1])

    @mark
    def numbers_at(p: Any, j: int) -> Any:
        row, after = p[j], numbers_end + stretch_params
        stretch = read_params(p, j)
        support = row[after + 1], row[after + 2], row[after + 3], row[after + 4]
        return (number_risks(p, j), stretch, row[after]), support

    @mark
    def each(lam: Any) -> Any:
        """The λ of each member."""
        if single:
            return (lam,)
        return lam

    @mark
    def shown(base: Any, lam: Any, support: Any, narrow: bool) -> Any:
        lowers, uppers = show_ends(base, each(lam), support)
        if joined:
            lowers, uppers = ordered(lowers, uppers)
        if narrow:
            lowers, uppers = narrowed(lowers, uppers, support)
        return lowers, uppers

    @mark
    def alone(lams: Any) -> Any:
        """λ as the recursion takes it."""
        if single:
            return lams[0]
        return lams

    @mark
    def evidence(misses: Any) -> Any:
        """What the recursion judges."""
        if single:
            return misses[0]
        return misses

    @mark
    def outside(misses: Any) -> bool:
        """Whether the set that counts missed: the outermost, or what all hold."""
        missed = misses[lowest_of] | misses[highest_of]
        if apart_from:
            for i in range(members):
                missed = missed | misses[i]
        return bool(missed)

    outside = mark(chains.any_left_out) if several else outside

    @mark
    def counted(lowers: Any, uppers: Any) -> Any:
        """The ends of the set that counts."""
        lower, upper = lowers[lowest_of], uppers[highest_of]
        if not apart_from:
            return lower, upper
        for i in range(members):
            lower = lowers[i] if lowers[i] > lower else lower
            upper = uppers[i] if uppers[i] < upper else upper
        if lower > upper:
            return inf, -inf
        return lower, upper

    @mark
    def aim_in(
        numbers: Any, each: Any, position: Any, groups: Any, active: Any, habit: Any, i: int
    ) -> Any:
        """As `aim`, for a row of some groups."""
        wide, first = lowest, i * len(active)
        for k in range(len(active)):
            if active[k] >= 0:
                risks = load_group(groups, active[k])
                books, own, wide = glance(each, numbers[1], risks, position[1], wide)
                if booked:
                    put_books(groups[active[k]], books)
                    put_habits(habit[first + k], own)
        position, lam, leader, habits = aim(numbers, position, wide)
        if booked:
            for k in range(len(active)):
                if active[k] >= 0:
                    books, risks = read_books(groups, active[k]), load_group(groups, active[k])
                    put_steps(groups[active[k]], enter(risks, books, lam))
        return position, lam, leader, habits

    @mark
    def answer_in(
        each: Any, groups: Any, active: Any, habit: Any, i: int, base: Any, misses: Any, y: float,
        lam: Any,
    ) -> None:  # fmt: skip
        """A label in the groups of its row."""
        first = i * len(active)
        for k in range(len(active)):
            if active[k] >= 0:
                own = read_habits(habit, first + k) if booked else nothing
                risks = load_group(groups, active[k])
                risks, _ = judged(each, risks, base, evidence(misses), y, lam, own)
                save_group(groups[active[k]], risks)

    @mark
    def give_up_in(groups: Any, active: Any, lam: Any) -> None:
        """What becomes of the groups of a row without a label."""
        if leave is not None:
            for k in range(len(active)):
                if active[k] >= 0:
                    save_group(groups[active[k]], leave(load_group(groups, active[k]), lam))

    @jit
    def correct(
        params: Any, z: Any, streams: Any, bounds: Any, events: Any, rows: Any, y: Any, kept: Any,
        mask: int, out: Any, pool: Any, slots: Any, used: Any,
    ) -> None:  # fmt: skip
        """A base for every row; without events labels come at once, stream after stream.

        `slots` says which row of the pool is the annex of a stream, −1 for none; a new one takes
        the next that is not `used`.
        """
        stamp  # noqa: B018
        p = read_stage(params, 0)
        for k in range(len(streams)):
            s = streams[k]
            memory, table = read_memory(z, s), z[s][table_at:]
            slot, waiting = slots[s], z[s][OPEN]
            annex = pool[slot if slot >= 0 else 0]
            for j in range(bounds[k], bounds[k + 1]):
                e = events[j] if len(events) else j
                i = e if e >= 0 else ~e
                base = kept[i & mask]
                if e >= 0:
                    memory = predict(p, memory, table, annex, rows[e], waiting, base)
                    made = out[e]
                    for m in range(len(made) if labels else family):
                        made[m] = base[begins + m]
                    if len(events):
                        waiting += 1.0
                        continue
                else:
                    waiting -= 1.0
                if not unknown(y[i]):
                    memory = teach(p, memory, table, annex, base, y[i])
                    if grows:  # noqa: SIM102 (a compiler leaves it out by this alone)
                        if (memory[0] > 0.0) & (slot < 0):
                            slot = used[0]
                            used[0], slots[s], annex = slot + 1, slot, pool[slot]
            put_memory(z[s], memory)

    @jit
    def along(
        params: Any, z: Any, offsets: Any, rows: Any, y: Any, narrow: bool, lower: Any, upper: Any,
        lams: Any, covered: Any, theta: Any, loss: Any,
    ) -> None:  # fmt: skip
        """Every label comes before the next row; `covered` comes filled with True."""
        stamp  # noqa: B018
        numbers, support = numbers_at(params, 0)
        for s in range(len(offsets) - 1):
            position = load(z, s)
            missing, full, empty, torn = 0.0, 0.0, 0.0, 0.0
            first, last = offsets[s], offsets[s + 1]
            given, labels, hits = rows[first:last], y[first:last], covered[first:last]
            lowers, uppers = split_sets(lower, first, last), split_sets(upper, first, last)
            shown_lams = split_sets(lams, first, last)
            thetas, losses = split(theta, first, last), split(loss, first, last)
            for i in range(last - first):
                base, label = read_base(given, i), labels[i]
                put_thetas(thetas, i, position[0])
                position, lam, leader, habits = aim(numbers, position)
                low, high = shown(base, lam, support, narrow)
                put_sets(lowers, i, low)
                put_sets(uppers, i, high)
                put_sets(shown_lams, i, each(lam))
                if unknown(label):
                    missing += 1.0
                    hits[i] = False
                    put_values(losses, i, nothing)
                    if drop is not None:
                        position = drop(position, lam)
                    continue
                # In each branch the loss is a constant; `covered` is written in one of them, so
                # that a compiler keeps the branch and the next θ need not wait for this λ.
                heard = number(label)
                if not simple:
                    misses = missed(low, high, label)
                    position, values = learn(
                        numbers, position, base, evidence(misses), heard, lam, leader, habits
                    )
                    hits[i] = not outside(misses)
                elif (low[0] <= heard) & (heard <= high[0]):
                    position, values = learn(
                        numbers, position, base, False, heard, lam, leader, habits
                    )
                else:
                    position, values = learn(
                        numbers, position, base, True, heard, lam, leader, habits
                    )
                    hits[i] = False
                put_values(losses, i, values)
                full += among(each(lam), inf)
                empty += among(each(lam), -inf)
                torn += 1.0 if leader < 0 else 0.0
            save(z, s, position)
            vector = z[s]
            vector[_MISSING] += missing
            vector[_FULL] += full
            vector[_EMPTY] += empty
            vector[_TORN] += torn

    @jit
    def run(
        params: Any, z: Any, streams: Any, bounds: Any, events: Any, rows: Any, y: Any,
        narrow: bool, lower: Any, upper: Any, lams: Any, leaders: Any, habit: Any, theta: Any,
        loss: Any, group_params: Any, groups: Any, which: Any, group_habit: Any,
    ) -> None:  # fmt: skip
        """Each stream of `streams` through its events, from `bounds[k]` to `bounds[k + 1]`."""
        stamp  # noqa: B018
        numbers, support = numbers_at(params, 0)
        thetas, losses = split(theta, 0, len(y)), split(loss, 0, len(y))
        lowers, uppers = split_sets(lower, 0, len(y)), split_sets(upper, 0, len(y))
        shown_lams = split_sets(lams, 0, len(y))
        if which is not None:
            in_groups = number_risks(group_params, 0)
        for k in range(len(streams)):
            s = streams[k]
            position, vector = load(z, s), z[s]
            for j in range(bounds[k], bounds[k + 1]):
                e = events[j]
                i = e if e >= 0 else ~e
                base = read_base(rows, i)
                if e >= 0:
                    put_thetas(thetas, i, position[0])
                    others = vector[OPEN]
                    if which is None:
                        position, lam, leader, habits = aim(numbers, position)
                    else:
                        position, lam, leader, habits = aim_in(
                            numbers, in_groups, position, groups, which[i], group_habit, i
                        )
                    low, high = shown(base, lam, support, narrow)
                    put_sets(lowers, i, low)
                    put_sets(uppers, i, high)
                    put_sets(shown_lams, i, each(lam))
                    leaders[i] = leader
                    if booked:
                        put_habits(habit[i], habits)
                    vector[OPEN] = others + 1.0
                    if others >= vector[_PEAK]:
                        vector[_PEAK] = others + 1.0
                    continue
                vector[OPEN] -= 1.0
                label, lam, leader = y[i], alone(get_sets(shown_lams, i)), leaders[i]
                if unknown(label):
                    vector[_MISSING] += 1.0
                    put_values(losses, i, nothing)
                    if drop is not None:
                        position = drop(position, lam)
                    if which is not None:
                        give_up_in(groups, which[i], lam)
                    continue
                misses = missed(get_sets(lowers, i), get_sets(uppers, i), label)
                habits = read_habits(habit, i) if booked else nothing
                heard = number(label)
                position, values = learn(
                    numbers, position, base, evidence(misses), heard, lam, leader, habits
                )
                put_values(losses, i, values)
                if which is not None:
                    answer_in(in_groups, groups, which[i], group_habit, i, base, misses, heard, lam)
                vector[_FULL] += among(each(lam), inf)
                vector[_EMPTY] += among(each(lam), -inf)
                vector[_TORN] += 1.0 if leader < 0 else 0.0
            save(z, s, position)

    @jit
    def sweep(
        params: Any, begin: Any, given: Any, which: Any, bounds: Any, events: Any, rows: Any,
        y: Any, narrow: bool, held: Any, tallies: Any, totals: Any, extremes: Any,
    ) -> None:  # fmt: skip
        """Every configuration over the same rows; without events labels come at once.

        A stream begins in `begin`, where each configuration has a state, or, if `which` is not
        negative, in that row of `given`.
        """
        stamp  # noqa: B018
        for j in range(len(params)):
            numbers, support = numbers_at(params, j)
            tally = NOTHING
            for s in range(len(bounds) - 1):
                tally = restarted(tally)
                position = load(begin, j)
                if which[s] >= 0:
                    position = load(given, which[s])
                for m in range(bounds[s], bounds[s + 1]):
                    e = events[m] if len(events) else m
                    i = e if e >= 0 else ~e
                    base, label = read_base(rows, i), y[i]
                    if e >= 0:
                        position, lam, leader, habits = aim(numbers, position)
                        lows, highs = shown(base, lam, support, narrow)
                        misses = missed(lows, highs, label)
                        if label == label:
                            low, high = counted(lows, highs)
                            length, whole, nothing, near, apart = measure(
                                low, high, label, support[0], support[1]
                            )
                            tally = count(
                                tally, length, whole, nothing, near, apart, outside(misses)
                            )
                        if len(events):
                            cell = held[i]
                            cell[0] = float64(leader)
                            put_lams(cell, each(lam))
                            put_missed(cell, misses)
                            put_held(cell, habits)
                            continue
                    else:
                        leader, habits = int(held[i][0]), read_held(held, i)
                        lam, misses = alone(read_lams(held, i)), flags(read_missed(held, i))
                    if label == label:
                        position, values = learn(
                            numbers, position, base, evidence(misses), label, lam, leader, habits
                        )
                        note(extremes, j, values, each(lam))
                    elif drop is not None:
                        position = drop(position, lam)
                add_totals(totals[j], position[0])
            for k in range(_TALLIED):
                tallies[j][k] = tally[k]

    @jit
    def unsound(rows: Any, found: Any) -> None:
        """`found[0]` becomes the first row that is no prediction, −1 if there is none."""
        stamp  # noqa: B018
        found[0] = -1
        for i in range(len(rows)):
            if not sound(read_row(rows, i)):
                found[0] = i
                return

    return Loops(correct, along, run, sweep, unsound)
