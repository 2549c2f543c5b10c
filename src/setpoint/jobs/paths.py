"""A file of forecasts for several horizons calibrated as whole paths, with totals and maxima."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from setpoint import spec
from setpoint._check import option
from setpoint._files import staged
from setpoint._html import preformatted
from setpoint.bulk.paths import PathTrace, replay_paths
from setpoint.controller import Controller
from setpoint.errors import InputError, SetpointError
from setpoint.jobs.columns import read_tape, timed, unused
from setpoint.jobs.inspect import save
from setpoint.jobs.job import Job
from setpoint.jobs.result import Result, aligned
from setpoint.presets import paths
from setpoint.sets.family import InParts
from setpoint.tape import Tape
from setpoint.tape.rows import Rows
from setpoint.tape.text import arrow

Array = np.ndarray[Any, Any]
_ALIKE = 20
"""How many actual values must be the same before two paths are taken to overlap."""


@dataclass(frozen=True, eq=False, repr=False)
class PathOutcome(Result):
    """Every path of a file with its sets; `names` are those of the columns behind the rows."""

    job: Job
    trace: PathTrace
    rows: Rows
    names: Mapping[str, str]
    notes: tuple[str, ...] = ()
    folder: ClassVar[str] = "calibrated"

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
        table = [["", "coverage", "asked", "judged", "width", "Winkler", "account"]]
        for one in numbers["sets"]:
            shown = [one["width"], one.get("winkler")]
            table.append([
                one["set"], "–" if one["coverage"] is None else f"{100.0 * one['coverage']:.1f} %",
                f"{100.0 * one['asked']:g} %", f"{one['judged']:,}",
                *("–" if value is None else f"{value:.4g}" for value in shown),
                f"{one['account']:+.1f}",
            ])  # fmt: skip
        lines += aligned(table, left=1)
        lines += ["", "A path is inside when all of its steps are. Account: misses beyond what was "
                  "asked, the most of any series."]  # fmt: skip
        for one in numbers["sets"]:
            most = "" if one["bound"] is None else f", at most {one['bound']:.1f} beyond it"
            lines.append(f"{one['set']}: {one['status']}{most}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<PathOutcome of {self.trace!r}>"

    def _put(self, stage: staged, report: bool) -> None:
        """`rows` has the band of each step behind the columns of the file, and `paths` a row for
        each path with its totals and extremes.
        """
        pa, trace = arrow(), self.trace
        columns = {
            name: pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
            for name, values in trace.frame(paths=True).items()
        }
        self._table(stage, "rows", self.rows.with_columns(self._added(), self.rows.file.suffix))
        self._table(stage, "paths", pa.table(columns))
        (stage / "controller.toml").write_text(spec.to_toml(trace.controller), "utf-8")
        save(trace, stage / "state.zip")
        if report:
            title = f"<title>{escape(self.metrics()['job']['name'])}</title>"
            page = f'<!doctype html><html lang="en"><meta charset="utf-8">{title}'
            (stage / "report.html").write_text(f"{page}{preformatted(self)}", "utf-8")

    def _added(self) -> dict[str, Any]:
        """The band of each step, in the rows of the file; of wide ones a column for each step."""
        trace, frame = self.trace, self.trace.frame()
        places, step = trace.tape.places[trace.rows.ravel()], frame["step"]
        wide = bool(self.job.columns.patterns)
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


def calibrate_paths(rows: Rows, job: Job, *, totals: Sequence[int], maximum: bool) -> PathOutcome:
    """Every path of a file with its band, its totals and its maximum, as a live stream would."""
    columns, config = job.columns, job.config
    refused = {"groups": columns.groups, "features": columns.features, "known": columns.known}
    for name, given in refused.items():
        if given:
            raise InputError(f"a path takes no {name}: leave out {option(name)}")
    if config is not None and (totals or maximum):
        raise InputError(
            "a controller says which totals there are: leave them and the maximum out, or the "
            "controller"
        )
    if columns.probabilities or (columns.lower is None) is not (columns.upper is None):
        raise InputError("a path takes point forecasts, or a lower and an upper end of each step")
    if columns.horizon is None and not columns.patterns:
        raise InputError(
            f"a path needs forecasts of several horizons: name their column by {option('horizon')},"
            f" or columns with * for the horizon, as in {option('point')} 'h*'"
        )
    columns, notes = timed(rows, columns)
    tape, more = read_tape(rows, columns)
    horizon = int(np.max(np.asarray(tape.horizon)))
    try:
        every = overlap(tape, horizon)
        if config is not None:
            made = _of_paths(config.controller)
        else:
            made = paths(
                horizon, job.coverage or 0.9, totals=totals, maximum=maximum, every=every,
                support=job.support, period=columns.period,
            )  # fmt: skip
        trace = replay_paths(made, tape, delay=0)
    except SetpointError as error:
        raise type(error)(f"{rows.path}: {error}") from error
    told = "follow each other" if every >= horizon else f"begin every {every:,} steps and overlap"
    more = [note for note in more if not note.startswith("each horizon (")]
    own = f"paths {told}; assuming that the label of each step is known when the step is over"
    frame = trace.frame()
    ends = [n for n in frame if n.startswith(("lower", "upper", "covered"))]
    if columns.patterns:
        ends = [f"{name}_h{step}" for name in ends for step in range(1, horizon + 1)]
    names = unused(ends, rows.names, "path_")
    job = replace(job, columns=columns)
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
