"""Running an online model over a file: it predicts each row, then learns it; setpoint holds it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError
from setpoint.jobs.calibrate import calibrated
from setpoint.jobs.columns import family_of, tape_of, unused
from setpoint.jobs.features import Features
from setpoint.jobs.features import features as features_of
from setpoint.jobs.job import Config, Goal, Job, check_work
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.times import phased
from setpoint.models.forecast import AUTO, CANDIDATES, fits, forecast
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "auto": f"{', '.join(AUTO)}, mixed by how well each of them lately did",
    **CANDIDATES,
}
"""The models that can be called by name."""

_FITS = 60
"""How often boosting may be fitted where nobody asked for it: about half a minute."""
_LEAST = 20
"""How many labels a model needs."""
_LISTED = 12
_TOLD = 3
"""How many times a model's absence is told."""


def run(
    source: Any,
    columns: Columns | str,
    coverage: float | None = None,
    *,
    model: str = "auto",
    features: Sequence[str] = (),
    without: Sequence[str] = (),
    known_ahead: Sequence[str] = (),
    support: tuple[float, float] | None = None,
    burn_in: int | None = None,
    controller: Controller | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Forecasts a column of a file row by row, and holds the coverage of the intervals.

    Every row is predicted before its label is seen, and learnt afterwards; every series has a
    model of its own.

    Parameters
    ----------
    columns
        Which column is what, without a prediction: its target is forecast, or the column of this
        name. Where it is empty, the row is predicted and not learnt. With a delay of d rows,
        forecasts are d + 1 steps ahead.
    model
        One of `MODELS`.
    features, without
        The columns a model sees, or those it does not; by default every one it can use.
    known_ahead
        Columns whose value of a row is known before its label. Others that tell much of the label
        of their row, alone or together, are taken from the last row with a known label.
    source, coverage, support, burn_in, controller
        As for `calibrate`.
    progress
        Called with the rows done and their number.
    """
    columns = Columns(columns) if isinstance(columns, str) else columns
    goal = Goal(coverage, support)
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    if columns.form or columns.horizon or columns.known:
        raise InputError(
            "run makes the forecasts itself: leave out the columns of a prediction, the horizon "
            f"and {option('known')}; a delay of d rows makes forecasts d + 1 steps ahead"
        )
    config = Config.read(controller)
    if config is not None:
        config.check_goal(goal)
        check_work(config.controller, "run", one_set=True)
    rows = read(source)
    y = _target(rows, columns.target)
    dates = [name for name in rows.dates if name != columns.target]
    if columns.time is None and len(dates) == 1:
        columns = replace(columns, time=dates[0])
    tape, notes = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    seen = features_of(rows, tape, columns, only=features, without=without, known_ahead=known_ahead)
    level = goal.level if config is None else config.controller.risks[0].level
    ends, told = _forecast(model, seen.values, tape, level, int(columns.delay or 0), rows, progress)
    tape = tape.with_prediction(ends)
    tape = tape if columns.period in (None, "auto") else phased(tape)
    notes = (*_seen_notes(seen, columns.time), *told, *notes)
    called = unused([*ends, "point"], rows.names, ("predicted_",))
    columns = replace(columns, lower=called["lower"], upper=called["upper"])
    job = Job(
        "run", rows.source, columns, goal, config, burn_in, model, tuple(features), tuple(without),
        tuple(known_ahead),
    )  # fmt: skip
    family = family_of(columns, rows, goal.support)
    return calibrated(job, rows, tape, family, features=seen.columns, notes=notes)


def _target(rows: Rows, target: str) -> Array:
    rows.column(target, "target")
    if rows.is_text(target):
        words = [word for word in rows.table[target][:5].to_pylist() if word]
        raise DataError(
            f"run forecasts numbers, and {option('target')} {target!r} of {rows.path} holds text "
            "such as "
            f"{', '.join(map(repr, dict.fromkeys(words)))}: name a column of numbers, or give the "
            "probabilities of a classifier to `calibrate`"
        )
    y = rows.labels(target)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"run needs at least {_LEAST} rows with a label, and {option('target')} {target!r} of "
            f"{rows.path} is empty in {'all' if not known else len(y) - known} of its "
            f"{len(y):,} rows"
        )
    return y


def _seen_notes(seen: Features, time: str | None) -> list[str]:
    names = [name or "a column without a name" for name in seen.columns]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    notes = [
        f"the model sees {', '.join(names)}; leave out by {option('without')} what is not known "
        "in time"
        if names
        else "the model sees the last labels only"
    ]
    if seen.lagged:
        notes.append(
            "taken from the last row with a known label, because they tell much of the label of "
            f"their own row: {', '.join(seen.lagged)}; name those that are known in time by "
            f"{option('known_ahead')}"
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
    rows: Rows,
    progress: Progress | None,
) -> tuple[dict[str, Array], list[str]]:
    """The ends of every row of a tape, each made before its label was learnt; and notes."""
    ends = {"lower": np.empty(len(tape)), "upper": np.empty(len(tape))}
    models = AUTO if model == "auto" else (model,)
    told, done = [], 0
    if model == "auto" and sum(map(fits, np.diff(tape.segments.offsets).tolist())) > _FITS:
        models = tuple(name for name in AUTO if name != "boosting")
        told.append(f"boosting is left out: it would be fitted more than {_FITS} times")
    weights: dict[str, float] = {}
    absences: dict[str, list[tuple[int, int | None]]] = {}
    for stream in tape.streams:
        places = tape.rows(stream)
        clock = None if tape.time is None else clock_of(tape.time[places])
        result = forecast(
            x[places], tape.y[places], clock=clock, models=models, level=level, delay=delay
        )
        ends["lower"][places], ends["upper"][places] = result.lower, result.upper
        for name, weight in zip(result.names, result.weights.sum(axis=0).tolist(), strict=True):
            weights[name] = weights.get(name, 0.0) + weight / len(tape)
        in_file = tape.places[places]
        for name, start, stop in result.absences:
            until = int(in_file[stop]) if stop < len(in_file) else None
            absences.setdefault(name, []).append((int(in_file[start]), until))
        done += len(places)
        if progress is not None:
            progress(done, len(tape))
    return ends, [*told, *_told(model, weights, absences, rows)]


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
    rows: Rows,
) -> list[str]:
    """What there is to say of the models; few rows, for finding one reads the file."""
    notes, header = [], iter([True])  # which line is the first is said once

    def place(row: int) -> str:
        return rows.place(row, header=next(header, False))

    share = weights.get(model, 1.0)
    if model == "seasonal" and share < 0.5:
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
    return notes
