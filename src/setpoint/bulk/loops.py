"""Bulk loops: the recursion over arrays, made of a layout by closure.

    correct   the correction over a tape: a base for every row, before any controller
    along     labels at once: each stream from its first row to its last, its state in registers
    run       anything late: each stream through its events, e ≥ 0 asks row e, e < 0 answers row ~e
    sweep     one configuration after the other over the same rows, tallies instead of traces
    unsound   the first row that is no prediction

The same closures run in plain Python and compiled: `mark` and `jit` are what a compiler wants, or
nothing, and `Access` is how numbers are reached. Vectors lie one row a stream; arrays are indexed
one axis at a time, so that lists serve as well.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy import float32, float64

from setpoint.bulk.layout import OPEN, Layout
from setpoint.metrics.tally import NOTHING, Tally, count, measure, restarted
from setpoint.recursion import RiskState, show
from setpoint.state import COUNTS

__all__ = ["Access", "Loops", "Wrap", "loops_of", "written_out"]

_FULL, _EMPTY, _TORN, _MISSING = (1 + COUNTS.index(n) for n in ("full", "empty", "torn", "missing"))
_PEAK = 1 + COUNTS.index("peak")
_TALLIED = len(Tally._fields)
_OWN = len(RiskState._fields) - 2


F = TypeVar("F", bound=Callable[..., Any])


class Wrap(Protocol):
    """What a compiler wants done with a function."""

    def __call__(self, function: F, /) -> F: ...


class Loops(NamedTuple):
    """The loops of one layout."""

    correct: Any
    along: Any
    run: Any
    sweep: Any
    unsound: Any


class Access(NamedTuple):
    """How loops reach the numbers of a row: what differs between plain and compiled code.

    `reader(at, size)` makes a function of an array and the number of a row that gives a tuple,
    `writer(at, size)` one of a row and a tuple that puts it there. Parts of a row are sliced.
    """

    reader: Any
    writer: Any


def written_out(mark: Wrap) -> Access:
    """Access for compiled code: numbers are named one by one, so that they stay in registers."""

    def chained(one: Any, six: Any, nothing: Any, at: int, size: int) -> Any:
        made, end = None, at + size
        while end > at:
            link, count = (one, 1) if (end - at) % 6 else (six, 6)
            end -= count
            made = mark(link(end, made))
        return mark(nothing) if made is None else made

    return Access(
        lambda at, size: chained(_one_read, _six_read, _nothing_read, at, size),
        lambda at, size: chained(_one_put, _six_put, _nothing_put, at, size),
    )


def _nothing_read(_z: Any, _s: int) -> Any:
    return ()


def _nothing_put(_row: Any, _values: Any) -> None:
    pass


def _one_read(at: int, rest: Any) -> Any:
    def read(z: Any, s: int) -> Any:
        if rest is None:
            return (z[s][at],)
        return (z[s][at],) + rest(z, s)  # noqa: RUF005

    return read


def _six_read(at: int, rest: Any) -> Any:
    def read(z: Any, s: int) -> Any:
        row = z[s]
        six = row[at], row[at + 1], row[at + 2], row[at + 3], row[at + 4], row[at + 5]
        if rest is None:
            return six
        return six + rest(z, s)

    return read


def _one_put(at: int, rest: Any) -> Any:
    def put(row: Any, values: Any) -> None:
        row[at] = values[0]
        if rest is not None:
            rest(row, values[1:])

    return put


def _six_put(at: int, rest: Any) -> Any:
    def put(row: Any, values: Any) -> None:
        row[at], row[at + 1], row[at + 2] = values[0], values[1], values[2]
        row[at + 3], row[at + 4], row[at + 5] = values[3], values[4], values[5]
        if rest is not None:
            rest(row, values[6:])

    return put


def _loading(own: Any, loss: Any, step: Any, rest: Any) -> Any:
    """Risks from a vector."""

    def load(z: Any, s: int) -> Any:
        risk = own(z, s) + (loss(z, s), step(z, s))  # noqa: RUF005
        if rest is None:
            return (risk,)
        return (risk,) + rest(z, s)  # noqa: RUF005

    return load


def _saving(own: Any, loss: Any, step: Any, rest: Any) -> Any:
    """Risks into a vector."""

    def save(row: Any, risks: Any) -> None:
        own(row, risks[0])
        loss(row, risks[0][7])
        step(row, risks[0][8])
        if rest is not None:
            rest(row, risks[1:])

    return save


def _writing(place: int, rest: Any, rest_values: Any, rest_split: Any) -> Any:
    """Rows of an array, one for each risk; θ of each risk, and a number of each, into them."""

    def split(out: Any, first: int, last: int) -> Any:
        if rest_split is None:
            return (out[place][first:last],)
        return (out[place][first:last],) + rest_split(out, first, last)  # noqa: RUF005

    def thetas(rows: Any, i: int, risks: Any) -> None:
        rows[0][i] = risks[0][0]
        if rest is not None:
            rest(rows[1:], i, risks[1:])

    def values(rows: Any, i: int, numbers: Any) -> None:
        rows[0][i] = numbers[0]
        if rest_values is not None:
            rest_values(rows[1:], i, numbers[1:])

    return thetas, values, split


def _totalling(place: int, rest: Any) -> Any:
    """The sum of each risk's losses, added to a row."""

    def total(row: Any, risks: Any) -> None:
        row[place] += risks[0][4]
        if rest is not None:
            rest(row, risks[1:])

    return total


def _noting(place: int, rest: Any) -> Any:
    """What promises are held against: least and largest loss, and those on full and empty sets."""

    def note(extremes: Any, j: int, values: Any, lam: float) -> None:
        value, row = values[0], extremes[j][place]
        news = (value < row[0]) | (value > row[1]) | (value != value)
        if news | (lam == inf) | (lam == -inf):
            row[0] = value if value < row[0] else row[0]
            row[1] = value if value > row[1] else row[1]
            row[6] += 0.0 if value == value else 1.0
            if lam == inf:
                row[2] = value if value < row[2] else row[2]
                row[3] = value if value > row[3] else row[3]
            if lam == -inf:
                row[4] = value if value < row[4] else row[4]
                row[5] = value if value > row[5] else row[5]
        if rest is not None:
            rest(extremes, j, values[1:], lam)

    return note


def loops_of(
    layout: Layout,
    aim: Any,
    learn: Any,
    drop: Any,
    *,
    mark: Wrap,
    jit: Wrap,
    access: Access,
    stamp: str,
) -> Loops:
    """The loops of a layout; `stamp` makes compiled code of other rules another code."""
    rules, risks, (reader, writer) = layout.rules, len(layout.risks), access
    stretch_at, memory_at, table_at = layout.at
    stretch_size, memory_size, table_size = layout.stretch, layout.memory, layout.table
    columns, family, grows = layout.columns, layout.family, layout.annex > 0
    stage_params, stretch_params = layout.stage_params, layout.stretch_params
    load_risks: Any = None
    save_risks: Any = None
    number_risks: Any = None
    put_thetas: Any = None
    put_values: Any = None
    split: Any = None
    note: Any = None
    add_totals: Any = None
    at, end = stretch_at, sum(3 + judge + step for judge, step in layout.numbers)
    numbers_end = end
    for place in reversed(range(risks)):
        (loss, step), (judge, step_params) = layout.risks[place], layout.numbers[place]
        at, end = at - _OWN - loss - step, end - 3 - judge - step_params
        for_loss, for_step = (at + _OWN, loss), (at + _OWN + loss, step)
        read = reader(at, _OWN), reader(*for_loss), reader(*for_step)
        put = writer(at, _OWN), writer(*for_loss), writer(*for_step)
        load_risks, save_risks = mark(_loading(*read, load_risks)), mark(_saving(*put, save_risks))
        read = reader(end, 3), reader(end + 3, judge), reader(end + 3 + judge, step_params)
        number_risks = mark(_loading(*read, number_risks))
        put_thetas, put_values, split = map(mark, _writing(place, put_thetas, put_values, split))
        note, add_totals = mark(_noting(place, note)), mark(_totalling(place, add_totals))
    nothing = (nan,) * risks
    ends, sound = rules.ends, rules.sound
    read_base, read_row = reader(0, family), reader(0, columns)
    read_stretch, put_stretch = (each(stretch_at, stretch_size) for each in (reader, writer))
    read_memory, put_memory = (each(memory_at, memory_size) for each in (reader, writer))
    booked = drop is not None
    read_habits, put_habits = reader(0, risks), writer(0, risks)
    read_held, put_held = reader(3, risks), writer(3, risks)
    read_stage, read_params = reader(0, stage_params), reader(numbers_end, stretch_params)
    predict, teach = rules.predict, rules.learn

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
    def shown(base: Any, lam: float, support: Any, narrow: bool) -> Any:
        lower, upper = show(ends(base, lam), lam, support[0], support[1])
        if narrow:  # in float32 the support is rounded outwards
            lowest, highest = lower <= support[0], upper >= support[1]
            lower = support[2] if lowest else float64(float32(lower))
            upper = support[3] if highest else float64(float32(upper))
        return lower, upper

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
            memory, table = read_memory(z, s), z[s][table_at : table_at + table_size]
            slot, waiting = slots[s], z[s][OPEN]
            annex = pool[slot if slot >= 0 else 0]
            for j in range(bounds[k], bounds[k + 1]):
                e = events[j] if len(events) else j
                i = e if e >= 0 else ~e
                base = kept[i & mask]
                if e >= 0:
                    memory = predict(p, memory, table, annex, rows[e], waiting, base)
                    made = out[e]
                    for m in range(family):
                        made[m] = base[m]
                    if len(events):
                        waiting += 1.0
                        continue
                else:
                    waiting -= 1.0
                if y[i] == y[i]:
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
            lowers, uppers, shown_lams = lower[first:last], upper[first:last], lams[first:last]
            thetas, losses = split(theta, first, last), split(loss, first, last)
            for i in range(last - first):
                base, label = read_base(given, i), labels[i]
                put_thetas(thetas, i, position[0])
                position, lam, leader, habits = aim(numbers, position)
                low, high = shown(base, lam, support, narrow)
                lowers[i], uppers[i], shown_lams[i] = low, high, lam
                if label != label:
                    missing += 1.0
                    hits[i] = False
                    put_values(losses, i, nothing)
                    if drop is not None:
                        position = drop(position, lam)
                    continue
                # In each branch the loss is a constant; `covered` is written in one of them, so
                # that a compiler keeps the branch and the next θ need not wait for this λ.
                if (low <= label) & (label <= high):
                    position, values = learn(
                        numbers, position, base, False, label, lam, leader, habits
                    )
                else:
                    position, values = learn(
                        numbers, position, base, True, label, lam, leader, habits
                    )
                    hits[i] = False
                put_values(losses, i, values)
                full += 1.0 if lam == inf else 0.0
                empty += 1.0 if lam == -inf else 0.0
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
        loss: Any,
    ) -> None:  # fmt: skip
        """Each stream of `streams` through its events, from `bounds[k]` to `bounds[k + 1]`."""
        stamp  # noqa: B018
        numbers, support = numbers_at(params, 0)
        thetas, losses = split(theta, 0, len(y)), split(loss, 0, len(y))
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
                    position, lam, leader, habits = aim(numbers, position)
                    lower[i], upper[i] = shown(base, lam, support, narrow)
                    lams[i], leaders[i] = lam, leader
                    if booked:
                        put_habits(habit[i], habits)
                    vector[OPEN] = others + 1.0
                    if others >= vector[_PEAK]:
                        vector[_PEAK] = others + 1.0
                    continue
                vector[OPEN] -= 1.0
                label, lam, leader = y[i], lams[i], leaders[i]
                if label != label:
                    vector[_MISSING] += 1.0
                    put_values(losses, i, nothing)
                    if drop is not None:
                        position = drop(position, lam)
                    continue
                missed = not ((lower[i] <= label) & (label <= upper[i]))
                habits = read_habits(habit, i) if booked else nothing
                position, values = learn(
                    numbers, position, base, missed, label, lam, leader, habits
                )
                put_values(losses, i, values)
                vector[_FULL] += 1.0 if lam == inf else 0.0
                vector[_EMPTY] += 1.0 if lam == -inf else 0.0
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
                        low, high = shown(base, lam, support, narrow)
                        missed = not ((low <= label) & (label <= high))
                        if label == label:
                            length, whole, nothing, near, apart = measure(
                                low, high, label, support[0], support[1]
                            )
                            tally = count(tally, length, whole, nothing, near, apart, missed)
                        if len(events):
                            cell = held[i]
                            cell[0], cell[1], cell[2] = lam, float64(leader), 1.0 if missed else 0.0
                            put_held(cell, habits)
                            continue
                    else:
                        cell, habits = held[i], read_held(held, i)
                        lam, leader, missed = cell[0], int(cell[1]), cell[2] > 0.0
                    if label == label:
                        position, values = learn(
                            numbers, position, base, missed, label, lam, leader, habits
                        )
                        note(extremes, j, values, lam)
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
