"""Calibrating a file of predictions that any model made, every row in turn."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.bulk.replay import replay, starts
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError, LabelError, PredictionError, SetpointError
from setpoint.jobs import advice
from setpoint.jobs.columns import family_of, known_part, read_tape, rows_of, timed, unused
from setpoint.jobs.job import Config, Job, check_work
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.paths import calibrate_paths
from setpoint.presets import burn_in as fill_in
from setpoint.sets.family import InParts, Scalar
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]

_LEAST = 10
"""How many labels a burn-in needs."""


def calibrate(
    source: Any,
    columns: Columns | None = None,
    coverage: float | Sequence[float] | None = None,
    *,
    support: tuple[float, float] | None = None,
    controller: Controller | str | os.PathLike[str] | None = None,
    path: bool = False,
    totals: int | Sequence[int] = (),
    maximum: bool = False,
) -> Any:
    """Calibrates every row of a file as a live stream would; returns an `Outcome`.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or one of these packed by gzip; or a data frame of pandas,
        polars or Arrow.
    columns
        Which column is what; by default the target is y, and a prediction lower and upper, or
        point.
    coverage
        The share of actual values that the intervals should contain; several, as in 0.5,0.8,0.9,
        give nested intervals. Default: 0.9.
    support
        The range of possible values of the target, as in (0, inf); intervals are cut to it.
    controller
        A controller as a TOML file: what to control, and how. Options it leaves open are chosen
        from the first tenth of each series (50 to 1,000 rows), which then does not count.

        A `Controller` will do as well.
    path
        With several horizons: a band that contains the whole path.

        The result is then a `PathOutcome`, as it is with totals or the maximum.
    totals
        With several horizons: an interval for the total of the first N steps of each path; 6, or
        (6, 24) for two totals.
    maximum
        With several horizons: an interval for the largest value of each path.

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
    >>> round(outcome.before.trace.coverage, 2), round(outcome.trace.coverage, 2)
    (0.38, 0.9)
    """
    config = Config.read(controller)
    job = Job("calibrate", None, Columns(), coverage, support, config)
    several = (totals,) if isinstance(totals, int) else tuple(totals)
    of_paths = config is not None and isinstance(config.controller.sets, InParts)
    whole_paths = path or maximum or bool(several) or of_paths
    if config is not None:
        check_work(config.controller, "calibrate", one_set=not whole_paths)
    rows = read(source)
    columns = (Columns() if columns is None else columns).usual(rows.names, str(rows.path))
    if whole_paths:
        job = replace(job, file=rows.source, columns=columns)
        return calibrate_paths(rows, job, totals=several, maximum=maximum)
    columns, notes = timed(rows, columns)
    job = replace(job, file=rows.source, columns=columns)
    family = family_of(columns, rows, job.support)
    if config is not None:
        config.check_family(family)
        if columns.period is not None:
            raise InputError(
                f"a period is for sets that adjust themselves: leave out {option('period')}, or "
                "the controller"
            )
    tape, more = read_tape(rows, columns)
    notes = [*notes, *more]
    _check_support(family if config is None else config.controller.sets, tape, rows)
    reader = sets = family
    past: Tape | None
    begun: Any
    try:
        past, later, begun = None, tape, {}
        if config is None:
            chosen = job.preset(family)
            begun = starts(chosen, tape)
        elif config.is_full:
            chosen = config.controller
        else:
            past, later, known = _early(tape, rows)
            chosen = fill_in(config.controller, *rows_of(known, family))
        reader, sets = chosen.reader, chosen.sets
        groups = columns.groups or None
        trace = replay(chosen, later, begun, groups=groups)
        traces = [trace, replay(chosen, past, groups=groups)] if past else [trace]
    except SetpointError as error:
        by_row = isinstance(error, PredictionError | LabelError)
        where = _refused(reader, sets, tape, rows) if by_row else ""
        raise type(error)(f"{rows.path}{where}: {error}") from error
    notes += advice.scales(tape, chosen)
    if begun:
        share = f"{len(begun):,} of {len(later.streams):,} series"
        notes.append(f"{share} begin with what the others had learnt before their first row")
    if config is None:
        notes += advice.limits(trace)
        notes += advice.periods(trace, tape) if columns.period is None else []
    added = (_by_horizon if columns.patterns else _added)(traces, len(rows))
    names = unused([*added, "full", "empty"], rows.names)  # the last two are for JSON Lines
    return Outcome(
        job,
        trace,
        rows,
        {names[name]: values for name, values in added.items()},
        {name: names[name] for name in added},
        burn_in=len(past or ()),
        notes=tuple(notes),
        warning=advice.late(trace) if columns.delay is None else None,
        taught=len(begun),
    )


def _early(tape: Tape, rows: Rows) -> tuple[Tape, Tape, Tape]:
    """The rows that fill a controller in, the others, and what of the first is known by then."""
    lengths = np.diff(tape.segments.offsets)
    counts = np.minimum(np.clip(lengths // 10, 50, 1000), lengths // 2)
    past, later = tape.split(counts)
    early = known_part(tape, counts)
    known = int((~np.isnan(early.y)).sum())
    if known < _LEAST:
        until = f", up to {rows.place(int(past.places.max()))}," if len(past) else ","
        raise DataError(
            f"what a controller leaves open is filled in from at least {_LEAST} rows with a label, "
            f"and the first {len(past):,} rows of {rows.path}{until} have {known}: give a longer "
            "file, or a controller with nothing open"
        )
    return past, later, early


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
            f"{rows.path} has {tape.y[place]:g} in {rows.place(int(tape.places[place]))}: widen "
            "the support or leave it out"
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


# What is written behind the rows, in the order of the file


def _by_horizon(traces: Sequence[Trace], count: int) -> dict[str, Any]:
    """The sets of every row where one row has several horizons."""
    ahead = [np.asarray(trace.tape.horizon) for trace in traces]
    steps = np.unique(np.concatenate(ahead)).tolist()
    by_step = {step: _added(traces, count, step) for step in steps}
    burn_in = [added.pop("burn_in") for added in by_step.values()]
    sets = {f"{name}_h{h}": c for h, added in by_step.items() for name, c in added.items()}
    return {**sets, "burn_in": burn_in[0]}


def _added(traces: Sequence[Trace], count: int, horizon: int | None = None) -> dict[str, Any]:
    """The sets of every row, from the trace after the burn-in and that of the burn-in."""

    def column(of: Callable[[Trace], Any]) -> Array:
        parts = [(trace.tape, np.asarray(of(trace))) for trace in traces]
        values = np.empty(count, parts[0][1].dtype)
        for tape, part in parts:
            rows = slice(None) if horizon is None else tape.horizon == horizon
            values[tape.places[rows]] = part[rows]
        return values

    added: dict[str, Any]
    if traces[0].shown is None:
        added = {end: column(lambda trace: getattr(trace, end)) for end in ("lower", "upper")}  # noqa: B023
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
