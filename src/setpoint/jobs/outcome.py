"""What a job made: the trace, the rows, the numbers, and the files that hold them."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import Trace, nominal
from setpoint.errors import InputError
from setpoint.jobs import files
from setpoint.jobs.choosing import Choice
from setpoint.jobs.folders import staged
from setpoint.jobs.states import save
from setpoint.losses import MiscoverageCounter

__all__ = ["Outcome", "folder_for"]

Array = np.ndarray[Any, Any]

_ROWS = (
    ("coverage, %", "coverage", 100.0, ".2f"),
    ("mean streak of misses", "msl", 1.0, ".2f"),
    ("longest streak of misses", "longest_streak", 1.0, ".0f"),
    ("worst {window} labels, {off}", "worst_window", 100.0, ".1f"),
    ("mean length", "mean_finite_length", 1.0, ".4g"),
    ("median length", "median_length", 1.0, ".4g"),
    ("full sets, %", "full", 100.0, ".2f"),
    ("empty sets, %", "empty", 100.0, ".2f"),
)


_NOTHING = "–"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A finished job.

    Parameters
    ----------
    job
        What was asked, in plain values: enough to do it again.
    trace
        The rows after the burn-in, under the controller that was chosen.
    choice
        How it was chosen.
    ends
        The ends of the predictions as they came; None where they were no sets.
    rows
        The file, None where there was none.
    added
        What goes behind the columns of the file, row for row.
    notes
        What someone should know.
    """

    job: dict[str, Any]
    trace: Trace
    choice: Choice
    ends: tuple[Array, Array] | None = None
    rows: files.Rows | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> metrics.Summary | None:
        """The predictions as they came, judged on the same rows and as the first risk judges.

        Of several series, streaks and windows are those within a series.
        """
        if "given" not in self._kept:
            self._kept["given"] = None if self.ends is None else _judged(self.trace, *self.ends)
        found: metrics.Summary | None = self._kept["given"]
        return found

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values: those of `setpoint.report.metrics`, and the job."""
        if "metrics" not in self._kept:
            from setpoint import report

            alone = None if self.given is None else _finite(self.given.as_dict())
            self._kept["metrics"] = {
                **report.metrics(self.trace),
                "as_given": alone,
                "tried": [_finite(row) for row in self.choice.tried],
                "notes": list(self.notes),
                "job": self.job,
            }
        found: dict[str, Any] = self._kept["metrics"]
        return found

    def __str__(self) -> str:
        found = self.metrics()
        alone = "the model alone" if self.job["command"] == "run" else "as given"
        lines = [self._head(found), *_headline(found), ""]
        lines += _beside(self.given, found, alone)
        lines.append("")
        if len(self.trace.states) == 1:
            lines.append(str(self.trace.certificate()))
        else:
            lines += _streams(found)
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def _head(self, found: Mapping[str, Any]) -> str:
        count, streams = len(self.trace.lam), found["streams"]
        many = "" if streams == 1 else f" of {streams:,} series"
        when = ""
        if found["first_time"] is not None:
            when = f", {_when(found['first_time'])} to {_when(found['last_time'])}"
        burnt = self.job.get("burn_in", 0)
        after = f" after a burn-in of {burnt:,}" if burnt else ""
        return f"{self.job['name']}: {count:,} rows{many}{after}{when}"

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
        taken away then; nothing else in the folder is touched, and nothing at all on failure.

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
            if self.rows is None:
                raise InputError("a job without a file needs the folder to write to")
            folder = folder_for(self.rows.path)
        found = self.metrics()
        with staged(folder, None if self.rows is None else self.rows.path) as stage:
            if self.rows is not None:
                kind = self.rows.suffix if suffix is None else suffix
                table = self.rows.with_columns(self._told(kind), kind)
                files.write(table, stage / f"rows{kind}", self.rows.delimiter)
            (stage / "controller.toml").write_text(self.choice.toml(), encoding="utf-8")
            save(self.trace, stage / "state.zip")
            for name, text in (more or {}).items():
                (stage / name).write_text(text, encoding="utf-8")
            if report:
                from setpoint import report as pages

                pages.write(
                    self.trace, stage / "report.html", title=self.job["name"], metrics=found
                )
            listed = {**found, "files": sorted([*stage.names(), "metrics.json"])}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / "metrics.json").write_text(f"{text}\n", encoding="utf-8")
        return dict(sorted(stage.moved.items()))

    def _told(self, suffix: str) -> Mapping[str, Any]:
        """What goes behind the rows; in JSON both ends of full and of empty intervals are null."""
        called = self.job["added"]
        if "lower" not in called or not files.is_json(suffix):
            return self.added
        lower, upper = self.added[called["lower"]], self.added[called["upper"]]
        low, high = getattr(self.trace.controller.sets, "support", (-np.inf, np.inf))
        prefix = called["lower"].removesuffix("lower")
        return {
            **self.added,
            f"{prefix}full": (lower <= low) & (upper >= high),
            f"{prefix}empty": lower > upper,
        }


def _judged(trace: Trace, lower: Array, upper: Array) -> metrics.Summary:
    """Every metric of other ends than the trace's, on its labels and under its first risk."""
    order, offsets = trace.tape.segments
    place: Any = slice(None) if order is None else order
    lower, upper, y = lower[place], upper[place], trace.tape.y[place]
    hits = metrics.covered(lower, upper, y)
    risk = trace.controller.risks[0]
    losses = 1.0 - hits
    if isinstance(risk.loss, MiscoverageCounter):
        parts = [metrics.miscoverage_counter(part) for part in np.split(hits, offsets[1:-1])]
        losses = np.minimum(np.concatenate(parts), risk.loss.cap or np.inf)
    return metrics.summary(
        lower,
        upper,
        y,
        risk.level,
        losses=losses,
        confidence_level=nominal(trace.controller),
        support=getattr(trace.controller.sets, "support", (-np.inf, np.inf)),
        offsets=offsets,
    )


def folder_for(path: str | os.PathLike[str]) -> Path:
    """Where the results of a file go: a folder of its name in the present one.

    >>> folder_for("data/power.csv.gz").name
    'power-setpoint'
    """
    name = Path(path).name
    return Path(f"{name[: -len(files.suffix_of(name))]}-setpoint")


def _headline(found: Mapping[str, Any]) -> list[str]:
    """What was asked, what came out and what is guaranteed, in one sentence."""
    risk, low, high = found["risk"], found["bound_lower"], found["bound_upper"]
    if risk is None:
        return ["no row after the burn-in has a label, so nothing was judged"]
    if found["risks"][0]["name"] == "Miscoverage":
        level = f"{100 * (1 - found['level']):.4g} %"
        said = f"{100 * (1 - risk):.2f} % of the labels lay in their sets; {level} was asked for"
        low, high = (None if end is None else 1 - end for end in (high, low))
        ends = [None if end is None else f"{100 * end:.1f} %" for end in (low, high)]
    else:
        of = "misses in a row" if found["risks"][0]["name"] == "MiscoverageCounter" else "loss"
        said = f"the mean of the {of} is {risk:.4g}; {found['level']:.4g} was asked for"
        ends = [None if end is None else f"{end:.4g}" for end in (low, high)]
    if found["verdict"].partition(";")[0] == "says nothing yet" or ends == ["0.0 %", "100.0 %"]:
        return [f"{said}, and nothing is guaranteed yet: there are too few labels"]
    if None in ends:
        return [said]
    return [f"{said}, and {ends[0]} to {ends[1]} was guaranteed, whatever the data"]


def _beside(given: metrics.Summary | None, found: Mapping[str, Any], alone: str) -> list[str]:
    """The predictions as given beside the sets that were held."""
    width, held = 36, "with setpoint"
    shares = found["risks"][0]["name"] == "Miscoverage"
    off = "points off" if shares else "mean loss off by"
    worst = found["risks"][0]["windows"]
    window = worst[0]["labels"] if worst else found["window"]  # fewer where there are fewer
    lines = [f"{'':<{width}}" + (f"{alone:>17}" if given else "") + f"{held:>16}"]
    for title, name, scale, form in _ROWS:
        value = found["risks"][0][name] if name == "worst_window" else found[name]
        own = None if given is None else getattr(given, name)
        if name == "worst_window" and not shares:
            scale, form = 1.0, ".3g"
        cells = [_cell(own, scale, form), _cell(value, scale, form)]
        if set(cells) == {_NOTHING}:
            continue
        before = "" if given is None else f"{cells[0]:>17}"
        shown = title.format(window=window, off=off)
        lines.append(f"{shown:<{width}}{before}{cells[1]:>16}")
    return lines


def _cell(value: float | None, scale: float, form: str) -> str:
    return _NOTHING if value is None or not np.isfinite(value) else format(scale * value, form)


def _streams(found: Mapping[str, Any]) -> list[str]:
    """All series together, and those with the highest risk."""
    low, high = (_cell(found[f"bound_{side}"], 1, ".4g") for side in ("lower", "upper"))
    lines = [
        f"{found['risks'][0]['name']} at level {found['level']:g}, all series: {found['verdict']}",
        f"  mean loss {found['risk']:.4g}, guaranteed between {low} and {high}",
        "  the series with the highest risk:",
    ]
    worst = found["worst_streams"][:5]
    width = max(len(str(row["id"])) for row in worst)
    lines += [
        f"    {row['id']!s:<{width}}{row['risk']:>10.4f} over {row['labels']:,} labels "
        f"({row['verdict']})"
        for row in worst
    ]
    return lines


def _when(time: str | float) -> str:
    if isinstance(time, str):
        return time.replace("T", " ").removesuffix(".000000")
    return f"{time:.15g}"


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are not finite as None: JSON has no other word."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }
