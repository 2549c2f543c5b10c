"""Replaying tapes: one controller with everything written down.

A base model's predictions do not depend on θ, so a recorded tape serves every controller. Made of
scalar rules, a controller runs as machine code (extra `fast`) and gives the numbers of a live
stream; any other runs step by step in plain Python.
"""

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint._html import table
from setpoint.bulk.annexes import Annexes
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
    check_places,
    critical_values,
    layout_at,
    probabilities,
)
from setpoint.bulk.layout import Layout, layout_of, params_of
from setpoint.bulk.loops import Loops
from setpoint.bulk.rows import Ends, steps
from setpoint.bulk.states import (
    LENGTHS,
    Array,
    Begin,
    Start,
    States,
    check_labels,
    columns_of,
    is_narrow,
    listed,
    scalar_columns,
)
from setpoint.bulk.watching import costs_of, given, look
from setpoint.controller import Controller
from setpoint.errors import InputError, LossError
from setpoint.guarantee import Certificate, certify
from setpoint.losses import Misses
from setpoint.metrics.quantiles import Calibration
from setpoint.metrics.summaries import size_summary
from setpoint.metrics.usefulness import Streams, of_streams, rolling_quantile
from setpoint.plan import TWO_SIDED, by_class, plan, scalar, support_of
from setpoint.sets import Fan, Interval, LabelSet
from setpoint.sets.family import Columns as NamedColumns
from setpoint.sets.family import Members, order_of, outermost, size_of
from setpoint.state import State
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.schedule import steady


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The finished record of a controller on a tape, row for row.

    Parameters
    ----------
    controller, tape
        What ran on what.
    lower, upper
        The ends of the sets shown, in float32 if the predictions were; NaN where a family shows
        something else than intervals. Of several nested ones those of the largest, of two sides
        what both hold.
    shown
        The sets themselves for such a family, else None.
    lam
        The λ of each set: ±inf where the safeguard chose it; the largest one of several sets.
    covered
        Whether the set held its label; for sets that cannot tell, whether the first risk's loss
        was at its level. It means something where `observed` does.
    theta
        The θ behind each set, one row for each risk.
    losses
        The loss of each label, one row for each risk; NaN where there was none to judge.
    states
        The state each stream ended in, by its id.
    members
        Where a prediction shows several intervals, the lower and the upper ends of all of them,
        one row for each; else None.
    """

    controller: Controller
    tape: Tape
    lower: Array
    upper: Array
    shown: Sequence[Any] | None
    lam: Array
    covered: Array
    theta: Array
    losses: Array
    states: Mapping[Hashable, State]
    members: Intervals | None = None

    def __repr__(self) -> str:
        return f"<Trace of {len(self.lam):,} rows, {len(self.states):,} streams>"

    @property
    def state(self) -> State:
        """The state the only stream ended in."""
        if len(self.states) != 1:
            raise InputError(f"the trace has {len(self.states):,} streams: use states[id]")
        return next(iter(self.states.values()))

    @property
    def levels(self) -> Intervals:
        """The ends of nested intervals, one row for each, the smallest first; one row of others."""
        if self.members is not None and order_of(self.controller.sets):
            return self.members
        return Intervals(self.lower[None], self.upper[None])

    @property
    def ends(self) -> dict[str, Array]:
        """The ends of several nested sets or quantiles, by the names of their columns."""
        if self.shown is not None:
            return {}
        places = ends_of(self.controller).items()
        ends = self.levels
        return {name: ends[side][member] for name, (member, side) in places}

    def calibration(self) -> Calibration | None:
        """What came out of several quantiles: their calibration, PIT, CRPS and WQL.

        None where the controller does not show `Bands`.
        """
        sets = self.controller.sets
        if not isinstance(sets, Fan) or self.shown is not None:
            return None
        ends = [self.ends[name] for name in sets.named]
        return metrics.calibration(sets.taus, np.stack(ends, axis=1), self.tape.y)

    @property
    def observed(self) -> Array:
        """Where there was a label."""
        return np.asarray(~np.isnan(self.tape.y))

    @property
    def coverage(self) -> float:
        """The share of the labels that their sets held; NaN without labels."""
        return metrics.risk(np.where(self.observed, self.covered, nan))

    @property
    def full(self) -> Array:
        """Where the safeguard chose the full set."""
        return np.asarray(self.lam == inf)

    @property
    def whole(self) -> Array:
        """Where a set of labels names every class, whoever chose it."""
        if isinstance(self.shown, LabelSets):
            return np.asarray(self.shown.mask.all(axis=-1))
        if not self.shown:
            return np.zeros(len(self.lam), dtype=bool)
        return np.array([isinstance(shown, LabelSet) and shown.whole for shown in self.shown])

    @property
    def empty(self) -> Array:
        """Where the safeguard chose the empty set."""
        return np.asarray(self.lam == -inf)

    def summary(
        self, risk: int = 0, *, window: int = 250, confidence_level: float | None = None
    ) -> metrics.Summary:
        """Every metric of `setpoint.metrics`, with the losses of one risk.

        Of several streams, streaks and windows are those within a stream, however the rows lie
        in the tape; a stream shorter than the window counts as one window.
        """
        tape, (order, offsets) = self.tape, self.tape.segments
        options: Any = {
            "level": self.controller.risks[risk].level,
            "losses": tape.by_stream(self.losses[risk]),
            "groups": None if tape.group is None else tape.by_stream(tape.group),
            "window": window,
            "offsets": offsets,
            "confidence_level": nominal(self.controller)
            if confidence_level is None
            else confidence_level,
        }
        if self.shown is None:
            lower, upper, y = map(tape.by_stream, (self.lower, self.upper, tape.y))
            support = support_of(self.controller)
            summary = metrics.summary(lower, upper, y, support=support, **options)
        else:
            summary = self._size_summary(self.shown, options)
        start = summary.worst_window_start
        if order is not None and start is not None:
            summary = replace(summary, worst_window_start=int(order[start]))
        return summary

    @cached_property
    def uses(self) -> Streams | None:
        """How useful the intervals of each stream were, in the order of `tape.streams`."""
        if self.shown is not None:
            return None
        tape = self.tape
        middle = middle_of(self.controller, tape)
        lower, upper, y = map(tape.by_stream, (self.lower, self.upper, tape.y))
        return of_streams(
            lower, upper, y, None if middle is None else tape.by_stream(middle),
            confidence_level=nominal(self.controller), support=support_of(self.controller),
            offsets=tape.segments.offsets, delay=delays_of(tape),
        )  # fmt: skip

    def usefulness(self) -> metrics.Usefulness | None:
        """Whether the sets were of use, a verdict beside the guarantee.

        Intervals are held against the forecast and its latest errors, sets of labels against the
        frequent labels; of other sets nothing can be said, None.

        Examples
        --------
        >>> import setpoint as sp
        >>> y = np.sin(np.arange(500.0))
        >>> tape = sp.Tape.from_arrays({"point": 0.9 * y}, y)
        >>> str(sp.replay(sp.intervals(coverage=0.9), tape).usefulness().use)
        'useful'
        """
        if self.uses is not None:
            return self.uses.together()
        if self.shown and isinstance(self.shown[0], LabelSet):
            ragged = not isinstance(self.shown, LabelSets)
            classes = max(len(labels.classes) for labels in self.shown[: None if ragged else 1])
            return metrics.label_usefulness(
                sizes_of(self.shown), self.tape.y, classes,
                confidence_level=nominal(self.controller),
            )  # fmt: skip
        return None

    def baseline(self) -> tuple[Array, Array] | None:
        """The ends that a spreadsheet would give: `setpoint.metrics.usefulness.rolling_quantile`.

        None where there is no forecast of one number, or the sets are no intervals.
        """
        tape, middle = self.tape, None if self.shown else middle_of(self.controller, self.tape)
        if middle is None:
            return None
        ends = rolling_quantile(
            *map(tape.by_stream, (tape.y, middle)), offsets=tape.segments.offsets,
            confidence_level=nominal(self.controller), delay=delays_of(tape),
        )  # fmt: skip
        return tape.by_row(ends[0]), tape.by_row(ends[1])

    def _size_summary(self, shown: Sequence[Any], options: Any) -> metrics.Summary:
        sizes = np.array(sizes_of(shown), np.float64)
        sizes, lam = map(self.tape.by_stream, (sizes, self.lam))
        hits = self.tape.by_stream(np.where(self.observed, self.covered, nan))
        unknown = np.isnan(sizes)
        known = np.where(unknown, 0.0, sizes)
        summary = size_summary(
            known, hits, full=np.isinf(known) | (lam == inf) | self.tape.by_stream(self.whole),
            empty=np.where(unknown, lam == -inf, known == 0.0), **options,
        )  # fmt: skip
        if not unknown.any():
            return summary
        return replace(
            summary,
            **dict.fromkeys((*LENGTHS, "median_length", "correlation"), nan),  # type: ignore[arg-type]
        )

    def to_frame(self) -> Any:
        """A pandas frame, row for row: keys, the label, the set, whether it held it, and λ.

        >>> import setpoint as sp
        >>> tape = sp.Tape.from_arrays({"lower": [10.0], "upper": [14.0]}, [12.0])
        >>> sp.replay(sp.intervals(coverage=0.9), tape).to_frame()
              y  lower  upper  covered  lam
        0  12.0   10.0   14.0     True  0.0
        """
        pandas, tape = import_module("pandas"), self.tape
        keys = {name: getattr(tape, name) for name in ("series", "horizon", "time", "group")}
        ends: dict[str, Any] = {"lower": self.lower, "upper": self.upper}
        ends |= self.ends
        columns: dict[str, Any] = {name: key for name, key in keys.items() if key is not None}
        columns["y"] = tape.y
        columns |= ends if self.shown is None else {"shown": list(self.shown)}
        return pandas.DataFrame(columns | {"covered": self.covered, "lam": self.lam})

    def plot(self) -> Any:
        """A plotly figure of the sets and the labels; it needs the extra `plots`."""
        from setpoint.report import plot

        return plot(self)

    def _repr_html_(self) -> str:
        width = self.summary().mean_finite_length
        name = "mean width" if self.shown is None else "mean size"
        return table([
            ("rows", f"{len(self.lam):,}"), ("streams", f"{len(self.states):,}"),
            ("coverage", f"{100.0 * self.coverage:.2f} %"), (name, f"{width:.4g}"),
        ])  # fmt: skip

    def certificate(self, stream: Hashable = None) -> Certificate:
        """What is guaranteed of one stream of the tape; it may be left out if there is only one."""
        if stream is None and len(self.states) == 1:
            return certify(self.controller, self.state)
        if stream not in self.states:
            raise InputError(
                f"the trace has {len(self.states):,} streams, {listed(self.states)}: "
                f"a certificate is about one of them, got {stream!r}; setpoint.guarantee.pooled "
                "sums up those of trace.certificates"
            )
        return certify(self.controller, self.states[stream])

    @cached_property
    def certificates(self) -> list[Certificate]:
        """What is guaranteed of each stream, in the order of `states`."""
        if not isinstance(self.states, States):
            return [certify(self.controller, state) for state in self.states.values()]
        ids, (first, which) = list(self.states), self.states.alike()
        told = [certify(self.controller, self.states[ids[place]]) for place in first.tolist()]
        return [told[place] for place in which.tolist()]


def sizes_of(shown: Sequence[Any]) -> Sequence[float]:
    """How large sets are."""
    if isinstance(shown, LabelSets):
        return shown.sizes  # type: ignore[return-value]
    return [size_of(set_shown) for set_shown in shown]


def middle_of(controller: Controller, tape: Tape) -> Array | None:
    """The forecast of each row as it was given; None where there is no single one."""
    columns = columns_of(controller, tape)
    sets = controller.reader
    names = sets.columns if isinstance(sets, NamedColumns) else None
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(columns) == 1 and arrays:
        return arrays[0]
    if names is None or len(arrays) < len(columns):
        return None
    by_name = dict(zip(names, arrays, strict=True))
    if "centre" in by_name:
        return by_name["centre"]
    return 0.5 * (by_name["lower"] + by_name["upper"]) if "lower" in by_name else None


def delays_of(tape: Tape) -> Array:
    """The most rows by which a label of each stream is late."""
    schedule, offsets = tape.schedule, tape.segments.offsets
    lengths = np.diff(offsets)
    if schedule is None:
        return np.zeros(len(lengths), np.int64)
    if not len(schedule.upto):
        return schedule.delays
    late = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths) - schedule.upto
    delays = np.zeros(len(lengths), np.int64)
    delays[lengths > 0] = np.maximum.reduceat(late, offsets[:-1][lengths > 0])
    return delays


def nominal(controller: Controller) -> float:
    """The coverage a controller aims at, as far as its risks tell: 0.9 if they do not.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.MiscoverageCounter(), level=1 / 9)
    >>> round(nominal(sp.Controller(sp.sets.Widen(), risk)), 12)
    0.9
    """
    missed = [
        risk.loss.missed(risk.level) if isinstance(risk.loss, Misses) else 0.1
        for risk in controller.risks
    ]
    sets = controller.sets
    if not isinstance(sets, Members):
        return 1.0 - missed[0]
    if isinstance(sets, Fan):
        return sets.hull
    # Two sides miss y together, and of nested sets it is the largest that is compared with y.
    owners = controller.owners
    first = [missed[owners.index(member)] for member in range(sets.members)]
    return 1.0 - first[-1] if sets.order else max(1.0 - sum(first), 0.0)


def ends_of(controller: Controller) -> dict[str, tuple[int, int]]:
    """What the ends of several sets are called in columns: lower_80, upper_80, or q05.

    Of each the member it belongs to, and 0 for its lower end or 1 for its upper one.
    """
    sets = controller.sets
    if isinstance(sets, Fan):
        return sets.places
    if not (isinstance(sets, Members) and sets.order):
        return {}
    owners, risks = controller.owners, controller.risks
    first = [risks[owners.index(member)] for member in range(sets.members)]
    names = [
        f"{100.0 * (1.0 - risk.loss.missed(risk.level)):g}" for risk in first
        if isinstance(risk.loss, Misses)
    ]  # fmt: skip
    names = names if len(set(names)) == len(first) else list(map(str, range(len(first))))
    return {
        f"{end}_{name}": (place, side)
        for place, name in enumerate(names)
        for side, end in enumerate(("lower", "upper"))
    }


def replay(
    controller: Controller,
    tape: Tape | Any,
    state: Start = None,
    *,
    delay: int | None = None,
    columns: Columns | None = None,
    groups: By | None = None,
) -> Trace:
    """Runs a controller over a tape and writes everything down.

    Every label is taken in when the tape says that it became known, so the sets are those that a
    live stream would have shown. By default that is before the next row.

    Parameters
    ----------
    controller
        Any controller; made of scalar rules it runs compiled.
    tape
        Predictions and labels; each of its streams has a state of its own. A NaN label is not
        observed: its set is shown, and nothing moves. Columns called as the family's own are told
        by their names, all others by their places. Or a data frame, whose columns the last
        arguments name.
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
        a name or several, of a data frame, of `Tape.extras`, or "group"; or a mapping from names to
        one value for each row. A row with 8 in the column hour belongs to the group "hour=8", one
        with True in the column rain to the group "rain", one with a tuple to the groups that it
        names, one with nothing there to none.

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
    run = _scalar if in_loops(controller, tape, begin) else _by_rows
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
    else:
        rows = probabilities(controller, columns)
        check_places(controller, tape.y)
        rows = np.ascontiguousarray(tape.by_stream(rows.T).T)
    narrow, (vectors, annexes) = is_narrow(controller, columns), begin.vectors(layout)
    labels = np.ascontiguousarray(tape.by_stream(tape.y), np.float64)
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


def check_promises(controller: Controller, losses: Array, lams: Array, vectors: Array) -> None:
    """Raises the error of the first loss that breaks its promise, or of a θ that is not finite."""
    layout = layout_of(controller)
    check_lams(lams)
    thetas, unjudged = (vectors[:, layout.places(name)] for name in ("theta", "unjudged"))
    if unjudged.any():
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


def _by_rows(
    controller: Controller, tape: Tape, begin: Begin, held: Membership | None = None
) -> Trace:
    """A trace by steps in plain Python."""
    risks, order = len(controller.risks), tape.segments.order
    lower, upper, lam = array("d"), array("d"), array("d")
    theta, losses, covered = array("d"), array("d"), array("b")
    shown: list[Any] | None = None
    states = list(begin)
    for step in steps(controller, tape, states, held):
        if step is None:
            continue
        ends = step.shown if isinstance(step.shown, Ends) else None
        if ends is None and shown is None:  # until now everything was an interval
            shown = [Interval(*pair) for pair in zip(lower, upper, strict=True)]
        lower.append(nan if ends is None else ends.lower)
        upper.append(nan if ends is None else ends.upper)
        if shown is not None:
            shown.append(step.shown)
        lam.append(step.lam)
        theta.extend(step.theta)
        losses.extend(step.losses)
        covered.append(step.covered)
    narrow = is_narrow(controller, columns_of(controller, tape))
    ends_type = np.float32 if narrow else np.float64
    if shown is not None and order is not None:
        by_row = [None] * len(shown)
        for row, set_shown in zip(order.tolist(), shown, strict=True):
            by_row[row] = set_shown
        shown = by_row
    return Trace(
        controller,
        tape,
        tape.by_row(np.array(lower, ends_type)),
        tape.by_row(np.array(upper, ends_type)),
        None if shown is None else tuple(shown),
        tape.by_row(np.array(lam)),
        tape.by_row(np.array(covered, dtype=bool)),
        tape.by_row(np.array(theta).reshape(-1, risks).T.copy()),
        tape.by_row(np.array(losses).reshape(-1, risks).T.copy()),
        dict(zip(tape.streams, states, strict=True)),
    )
