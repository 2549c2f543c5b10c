"""What calibrating made: the trace, the rows with their sets, and every number of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from setpoint import metrics, spec
from setpoint._files import staged
from setpoint.bulk.trace import Trace, nominal
from setpoint.errors import InputError
from setpoint.jobs.inspect import save
from setpoint.jobs.job import Job
from setpoint.jobs.result import Result
from setpoint.losses import MiscoverageCounter
from setpoint.report import words
from setpoint.report.numbers import Numbers
from setpoint.sets import LabelSet
from setpoint.sets.family import Scalar
from setpoint.tape.files import is_json
from setpoint.tape.rows import Rows

Array = np.ndarray[Any, Any]


class Before(NamedTuple):
    """What there was without setpoint: its name, what it is in words, and its sets."""

    name: str
    words: str
    trace: Trace


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Result):
    """The result of `calibrate`: every row with its set.

    Parameters
    ----------
    job
        What was asked.
    trace
        The rows after the burn-in, under the controller.
    rows, added, names
        The file, what goes behind its columns, and what the columns with the sets are called.
    burn_in
        How many rows filled a controller in, which are not judged.
    notes
        What someone should know.
    warning
        What makes the numbers look better than they are, if anything does.
    taught
        How many series begin with what the others had learnt.
    """

    job: Job
    trace: Trace
    rows: Rows | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    burn_in: int = 0
    notes: tuple[str, ...] = ()
    warning: str | None = None
    taught: int = 0
    folder: ClassVar[str] = "calibrated"

    @cached_property
    def before(self) -> Before | None:
        """The predictions as they came; of those that were no sets, what one would plainly do."""
        trace = self.trace
        if (given := _ends(trace)) is not None:
            name = "the model alone" if self.job.model is not None else "as given"
            return Before(name, "The same rows, judged in the same way.", _alone(trace, given))
        ends = trace.baseline()
        if ends is not None:
            asked = f"{100.0 * nominal(trace.controller):.6g} %"
            words = (
                f"The forecast alone has no interval. Before is what a spreadsheet "
                f"would give: the forecast plus and minus the {asked} quantile of its last 300 "
                "known errors, recomputed every 25 labels; unlimited until 30 errors are known."
            )
            return Before("rolling quantile", words, _alone(trace, ends))
        if trace.shown and isinstance(trace.shown[0], LabelSet):
            top = np.argmax(np.stack(list(map(np.asarray, trace.tape.prediction))), axis=0)
            words = "Before is the likeliest class alone, on the same rows."
            # As an interval of length 1 it holds its class and no other.
            return Before("likeliest class", words, _alone(trace, (top - 0.5, top + 0.5)))
        return None

    def _error(self) -> float | None:
        """How far a forecast is off on average, or its middle; series may have unlike units."""
        tape = self.trace.tape
        columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
        ends = [columns[name] for name in ("lower", "upper", "point") if name in columns]
        one_end = len({"lower", "upper"} & set(columns)) == 1
        if not ends or one_end or len(self.trace.states) > 1:
            return None
        with np.errstate(over="ignore"):
            off = np.abs(tape.y - tape.extras.get("point", np.mean(ends, axis=0)))
            off = off[np.isfinite(off)]
            mean = float(off.mean()) if len(off) else np.inf
        return mean if np.isfinite(mean) else None

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values: those of `setpoint.report.metrics`, and the job."""
        return self._metrics

    @cached_property
    def _metrics(self) -> dict[str, Any]:
        from setpoint import report

        before = self.before
        numbers = report.metrics(self.trace, before=None if before is None else before.trace)
        if before is not None:
            numbers["before"] |= {"name": before.name, "words": before.words}
        job = {"burn_in": self.burn_in, "added": dict(self.names), "taught": self.taught}
        return {
            **numbers,
            "forecast_error": self._error(),
            "warning": self.warning,
            "notes": list(self.notes),
            "job": {**self.job.as_dict(), **job},
        }

    def __str__(self) -> str:
        numbers = Numbers.read(self.metrics())
        return words.text(numbers, self.trace.certificate() if numbers.streams == 1 else None)

    def __repr__(self) -> str:
        held = f"coverage {100.0 * self.trace.coverage:.1f} %"
        return f"<Outcome of {self.job.name}: {len(self.trace.lam):,} rows, {held}>"

    def to_frame(self) -> Any:
        """The rows with their sets, as a frame of the kind that came in; of a file pandas."""
        if self.rows is None:
            raise InputError("a job without rows has no frame: take that of its trace")
        return self.rows.to_frame(self.added)

    def _put(self, stage: staged, report: bool) -> None:
        if self.rows is not None:
            kind = self.rows.file.suffix
            self._table(stage, "rows", self.rows.with_columns(self._columns(kind), kind))
        (stage / "controller.toml").write_text(spec.to_toml(self.trace.controller), "utf-8")
        save(self.trace, stage / "state.zip")
        if report:
            from setpoint import report as pages

            numbers = self.metrics()
            title = numbers["job"]["name"]
            pages.write(self.trace, stage / "report.html", title=title, metrics=numbers)

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


def _ends(trace: Trace) -> tuple[Array, Array] | None:
    """The predictions themselves as sets, where they are intervals or bounds."""
    tape = trace.tape
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    columns.pop("phase", None)
    if not {"lower", "upper"} & set(columns) or set(columns) - {"lower", "upper"}:
        return None
    open_end = np.broadcast_to(np.inf, len(tape))
    return columns.get("lower", -open_end), columns.get("upper", open_end)


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
