"""Running an online model over a file: it predicts each row, then learns it; setpoint holds it."""

import os
from collections.abc import Callable, Sequence
from time import thread_time
from typing import Any

import numpy as np

from setpoint._check import positive
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError
from setpoint.jobs.calibrate import calibrated
from setpoint.jobs.columns import Columns, check_keys, tape_of, unused
from setpoint.jobs.features import Features
from setpoint.jobs.features import features as features_of
from setpoint.jobs.job import Config, Goal, Job, check_work
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.rows import Rows, read
from setpoint.jobs.times import phased
from setpoint.models.forecast import AUTO, CANDIDATES, forecast
from setpoint.tape import Tape

__all__ = ["MODELS", "clock_of", "run"]

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "auto": f"{', '.join(AUTO)}, mixed by how well each of them lately did",
    **CANDIDATES,
}
"""The models that can be called by name."""

_BUDGET = 40.0
"""How many seconds models may learn."""
_LEAST = 20
"""How many labels a model needs."""
_LISTED = 12
_TOLD = 3
"""How many times a model's absence is told."""


def run(
    source: Any,
    target: str,
    goal: Goal | None = None,
    *,
    model: str = "auto",
    time: str | None = None,
    id: str | None = None,
    group: str | None = None,
    features: Sequence[str] = (),
    without: Sequence[str] = (),
    known_ahead: Sequence[str] = (),
    delay: int = 0,
    period: int | str | None = None,
    budget: float | None = None,
    burn_in: int | None = None,
    controller: Controller | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Forecasts a column of a file row by row, and holds the risk of the intervals.

    Every row is predicted before its label is seen, and learnt afterwards; every series has a
    model of its own.

    Parameters
    ----------
    target
        The column to forecast. Where it is empty, the row is predicted and not learnt.
    model
        One of `MODELS`.
    features, without
        The columns a model sees, or those it does not; by default every one it can use.
    known_ahead
        Columns whose value of a row is known before its label. Others that tell much of the label
        of their row, alone or together, are taken from the last row with a known label.
    budget
        How many seconds models may learn, by default 40; slow ones then learn no more.
    source, goal, burn_in, controller
        As for `calibrate`.
    time, id, group, delay, period
        As in `Columns`. With a delay of d rows, forecasts are d + 1 steps ahead.
    progress
        Called with the rows done and their number.
    """
    goal = Goal() if goal is None else goal
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    check_keys(target, id, time)
    config = Config.read(controller)
    if config is not None:  # the level is also that of the model's own quantiles
        config.check_goal(goal, ("risk", "support", "gamma", "rule"))
        check_work(config.controller, "run", one_set=True)
    rows = read(source)
    y = _target(rows, target)
    dates = [] if time is not None else [name for name in rows.dates if name != target]
    time = dates[0] if len(dates) == 1 else time
    keys: dict[str, Any] = {"id": id, "time": time, "group": group}
    keys |= {"delay": delay, "period": period}
    tape, notes = tape_of(rows, {"prediction": np.zeros(len(y))}, y, keys)
    seen = features_of(
        rows, tape, target, time=time, id=id, only=features, without=without,
        known_ahead=known_ahead, delay=delay,
    )  # fmt: skip
    seconds = _BUDGET if budget is None else positive(budget, "budget")
    ends, told = _forecast(model, seen.values, tape, goal.level, delay, seconds, rows, progress)
    tape = tape.with_prediction(ends)
    tape = tape if period in (None, "auto") else phased(tape)
    called = unused(ends, rows.names, ("predicted_",))
    columns = Columns(target, called["lower"], called["upper"], **keys)
    job = Job(
        "run", rows.source, columns, goal, config, burn_in, model, tuple(features), tuple(without),
        tuple(known_ahead), budget,
    )  # fmt: skip
    family = columns.family(rows, goal.support)
    notes = (*_seen_notes(seen, time), *told, *notes)
    return calibrated(job, rows, tape, family, warm_up=1 / 3, features=seen.columns, notes=notes)


def _target(rows: Rows, target: str) -> Array:
    rows.column(target, "--target")
    if rows.is_text(target):
        words = [word for word in rows.table[target][:5].to_pylist() if word]
        raise DataError(
            f"run forecasts numbers, and --target {target!r} of {rows.path} holds text such as "
            f"{', '.join(map(repr, dict.fromkeys(words)))}: name a column of numbers, or give the "
            "probabilities of a classifier to `setpoint calibrate --probabilities`"
        )
    y = rows.labels(target)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"run needs at least {_LEAST} rows with a label, and --target {target!r} of "
            f"{rows.path} is empty in {'all' if not known else len(y) - known} of its "
            f"{len(y):,} rows"
        )
    return y


def _seen_notes(seen: Features, time: str | None) -> list[str]:
    names = [name or "a column without a name" for name in seen.columns]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    notes = [
        f"the model sees {', '.join(names)}; leave out by --without what is not known in time"
        if names
        else "the model sees the last labels only"
    ]
    if seen.lagged:
        notes.append(
            "taken from the last row with a known label, because they tell much of the label of "
            f"their own row: {', '.join(seen.lagged)}; name those that are known in time by "
            "--known-ahead"
        )
    if time is None:
        notes.append("no time was named or found: the rows are taken in the order of the file")
    if seen.left_out:
        reasons = [
            f"{repr(name) if name else 'a column without a name'} {why}"
            for name, why in seen.left_out.items()
        ]
        notes.append(f"left out: {'; '.join(reasons)}")
    return notes


# Models


def _forecast(
    model: str,
    x: Array,
    tape: Tape,
    level: float,
    delay: int,
    seconds: float,
    rows: Rows,
    progress: Progress | None,
) -> tuple[dict[str, Array], list[str]]:
    """The ends of every row of a tape, each made before its label was learnt; and notes."""
    ends = {"lower": np.empty(len(tape)), "upper": np.empty(len(tape))}
    models = AUTO if model == "auto" else (model,)
    begun, done = thread_time(), 0
    weights: dict[str, float] = {}
    absences: dict[str, list[tuple[int, int | None]]] = {}
    stopped: dict[str, int] = {}
    for stream in tape.streams:
        places = tape.rows(stream)
        left = begun + seconds * (done + len(places)) / len(tape) - thread_time()
        clock = None if tape.time is None else clock_of(tape.time[places])
        result = forecast(
            x[places], tape.y[places], clock=clock, models=models, level=level,
            delay=delay, seconds=left,
        )  # fmt: skip
        ends["lower"][places], ends["upper"][places] = result.lower, result.upper
        for name, weight in zip(result.names, result.weights.sum(axis=0).tolist(), strict=True):
            weights[name] = weights.get(name, 0.0) + weight / len(tape)
        in_file = tape.places[places]
        for name, start, stop in result.absences:
            until = int(in_file[stop]) if stop < len(in_file) else None
            absences.setdefault(name, []).append((int(in_file[start]), until))
        for name, row in result.stopped.items():
            stopped.setdefault(name, int(in_file[row]))
        done += len(places)
        if progress is not None:
            progress(done, len(tape))
    return ends, _told(model, weights, absences, stopped, seconds, rows)


def clock_of(time: Array) -> Array | None:
    """Times in units of the usual distance of two rows, if there is one."""
    moments = time.astype("datetime64[us]").astype(np.float64) if time.dtype.kind == "M" else time
    steps = np.diff(moments.astype(np.float64))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return (moments - moments[0]) / usual if usual > 0.0 else None


def _told(
    model: str,
    weights: dict[str, float],
    absences: dict[str, list[tuple[int, int | None]]],
    stopped: dict[str, int],
    seconds: float,
    rows: Rows,
) -> list[str]:
    """What there is to say of the models; few rows, for finding one reads the file."""
    notes, header = [], iter([True])  # which line is the first is said once

    def place(row: int) -> str:
        return rows.place(row, header=next(header, False))

    share = weights.get(model, 1.0)
    if model in ("seasonal", "drift") and share < 0.5:
        notes.append(
            f"no season was found for {1.0 - share:.0%} of the rows: there the forecast is the "
            "last label"
        )
    if model == "auto":
        shares = sorted(weights.items(), key=lambda item: -item[1])
        parts = [f"{name} {share:.0%}" for name, share in shares]
        notes.append(f"the forecast is a mixture, on average of {', '.join(parts)}")
    for name, times in absences.items():
        some = [
            f"at {place(start)}, left out" + ("" if stop is None else f" until {place(stop)}")
            for start, stop in times[:_TOLD]
        ]
        more = f"; and {len(times) - _TOLD:,} more times" if len(times) > _TOLD else ""
        notes.append(f"{name} diverged {'; '.join(some)}{more}")
    for name, row in stopped.items():
        notes.append(
            f"{name} learnt nothing more from {place(row)} on: its {seconds:g} seconds were "
            "over (--budget gives more)"
        )
    return notes
