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
from setpoint.models.candidates import AUTO, CANDIDATES, fits
from setpoint.models.forecast import Mixture, forecast
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "auto": f"{', '.join(AUTO)}, mixed by how well each of them lately did",
    **CANDIDATES,
}
"""The models that can be called by name."""

_FITS, _TREES = 60, 2_000_000
"""How often boosting may be fitted where nobody asked for it, and for how many forecasts."""
_LEAST = 20
"""How many labels a model needs."""
_LISTED = 12
_TOLD = 3
"""How many times a model's absence is told."""


def run(
    source: Any,
    columns: Columns | str,
    coverage: float | Sequence[float] | None = None,
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
    y, columns = target_of(rows, columns, "run")
    tape, notes = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    horizon = 1 + int(columns.delay or 0)
    _check_ahead(tape, horizon, rows, columns.target)
    seen = features_of(rows, tape, columns, only=features, without=without, known_ahead=known_ahead)
    level = goal.level if config is None else config.controller.risks[0].level
    learnt, told = mixture_of(model, seen, tape, level, [horizon], rows, progress)
    ends = {"lower": tape.by_row(learnt.lower[0]), "upper": tape.by_row(learnt.upper[0])}
    point = tape.by_row(learnt.point[0])
    tape = tape.with_prediction(ends).with_extras({**tape.extras, "point": point})
    tape = tape if columns.period in (None, "auto") else phased(tape)
    notes = (*seen_notes(seen, columns.time), *told, *notes)
    called = unused([*ends, "point"], rows.names, ("predicted_",))
    columns = replace(columns, lower=called["lower"], upper=called["upper"])
    job = Job(
        "run", rows.source, columns, goal, config, burn_in, model, tuple(features), tuple(without),
        tuple(known_ahead),
    )  # fmt: skip
    family = family_of(columns, rows, goal.support)
    return calibrated(job, rows, tape, family, features=seen.columns, notes=notes)


def target_of(rows: Rows, columns: Columns, work: str) -> tuple[Array, Columns]:
    """The actual values, and the columns with the time, where the file has dates in one column."""
    target = columns.target
    rows.column(target, "target")
    if rows.is_text(target):
        words = [word for word in rows.table[target][:5].to_pylist() if word]
        raise DataError(
            f"{work} forecasts numbers, and {option('target')} {target!r} of {rows.path} holds "
            f"text such as {', '.join(map(repr, dict.fromkeys(words)))}: name a column of numbers, "
            "or give the probabilities of a classifier to `calibrate`"
        )
    y = rows.labels(target)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"{work} needs at least {_LEAST} rows with a label, and {option('target')} {target!r} "
            f"of {rows.path} is empty in {'all' if not known else len(y) - known} of its "
            f"{len(y):,} rows"
        )
    dates = [name for name in rows.dates if name != target]
    if columns.time is None and len(dates) == 1:
        columns = replace(columns, time=dates[0])
    return y, columns


def last_known(tape: Tape) -> Array:
    """The place in its stream of the last row with a label, −1 where there is none."""
    offsets = tape.segments.offsets
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    within[np.isnan(tape.by_stream(tape.y))] = -1
    return np.asarray(np.maximum.reduceat(within, offsets[:-1]))


def _check_ahead(tape: Tape, horizon: int, rows: Rows, target: str) -> None:
    """Raises an error where rows come later than what is forecast: their errors would be larger."""
    ahead = int((np.diff(tape.segments.offsets) - 1 - last_known(tape)).max())
    if ahead > horizon:
        steps = "one step" if horizon == 1 else f"{horizon} steps"
        raise DataError(
            f"the last {ahead:,} rows of {rows.path} have no {option('target')} {target!r}, and "
            f"run holds the coverage of forecasts {steps} ahead: `setpoint forecast` gives such "
            "rows intervals that grow with the horizon; or leave them out"
        )


def seen_notes(seen: Features, time: str | None, *, ahead: bool = False) -> list[str]:
    """What the model sees, in words; `ahead`, where there are rows to come."""
    names = [name or "a column without a name" for name in seen.columns]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    notes = ["the model sees the last labels only"]
    if names:
        advice = "" if ahead else f"; leave out by {option('without')} what is not known in time"
        notes = [f"the model sees {', '.join(names)}{advice}"]
    if seen.lagged and ahead:
        notes.append(
            "all columns but the time are taken from the last row with an actual value; name those "
            f"that are known for rows to come by {option('known_ahead')}"
        )
    elif seen.lagged:
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


def mixture_of(
    model: str,
    seen: Features,
    tape: Tape,
    level: float,
    horizons: Sequence[int],
    rows: Rows,
    progress: Progress | None,
) -> tuple[Mixture, list[str]]:
    """What a model forecasts of every row of a tape, in the order of its streams; and notes."""
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    models, notes = AUTO if model == "auto" else (model,), []
    offsets = tape.segments.offsets
    many = sum(map(fits, np.diff(offsets).tolist())) > _FITS
    if model == "auto" and (many or len(horizons) * len(tape) > _TREES):
        models = tuple(name for name in AUTO if name != "boosting")
        notes.append("boosting is left out, to save time: it can be named as the model")
    clock = None
    if tape.time is not None:
        times = np.split(tape.by_stream(tape.time), offsets[1:-1])
        clocks = [part for part in map(clock_of, times) if part is not None]
        if len(clocks) == len(times):
            clock = np.concatenate(clocks)
    learnt = forecast(
        tape.by_stream(seen.values.T).T, tape.by_stream(tape.y), horizons=horizons,
        offsets=offsets, late=seen.late, clock=clock, models=models, level=level, progress=progress,
    )  # fmt: skip
    return learnt, [*notes, *_told(model, learnt, tape, rows)]


def clock_of(time: Array) -> Array | None:
    """Times in units of the usual distance of two rows, if there is one."""
    moments = time.astype("datetime64[us]").astype(np.float64) if time.dtype.kind == "M" else time
    steps = np.diff(moments.astype(np.float64))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return (moments - moments[0]) / usual if usual > 0.0 else None


def _told(model: str, learnt: Mixture, tape: Tape, rows: Rows) -> list[str]:
    """What there is to say of the models; few rows, for finding one reads the file."""
    notes, header = [], iter([True])  # which line is the first is said once

    def place(row: int) -> str:
        return rows.place(row, header=next(header, False))

    weights = dict(zip(learnt.names, learnt.weights.mean(axis=(0, 1)).tolist(), strict=True))
    in_file, ends = tape.by_stream(tape.places), set(tape.segments.offsets.tolist())
    absences: dict[str, list[tuple[int, int | None]]] = {}
    for name, start, stop in learnt.absences:
        until = None if stop in ends else int(in_file[stop])
        absences.setdefault(name, []).append((int(in_file[start]), until))
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
