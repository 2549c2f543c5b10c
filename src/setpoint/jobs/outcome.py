"""What a job made: the trace, the rows, the numbers, and the files that hold them."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint._html import amount, named, preformatted
from setpoint.bulk.replay import Trace, nominal
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import RiskCertificate, Status
from setpoint.jobs.folders import LIST, folder_for, results
from setpoint.jobs.inspect import save
from setpoint.jobs.job import Job
from setpoint.jobs.rows import Rows
from setpoint.jobs.tune import Choice, finite_or_none
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import LabelSet
from setpoint.sets.family import Members, Scalar
from setpoint.tape.files import is_json, write

__all__ = ["Before", "Outcome"]

Array = np.ndarray[Any, Any]

_ROWS = (
    ("coverage, %", "coverage", 100.0, ".2f"),
    ("mean streak of misses", "msl", 1.0, ".2f"),
    ("longest streak of misses", "longest_streak", 1.0, ".0f"),
    ("worst {window} labels, {off}", "worst_window", 100.0, ".1f"),
    ("mean width{finite}", "mean_finite_length", 1.0, ""),
    ("median width", "median_length", 1.0, ""),
    ("mean width, rolling quantile = 1", "width", 1.0, ".2f"),
    ("full sets, %", "full", 100.0, ".2f"),
    ("empty sets, %", "empty", 100.0, ".2f"),
)
_NOTHING = "–"


class Before(NamedTuple):
    """What there was without setpoint: its name, what it is in words, and its sets."""

    name: str
    words: str
    trace: Trace


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished job.

    Parameters
    ----------
    job, choice
        What was asked, and how the controller was chosen.
    trace
        The rows after the burn-in, under that controller.
    ends
        The ends of the predictions as they came; None where they were no sets.
    rows, added, names
        The file, what goes behind its columns, and what the columns with the sets are called.
    burn_in, burn_in_each
        How many rows the burn-in has, and the most of any one series.
    features, notes
        The columns that the model saw, and what someone should know.
    """

    job: Job
    trace: Trace
    choice: Choice
    ends: tuple[Array, Array] | None = None
    rows: Rows | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    burn_in: int = 0
    burn_in_each: int = 0
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
                f"The forecast alone has no interval{self._off()}. Before is what a spreadsheet "
                f"would give: the forecast plus and minus the {asked} quantile of its last 300 "
                "errors known by then, without limits until 30 are known."
            )
            return Before("rolling quantile", words, _alone(trace, ends))
        if trace.shown and isinstance(trace.shown[0], LabelSet):
            top = np.argmax(np.stack(list(map(np.asarray, trace.tape.prediction))), axis=0)
            words = "Before is the likeliest class alone, on the same rows."
            # As an interval of length 1 it holds its class and no other.
            alone = _alone(trace, (top - 0.5, top + 0.5))
            return Before("likeliest class", words, alone)
        return None

    def _off(self) -> str:
        """How far off a forecast is; of several series each would have its own."""
        trace = self.trace
        if len(trace.states) > 1 or not trace.observed.any():
            return ""
        middle = np.asarray(trace.tape.prediction[0], np.float64)
        return (
            f" and is off by {amount(float(np.nanmean(np.abs(trace.tape.y - middle))))} on average"
        )

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
            "features": list(self.features),
            "burn_in": self.burn_in,
            "burn_in_each": self.burn_in_each,
            "added": dict(self.names),
            "repeat": self.repeat,
        }
        before = self.before
        numbers = report.metrics(self.trace, before=None if before is None else before.trace)
        if before is not None:
            numbers["before"] |= {"name": before.name, "words": before.words}
        return {
            **numbers,
            "tried": [finite_or_none(row._asdict()) for row in self.choice.tried],
            "notes": list(self.notes),
            "job": job,
        }

    def __str__(self) -> str:
        numbers = self.metrics()
        lines = [self._head(numbers), _headline(self.trace, numbers), ""]
        if numbers["usefulness"] is not None:
            use = numbers["usefulness"]
            lines.insert(2, f"{use['use']}: {use['words']}")
        lines += _beside(self.trace.controller, numbers)
        lines.append("")
        if len(self.trace.states) == 1:
            lines.append(str(self.trace.certificate()))
        elif numbers["risk"] is not None:
            lines += _streams(numbers)
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return preformatted(self)

    def to_frame(self) -> Any:
        """A pandas frame of the rows with their sets, as `write` writes them."""
        if self.rows is None:
            raise InputError("a job without rows has no frame: take that of its trace")
        return self.rows.with_columns(self.added, ".parquet").to_pandas()

    def _head(self, numbers: Mapping[str, Any]) -> str:
        count, streams = len(self.trace.lam), numbers["streams"]
        many = "" if streams == 1 else f" of {streams:,} series"
        when = ""
        if numbers["first_time"] is not None:
            when = f", {_when(numbers['first_time'])} to {_when(numbers['last_time'])}"
        after = f" after a burn-in of {self.burn_in:,}" if self.burn_in else ""
        return f"{self.job.name}: {count:,} rows{many}{after}{when}"

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
                    "a job without a file needs the folder to write to: name it by --out"
                )
            folder = folder_for(self.job.file)
        numbers = self.metrics()
        with results(folder, self.job.file) as stage:
            if self.rows is not None:
                kind = self.rows.file.suffix if suffix is None else suffix
                table = self.rows.with_columns(self._columns(kind), kind)
                write(table, stage / f"rows{kind}", self.rows.file.delimiter)
            (stage / "controller.toml").write_text(self.choice.toml(), encoding="utf-8")
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


def _is_whole(controller: Controller) -> bool:
    """Whether the risks are the misses of the two sides of one interval."""
    sets = controller.sets
    sides = isinstance(sets, Members) and not sets.nested
    return sides and all(isinstance(risk.loss, Miscoverage) for risk in controller.risks)


def _headline(trace: Trace, numbers: Mapping[str, Any]) -> str:
    """What was asked, what came out and what is guaranteed, in one sentence."""
    first, risks = trace.controller.risks[0], numbers["risks"]
    risk, low, high = numbers["risk"], numbers["bound_lower"], numbers["bound_upper"]
    vacuous = False
    if risk is None:
        return "no row after the burn-in has a label, so nothing was judged"
    if isinstance(first.loss, Miscoverage):
        covered, asked = 1.0 - risk, 1.0 - first.level
        bounds = [None if end is None else 1.0 - end for end in (high, low)]
        if _is_whole(trace.controller):  # a label may miss either side, or both
            covered, asked = numbers["coverage"], nominal(trace.controller)
            misses = [side["bound_upper"] for side in risks]
            bounds = [None if None in misses else max(1.0 - sum(misses), 0.0), 1.0]
        sentence = (
            f"{100 * covered:.2f} % of the labels lay in their sets; {100 * asked:.4g} % was "
            "asked for"
        )
        ends = [None if end is None else f"{100 * end:.1f} %" for end in bounds]
        low, high = bounds
        vacuous = low is not None and high is not None and low < 0.0005 and high > 0.9995
    else:
        of = "misses in a row" if isinstance(first.loss, MiscoverageCounter) else "loss"
        sentence = f"the mean of the {of} is {risk:.4g}; {first.level:.4g} was asked for"
        ends = [None if end is None else f"{end:.4g}" for end in (low, high)]
    alike = {id(certificate): certificate for certificate in trace.certificates}
    certified = [certificate.risks[0] for certificate in alike.values()]
    if all(risk.counted and risk.constant_upper is not None for risk in certified):
        return f"{sentence}. Whatever the data do, {_promise(certified, len(trace.states))}"
    statuses = {risk.status for risk in certified}
    if statuses == {Status.SAYS_NOTHING_YET} or vacuous:
        return f"{sentence}, and nothing is guaranteed yet: there are too few labels"
    if None in ends:
        return sentence
    return f"{sentence}, and {ends[0]} to {ends[1]} was guaranteed, whatever the data"


def _promise(certified: list[RiskCertificate], streams: int) -> str:
    """What a budget guarantees, of one series or of each of several."""
    first = certified[0]
    most = max(risk.constant_upper or 0.0 for risk in certified)
    each = "" if streams == 1 else " in each series"
    return f"there are never more than {most:.4g} {first.unit[1]} too many{each}"


def _beside(controller: Controller, numbers: Mapping[str, Any]) -> list[str]:
    """What there was before beside the sets that were held.

    Widths of several series may have unlike units: of all together only their ratio is told.
    """
    before = numbers["before"] or {}
    width, first = 36, numbers["risks"][0]
    shares = isinstance(controller.risks[0].loss, Miscoverage)
    off = "points off" if shares else "mean loss off by"
    worst = first["windows"]
    window = worst[0]["labels"] if worst else numbers["window"]  # fewer where there are fewer
    several = numbers["streams"] > 1 and numbers["sets"] == "intervals"
    finite = numbers["mean_length"], before.get("mean_length", 0.0)
    lines = [f"{'':<{width}}{before.get('name', ''):>17}{'with setpoint':>16}"]
    for title, name, scale, form in _ROWS:
        if name == "worst_window" and _is_whole(controller):
            continue  # each side has its own
        if name in ("mean_finite_length", "median_length", "width") and several != (
            name == "width"
        ):
            continue
        now, then = numbers, before
        if name == "worst_window":
            now = first
        elif name == "width":
            now, then = (source.get("usefulness") or {} for source in (numbers, before))
        value, earlier = now.get(name), then.get(name)
        if name == "worst_window" and not shares:
            scale, form = 1.0, ".3g"
        cells = [_cell(earlier, scale, form), _cell(value, scale, form)]
        if set(cells) == {_NOTHING}:
            continue
        if numbers["sets"] != "intervals":
            title = title.replace("width", "size")
        title = title.format(window=window, off=off, finite=" of finite sets" * (None in finite))
        lines.append(f"{title:<{width}}{cells[0] if before else '':>17}{cells[1]:>16}")
    return lines


def _cell(value: float | None, scale: float, form: str) -> str:
    if value is None or not np.isfinite(value):
        return _NOTHING
    return format(scale * value, form) if form else amount(value)


def _streams(numbers: Mapping[str, Any]) -> list[str]:
    """All series together, and those with the most trouble."""
    low, high = (_cell(numbers[f"bound_{side}"], 1, ".4g") for side in ("lower", "upper"))
    first, worst = numbers["risks"][0], numbers["worst_streams"][:5]
    shares = first["asked"] is not None
    told = f"mean loss {numbers['risk']:.4g}, guaranteed between {low} and {high}"
    if shares:
        told = f"coverage {100 * first['coverage']:.2f} %"
        if first["coverage_low"] is not None:
            told += f", at least {100 * first['coverage_low']:.2f} % is guaranteed"
    if first["budget_all"] is not None:
        told += f", never more than {first['budget_all']:,.4g} {first['unit']} too many in all"
    lines = [
        f"{first['name']} at level {numbers['level']:g}, all series: {numbers['verdict']}",
        f"  {told}",
        "  the series by trouble:",
    ]
    width = max(len(named(row["id"])) for row in worst)
    size = "mean width" if numbers["sets"] == "intervals" else "mean size"
    for row in worst:
        risk = f"{100 * (1 - row['risk']):>9.2f} %" if shares else f"{row['risk']:>11.4f}"
        length = row["mean_finite_length"]
        wide = "" if length is None else f", {size} {amount(length)}"
        lines.append(
            f"    {named(row['id']):<{width}}{risk} over {row['labels']:,} labels{wide} "
            f"({row['verdict']}{_of_use(row)})"
        )
    return lines


def _of_use(row: Mapping[str, Any]) -> str:
    return "" if row["usefulness"] is None else f"; {row['usefulness']['use']}"


def _when(time: str | float) -> str:
    if isinstance(time, str):
        return time.replace("T", " ").removesuffix(".000000")
    return f"{time:.15g}"
