"""A file of forecasts for several horizons calibrated as whole paths, with totals and maxima."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._check import option
from setpoint._html import preformatted
from setpoint.bulk.paths import PathTrace, replay_paths
from setpoint.controller import Controller
from setpoint.errors import InputError, SetpointError
from setpoint.jobs.columns import read_tape, timed, unused
from setpoint.jobs.folders import LIST, folder_for, results
from setpoint.jobs.inspect import save
from setpoint.jobs.job import Config, Goal, Job
from setpoint.presets import paths
from setpoint.sets.family import InParts
from setpoint.tape import Columns, Tape
from setpoint.tape.files import write
from setpoint.tape.rows import Rows
from setpoint.tape.text import arrow

Array = np.ndarray[Any, Any]
_ALIKE = 20
"""How many actual values must be the same before two paths are taken to overlap."""


@dataclass(frozen=True, eq=False, repr=False)
class PathOutcome:
    """A finished job about paths.

    Parameters
    ----------
    job, trace, rows
        What was asked, every path with its sets, and the file.
    names
        What the columns behind the rows are called.
    notes
        What someone should know.
    """

    job: Job
    trace: PathTrace
    rows: Rows
    names: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values."""
        return self._metrics

    @cached_property
    def _metrics(self) -> dict[str, Any]:
        trace = self.trace
        sets = [{"set": name, **numbers} for name, numbers in trace.measures().items()]
        worst: list[list[dict[str, Any]]] = [
            [
                {"account": risk.account, "bound": risk.constant_upper, "status": str(risk.status)}
                for risk in trace.certificate(series).risks
            ]
            for series in trace.states
        ]
        for place, numbers in enumerate(sets):
            each = [risks[place] for risks in worst]
            most = max(each, key=lambda risk: risk["account"])
            statuses = sorted({risk["status"] for risk in each})
            numbers |= {**most, "status": ", ".join(statuses)}
        return {
            "paths": len(trace), "steps": trace.rows.shape[1], "series": len(trace.states),
            "sets": [{name: _plain(value) for name, value in one.items()} for one in sets],
            "notes": list(self.notes),
            "job": {**self.job.as_dict(), "added": dict(self.names)},
        }  # fmt: skip

    def __str__(self) -> str:
        numbers = self.metrics()
        series = "" if numbers["series"] == 1 else f" of {numbers['series']:,} series"
        lines = [f"{numbers['paths']:,} paths{series}, {numbers['steps']:,} steps each", ""]
        width = max(len(one["set"]) for one in numbers["sets"])
        lines.append(f"{'':{width}}  coverage   asked   judged      width    Winkler  account")
        for one in numbers["sets"]:
            shown = [one["width"], one.get("winkler")]
            cells = ["–" if value is None else f"{value:.4g}" for value in shown]
            share = "–" if one["coverage"] is None else f"{100.0 * one['coverage']:.1f} %"
            lines.append(
                f"{one['set']:{width}}  {share:>8}  {100.0 * one['asked']:>4g} %  "
                f"{one['judged']:>7,}  {cells[0]:>9}  {cells[1]:>9}  {one['account']:>+7.1f}"
            )
        lines += ["", "A path is inside when all of its steps are. Account: misses beyond what was "
                  "asked, the most of any series."]  # fmt: skip
        for one in numbers["sets"]:
            most = "" if one["bound"] is None else f", at most {one['bound']:.1f} beyond it"
            lines.append(f"{one['set']}: {one['status']}{most}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<PathOutcome of {self.trace!r}>"

    def _repr_html_(self) -> str:
        return preformatted(self)

    def write(
        self, folder: str | os.PathLike[str] | None = None, *, report: bool = True
    ) -> dict[str, Path]:
        """Writes rows, paths, numbers, controller and state into a folder, as `Outcome.write` does.

        `rows` has the band of each step behind the columns of the file, and `paths` a row for each
        path with its totals and extremes.
        """
        if folder is None:
            if self.job.file is None:
                raise InputError(
                    f"a job without a file needs a folder to write to: name it by {option('out')}"
                )
            folder = folder_for(self.job.file, "calibrated")
        pa, trace, kind = arrow(), self.trace, self.rows.file.suffix
        numbers = self.metrics()
        with results(folder, self.job.file) as stage:
            table = self.rows.with_columns(self._added(), kind)
            write(table, stage / f"rows{kind}", self.rows.file.delimiter)
            columns = {
                name: pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
                for name, values in trace.frame(paths=True).items()
            }
            write(pa.table(columns), stage / f"paths{kind}", self.rows.file.delimiter)
            text = spec.to_toml(trace.controller)
            (stage / "controller.toml").write_text(text, encoding="utf-8")
            save(trace, stage / "state.zip")
            if report:
                title = f"<title>{self.job.name}</title>"
                page = f'<!doctype html><html lang="en"><meta charset="utf-8">{title}'
                (stage / "report.html").write_text(f"{page}{preformatted(self)}", encoding="utf-8")
            listed = {**numbers, "files": sorted([*stage.names(), LIST])}
            (stage / LIST).write_text(
                f"{json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)}\n", "utf-8"
            )
        return dict(sorted(stage.moved.items()))

    def _added(self) -> dict[str, Any]:
        """The band of each step, in the rows of the file; of wide ones a column for each step."""
        trace, frame = self.trace, self.trace.frame()
        places, step = trace.tape.places[trace.rows.ravel()], frame["step"]
        wide = bool(self.job.columns and self.job.columns.patterns)
        added = {}
        for name in ("lower", "upper", "covered"):
            for column in [key for key in frame if key == name or key.startswith(f"{name}_")]:
                for h in np.unique(step).tolist() if wide else [None]:
                    here = slice(None) if h is None else step == h
                    values = frame[column][here]
                    target = np.ma.array(np.zeros(len(self.rows), values.dtype), mask=True)
                    target[places[here]] = values
                    key = column if h is None else f"{column}_h{h}"
                    added[self.names[key]] = target
        return added


def calibrate_paths(
    rows: Rows,
    columns: Columns,
    goal: Goal,
    config: Config | None,
    *,
    totals: Sequence[int],
    maximum: bool,
) -> PathOutcome:
    """Every path of a file with its band, its totals and its maximum, as a live stream would."""
    refused = {"groups": columns.groups, "features": columns.features, "known": columns.known}
    for name, given in refused.items():
        if given:
            raise InputError(f"a path takes no {name}: leave out {option(name)}")
    if columns.probabilities or (columns.lower is None) is not (columns.upper is None):
        raise InputError("a path takes point forecasts, or a lower and an upper end of each step")
    if columns.horizon is None and not columns.patterns:
        raise InputError(
            f"a path needs forecasts of several horizons: name their column by {option('horizon')},"
            f" or columns with * for the horizon, as in {option('point')} 'h*'"
        )
    period = columns.period
    if period == "auto":
        raise InputError(f"a path needs {option('period')} as a number of steps, got 'auto'")
    columns, notes = timed(rows, columns)
    tape, more = read_tape(rows, columns)
    horizon = int(np.max(np.asarray(tape.horizon)))
    try:
        every = overlap(tape, horizon)
        if config is not None:
            made = _of_paths(config.controller)
        else:
            asked: Any = 0.9 if goal.coverage is None else goal.coverage
            made = paths(
                horizon, asked, totals=totals, maximum=maximum, every=every, support=goal.support,
                period=None if period is None else int(period),
            )  # fmt: skip
        trace = replay_paths(made, tape, delay=0)
    except SetpointError as error:
        raise type(error)(f"{rows.path}: {error}") from error
    told = "follow each other" if every >= horizon else f"begin every {every:,} steps and overlap"
    more = tuple(note for note in more if not note.startswith("each horizon ("))
    own = f"paths {told}; the label of a step is taken to be known when the step is over"
    frame = trace.frame()
    ends = [n for n in frame if n.startswith(("lower", "upper", "covered"))]
    if columns.patterns:
        ends = [f"{name}_h{step}" for name in ends for step in range(1, horizon + 1)]
    names = unused(ends, rows.names, ("", "path_"))
    job = Job("calibrate", rows.source, columns, goal, config)
    return PathOutcome(job, trace, rows, names, (*notes, *more, own))


def _of_paths(controller: Controller) -> Controller:
    if not isinstance(controller.sets, InParts):
        raise InputError(
            f"the controller given is for {type(controller.sets).__name__}, and not for paths, as "
            "setpoint.paths makes"
        )
    return controller


def overlap(tape: Tape, horizon: int) -> int:
    """How many steps pass from one path to the next, as equal actual values tell.

    Paths overlap where the actual values of one, some steps on, are those of the next.
    """
    steps, offsets = np.asarray(tape.horizon), np.asarray(tape.segments.offsets)
    y, by_series = tape.by_stream(np.asarray(tape.y)), tape.by_stream(steps)
    series = [key[0] if isinstance(key, tuple) else None for key in tape.streams]
    found: dict[Any, dict[int, Array]] = {}
    for place, name in enumerate(series):
        own = slice(offsets[place], offsets[place + 1])
        found.setdefault(name, {})[int(by_series[own][0])] = y[own]
    rows = [
        np.column_stack([one[step] for step in range(1, horizon + 1)])
        for one in found.values()
        if len({len(values) for values in one.values()}) == 1 and len(one) == horizon
    ]
    for every in range(1, horizon):
        pairs = [(own[:-1, every:].ravel(), own[1:, : horizon - every].ravel()) for own in rows]
        now, then = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        known = (now == now) & (then == then)
        now, then = now[known], then[known]
        if len(now) >= _ALIKE and np.ptp(now) > 0.0 and (now == then).mean() > 0.99:
            return every
    return horizon


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
