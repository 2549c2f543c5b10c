"""What a job made: the trace, the rows, the numbers, and the files that hold them."""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.jobs import files
from setpoint.jobs.choosing import Choice
from setpoint.replaying import Trace, nominal
from setpoint.stream import Stream

__all__ = ["Outcome", "folder_for", "staged"]

Array = np.ndarray[Any, Any]

_ROWS = (
    ("coverage, %", "coverage", 100.0, ".2f"),
    ("mean streak of misses", "msl", 1.0, ".2f"),
    ("longest streak of misses", "longest_streak", 1.0, ".0f"),
    ("worst {window} labels, points off", "worst_window", 100.0, ".1f"),
    ("mean length", "mean_finite_length", 1.0, ".4g"),
    ("median length", "median_length", 1.0, ".4g"),
    ("full sets, %", "full", 100.0, ".2f"),
)


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
        """The predictions as they came, judged on the same rows."""
        if "given" not in self._kept:
            level = 1.0 - nominal(self.trace.controller)
            y = self.trace.tape.y
            self._kept["given"] = (
                None if self.ends is None else metrics.summary(*self.ends, y, level)
            )
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
        self, folder: str | os.PathLike[str], *, report: bool = True, suffix: str | None = None
    ) -> dict[str, Path]:
        """Writes everything into a folder; the files appear together, when all are written.

        Parameters
        ----------
        folder
            Made if there is none; files of the same names in it are replaced.
        report
            Whether to write the page too.
        suffix
            The kind of the file of rows, by default as that of the file they came from.
        """
        with staged(folder) as stage:
            if self.rows is not None:
                name = f"rows{self.rows.suffix if suffix is None else suffix}"
                table = self.rows.with_columns(self.added)
                files.write(table, stage / name, self.rows.delimiter)
            text = json.dumps(self.metrics(), indent=2, ensure_ascii=False, allow_nan=False)
            (stage / "metrics.json").write_text(f"{text}\n", encoding="utf-8")
            (stage / "controller.toml").write_text(self.choice.toml(), encoding="utf-8")
            if len(self.trace.states) == 1:
                Stream(self.trace.controller, state=self.trace.state).save(stage / "state.zip")
            if report:
                from setpoint import report as pages

                pages.write(self.trace, stage / "report.html", title=self.job["name"])
        return stage.moved


class staged:  # noqa: N801
    """A folder whose files appear together: they are written beside it and moved at the end."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.moved: dict[str, Path] = {}
        name = f".{self.folder.name or 'out'}.{secrets.token_hex(4)}.tmp"
        self._stage = self.folder.absolute().parent / name

    def __truediv__(self, name: str) -> Path:
        return self._stage / name

    def __enter__(self) -> "staged":
        self._stage.mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                for file in sorted(self._stage.iterdir()):
                    target = self.folder / file.name
                    os.replace(file, target)
                    self.moved[file.name] = target
        finally:
            shutil.rmtree(self._stage, ignore_errors=True)


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
        said = f"{100 * (1 - risk):.2f} % of the labels lay in their sets; asked was {level}"
        low, high = (None if end is None else 1 - end for end in (high, low))
        ends = [None if end is None else f"{100 * end:.1f} %" for end in (low, high)]
    else:
        said = f"the mean loss is {risk:.4g}; asked was {found['level']:.4g}"
        ends = [None if end is None else f"{end:.4g}" for end in (low, high)]
    if None in ends:
        return [f"{said}"]
    return [f"{said}, and between {ends[0]} and {ends[1]} was sure whatever came"]


def _beside(given: metrics.Summary | None, found: Mapping[str, Any], alone: str) -> list[str]:
    """The predictions as given beside the sets that were held."""
    width, held = 36, "with setpoint"
    lines = [f"{'':<{width}}" + (f"{alone:>17}" if given else "") + f"{held:>16}"]
    for title, name, scale, form in _ROWS:
        value = found["risks"][0][name] if name == "worst_window" else found[name]
        own = None if given is None else getattr(given, name)
        if not (value or own):  # not a number, or none of it
            continue
        cells = "" if given is None else f"{_cell(own, scale, form):>17}"
        shown = title.format(window=found["window"])
        lines.append(f"{shown:<{width}}{cells}{_cell(value, scale, form):>16}")
    return lines


def _cell(value: float | None, scale: float, form: str) -> str:
    return "–" if value is None or not np.isfinite(value) else format(scale * value, form)


def _streams(found: Mapping[str, Any]) -> list[str]:
    """All series together, and those with the highest risk."""
    low, high = (_cell(found[f"bound_{side}"], 1, ".4g") for side in ("lower", "upper"))
    lines = [
        f"{found['risks'][0]['name']} at level {found['level']:g}, all series: {found['verdict']}",
        f"  mean loss {found['risk']:.4g}, guaranteed between {low} and {high}",
        "  the series with the highest risk:",
    ]
    lines += [
        f"    {row['id']!s:<24}{row['risk']:>8.4f} over {row['labels']:,} labels ({row['verdict']})"
        for row in found["worst_streams"][:5]
    ]
    return lines


def _when(time: str | float) -> str:
    if isinstance(time, str):
        return time.replace("T", " ").removesuffix(".000000")
    return f"{time:g}"


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are not finite as None: JSON has no other word."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }
