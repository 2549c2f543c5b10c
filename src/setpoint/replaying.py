"""Replaying tapes: one controller with everything written down, or thousands with tallies.

A base model's predictions do not depend on θ, so a recorded tape serves every controller. Made of
scalar rules, a controller runs as machine code (extra `fast`) and gives the numbers of a live
stream; any other runs step by step in plain Python.
"""

from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import _kernels, metrics
from setpoint._check import confidence
from setpoint._layout import Layout, layout_of, scalar
from setpoint._loops import TALLIES
from setpoint._stepwise import columns_of, is_narrow, steps
from setpoint._streamwise import streamwise
from setpoint.controller import Controller, Law, Risk, State, matching
from setpoint.errors import InputError, LabelError, LossError, PredictionError
from setpoint.guarantee import Certificate, certify
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Interval
from setpoint.tape import Tape

__all__ = ["Sweep", "Trace", "nominal", "replay", "sweep"]

Array = np.ndarray[Any, Any]
Start = State | Mapping[Hashable, State] | None


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The finished record of a controller on a tape, row for row.

    Parameters
    ----------
    controller, tape
        What ran on what.
    lower, upper
        The ends of the sets shown, in float32 if the predictions were; NaN where a family shows
        something else than intervals.
    shown
        The sets themselves for such a family, else None.
    lam
        The λ of each set: ±inf where the safeguard chose it; the largest one where each risk has
        a set of its own.
    covered
        Whether the set held its label; for sets that cannot tell, whether the first risk's loss
        was at its level. It means something where `observed` does.
    theta
        The θ behind each set, one row for each risk.
    losses
        The loss of each label, one row for each risk; NaN where there was none to judge.
    states
        The state each stream ended in, by its id.
    """

    controller: Controller
    tape: Tape
    lower: Array
    upper: Array
    shown: tuple[Any, ...] | None
    lam: Array
    covered: Array
    theta: Array
    losses: Array
    states: Mapping[Hashable, State]

    def __repr__(self) -> str:
        return f"<Trace of {len(self.lam):,} rows, {len(self.states):,} streams>"

    @property
    def state(self) -> State:
        """The state the only stream ended in."""
        if len(self.states) != 1:
            raise InputError(f"the trace has {len(self.states):,} streams: use states[id]")
        return next(iter(self.states.values()))

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
        order, offsets = self.tape.segments
        losses = _ordered(self.losses[risk], order)
        hits = _ordered(np.where(self.observed, self.covered, nan), order)
        options: Any = {
            "level": self.controller.risks[risk].level,
            "losses": losses,
            "groups": None if self.tape.group is None else _ordered(self.tape.group, order),
            "window": window,
            "confidence_level": nominal(self.controller)
            if confidence_level is None
            else confidence_level,
        }
        if self.shown is None:
            lower, upper, y = (_ordered(e, order) for e in (self.lower, self.upper, self.tape.y))
            support = getattr(self.controller.sets, "support", (-inf, inf))
            found = metrics.summary(lower, upper, y, support=support, **options)
        else:
            found = self._size_summary(hits, order, options)
        if len(offsets) == 2:
            return found
        found = streamwise(found, hits, losses, offsets)
        start = found.worst_window_start
        if order is not None and start is not None:
            found = replace(found, worst_window_start=int(order[start]))
        return found

    def _size_summary(self, hits: Array, order: Array | None, options: Any) -> metrics.Summary:
        sizes = np.array([_size(each) for each in self.shown or ()], dtype=np.float64)
        sizes, lam = _ordered(sizes, order), _ordered(self.lam, order)
        unknown = np.isnan(sizes)
        known = np.where(unknown, 0.0, sizes)
        found = metrics.size_summary(
            known, hits, full=np.isinf(known) | (lam == inf),
            empty=(~unknown & (known == 0.0)) | (lam == -inf), **options,
        )  # fmt: skip
        if not unknown.any():
            return found
        return replace(
            found,
            **dict.fromkeys((*_LENGTHS, "median_length", "correlation"), nan),  # type: ignore[arg-type]
        )

    def certificate(self, stream: Hashable = None) -> Certificate:
        """What is guaranteed of one stream of the tape; it may be left out if there is only one."""
        if stream is None and len(self.states) == 1:
            return certify(self.controller, self.state)
        if stream not in self.states:
            raise InputError(
                f"the trace has {len(self.states):,} streams, {_listed(self.states)}: "
                f"a certificate is about one of them, got {stream!r}"
            )
        return certify(self.controller, self.states[stream])


_LENGTHS = ("mean_length", "mean_finite_length")


def _size(shown: Any) -> float:
    """How large a set is that has no ends; NaN if it does not tell."""
    return float(getattr(shown, "size", getattr(shown, "length", nan)))


def _listed(ids: Mapping[Hashable, Any]) -> str:
    first = [repr(id) for id, _ in zip(ids, range(5), strict=False)]
    return ", ".join([*first, "…"] if len(ids) > 5 else first)


def nominal(controller: Controller) -> float:
    """The coverage a controller aims at, as far as its risks tell: 0.9 if they do not.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.MiscoverageCounter(), level=1 / 9)
    >>> round(nominal(sp.Controller(sp.sets.Widen(), risk)), 12)
    0.9
    """
    missed = [_missed(risk) for risk in controller.risks]
    sets: Any = controller.sets
    if not hasattr(sets, "sides"):
        return 1.0 - missed[0]
    # Two sides miss y together, and of nested sets it is the largest that is compared with y.
    alone = all(sets.alone(index) for index in range(len(missed)))
    return max(1.0 - sum(missed), 0.0) if alone else 1.0 - missed[-1]


def _missed(risk: Risk) -> float:
    """The share of labels that a risk at its level lets go: 0.1 if it does not tell."""
    if isinstance(risk.loss, Miscoverage):
        return risk.level
    if isinstance(risk.loss, MiscoverageCounter):
        return risk.level / (1.0 + risk.level)
    return 0.1


# Where streams begin and where they end


class _Begin:
    """The state in which each stream of a tape begins."""

    def __init__(self, controller: Controller, tape: Tape, given: Start) -> None:
        self.controller, self.streams = controller, tape.streams
        self.common = controller.init()
        self.ended: _States | None = None
        self.own: dict[Hashable, State] = {}
        if isinstance(given, State):
            self.common = matching(controller, given)
        elif isinstance(given, Mapping):
            known = set(self.streams)
            strange = {id: None for id in given if id not in known}
            # The states of an earlier trace may be those of streams that have ended since.
            if strange and not isinstance(given, _States):
                raise InputError(
                    f"the tape has no stream {_listed(strange)}, for which a state was given; "
                    f"it has {_listed(dict.fromkeys(self.streams))}"
                )
            if isinstance(given, _States) and given.controller == controller:
                self.ended = given
            else:
                for id, state in given.items():
                    if id in strange:
                        continue
                    if not isinstance(state, State):
                        raise InputError(f"the state of {id!r} must be a State, got {state!r}")
                    self.own[id] = matching(controller, state)
        elif given is not None:
            raise InputError(f"state must be a State or a mapping of them by id, got {given!r}")

    def __iter__(self) -> Iterator[State]:
        """A state for each stream that nobody else holds, made when it is asked for."""
        own: Mapping[Hashable, State] = self.own if self.ended is None else self.ended
        return (own.get(stream, self.common).copy() for stream in self.streams)

    def vectors(self, layout: Layout) -> tuple[Array, Array]:
        """The numbers of all states, one column for each stream."""
        count = len(self.streams)
        made, rest = (
            np.repeat(np.array(numbers, dtype=np.float64)[:, None], count, axis=1)
            for numbers in (layout.pack(self.common), layout.pack_rest(self.common))
        )
        if self.ended is not None:
            places = [self.ended.places.get(stream, -1) for stream in self.streams]
            there = np.array(places, dtype=np.int64)
            made[:, there >= 0] = self.ended.vectors[:, there[there >= 0]]
            rest[:, there >= 0] = self.ended.rest[:, there[there >= 0]]
        elif self.own:
            for place, stream in enumerate(self.streams):
                if stream in self.own:
                    made[:, place] = layout.pack(self.own[stream])
                    rest[:, place] = layout.pack_rest(self.own[stream])
        return made, rest


class _States(Mapping[Hashable, State]):
    """The states that streams ended in, kept as numbers and made when they are asked for."""

    def __init__(
        self, controller: Controller, streams: Sequence[Hashable], vectors: Array, rest: Array
    ) -> None:
        self.controller, self.vectors, self.rest = controller, vectors, rest
        self.places = {stream: place for place, stream in enumerate(streams)}
        self._made: dict[Hashable, State] = {}
        self._blank = controller.init()

    def __getitem__(self, stream: Hashable) -> State:
        if stream not in self._made:
            place, layout = self.places[stream], layout_of(self.controller)
            state = layout.unpack(self.vectors[:, place], self._blank.copy())
            self._made[stream] = layout.unpack_rest(self.rest[:, place], state)
        return self._made[stream]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, stream: object) -> bool:
        return stream in self.places

    def __repr__(self) -> str:
        return f"<the states of {len(self):,} streams>"


# Replay


def replay(controller: Controller, tape: Tape, state: Start = None) -> Trace:
    """Runs a controller over a tape and writes everything down.

    Parameters
    ----------
    controller
        Any controller; made of scalar rules it runs compiled.
    tape
        Predictions and labels; each of its streams has a state of its own. A NaN label is not
        observed: its set is shown, and nothing moves. Columns called as the family's own are told
        by their names, all others by their places.
    state
        Where to go on from: one state for all streams, or one for each by its id; a stream
        without one begins at the beginning, as all do by default.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> tape = sp.Tape.from_arrays({"lower": [10.0, 10.0], "upper": [14.0, 14.0]}, [15.0, 14.2])
    >>> trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
    >>> trace.upper, trace.losses[0], trace.state.risks[0].theta
    (array([14.  , 14.45]), array([1., 0.]), 0.4)
    """
    begin = _Begin(controller, tape, state)
    run = _compiled if _kernels.compiled() and scalar(controller) else _written
    return run(controller, tape, begin)


def _columns_of(controller: Controller, tape: Tape) -> list[Array]:
    """The numbers of the predictions as a scalar family wants them, checked as a whole."""
    sets: Any = controller.sets
    columns = columns_of(controller, tape)
    found = [column for column in columns if isinstance(column, np.ndarray)]
    if len(found) < len(columns):
        raise InputError(
            f"{type(sets).__name__} needs one number a row in each of {', '.join(sets.columns)}, "
            "the tape has a ragged column"
        )
    if len(found) < len(sets.columns):
        (point,) = found
        if not np.isfinite(point).all():
            row = int((~np.isfinite(point)).argmax())
            raise PredictionError(f"row {row}: a point forecast must be finite, got {point[row]}")
        return [point, point]
    if sets.columns[0] == "centre":
        centre, *scales = found
        bad = ~np.isfinite(centre)
        for column in scales:
            bad |= ~((column >= 0.0) & np.isfinite(column))
        if bad.any():
            row = int(bad.argmax())
            sets.read(tuple(float(column[row]) for column in found))
    return found


def _check_labels(controller: Controller, y: Array) -> None:
    """Raises the error of the first label outside the support."""
    low, high = controller.sets.support  # type: ignore[attr-defined]
    if (low, high) == (-inf, inf):
        return
    bad = (y < low) | (y > high)
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"row {row}: a label must lie in the support [{low}, {high}], got {y[row]}"
        )


def _ordered(column: Array, order: Array | None) -> Array:
    return np.ascontiguousarray(column if order is None else column[order])


def _put_back(column: Array, order: Array | None) -> Array:
    """The column in the order of the tape's rows."""
    if order is None:
        return column
    made = np.empty_like(column)
    made[..., order] = column
    return made


def _compiled(controller: Controller, tape: Tape, begin: _Begin) -> Trace:
    layout = layout_of(controller)
    columns = _columns_of(controller, tape)
    _check_labels(controller, tape.y)
    rows, risks = len(tape), layout.risks
    order, offsets = tape.segments
    narrow = is_narrow(controller, columns)
    ends = np.float32 if narrow else np.float64
    lower, upper = np.empty(rows, ends), np.empty(rows, ends)
    lam, theta, losses = np.empty(rows), np.empty((risks, rows)), np.empty((risks, rows))
    covered = np.ones(rows, dtype=bool)
    vectors, rest = begin.vectors(layout)
    params = np.array(layout.params_of(controller))
    inputs = [_ordered(column, order) for column in (*columns, tape.y)]
    run = _kernels.kernel(layout, "along", narrow=narrow)
    run(params, vectors, offsets, *inputs, lower, upper, lam, covered, theta, losses)
    _check_losses(controller, layout, losses, lam, inputs[-1])
    del inputs
    ended = _States(controller, tape.streams, vectors, rest)
    lower, upper, lam, covered, theta, losses = (
        _put_back(each, order) for each in (lower, upper, lam, covered, theta, losses)
    )
    return Trace(controller, tape, lower, upper, None, lam, covered, theta, losses, ended)


def _check_losses(
    controller: Controller, layout: Layout, losses: Array, lam: Array, y: Array
) -> None:
    """Raises the error of the first loss that breaks the promises a user's own loss makes."""
    for index in range(layout.risks):
        if not layout.doubted[index]:
            continue
        law, values = Law(controller, index), losses[index]
        promise, sign = law.promise, -1.0 if law.grows else 1.0
        kept = (promise.low <= values) & (values <= promise.high)
        kept &= ~((lam == inf) & (sign * (values - promise.full) > 0.0))
        kept &= ~((lam == -inf) & (sign * (values - promise.empty) < 0.0))
        broken = ~kept & (y == y)
        if broken.any():
            place = int(broken.argmax())
            law.check(float(values[place]), float(lam[place]))


def _written(controller: Controller, tape: Tape, begin: _Begin) -> Trace:
    """A trace by steps in plain Python."""
    risks, (order, _) = len(controller.risks), tape.segments
    lower, upper, lam = array("d"), array("d"), array("d")
    theta, losses, covered = array("d"), array("d"), array("b")
    kept: list[Any] | None = None
    states = list(begin)
    for step in steps(controller, tape, states):
        if step is None:
            continue
        shown = step.shown
        if hasattr(shown, "lower") and hasattr(shown, "upper"):
            lower.append(shown.lower)
            upper.append(shown.upper)
        else:
            if kept is None:  # until now everything was an interval
                kept = [Interval(*pair) for pair in zip(lower, upper, strict=True)]
            lower.append(nan)
            upper.append(nan)
        if kept is not None:
            kept.append(shown)
        lam.append(step.lam)
        theta.extend(step.theta)
        losses.extend(step.losses)
        covered.append(step.covered)
    narrow = is_narrow(controller, columns_of(controller, tape))
    ends = np.float32 if narrow else np.float64
    if kept is not None and order is not None:
        back = [None] * len(kept)
        for row, shown in zip(order.tolist(), kept, strict=True):
            back[row] = shown
        kept = back
    return Trace(
        controller,
        tape,
        _put_back(np.array(lower, ends), order),
        _put_back(np.array(upper, ends), order),
        None if kept is None else tuple(kept),
        _put_back(np.array(lam), order),
        _put_back(np.array(covered, dtype=bool), order),
        _put_back(np.array(theta).reshape(-1, risks).T.copy(), order),
        _put_back(np.array(losses).reshape(-1, risks).T.copy(), order),
        dict(zip(tape.streams, states, strict=True)),
    )


# Sweep


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Many controllers on one tape, one number of each metric for each.

    Parameters
    ----------
    controllers
        What was tried.
    columns
        From the name of a metric to an array with one value for each controller: those of
        `metrics.Summary` that need no trace, with `risk` for the first risk and `risk0`, `risk1`,
        … for each.
    traces
        The trace of each controller if it was asked for, else None.
    """

    controllers: tuple[Controller, ...]
    columns: dict[str, Array]
    traces: tuple[Trace, ...] | None = None

    def __len__(self) -> int:
        return len(self.controllers)

    def __repr__(self) -> str:
        return f"<Sweep of {len(self):,} controllers: {', '.join(self.columns)}>"

    def row(self, index: int) -> dict[str, float]:
        """The metrics of one controller."""
        return {name: float(values[index]) for name, values in self.columns.items()}


def sweep(
    controllers: Sequence[Controller],
    tape: Tape,
    *,
    state: Start = None,
    traces: bool = False,
    confidence_level: float | None = None,
) -> Sweep:
    """Runs many controllers over one tape in one pass and keeps only their metrics.

    Parameters
    ----------
    controllers
        Any controllers; those made of the same scalar rules run side by side as machine code.
    tape
        One stream or several; over several, every number is about all of their rows together.
    state
        Where every controller goes on from, as in `replay`.
    traces
        Whether to keep the trace of each controller too. They take 25 bytes a row and 16 more for
        each risk, times the number of controllers; without them a sweep needs no memory that
        grows with both.
    confidence_level
        The nominal coverage behind pinball and Winkler; by default what each controller aims at.

    Examples
    --------
    >>> import setpoint as sp
    >>> tape = sp.Tape.from_arrays({"lower": [0.0] * 4, "upper": [1.0] * 4}, [2.0, 0.5, 3.0, 0.5])
    >>> risk = lambda gamma: sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(gamma))
    >>> tried = [sp.Controller(sp.sets.Widen(), risk(gamma)) for gamma in (0.1, 5.0)]
    >>> sp.sweep(tried, tape).columns["coverage"]
    array([0.5 , 0.75])
    """
    return _run_sweep(controllers, tape, state, traces, confidence_level)


_TOGETHER = 256
"""How many controllers run at once, so that someone who watches sees it move."""


def _run_sweep(
    controllers: Sequence[Controller],
    tape: Tape,
    state: Start = None,
    traces: bool = False,
    confidence_level: float | None = None,
    told: Callable[[int], None] | None = None,
) -> Sweep:
    """A sweep that tells how many controllers are done."""
    controllers = tuple(controllers)
    if confidence_level is not None:
        confidence_level = confidence(confidence_level)
    written = tuple(replay(each, tape, state) for each in controllers) if traces else None
    rows: list[dict[str, float]] = [{} for _ in controllers]
    groups: dict[Layout, list[int]] = {}
    done, fast = 0, _kernels.compiled()
    for index, controller in enumerate(controllers):
        if fast and scalar(controller):
            groups.setdefault(layout_of(controller), []).append(index)
            continue
        if written is not None:
            rows[index] = _summed_up(written[index], confidence_level)
        else:
            alone = _step_by_step(controller, tape, confidence_level, state)
            rows[index] = {name: float(values[0]) for name, values in alone.items()}
        done += 1
        if told is not None:
            told(done)
    for group in groups.values():
        for start in range(0, len(group), _TOGETHER):
            members = group[start : start + _TOGETHER]
            several = [controllers[index] for index in members]
            found = _side_by_side(several, tape, confidence_level, state)
            for place, index in enumerate(members):
                rows[index] = {name: float(values[place]) for name, values in found.items()}
            done += len(members)
            if told is not None:
                told(done)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: np.array([row.get(name, nan) for row in rows]) for name in names}
    return Sweep(controllers, columns, written)


def _tail(controller: Controller, confidence_level: float | None) -> float:
    return (1.0 - (nominal(controller) if confidence_level is None else confidence_level)) / 2.0


def _side_by_side(
    controllers: Sequence[Controller],
    tape: Tape,
    confidence_level: float | None = None,
    state: Start = None,
) -> dict[str, Array]:
    """The metrics of controllers of one layout, from one compiled pass over the tape."""
    tally, totals = _counted(controllers, tape, state)
    tails = np.array([_tail(controller, confidence_level) for controller in controllers])
    held = dict(zip(TALLIES, tally, strict=True))
    return _metrics(held, totals, np.broadcast_to(held["observed"], totals.shape), tails)


def _counted(controllers: Sequence[Controller], tape: Tape, state: Start) -> tuple[Array, Array]:
    """One pass over the tape: tallies and total losses."""
    layout = layout_of(controllers[0])
    columns = _columns_of(controllers[0], tape)
    for controller in controllers:
        _check_labels(controller, tape.y)
    params = _stack(layout.params_of(controller) for controller in controllers)
    begin = _stack(layout.pack(controller.init()) for controller in controllers)
    given, which = _given(controllers[0], layout, tape, state)
    totals_at = [layout.fields.index(f"total{i}") for i in range(layout.risks)]
    given[totals_at] = 0.0
    cells, doubted = len(controllers), sum(layout.doubted)
    tally, totals = np.zeros((len(TALLIES), cells)), np.zeros((layout.risks, cells))
    first = np.array([inf, -inf, -inf, inf] * doubted)
    extremes = np.repeat(first[:, None], cells, axis=1)
    for k, grows in enumerate(g for g, d in zip(layout.grows, layout.doubted, strict=True) if d):
        if grows:
            extremes[4 * k + 2], extremes[4 * k + 3] = inf, -inf
    order, offsets = tape.segments
    inputs = [_ordered(column, order) for column in (*columns, tape.y)]
    vectors = begin.copy()
    run = _kernels.kernel(layout, "sweep", narrow=is_narrow(controllers[0], columns))
    run(params, vectors, begin, given, which, offsets, *inputs, tally, totals, extremes)
    if doubted:
        _check_extremes(controllers, layout, totals, extremes)
    return tally, totals


def _stack(rows: Any) -> Array:
    """One contiguous row for each number, one column for each controller."""
    return np.array(list(rows), dtype=np.float64).T.copy()


def _given(controller: Controller, layout: Layout, tape: Tape, state: Start) -> tuple[Array, Array]:
    """The numbers of the states that were given, and which of them each stream begins in.

    θ and the memories of a state are the same whichever controller goes on from it.
    """
    begin = _Begin(controller, tape, state)
    count = len(begin.streams)
    if state is None:
        return np.empty((len(layout.fields), 0)), np.full(count, -1)
    if isinstance(state, State):
        return _stack([layout.pack(begin.common)]), np.zeros(count, dtype=np.int64)
    there = np.array([stream in state for stream in begin.streams], dtype=bool)
    return begin.vectors(layout)[0], np.where(there, np.arange(count), -1)


def _check_extremes(
    controllers: Sequence[Controller], layout: Layout, totals: Array, extremes: Array
) -> None:
    """Raises the error of a user's own loss that broke its promises."""
    places = [index for index in range(layout.risks) if layout.doubted[index]]
    for k, index in enumerate(places):
        for cell, controller in enumerate(controllers):
            law = Law(controller, index)
            if totals[index, cell] != totals[index, cell]:
                raise LossError(f"{law.name} promises a number, got {nan}")
            least, most, at_full, at_empty = extremes[4 * k : 4 * k + 4, cell].tolist()
            if least > most:
                continue  # nothing was judged
            for value, lam in ((least, 0.0), (most, 0.0), (at_full, inf), (at_empty, -inf)):
                if abs(value) < inf or lam == 0.0:
                    law.check(value, lam)


def _step_by_step(
    controller: Controller, tape: Tape, confidence_level: float | None, state: Start
) -> dict[str, Array]:
    """The metrics of one controller, by steps in plain Python."""
    count, labels, counter = _kernels.tally(), tape.y, TALLIES.index("counter")
    low, high = getattr(controller.sets, "support", (-inf, inf))
    held, unsized = [0.0] * len(TALLIES), False
    totals, judged = ([0.0] * len(controller.risks) for _ in range(2))
    for step in steps(controller, tape, _Begin(controller, tape, state)):
        if step is None:
            held[counter] = 0.0  # a streak ends with its stream
            continue
        for index, value in enumerate(step.losses):
            if value == value:
                totals[index] += value
                judged[index] += 1.0
        if step.losses[0] != step.losses[0]:
            continue
        shown, lam, missed = step.shown, step.lam, not step.covered
        if hasattr(shown, "lower") and hasattr(shown, "upper"):
            y = float(labels[step.row])
            count(held, shown.lower, shown.upper, y, missed, low, high, None, False, False)
        else:
            size = _size(shown)
            unsized = unsized or size != size
            whole, nothing = lam == inf or size == inf, lam == -inf or size == 0.0
            count(held, 0.0, 0.0, 0.0, missed, low, high, size, whole, nothing)
    found = _metrics(
        {name: np.array([value]) for name, value in zip(TALLIES, held, strict=True)},
        np.array(totals)[:, None],
        np.array(judged)[:, None],
        np.array([_tail(controller, confidence_level)]),
    )
    return {**found, **({name: np.array([nan]) for name in _LENGTHS} if unsized else {})}


def _metrics(
    tally: dict[str, Array], totals: Array, judged: Array, tails: Array
) -> dict[str, Array]:
    """The metrics of `metrics.Summary` from what a pass counted."""
    observed = tally["observed"]

    def per(value: Array, count: Array) -> Array:
        found: Array = np.divide(value, count, out=np.full(len(count), nan), where=count > 0)
        return found

    risks = [per(total, count) for total, count in zip(totals, judged, strict=True)]
    length = np.where(tally["finite"] < observed, inf, per(tally["length"], observed))
    near, apart = per(tally["near"], observed), per(tally["apart"], observed)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(tails > 0.0, tails * near, 0.0)
        outside = np.where(apart == 0.0, 0.0, apart / tails)
    return {
        "steps": observed,
        "risk": risks[0],
        **{f"risk{i}": risk for i, risk in enumerate(risks)},
        "coverage": 1.0 - per(tally["misses"], observed),
        "mean_length": length,
        "mean_finite_length": per(tally["length"], tally["finite"]),
        "full": per(tally["full"], observed),
        "empty": per(tally["empty"], observed),
        "mc": per(tally["counters"], observed),
        "msl": np.where(tally["streaks"] > 0, per(tally["misses"], tally["streaks"]), 0.0),
        "longest_streak": tally["longest"],
        "pinball": 0.5 * ((1.0 - tails) * apart + inside),
        "winkler": length + outside,
    }


_SWEPT = (
    "coverage", "mean_length", "mean_finite_length", "full", "empty", "mc", "msl",
    "longest_streak", "pinball", "winkler",
)  # fmt: skip


def _summed_up(trace: Trace, confidence_level: float | None) -> dict[str, float]:
    """The same metrics from a trace."""
    found = trace.summary(confidence_level=confidence_level)
    risks = {f"risk{i}": metrics.risk(losses) for i, losses in enumerate(trace.losses)}
    return {
        "steps": float(found.steps),
        "risk": risks["risk0"],
        **risks,
        **{name: float(getattr(found, name)) for name in _SWEPT},
    }
