"""Replaying tapes: one controller with everything written down, by loops or row by row."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint._rules import by_class, has_several, scalar, support_of
from setpoint.bulk.arrays import Intervals
from setpoint.bulk.compile import loops
from setpoint.bulk.groups import (
    NO_GROUPS,
    Active,
    By,
    Membership,
    Pairs,
    check_risks,
    columns_by,
    membership,
)
from setpoint.bulk.labels import (
    LabelSets,
    critical_values,
    layout_at,
    probabilities,
    true_labels,
    unknown,
)
from setpoint.bulk.layout import Annexes, Layout, layout_of, outward, params_of
from setpoint.bulk.loops import Loops
from setpoint.bulk.states import (
    Array,
    Begin,
    Start,
    States,
    check_labels,
    columns_of,
    is_narrow,
    scalar_columns,
)
from setpoint.bulk.trace import Trace
from setpoint.bulk.watching import costs_of, given, look
from setpoint.controller import Controller
from setpoint.correction import Intervals as Correction
from setpoint.errors import InputError, LabelError, LossError, PredictionError
from setpoint.losses import declaration
from setpoint.parts import Capability
from setpoint.plan import TWO_SIDED, Plan, plan
from setpoint.predictions import Probabilities, Row
from setpoint.presets import start_from
from setpoint.sets import Interval
from setpoint.sets.family import Columns as NamedColumns
from setpoint.sets.family import Taped, outermost
from setpoint.state import Id, State
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import Column, several
from setpoint.tape.schedule import steady


def replay(
    controller: Controller,
    tape: Tape | Any,
    state: Start = None,
    *,
    delay: int | None = None,
    columns: Columns | None = None,
    groups: By | None = None,
) -> Trace:
    """Runs a controller over a tape and records everything.

    Every label is taken in when the tape says that it became known, so the sets are those that a
    live stream would have shown. By default that is before the next row.

    Parameters
    ----------
    controller
        Any controller; made of scalar rules it runs compiled.
    tape
        Predictions and labels; each of its streams has a state of its own. A NaN label is not
        observed: its set is shown, and nothing moves. Or a data frame.
    state
        Where to go on from: one state for all streams, or one for each by its id; a stream
        without one begins at the beginning, as all do by default.
    delay
        How many rows late labels become known, in place of what the tape says: the set of row t
        is made with the labels of the rows up to t − 1 − delay. What is not known before the last
        row is taken in after it.
    columns
        Which column of a data frame is what; by default y, and lower and upper, or point.
    groups
        The columns that say which groups rows belong to, in each of which the risks are held too:
        names of columns, or a mapping from names to one value for each row. A row with 8 in the
        column hour belongs to the group "hour=8", one with True in the column rain to "rain", one
        with a tuple to the groups that it names, one with nothing there to none.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> tape = sp.Tape.from_arrays({"lower": [10.0, 10.0], "upper": [14.0, 14.0]}, [15.0, 14.2])
    >>> trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
    >>> trace.upper, trace.losses[0], trace.state.risks[0].theta
    (array([14.  , 14.45]), array([1., 0.]), 0.4)
    """
    if not isinstance(tape, Tape):
        columns = Columns() if columns is None else columns
        if groups is None:
            groups = columns.groups or None
        elif columns.groups:
            raise InputError(f"groups are named twice, {columns.groups} in columns, got {groups!r}")
        elif not isinstance(groups, Mapping):
            columns = replace(columns, groups=several(groups))
        tape = Tape.from_frame(tape, columns)
    elif columns is not None:
        raise InputError("columns are named for a data frame, and a tape has its own")
    tape = tape if delay is None else tape.late(delay)
    check_at_once(controller, tape)
    begin = Begin(controller, tape.streams, state)
    run = _scalar if in_loops(controller, tape, begin) else by_rows
    held = None
    if groups is not None:
        held = membership(controller, columns_by(tape, groups), len(tape))
    return run(controller, tape, begin, held)


def in_loops(controller: Controller, tape: Tape, begin: Begin) -> bool:
    """Whether loops run a controller over a tape; label sets need a column for each class."""
    if not by_class(controller):
        return scalar(controller)
    columns = columns_of(controller, tape)
    if len(columns) < 2 or not all(isinstance(column, np.ndarray) for column in columns):
        return False
    return begin.fits(len(columns))


def check_at_once(controller: Controller, tape: Tape) -> None:
    """Raises if labels of a tape wait and the controller cannot have that."""
    if plan(controller).at_once and tape.schedule is not None:
        raise InputError(TWO_SIDED)


class Events(NamedTuple):
    """The questions and answers of a tape: its streams, where their events begin, the events.

    Without events labels come at once, and the bounds are those of the rows.
    """

    streams: Array
    bounds: Array
    events: Array
    slots: int

    @classmethod
    def of(cls, tape: Tape, *, always: bool = False) -> "Events":
        """The events of a tape; with `always` there are some if labels come at once too."""
        offsets, schedule = tape.segments.offsets, tape.schedule
        streams = np.arange(len(offsets) - 1)
        if always and schedule is None:
            schedule = steady(np.zeros(len(streams), np.int64), offsets)
        if schedule is None:
            return cls(streams, offsets, np.empty(0, np.int64), 1)
        return cls(streams, 2 * offsets, schedule.events(offsets), schedule.slots)


class Ran(NamedTuple):
    """What loops wrote down, row for row.

    Ends and λ have one row for each member, θ and losses one for each risk. `values` are the
    critical values of label sets, else None.
    """

    lower: Array
    upper: Array
    lam: Array
    covered: Array
    theta: Array
    losses: Array
    values: Array | None = None


def ran(
    controller: Controller, made: Loops, rows: Array, y: Array, vectors: Array, annexes: Annexes,
    at: Events, narrow: bool, groups: Active = NO_GROUPS,
) -> Ran:  # fmt: skip
    """Streams that lie one after the other, through loops: corrected, then controlled."""
    layout, count = layout_at(controller, vectors.shape[1]), len(rows)
    model, labels = given(controller, layout, rows), y
    rows, values = based(controller, made, rows, y, vectors, annexes, at), None
    if layout.classes is not None:
        values, y = rows, critical_values(controller, rows, y)
    params, risks, members = params_of(controller)[0], len(layout.risks), layout.rules.members
    lower, upper, lam = (np.empty((members, count)) for _ in range(3))
    theta, losses = np.empty((risks, count)), np.empty((risks, count))
    if len(at.events):
        leaders, habits = np.empty(count, np.int64), np.zeros((count, risks))
        made.run(
            params, vectors, at.streams, at.bounds, at.events, rows, y, narrow, lower, upper, lam,
            leaders, habits, theta, losses, *groups,
        )  # fmt: skip
        ends = joint(layout, lower, upper)
        if y.ndim > 1:
            covered = ~unknown(labels) & ~(y[:, :-1] > ends.upper[:, None]).any(axis=1)
        else:
            covered = np.asarray((ends.lower <= y) & (y <= ends.upper))
    else:
        covered = np.ones(count, dtype=bool)
        made.along(
            params, vectors, at.bounds, rows, y, narrow, lower, upper, lam, covered, theta, losses
        )
    check_promises(controller, losses, lam, vectors)
    if layout.watch:
        ends, counted = joint(layout, lower, upper), lam[-1]
        look(
            vectors, layout.watch_at, at.streams, at.bounds, at.events, np.zeros(len(at.streams)),
            costs_of(controller, ends, counted, values, model, labels),
        )  # fmt: skip
    return Ran(lower, upper, lam, covered, theta, losses, values)


def based(
    controller: Controller, made: Loops, rows: Array, y: Array, vectors: Array, annexes: Annexes,
    at: Events,
) -> Array:  # fmt: skip
    """The rows as the family reads them: corrected once, whatever controls them afterwards."""
    layout = layout_at(controller, vectors.shape[1])
    if not layout.base:
        return rows if layout.classes is None else controller.sets.by_class(rows)  # type: ignore[attr-defined]
    out, kept = np.empty((len(rows), layout.family)), np.empty((at.slots, layout.base))
    annexes.room(len(at.streams))
    made.correct(
        params_of(controller)[1], vectors, at.streams, at.bounds, at.events, rows, y, kept,
        at.slots - 1, out, annexes.pool, annexes.slots, annexes.used,
    )  # fmt: skip
    check_bases(out)
    return out


def check_bases(bases: Array, name: Callable[[int], str] = "row {}".format) -> None:
    """Raises the error of the first base of a correction that is no number."""
    bad = (bases != bases).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"{name(row)}: the ends of an interval must be numbers, the correction gave "
            f"{tuple(bases[row].tolist())}"
        )


def _scalar(
    controller: Controller, tape: Tape, begin: Begin, held: Membership | None = None
) -> Trace:
    """A trace by loops over arrays."""
    columns = columns_of(controller, tape)
    layout = layout_of(controller, len(columns))
    if layout.classes is None:
        columns, rows = scalar_columns(controller, layout, tape)
        check_labels(controller, tape.y)
        y = tape.y
    else:
        rows, y = probabilities(controller, columns), true_labels(controller, tape)
        rows = np.ascontiguousarray(tape.by_stream(rows.T).T)
    narrow, (vectors, annexes) = is_narrow(controller, columns), begin.vectors(layout)
    labels = np.ascontiguousarray(tape.by_stream(y.T).T, np.float64)
    made = loops(layout, len(tape))
    pairs, active, before = None, NO_GROUPS, begin.groups
    if held is not None:
        held = held._replace(codes=tape.by_stream(held.codes))
        pairs, which = Pairs.named(controller, held, tape.segments.offsets, before)
        active = Active.of(controller, pairs.risks, which)
    elif before:
        pairs = Pairs(np.empty(0, np.int64), [], np.empty((0, 0)), before)
    at = Events.of(tape, always=held is not None)
    done = ran(controller, made, rows, labels, vectors, annexes, at, narrow, active)
    if active.risks is not None:
        check_risks(controller, active.risks)
    if narrow:
        with np.errstate(over="ignore"):
            done = done._replace(
                lower=done.lower.astype(np.float32), upper=done.upper.astype(np.float32)
            )
    states = States(controller, tape.streams, vectors, annexes, pairs)
    lower, upper, lam, covered, theta, losses = map(tape.by_row, done[:6])
    widest, members = lam.max(axis=0), Intervals(lower, upper) if len(lam) > 1 else None
    low, high = joint(layout, lower, upper)
    shown = None
    if done.values is not None:
        shown = LabelSets(controller.sets, tape.by_row(done.values.T).T, widest)
        low = high = np.full(len(tape), nan)
    return Trace(
        controller, tape, low, high, shown, widest, covered, theta, losses, states, members
    )


def joint(layout: Layout, lower: Array, upper: Array) -> Intervals:
    """Of several intervals the one that counts: from end to end, or what all of them hold."""
    if layout.rules.order or len(lower) == 1:
        low, high = outermost(layout.rules.order or (0,))
        return Intervals(lower[low], upper[high])
    low, high = lower.max(axis=0), upper.min(axis=0)
    empty = low > high
    return Intervals(np.where(empty, inf, low), np.where(empty, -inf, high))


def check_promises(
    controller: Controller, losses: Array, lams: Array, vectors: Array, rows: Any = None
) -> None:
    """Raises the error of the first loss that breaks its promise, or of a θ that is not finite."""
    layout, which = layout_of(controller), slice(None) if rows is None else rows[:, None]
    check_lams(lams)
    thetas, unjudged = (vectors[which, layout.places(name)] for name in ("theta", "unjudged"))
    if unjudged.any() and not layout.rules.several:
        place = int(unjudged.any(axis=0).argmax())
        raise LossError(f"{controller.risks[place].name} promises a number, got {nan}")
    calm = lams.size > 0 and bool(-inf < lams.min() and lams.max() < inf)
    judged = zip(plan(controller).promises, losses, controller.owners, strict=True)
    for promise, values, member in judged:
        lam = lams[member]
        low, high, full, empty, *_ = promise.declared
        if calm and values.min() >= low and values.max() <= high:
            continue  # the usual case, in few passes over the losses
        sign = -1.0 if promise.declared.grows else 1.0
        with np.errstate(invalid="ignore"):
            broken = (values < low) | (values > high)
            broken |= (lam == inf) & (sign * (values - full) > 0.0)
            if promise.empties:
                broken |= (lam == -inf) & (sign * (values - empty) < 0.0)
        if broken.any():
            place = int(broken.argmax())
            promise.check(float(values[place]), float(lam[place]))
    if not np.isfinite(thetas).all():
        place = int((~np.isfinite(thetas)).any(axis=0).argmax())
        bad = thetas[:, place][~np.isfinite(thetas[:, place])][0]
        name = type(controller.risks[place].step).__name__
        raise InputError(f"the θ of {name} must be finite, got {bad}")


def check_lams(lam: Array) -> None:
    """Raises if a stretch made a λ that is no number."""
    if np.isnan(lam).any():
        raise InputError("λ must be a number, got nan")


_CHUNK = 1 << 14
"""How many rows become Python numbers at once."""


class _Held(NamedTuple):
    """What a row leaves for its label."""

    row: int
    receipt: tuple[Any, ...]
    y: Any


def by_rows(
    controller: Controller, tape: Tape, begin: Begin, groups: Membership | None = None
) -> Trace:
    """A trace by steps in plain Python."""
    columns, made, family = columns_of(controller, tape), plan(controller), controller.sets
    read = _reader(controller, made, tape)
    narrow, support = is_narrow(controller, columns), support_of(controller)
    several = has_several(family)
    truth = true_labels(controller, tape) if several else tape.y
    label_of: Any = family.taped if isinstance(family, Taped) and not several else family.label
    (order, offsets), schedule, count = tape.segments, tape.schedule, len(tape)
    if schedule is None:
        schedule = steady(np.zeros(len(offsets) - 1, np.int64), offsets)
    events, rows = schedule.events(offsets), _rows(columns, truth, order)
    lower, upper, lams = (np.full(count, nan) for _ in range(3))
    theta, losses = (np.full((len(controller.risks), count), nan) for _ in range(2))
    covered = np.zeros(count, bool)
    sets_shown: list[Any] = [None] * count
    states = list(begin)
    for state, first, last in zip(states, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        sets: Any = family if state.sets is None else state.sets
        waiting: dict[int, _Held] = {}
        for event in events[2 * first : 2 * last].tolist():
            if event >= 0:
                row, prediction, y = next(rows)
                theta[:, row] = [risk[0] for risk in state.position[0]]
                names = None if groups is None else groups.of(row)
                reading, others = read(row, prediction), len(waiting)
                receipt = shown_to(made, state, sets, reading, event - first, others, names)
                waiting[event] = _Held(row, receipt, y)
                lam = receipt[3]
                lams[row] = max(lam) if isinstance(lam, tuple) else lam
                continue
            row, (_, reading, shown, lam, leader, habits, named, _), y = waiting.pop(~event)
            shown = _narrowed(shown, *support) if narrow else shown
            sets_shown[row] = shown
            if isinstance(shown, Ends):
                lower[row], upper[row] = shown.lower, shown.upper
            if y != y or (isinstance(y, list) and y[-1] != y[-1]):
                state.missing += 1
                state.position = made.give_up(state.position, lam, named, state.groups)
                continue
            try:
                label = label_of(np.array(y) if several else y)
            except LabelError as error:
                raise LabelError(f"row {row}: {error}") from None
            losses[:, row] = values = made.take_in(
                state, reading, shown, label, lam, leader, habits, named,
                others=float(len(waiting)),
            )  # fmt: skip
            covered[row] = _in_order(controller, shown, label, values[0])
    ends_type = np.float32 if narrow else np.float64
    intervals = all(isinstance(shown, Ends) for shown in sets_shown)
    return Trace(
        controller, tape, lower.astype(ends_type), upper.astype(ends_type),
        None if intervals else tuple(sets_shown), lams, covered, theta, losses,
        dict(zip(tape.streams, states, strict=True)),
    )  # fmt: skip


def shown_to(
    made: Plan, state: State, sets: Any, reading: Any, name: Id, others: int,
    groups: tuple[Id, ...] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The receipt of a prediction, beside which others wait; the state moves."""
    state.position, state.memory, receipt = made.ask(
        state, sets, reading, name, others, state.position, groups, state.groups
    )
    state.peak = max(state.peak, others + 1)
    return receipt


def _reader(controller: Controller, made: Plan, tape: Tape) -> Callable[[int, Any], Any]:
    """Reads the prediction of a row as a live stream would be given it."""
    reader = controller.reader
    names = (reader.columns if isinstance(reader, NamedColumns) else None) or ()
    sound = made.rules.sound if "phase" in names else None
    chances = tape.extras.get("u") if made.draws else None

    def reading(row: int, prediction: Any) -> Any:
        if chances is not None:
            prediction = Probabilities(prediction, u=float(chances[row]))
        if sound is not None and isinstance(prediction, tuple):  # arranged as rows are read
            if sound(prediction):
                return prediction
            prediction = Row(prediction[:2], prediction[2], prediction[3:])
        try:
            return made.read(prediction)
        except PredictionError as error:
            raise PredictionError(f"row {row}: {error}") from None

    return reading


def _in_order(controller: Controller, shown: Any, label: Any, loss: float) -> bool:
    """Whether a set holds its label; for one that cannot tell, if its loss is at level."""
    if isinstance(shown, Holds):
        return bool(shown.contains(label))
    risk = controller.risks[0]
    excess = loss - risk.level
    return loss == loss and (-excess if declaration(risk.loss).grows else excess) <= 0.0


@runtime_checkable
class Ends(Protocol, metaclass=Capability):
    """A shown set with two ends."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


@runtime_checkable
class Holds(Protocol, metaclass=Capability):
    """A shown set that tells whether it holds a label."""

    def contains(self, y: Any) -> bool: ...


def _rows(columns: Sequence[Column], y: Any, order: Any) -> Iterator[tuple[int, Any, Any]]:
    """The number, the prediction and the label of each row, as a live stream is given them."""
    for start in range(0, len(y), _CHUNK):
        part: Any = slice(start, start + _CHUNK) if order is None else order[start : start + _CHUNK]
        places = range(start, len(y)) if order is None else part.tolist()
        held = [
            column[part].tolist() if isinstance(column, np.ndarray) else column[part]
            for column in columns
        ]
        predictions = held[0] if len(held) == 1 else zip(*held, strict=True)
        yield from zip(places, predictions, y[part].tolist(), strict=False)


def _narrowed(shown: Any, low: float, high: float) -> Interval:
    """An interval where the data are float32: the support is rounded outwards."""
    lowest, highest = outward((low, high))
    with np.errstate(over="ignore"):
        lower, upper = float(np.float32(shown.lower)), float(np.float32(shown.upper))
    return Interval(
        lowest if shown.lower <= low else lower, highest if shown.upper >= high else upper
    )


# Where new series begin: with what the others had learnt by then.

OTHERS = 20
"""How many other series there must be."""
LABELS = 5
"""How many labels each of them must have."""
_MOST = 500


def start_of_new(controller: Controller, states: Iterable[State]) -> State | None:
    """The state in which a new series begins beside others, None where they tell too little."""
    stage = controller.correction
    if not isinstance(stage, Correction) or stage.prior:
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
