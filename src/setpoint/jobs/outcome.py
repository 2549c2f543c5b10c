"""What a job made: the trace, the rows, the numbers, and the files that hold them."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics, spec
from setpoint._check import option
from setpoint._html import preformatted
from setpoint.bulk.trace import Trace, nominal
from setpoint.errors import InputError
from setpoint.jobs.folders import LIST, folder_for, results
from setpoint.jobs.inspect import save
from setpoint.jobs.job import Job
from setpoint.losses import MiscoverageCounter
from setpoint.report import words
from setpoint.report.numbers import Numbers
from setpoint.sets import LabelSet
from setpoint.sets.family import Scalar
from setpoint.tape.files import is_json, write
from setpoint.tape.rows import Rows

Array = np.ndarray[Any, Any]


class Before(NamedTuple):
    """What there was without setpoint: its name, what it is in words, and its sets."""

    name: str
    words: str
    trace: Trace


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """A finished job.

    Parameters
    ----------
    job
        What was asked.
    trace
        The rows after the burn-in, under that controller.
    ends
        The ends of the predictions as they came; None where they were no sets.
    rows, added, names
        The file, what goes behind its columns, and what the columns with the sets are called.
    burn_in, burn_in_each
        How many rows the burn-in has, and the most of any one series.
    notes
        What someone should know.
    warning
        What makes the numbers look better than they are, if anything does.
    taught
        How many series begin with what the others had learnt.
    """

    job: Job
    trace: Trace
    ends: tuple[Array, Array] | None = None
    rows: Rows | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    burn_in: int = 0
    burn_in_each: int = 0
    notes: tuple[str, ...] = ()
    warning: str | None = None
    taught: int = 0

    @property
    def given(self) -> metrics.Summary | None:
        """The predictions as they came, judged on the same rows and as the first risk judges.

        Of several series, streaks and windows are those within a series.
        """
        before = None if self.ends is None else self.before
        return None if before is None else before.trace.summary()

    @cached_property
    def before(self) -> Before | None:
        """The predictions as they came; of those that were no sets, what one would plainly do."""
        trace = self.trace
        if self.ends is not None:
            name = "the model alone" if self.job.model is not None else "as given"
            return Before(name, "The same rows, judged in the same way.", _alone(trace, self.ends))
        ends = trace.baseline()
        if ends is not None:
            asked = f"{100.0 * nominal(trace.controller):.6g} %"
            words = (
                f"The forecast alone has no interval. Before is what a spreadsheet "
                f"would give: the forecast plus and minus the {asked} quantile of its last 300 "
                "errors known by then, taken anew every 25 labels and without limits until 30 are "
                "known."
            )
            return Before("rolling quantile", words, _alone(trace, ends))
        if trace.shown and isinstance(trace.shown[0], LabelSet):
            top = np.argmax(np.stack(list(map(np.asarray, trace.tape.prediction))), axis=0)
            words = "Before is the likeliest class alone, on the same rows."
            # As an interval of length 1 it holds its class and no other.
            alone = _alone(trace, (top - 0.5, top + 0.5))
            return Before("likeliest class", words, alone)
        return None

    def _error(self) -> float | None:
        """How far a forecast is off on average, or its middle; series may have unlike units."""
        tape = self.trace.tape
        columns = dict(zip(tape.names, tape.prediction, strict=True))
        ends = [
            np.asarray(columns[name]) for name in ("lower", "upper", "point") if name in columns
        ]
        alone = {"lower", "upper"} & set(columns) not in ({"lower"}, {"upper"})
        if not ends or not alone or len(self.trace.states) > 1 or not self.trace.observed.any():
            return None
        point = tape.extras.get("point", np.mean(ends, axis=0))
        with np.errstate(over="ignore"):
            off = np.abs(tape.y - point)
        finite = off[np.isfinite(off)]
        with np.errstate(over="ignore"):
            mean = float(finite.mean()) if len(finite) else np.inf
        return mean if np.isfinite(mean) else None

    @property
    def repeat(self) -> str | None:
        """The command that does the job again; None where no command can."""
        job, burn_in = self.job, self.job.burn_in
        if burn_in is None and not job.is_full and len(self.trace.states) == 1:
            burn_in = self.burn_in_each
        return job.repeat(burn_in)

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values: those of `setpoint.report.metrics`, and the job."""
        return self._metrics

    @cached_property
    def _metrics(self) -> dict[str, Any]:
        from setpoint import report

        job = {
            **self.job.as_dict(),
            "burn_in": self.burn_in,
            "burn_in_each": self.burn_in_each,
            "added": dict(self.names),
            "taught": self.taught,
            "repeat": self.repeat,
        }
        before = self.before
        numbers = report.metrics(self.trace, before=None if before is None else before.trace)
        if before is not None:
            numbers["before"] |= {"name": before.name, "words": before.words}
        return {
            **numbers,
            "forecast_error": self._error(),
            "warning": self.warning,
            "notes": list(self.notes),
            "job": job,
        }

    def __str__(self) -> str:
        numbers = Numbers.read(self.metrics())
        return words.text(numbers, self.trace.certificate() if numbers.streams == 1 else None)

    def __repr__(self) -> str:
        held = f"coverage {100.0 * self.trace.coverage:.1f} %"
        return f"<Outcome of {self.job.command}: {len(self.trace.lam):,} rows, {held}>"

    def _repr_html_(self) -> str:
        return preformatted(self)

    def to_frame(self) -> Any:
        """The rows with their sets, as a frame of the kind that came in; of a file pandas."""
        if self.rows is None:
            raise InputError("a job without rows has no frame: take that of its trace")
        return self.rows.to_frame(self.added)

    def write(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        report: bool = True,
        suffix: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> dict[str, Path]:
        """Writes everything into a folder; the files appear together, when all are written.

        Where a job has written to the folder before, its files that this one does not write are
        taken away then. A file that no job wrote is neither replaced nor taken away, and nothing
        at all is changed on failure.

        Parameters
        ----------
        folder
            Made if there is none; by default one called as the file, in the present folder.
        report
            Whether to write the page too.
        suffix
            The kind of the file of rows, by default as that of the file they came from.
        more
            Texts to write as well, by the names of their files.
        """
        if folder is None:
            if self.job.file is None:
                raise InputError(
                    f"a job without a file needs a folder to write to: name it by {option('out')}"
                )
            folder = folder_for(self.job.file, "calibrated")
        numbers = self.metrics()
        with results(folder, self.job.file) as stage:
            if self.rows is not None:
                kind = self.rows.file.suffix if suffix is None else suffix
                table = self.rows.with_columns(self._columns(kind), kind)
                write(table, stage / f"rows{kind}", self.rows.file.delimiter)
            (stage / "controller.toml").write_text(
                spec.to_toml(self.trace.controller), encoding="utf-8"
            )
            save(self.trace, stage / "state.zip")
            for name, text in (more or {}).items():
                (stage / name).write_text(text, encoding="utf-8")
            if report:
                from setpoint import report as pages

                page = stage / "report.html"
                pages.write(self.trace, page, title=self.job.name, metrics=numbers)
            listed = {**numbers, "files": sorted([*stage.names(), LIST])}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / LIST).write_text(f"{text}\n", encoding="utf-8")
        return dict(sorted(stage.moved.items()))

    def _columns(self, suffix: str) -> Mapping[str, Any]:
        """What goes behind the rows; in JSON both ends of full and of empty intervals are null."""
        if "lower" not in self.names or not is_json(suffix):
            return self.added
        lower, upper = (self.added[self.names[end]] for end in ("lower", "upper"))
        sets = self.trace.controller.sets
        low, high = sets.support if isinstance(sets, Scalar) else (-np.inf, np.inf)
        prefix = self.names["lower"].removesuffix("lower")
        return {
            **self.added,
            f"{prefix}full": (lower <= low) & (upper >= high),
            f"{prefix}empty": lower > upper,
        }


def _alone(trace: Trace, ends: tuple[Array, Array]) -> Trace:
    """Other ends than the trace's, on its labels and judged by its first risk."""
    (lower, upper), tape, loss = ends, trace.tape, trace.controller.risks[0].loss
    hits = metrics.covered(lower, upper, tape.y)
    losses = 1.0 - hits
    if isinstance(loss, MiscoverageCounter):
        streams = np.split(tape.by_stream(hits), tape.segments.offsets[1:-1])
        counters = np.concatenate([metrics.miscoverage_counter(part) for part in streams])
        losses = tape.by_row(np.minimum(counters, loss.cap or np.inf))
    return replace(
        trace, lower=lower, upper=upper, shown=None, covered=hits == 1.0, losses=losses[None]
    )
