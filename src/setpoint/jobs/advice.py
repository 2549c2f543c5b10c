"""Advice on a file, each piece tried on its data before it is given."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint._html import amount
from setpoint.bulk.replay import replay
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.correction import Intervals
from setpoint.jobs.columns import phased, season
from setpoint.sets.family import Scalar
from setpoint.steps.claims import Accounts
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]

_ALIKE = 0.5
"""Errors of neighbouring rows that go together by more look like those of longer horizons."""
_APART = 0.1
_LEAST, _FURTHEST = 100, 400
"""How many rows a correlation needs, and how far apart rows are looked at."""
_BETTER = 0.99
"""A score that is lower by this factor is worth a word."""
_UNLIKE = 10.0
"""From how many times the range on series are of unlike scale."""


def late(trace: Trace) -> str | None:
    """A warning where errors look like those of forecasts several steps ahead, taken as one step.

    Errors of neighbouring forecasts h steps ahead share h − 1 of their surprises, so they go
    together up to lag h − 1. What the delay of h − 1 rows would change is tried.
    """
    tape = trace.tape
    errors = _errors(tape)
    if errors is None or len(tape) < _LEAST or tape.schedule is not None:
        return None
    near = _together(tape, errors, 1)
    if not near > _ALIKE:
        return None
    lags = range(2, min(_FURTHEST, len(tape) // 4) + 1)
    delay = next((lag for lag in lags if not _together(tape, errors, lag) > _APART), 2) - 1
    told = replay(trace.controller, tape.late(delay))
    widths, wider = (each.upper - each.lower for each in (trace, told))
    known = np.isfinite(widths) & np.isfinite(wider) & (widths > 0.0)
    if not known.any():
        return None
    times = float(np.median(wider[known]) / np.median(widths[known]))
    return (
        f"errors of neighbouring rows go together (correlation {near:.2f}), as those of forecasts "
        "several steps ahead do, but each actual value is assumed to be known before the next row. "
        f"If it arrives later, these intervals are too good: with {option('delay')} {delay} they "
        f"are {times:.2g} times as wide. {option('delay').capitalize()} is the horizon minus 1; "
        f"give {option('delay')} 0 if nothing is late"
    )


def _errors(tape: Tape) -> Array | None:
    """How far the middle of each forecast is off; None for classes."""
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    ends = [columns[name] for name in ("lower", "upper", "point") if name in columns]
    return tape.y - np.mean(ends, axis=0) if ends else None


def _together(tape: Tape, errors: Array, lag: int) -> float:
    """The correlation of errors so many rows apart, within each series."""
    ordered, offsets = tape.by_stream(errors), tape.segments.offsets
    within = np.arange(len(ordered)) - np.repeat(offsets[:-1], np.diff(offsets))
    second = np.flatnonzero(within >= lag)
    pairs = np.column_stack([ordered[second - lag], ordered[second]])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    if len(pairs) < _LEAST // 2 or (pairs.std(axis=0) == 0.0).any():
        return 0.0
    ranks = pairs.argsort(axis=0).argsort(axis=0)  # a few large errors do not decide
    return float(np.corrcoef(ranks.T)[0, 1])


def limits(trace: Trace) -> list[str]:
    """Where the target never goes and intervals do: what its support would save."""
    sets = trace.controller.sets
    if trace.shown is not None or not isinstance(sets, Scalar) or sets.support != (-inf, inf):
        return []
    y = trace.tape.y[trace.observed]
    finite = np.isfinite(trace.lower) & np.isfinite(trace.upper) & (trace.upper > trace.lower)
    if len(y) < _LEAST or y.min() < 0.0 or not finite.any():
        return []
    lower, upper = trace.lower[finite], trace.upper[finite]
    below = float((lower < 0.0).mean())
    saved = 1.0 - float((upper - np.maximum(lower, 0.0)).mean() / (upper - lower).mean())
    if below < 0.01 or saved < 0.005:
        return []
    return [
        f"no actual value is below 0, and {100 * below:.0f} % of the lower ends are: "
        f"{option('support')} 0,inf would make intervals {100 * saved:.0f} % narrower"
    ]


def periods(trace: Trace, whole: Tape) -> list[str]:
    """The season of the errors, if learning it makes the score better."""
    learner = trace.controller.correction
    steps = season(whole) if isinstance(learner, Intervals) else 0
    if not steps or not isinstance(learner, Intervals):
        return []
    stage = replace(learner, period=steps)
    seasonal = replay(replace(trace.controller, correction=stage), phased(trace.tape))
    before, after = (each.usefulness() for each in (trace, seasonal))
    if before is None or after is None or not after.score < _BETTER * before.score:
        return []
    better = 1.0 - after.score / before.score
    return [
        f"the errors have a season of {steps:,} steps: {option('period')} {steps} would improve "
        f"the interval score by {100 * better:.0f} %"
    ]


def scales(tape: Tape, controller: Controller) -> tuple[str, ...]:
    """A warning where one step size in units of the target serves series of unlike scale."""
    sets, risk = controller.sets, controller.risks[0]
    in_units = sets.bounds() is None and sets.start(risk.level) <= 0.0  # else λ is a factor
    if isinstance(risk.step, Accounts) or not in_units:
        return ()
    lengths = np.diff(tape.segments.offsets)
    begins, y = tape.segments.offsets[:-1][lengths > 0], tape.by_stream(tape.y)
    spans = np.fmax.reduceat(y, begins) - np.fmin.reduceat(y, begins)
    spans = spans[spans > 0.0]
    if len(spans) < 2 or spans.max() < _UNLIKE * spans.min():
        return ()
    return (
        "one step size in units of the target serves all series, and their ranges differ by a "
        f"factor of {amount(float(spans.max() / spans.min()))}: only self-adjusting sets, the "
        "default of `calibrate`, have a scale for each series",
    )
