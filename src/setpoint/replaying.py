"""Replaying tapes: one controller with everything written down, or thousands with tallies.

A base model's predictions do not depend on θ, so a recorded tape serves every controller. Made of
scalar rules, a controller runs as machine code (extra `fast`) and gives the numbers of a live
stream; any other runs step by step in plain Python.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import _kernels, metrics
from setpoint._layout import layout_of, scalar
from setpoint._loops import TALLIES
from setpoint.controller import (
    Controller,
    Law,
    State,
    aim,
    aim_several,
    learn,
    learn_several,
    matching,
)
from setpoint.errors import InputError, LabelError
from setpoint.guarantee import Certificate, certify
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.tape import Tape

__all__ = ["Sweep", "Trace", "nominal", "replay", "sweep"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The finished record of a controller on a tape, row for row.

    Parameters
    ----------
    controller, tape
        What ran on what.
    lower, upper
        The ends of the sets shown; NaN where a family shows something else than intervals.
    shown
        The sets themselves for such a family, else None.
    lam
        The λ of each set: ±inf where the safeguard chose it.
    covered
        Whether the set held its label; False where there was no label.
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
    states: dict[Hashable, State]

    def __repr__(self) -> str:
        return f"<Trace of {len(self.lam):,} rows, {len(self.states):,} streams>"

    @property
    def state(self) -> State:
        """The state the only stream ended in."""
        if len(self.states) != 1:
            raise InputError(f"the trace has {len(self.states):,} streams: use states[id]")
        return next(iter(self.states.values()))

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
        """Every metric of `setpoint.metrics`, with the losses of one risk."""
        level = self.controller.risks[risk].level
        confidence = nominal(self.controller) if confidence_level is None else confidence_level
        if self.shown is not None:
            sizes = [getattr(each, "size", getattr(each, "length", nan)) for each in self.shown]
            return metrics.size_summary(
                sizes, self.covered, level, losses=self.losses[risk], groups=self.tape.group,
                window=window, confidence_level=confidence,
            )  # fmt: skip
        found = metrics.summary(
            self.lower, self.upper, self.tape.y, level, losses=self.losses[risk],
            groups=self.tape.group, window=window, confidence_level=confidence,
            support=getattr(self.controller.sets, "support", (-inf, inf)),
        )  # fmt: skip
        return found if len(self.states) == 1 else self._stream_by_stream(found)

    def _stream_by_stream(self, found: metrics.Summary) -> metrics.Summary:
        """The summary with streaks that end where their stream does."""
        order, offsets = self.tape.segments
        seen = ~np.isnan(self.tape.y)
        covered, seen = _ordered(self.covered, order), _ordered(seen, order)
        parts = [covered[a:b][seen[a:b]] for a, b in pairwise(offsets)]
        counts = np.concatenate([metrics.miscoverage_counter(part) for part in parts])
        runs = np.concatenate([metrics.streaks(part) for part in parts])
        return replace(
            found,
            mc=float(counts.mean()) if len(counts) else nan,
            msl=float(runs.mean()) if len(runs) else 0.0,
            streaks=len(runs),
            longest_streak=int(runs.max(initial=0)),
        )

    def certificate(self, stream: Hashable = None) -> Certificate:
        """What is guaranteed of one stream of the tape; it may be left out if there is only one."""
        state = self.state if stream is None and len(self.states) == 1 else self.states[stream]
        return certify(self.controller, state)


def nominal(controller: Controller) -> float:
    """The coverage a controller aims at, as far as its first risk tells: 0.9 if it does not.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.MiscoverageCounter(), level=1 / 9)
    >>> round(nominal(sp.Controller(sp.sets.Widen(), risk)), 12)
    0.9
    """
    risk = controller.risks[0]
    if isinstance(risk.loss, Miscoverage):
        return 1.0 - risk.level
    if isinstance(risk.loss, MiscoverageCounter):
        return 1.0 / (1.0 + risk.level)
    return 0.9


def replay(
    controller: Controller,
    tape: Tape,
    state: State | Mapping[Hashable, State] | None = None,
) -> Trace:
    """Runs a controller over a tape and writes everything down.

    Parameters
    ----------
    controller
        Any controller; made of scalar rules it runs compiled.
    tape
        Predictions and labels; each of its streams has a state of its own. A NaN label is not
        observed: its set is shown, and nothing moves.
    state
        Where to go on from: one state, or one for each stream by id. By default the beginning.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> tape = sp.Tape.from_arrays({"lower": [10.0, 10.0], "upper": [14.0, 14.0]}, [15.0, 14.2])
    >>> trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
    >>> trace.upper, trace.losses[0], trace.state.risks[0].theta
    (array([14.  , 14.45]), array([1., 0.]), 0.4)
    """
    streams = tape.streams
    states = [_state(controller, state, stream) for stream in streams]
    order, offsets = tape.segments
    run = _compiled if _kernels.compiled() and scalar(controller) else _stepwise
    return run(controller, tape, states, order, offsets)


def _state(
    controller: Controller, given: State | Mapping[Hashable, State] | None, stream: Hashable
) -> State:
    if given is None:
        return controller.init()
    if isinstance(given, State):
        return matching(controller, given).copy()
    return matching(controller, given[stream]).copy() if stream in given else controller.init()


def _columns_of(controller: Controller, tape: Tape) -> list[Array]:
    """The numbers of the predictions as a scalar family wants them, checked as a whole."""
    wanted = controller.sets.columns  # type: ignore[attr-defined]
    given = [column for column in tape.prediction if isinstance(column, np.ndarray)]
    if len(given) == len(tape.prediction) == 1 and wanted == ("lower", "upper"):
        found = [given[0], given[0]]  # a point forecast
    elif len(given) == len(tape.prediction) == len(wanted):
        found = given
    else:
        raise InputError(
            f"{type(controller.sets).__name__} needs the columns {', '.join(wanted)}, "
            f"the tape has {', '.join(tape.names)}"
        )
    if wanted[0] == "centre":
        centre, *scales = found
        bad = ~np.isfinite(centre)
        for column in scales:
            bad |= ~((column >= 0.0) & np.isfinite(column))
        if bad.any():
            row = int(bad.argmax())
            controller.sets.read(tuple(float(column[row]) for column in found))
    return found


def _check_labels(controller: Controller, y: Array) -> None:
    """Raises the error of the first label outside the support."""
    low, high = controller.sets.support  # type: ignore[attr-defined]
    bad = (y < low) | (y > high)
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"row {row}: a label must lie in the support [{low}, {high}], got {y[row]}"
        )


def _ordered(column: Array, order: Array | None) -> Array:
    return np.ascontiguousarray(column if order is None else column[order])


def _compiled(
    controller: Controller, tape: Tape, states: Sequence[State], order: Array | None, offsets: Array
) -> Trace:
    layout = layout_of(controller)
    columns = _columns_of(controller, tape)
    _check_labels(controller, tape.y)
    rows, risks = len(tape), layout.risks
    ends = np.result_type(*(column.dtype for column in columns))
    lower, upper = np.empty(rows, ends), np.empty(rows, ends)
    lam, theta, losses = np.empty(rows), np.empty((risks, rows)), np.empty((risks, rows))
    covered = np.ones(rows, dtype=bool)
    vectors = np.array([layout.pack(state) for state in states], dtype=np.float64)
    vectors = vectors.reshape(len(states), len(layout.fields)).T.copy()
    params = np.array(layout.params_of(controller))
    inputs = [_ordered(column, order) for column in (*columns, tape.y)]
    run = _kernels.kernel(layout, "along", narrow=ends == np.float32)
    run(params, vectors, offsets, *inputs, lower, upper, lam, covered, theta, losses)
    if order is not None:
        back = np.empty_like(order)
        back[order] = np.arange(rows)
        lower, upper, lam, covered = lower[back], upper[back], lam[back], covered[back]
        theta, losses = theta[:, back], losses[:, back]
    ended = {
        stream: layout.unpack(vectors[:, index], state)
        for index, (stream, state) in enumerate(zip(tape.streams, states, strict=True))
    }
    return Trace(controller, tape, lower, upper, None, lam, covered, theta, losses, ended)


def _stepwise(
    controller: Controller, tape: Tape, states: Sequence[State], order: Array | None, offsets: Array
) -> Trace:
    rows, risks = len(tape), len(controller.risks)
    laws = tuple(Law(controller, index) for index in range(risks))
    sets, combine, single = controller.sets, controller.combine, risks == 1
    lower, upper = np.full(rows, nan), np.full(rows, nan)
    lam, theta, losses = np.empty(rows), np.empty((risks, rows)), np.full((risks, rows), nan)
    covered = np.zeros(rows, dtype=bool)
    kept: list[Any] = [None] * rows
    others = False
    predictions = _predictions(tape)
    for state, start, stop in zip(states, offsets[:-1], offsets[1:], strict=True):
        own = state.risks[0]
        for place in range(start, stop):
            row = place if order is None else int(order[place])
            reading = sets.read(predictions[row])
            theta[:, row] = [each.theta for each in state.risks]
            if single:
                at, leader = aim(laws[0], own, state.stretch), 0
            else:
                at, leader = aim_several(laws, combine, state)
            shown = kept[row] = sets.at(reading, at)
            lam[row] = at
            if hasattr(shown, "lower") and hasattr(shown, "upper"):
                lower[row], upper[row] = shown.lower, shown.upper
            else:
                others = True
            y = tape.y[row]
            if y != y:
                state.missing += 1
                continue
            label = sets.label(float(y))
            covered[row] = hasattr(shown, "contains") and shown.contains(label)
            value: Any
            if single:
                value = (learn(laws[0], own, state, reading, shown, at, label),)
            else:
                value = learn_several(laws, combine, state, reading, shown, at, leader, label)
            losses[:, row] = [nan if each is None else each for each in value]
    ended = dict(zip(tape.streams, states, strict=True))
    shown_sets = tuple(kept) if others else None
    return Trace(controller, tape, lower, upper, shown_sets, lam, covered, theta, losses, ended)


def _predictions(tape: Tape) -> Sequence[Any]:
    """The prediction of each row, as a live stream would be given it."""
    columns: list[Any] = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in tape.prediction
    ]
    return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Many controllers on one tape, one number of each metric for each.

    `columns` maps the name of a metric to an array with one value for each controller: those of
    `metrics.Summary` that need no trace, with `risk` for the first risk and `risk0`, `risk1`, …
    for each.
    """

    controllers: tuple[Controller, ...]
    columns: dict[str, Array]

    def __len__(self) -> int:
        return len(self.controllers)

    def __repr__(self) -> str:
        return f"<Sweep of {len(self):,} controllers: {', '.join(self.columns)}>"

    def row(self, index: int) -> dict[str, float]:
        """The metrics of one controller."""
        return {name: float(values[index]) for name, values in self.columns.items()}


def sweep(
    controllers: Sequence[Controller], tape: Tape, *, confidence_level: float | None = None
) -> Sweep:
    """Runs many controllers over one tape in one pass and keeps only their metrics.

    Parameters
    ----------
    controllers
        Any controllers; those made of the same scalar rules run side by side as machine code.
    tape
        One stream or several; over several, every number is about all of their rows together.
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
    controllers = tuple(controllers)
    rows: list[dict[str, float]] = [{} for _ in controllers]
    groups: dict[Any, list[int]] = {}
    for index, controller in enumerate(controllers):
        if not (_kernels.compiled() and scalar(controller)):
            rows[index] = _summed_up(controller, tape, confidence_level)
            continue
        groups.setdefault(layout_of(controller).key, []).append(index)
    for members in groups.values():
        found = _side_by_side([controllers[index] for index in members], tape, confidence_level)
        for place, index in enumerate(members):
            rows[index] = {name: float(values[place]) for name, values in found.items()}
    names = dict.fromkeys(name for row in rows for name in row)
    return Sweep(
        controllers, {name: np.array([row.get(name, nan) for row in rows]) for name in names}
    )


def _tail(controller: Controller, confidence_level: float | None) -> float:
    return (1.0 - (nominal(controller) if confidence_level is None else confidence_level)) / 2.0


def _side_by_side(
    controllers: Sequence[Controller], tape: Tape, confidence_level: float | None
) -> dict[str, Array]:
    """Controllers of one layout, in one compiled pass over the tape."""
    layout = layout_of(controllers[0])
    for controller in controllers:
        _check_labels(controller, tape.y)
    columns = _columns_of(controllers[0], tape)
    params = np.array(
        [layout.params_of(controller) for controller in controllers], dtype=np.float64
    ).T.copy()
    starts = np.array(
        [layout.pack(controller.init()) for controller in controllers], dtype=np.float64
    ).T.copy()
    tally = np.zeros((len(TALLIES), len(controllers)))
    totals = np.zeros((layout.risks, len(controllers)))
    tails = np.array([_tail(controller, confidence_level) for controller in controllers])
    ends = np.result_type(*(column.dtype for column in columns))
    run = _kernels.kernel(layout, "sweep", narrow=ends == np.float32)
    order, offsets = tape.segments
    columns, y = [_ordered(c, order) for c in columns], _ordered(tape.y, order)
    for start, stop in pairwise(offsets):
        vectors = starts.copy()
        part = slice(int(start), int(stop))
        run(params, vectors, *(c[part] for c in columns), y[part], tally, tails)
        totals += vectors[[layout.fields.index(f"total{i}") for i in range(layout.risks)]]
        tally[TALLIES.index("counter")] = 0.0
    return _metrics(dict(zip(TALLIES, tally, strict=True)), totals)


def _metrics(tally: dict[str, Array], totals: Array) -> dict[str, Array]:
    """The metrics of `metrics.Summary` from what a pass counted."""
    observed = tally["observed"]

    def per(value: Array, count: Array) -> Array:
        found: Array = np.divide(value, count, out=np.full(len(count), nan), where=count > 0)
        return found

    infinite = tally["finite"] < observed
    return {
        "steps": observed,
        "risk": per(totals[0], observed),
        **{f"risk{i}": per(total, observed) for i, total in enumerate(totals)},
        "coverage": 1.0 - per(tally["misses"], observed),
        "mean_length": np.where(infinite, inf, per(tally["length"], observed)),
        "mean_finite_length": per(tally["length"], tally["finite"]),
        "full": per(tally["full"], observed),
        "empty": per(tally["empty"], observed),
        "mc": per(tally["counters"], observed),
        "msl": np.where(tally["streaks"] > 0, per(tally["misses"], tally["streaks"]), 0.0),
        "longest_streak": tally["longest"],
        "pinball": per(tally["pinball"], observed),
        "winkler": per(tally["winkler"], observed),
    }


_SWEPT = (
    "steps", "coverage", "mean_length", "mean_finite_length", "full", "empty", "mc", "msl",
    "longest_streak", "pinball", "winkler",
)  # fmt: skip


def _summed_up(
    controller: Controller, tape: Tape, confidence_level: float | None
) -> dict[str, float]:
    """The same metrics from a trace, for a controller that is not made of scalar rules."""
    trace = replay(controller, tape)
    found = trace.summary(confidence_level=confidence_level).as_dict()
    risks = {f"risk{i}": float(np.nanmean(losses)) for i, losses in enumerate(trace.losses)}
    return {"risk": risks["risk0"], **risks, **{name: float(found[name] or 0) for name in _SWEPT}}
