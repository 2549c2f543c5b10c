"""Calibrating a file of predictions that any model made, every row in turn."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.bulk.panels import starts
from setpoint.bulk.replay import replay
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.correction import Intervals
from setpoint.errors import DataError, InputError, LabelError, PredictionError, SetpointError
from setpoint.jobs import advice
from setpoint.jobs.columns import family_of, read_tape, rows_of, timed, unused
from setpoint.jobs.job import Config, Goal, Job, check_work
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.paths import calibrate_paths
from setpoint.jobs.times import known_part, phased, season
from setpoint.presets import burn_in as fill_in
from setpoint.sets.family import InParts, Scalar
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]

_LEAST = 10
"""How many labels a burn-in needs, and how many series can teach others."""
_SHORT = 50
"""A series of fewer rows is short."""


def calibrate(
    source: Any,
    columns: Columns | None = None,
    coverage: float | Sequence[float] | None = None,
    *,
    support: tuple[float, float] | None = None,
    burn_in: int | None = None,
    controller: Controller | str | os.PathLike[str] | None = None,
    path: bool = False,
    totals: int | Sequence[int] = (),
    maximum: bool = False,
) -> Any:
    """Calibrates every row of a file as a live stream would have: an `Outcome`.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or one of these packed by gzip; or a data frame of pandas,
        polars or Arrow.
    columns
        Which column is what; by default the target is y, and a prediction lower and upper, or
        point.
    coverage, support
        The share of actual values to hold, 0.9 by default, and where the target can lie.
    burn_in
        How many rows of each series are not judged. By default none for intervals. For sets of
        classes, whose form they choose, and for a controller that they fill in, a tenth, from 50
        to 1,000.
    controller
        What to use instead of choosing, or the TOML file that holds it; it is filled in from the
        burn-in if it leaves anything open, and used from the first row on if not.
    path, totals, maximum
        Of forecasts for several horizons, hold whole paths, or totals of so many first steps and
        the maximum too: the result is a `jobs.paths.PathOutcome`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> random = np.random.default_rng(0)
    >>> lines = [f"-1,1,{y:.4f}" for y in random.normal(0.0, 2.0, 2000)]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "forecast.csv"
    ...     _ = file.write_text("\\n".join(["low,high,demand", *lines]))
    ...     outcome = calibrate(file, Columns("demand", lower="low", upper="high"))
    >>> round(outcome.given.coverage, 2), round(outcome.trace.coverage, 2)
    (0.38, 0.9)
    """
    goal = Goal(coverage, support)
    config = Config.read(controller)
    several = (totals,) if isinstance(totals, int) else tuple(totals)
    whole_paths = path or maximum or bool(several)
    if config is not None and isinstance(config.controller.sets, InParts):
        whole_paths = True
    if config is not None:
        config.check_goal(goal)
        check_work(config.controller, "calibrate", one_set=not whole_paths)
    rows = read(source)
    columns = (Columns() if columns is None else columns).usual(rows.names, str(rows.path))
    if whole_paths:
        if config is not None and (several or maximum):
            raise InputError(
                "a controller says which totals there are: leave them and the maximum out, or the "
                "controller"
            )
        if burn_in:
            raise InputError(
                f"paths are judged from the first one on: leave out {option('burn_in')}"
            )
        return calibrate_paths(rows, columns, goal, config, totals=several, maximum=maximum)
    columns, time_notes = timed(rows, columns)
    family = family_of(columns, rows, goal.support)
    if config is not None:
        config.check_family(family)
    tape, notes = read_tape(rows, columns)
    job = Job("calibrate", rows.source, columns, goal, config, burn_in)
    notes = (*time_notes, *notes)
    is_full = job.is_full
    _check_support(family if config is None else config.controller.sets, tape, rows)
    asked, period = burn_in, columns.period
    if period is not None and (config is not None or not is_full):
        raise InputError(
            f"a period is for sets that adjust themselves: leave out {option('period')}, or the "
            "controller"
        )
    if asked is None and is_full and (config is not None or period != "auto"):
        asked = 0
    counts = _early_rows(np.diff(tape.segments.offsets), asked)
    past, later = tape.split(counts)
    known = known_part(tape, counts)
    if period == "auto":
        period = season(known) or None
        if period is not None:
            tape = phased(tape)
            past, later = tape.split(counts)
            known = known_part(tape, counts)
        found = "no season" if period is None else f"a season of {period:,} steps"
        notes = (*notes, f"{found} was found in the errors of the first {len(past):,} rows")
    if is_full and len(past):
        notes = (*notes, f"the first {len(past):,} rows are not judged")
    if not is_full:
        _check_burn_in(known, rows)
    reader = sets = family
    try:
        chosen = _chosen(job, family, known)
        if period is not None:
            stage: Any = replace(chosen.correction, period=period)  # type: ignore[type-var]
            chosen = replace(chosen, correction=stage)
        notes = (*notes, *advice.scales(tape, chosen), *_short(tape, chosen))
        reader, sets = chosen.reader, chosen.sets
        groups = columns.groups or None
        begun = starts(chosen, later) if config is None and not len(past) else {}
        if begun:
            share = f"{len(begun):,} of {len(later.streams):,} series"
            notes = (
                *notes,
                f"{share} begin with what the others had learnt before their first row",
            )
        trace = replay(chosen, later, begun, groups=groups)
        traces = [trace, replay(chosen, past, groups=groups)] if len(past) else [trace]
    except SetpointError as error:
        by_row = isinstance(error, PredictionError | LabelError)
        where = _refused(reader, sets, tape, rows) if by_row else ""
        raise type(error)(f"{rows.path}{where}: {error}") from error
    warning = advice.late(trace) if columns.delay is None else None
    if config is None:
        notes = (*notes, *advice.limits(trace))
        if period is None:
            notes = (*notes, *advice.periods(trace, tape))
    added = _added(traces, len(rows))
    if columns.patterns:
        added = _added_by_horizon(traces, len(rows))
    wanted = [*added, "full", "empty"]  # the last two are for JSON Lines
    names = unused(wanted, rows.names, ("", "calibrated_"))
    return Outcome(
        job,
        trace,
        _ends(trace),
        rows,
        {names[name]: values for name, values in added.items()},
        {name: names[name] for name in added},
        burn_in=len(past),
        burn_in_each=int(counts.max()),
        notes=tuple(notes),
        warning=warning,
        taught=len(begun),
    )


def _short(tape: Tape, controller: Controller) -> tuple[str, ...]:
    """What helps many series that are too short to learn from alone."""
    usual = int(np.median(np.diff(tape.segments.offsets)))
    stage = controller.correction
    learns = isinstance(stage, Intervals) and not stage.prior
    if len(tape.streams) < _LEAST or usual >= _SHORT or not learns or "upper" not in tape.names:
        return ()
    return (
        f"half of the series have {usual:,} rows or fewer: setpoint.start_from lets new series "
        "begin with what others have learnt",
    )


def _early_rows(lengths: Array, asked: int | None) -> Array:
    """How many rows of each series are its burn-in."""
    if asked is None:
        usual: Array = np.minimum(np.clip(lengths // 10, 50, 1000), lengths // 2)
        return usual
    if asked < 0:
        raise InputError(f"a burn-in has 0 rows or more, got {asked}")
    if asked >= lengths.max():
        raise InputError(
            f"a burn-in must leave rows to calibrate: it is {asked:,} rows, and the longest "
            f"series has {lengths.max():,}"
        )
    return np.minimum(asked, lengths)


def _check_support(family: Any, tape: Tape, rows: Rows) -> None:
    """Raises the error of the first label outside the support, by its row of the file."""
    if not isinstance(family, Scalar):
        return
    low, high = family.support
    outside = np.flatnonzero((tape.y < low) | (tape.y > high))
    if len(outside):
        place = outside[np.argmin(tape.places[outside])]
        raise DataError(
            f"{option('support')} says that the target lies from {low:g} to {high:g}, and "
            f"{rows.path} has "
            f"{tape.y[place]:g} in {rows.place(int(tape.places[place]))}: widen the support or "
            "leave it out"
        )


def _check_burn_in(past: Tape, rows: Rows) -> None:
    """Raises an error if the burn-in has too few labels to choose from."""
    known = int((~np.isnan(past.y)).sum())
    if known >= _LEAST:
        return
    remedy = f"give a larger {option('burn_in')}, a longer file, or a controller with nothing open"
    if not len(past):
        raise DataError(f"a burn-in of 0 rows chooses nothing: {remedy}")
    until = f"{rows.path}, up to {rows.place(int(past.places.max()))}"
    raise DataError(
        f"a burn-in needs at least {_LEAST} rows with a label, and the {len(past):,} rows of "
        f"it of {until}, have {known}: {remedy}"
    )


def _refused(reader: Any, sets: Any, tape: Tape, rows: Rows) -> str:
    """Where the first row is that cannot be read, if there is one."""
    for place, prediction, y in zip(tape.places.tolist(), *rows_of(tape, sets), strict=True):
        try:
            reader.read(prediction)
            if y == y:
                sets.label(y)
        except SetpointError:
            return f", {rows.place(place)}"
    return ""


def _chosen(job: Job, family: Any, past: Tape) -> Controller:
    config = job.config
    if config is None:
        return job.goal.preset(job.columns or Columns(), family)
    if config.is_full:
        return config.controller
    return fill_in(config.controller, *rows_of(past, family))


# What is written behind the rows, in the order of the file


def _added_by_horizon(traces: Sequence[Trace], count: int) -> dict[str, Any]:
    """The same where one row has several horizons."""
    ahead = [np.asarray(trace.tape.horizon) for trace in traces]
    steps = np.unique(np.concatenate(ahead)).tolist()
    by_step = {step: _added(traces, count, step) for step in steps}
    burn_in = {step: added.pop("burn_in") for step, added in by_step.items()}
    sets = {f"{name}_h{h}": c for h, added in by_step.items() for name, c in added.items()}
    return {**sets, "burn_in": burn_in[steps[0]]}


def _added(traces: Sequence[Trace], count: int, horizon: int | None = None) -> dict[str, Any]:
    """The sets of every row, from the trace after the burn-in and that of the burn-in."""

    def column(of: Callable[[Trace], Any]) -> Array:
        parts = [(trace.tape, np.asarray(of(trace))) for trace in traces]
        return _in_file(parts, count, horizon)

    added: dict[str, Any]
    if traces[0].shown is None:
        added = {"lower": column(lambda trace: trace.lower)}
        added["upper"] = column(lambda trace: trace.upper)
        for name in traces[0].ends:
            added[name] = column(lambda trace: trace.ends[name])  # noqa: B023 (called at once)
    else:
        added = {"labels": column(_label_texts)}
        added["size"] = column(lambda trace: [labels.size for labels in trace.shown or ()])
    covered, observed = column(lambda trace: trace.covered), column(lambda trace: trace.observed)
    added["covered"] = covered if observed.all() else np.ma.array(covered, mask=~observed)
    added["burn_in"] = column(lambda trace: np.full(len(trace.lam), trace is not traces[0]))
    return added


def _label_texts(trace: Trace) -> Array:
    texts = ["|".join(map(str, labels.labels)) for labels in trace.shown or ()]
    return np.array(texts, object)


def _in_file(parts: list[tuple[Tape, Array]], count: int, horizon: int | None = None) -> Array:
    """Columns of tapes, or of one horizon, put together in the order of the file."""
    column = np.empty(count, parts[0][1].dtype)
    for tape, values in parts:
        rows = slice(None) if horizon is None else tape.horizon == horizon
        column[tape.places[rows]] = values[rows]
    return column


def _ends(trace: Trace) -> tuple[Array, Array] | None:
    """The predictions themselves as sets, where they are intervals or bounds."""
    tape = trace.tape
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    columns.pop("phase", None)
    if not {"lower", "upper"} & set(columns) or set(columns) - {"lower", "upper"}:
        return None
    open_end = np.broadcast_to(inf, len(tape))
    return columns.get("lower", -open_end), columns.get("upper", open_end)
