"""Sweeping a tape: thousands of controllers in one pass, of which only tallies are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint._check import confidence
from setpoint._rules import scalar
from setpoint.bulk.compile import compiled, loops
from setpoint.bulk.layout import Layout, layout_of, params_of, start_of
from setpoint.bulk.replay import Events, based, check_at_once, replay
from setpoint.bulk.states import (
    Array,
    Begin,
    Start,
    check_labels,
    is_narrow,
    scalar_columns,
)
from setpoint.bulk.trace import Trace, nominal
from setpoint.controller import Controller
from setpoint.errors import LossError
from setpoint.metrics.tally import NOTHING, Tally, derived, share
from setpoint.plan import plan
from setpoint.state import State
from setpoint.tape import Tape

_TOGETHER = 256
"""How many controllers run at once as machine code, so that their numbers stay in a cache."""


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The metrics of many controllers on one tape.

    Parameters
    ----------
    controllers
        What was tried.
    columns
        From the name of a metric to an array with one value for each controller: those of
        `metrics.Summary` that need no trace, with `risk` for the first risk and `risk0`, `risk1`,
        … for each.
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
    controllers: Sequence[Controller],
    tape: Tape,
    *,
    state: Start = None,
    delay: int | None = None,
    coverage: float | None = None,
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
    delay
        How many rows late labels become known, in place of what the tape says.
    coverage
        The nominal coverage behind pinball and Winkler, by default that of each controller.

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
    tape = tape if delay is None else tape.late(delay)
    for controller in controllers:
        check_at_once(controller, tape)
    if coverage is not None:
        coverage = confidence(coverage)
    rows: list[dict[str, float]] = [{} for _ in controllers]
    groups: dict[tuple[Layout, Any, bytes], list[int]] = {}
    for index, controller in enumerate(controllers):
        if scalar(controller):  # of one layout, correction and first memory: one base
            learnt = start_of(controller)[0, layout_of(controller).at[1] :].tobytes()
            kind = layout_of(controller), plan(controller).stage, learnt
            groups.setdefault(kind, []).append(index)
            continue
        rows[index] = _summed_up(replay(controller, tape, state), coverage)
    for group in groups.values():
        size = _TOGETHER if compiled(len(tape) * len(group)) else 1
        for start in range(0, len(group), size):
            members = group[start : start + size]
            several = [controllers[index] for index in members]
            found = _side_by_side(several, tape, coverage, state)
            for place, index in enumerate(members):
                rows[index] = {name: float(values[place]) for name, values in found.items()}
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: np.array([row.get(name, nan) for row in rows]) for name in names}
    return Sweep(controllers, columns)


def _tail(controller: Controller, coverage: float | None) -> float:
    return (1.0 - (nominal(controller) if coverage is None else coverage)) / 2.0


def _side_by_side(
    controllers: Sequence[Controller],
    tape: Tape,
    coverage: float | None = None,
    state: Start = None,
) -> dict[str, Array]:
    """The metrics of controllers of one layout, from one compiled pass over the tape."""
    tally, totals = _counted(controllers, tape, state)
    tails = np.array([_tail(controller, coverage) for controller in controllers])
    return _metrics(tally, totals, np.broadcast_to(tally.observed, totals.shape), tails)


def _counted(controllers: Sequence[Controller], tape: Tape, state: Start) -> tuple[Tally, Array]:
    """One pass over the tape: tallies and total losses."""
    first, cells = controllers[0], len(controllers)
    layout = layout_of(first)
    columns, rows = scalar_columns(first, layout, tape)
    for controller in controllers:
        check_labels(controller, tape.y)
    params = np.vstack([params_of(controller)[0] for controller in controllers])
    begin = np.vstack([start_of(controller) for controller in controllers])
    start = Begin(first, tape.streams, state)
    (given, annexes), at = start.vectors(layout), Events.of(tape)
    labels = np.ascontiguousarray(tape.by_stream(tape.y), np.float64)
    made = loops(layout, len(tape) * cells)
    rows = based(first, made, rows, labels, given, annexes, at)
    given[:, layout.places("total")] = 0.0
    if isinstance(state, State):
        which = np.arange(len(given))
    else:  # a stream without a state begins where each configuration does
        known = [state is not None and stream in state for stream in tape.streams]
        which = np.where(np.array(known, bool), np.arange(len(given)), -1)
    tallies, totals = np.zeros((cells, len(Tally._fields))), np.zeros((cells, len(layout.risks)))
    extremes = np.tile([inf, -inf, inf, -inf, inf, -inf, 0.0], (cells, len(layout.risks), 1))
    size = 1 + 2 * layout.rules.members + len(layout.risks)
    held = np.empty((len(tape) if len(at.events) else 1, size))
    made.sweep(
        params, begin, given, which, at.bounds, at.events, rows, labels,
        is_narrow(first, columns), held, tallies, totals, extremes,
    )  # fmt: skip
    _check_extremes(controllers, extremes)
    return Tally(*tallies.T), totals.T


def _check_extremes(controllers: Sequence[Controller], extremes: Array) -> None:
    """Raises the error of a loss that broke its promises."""
    for controller, rows in zip(controllers, extremes, strict=True):
        for promise, row in zip(plan(controller).promises, rows.tolist(), strict=True):
            *ends, wrong = row
            if wrong:
                raise LossError(f"{promise.name} promises a number, got {nan}")
            for value, lam in zip(ends, (0.0, 0.0, inf, inf, -inf, -inf), strict=True):
                if ends[0] <= ends[1] and (lam == 0.0 or abs(value) < inf):
                    promise.check(value, lam)


def _metrics(tally: Tally, totals: Array, judged: Array, tails: Array) -> dict[str, Array]:
    """The metrics of `metrics.Summary` from what a pass counted."""
    risks = [share(total, labels) for total, labels in zip(totals, judged, strict=True)]
    return {
        "steps": np.asarray(tally.observed),
        "risk": risks[0],
        **{f"risk{i}": risk for i, risk in enumerate(risks)},
        **derived(tally, tails),
    }


_SWEPT = tuple(derived(NOTHING, 0.05))


def _summed_up(trace: Trace, coverage: float | None) -> dict[str, float]:
    """The same metrics from a trace."""
    summary = trace.summary(coverage=coverage)
    risks = {f"risk{i}": metrics.risk(losses) for i, losses in enumerate(trace.losses)}
    return {
        "steps": float(summary.steps),
        "risk": risks["risk0"],
        **risks,
        **{name: float(getattr(summary, name)) for name in _SWEPT},
    }
