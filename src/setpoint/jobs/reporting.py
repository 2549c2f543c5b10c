"""The report of a finished job, or of a file of predictions, made again."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint.bulk.replay import Trace, replay
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError, StateError
from setpoint.jobs import files
from setpoint.jobs.calibrating import check_controller, split
from setpoint.jobs.choosing import Goal
from setpoint.jobs.columns import Columns
from setpoint.jobs.folders import add_to_list
from setpoint.jobs.repeating import Given, read_controller
from setpoint.jobs.taping import read, taped, timed

__all__ = ["Reported", "replayed", "report", "retrace"]

_OF_JOBS = ("as_given", "tried", "notes", "job")
"""What the metrics file of a job holds beside the numbers of its trace."""


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """A report that was made again.

    Parameters
    ----------
    metrics
        Its numbers.
    files
        What was written, by name.
    """

    metrics: Mapping[str, Any]
    files: Mapping[str, Path]


def report(
    source: str | os.PathLike[str],
    columns: Columns | None = None,
    controller: Given = None,
    *,
    title: str | None = None,
    out: str | os.PathLike[str] | None = None,
    png: str | os.PathLike[str] | None = None,
) -> Reported:
    """Writes the report again, as a page and as a picture, from what a job left behind.

    Parameters
    ----------
    source
        A folder that `run` or `calibrate` wrote, or a file of predictions.
    columns, controller
        Of a file: which column is what, and the controller, or the TOML file that holds it; it
        must leave nothing open.
    title
        What the page is called; by default as the file.
    out
        The page; by default report.html in the folder of the job, or in the present one.
    png
        A picture to write as well.
    """
    from setpoint import report as pages

    where = Path(source)
    more: dict[str, Any] = {}
    if where.is_dir():
        trace, job = retrace(where)
        told = json.loads((where / "metrics.json").read_text("utf-8"))
        more = {name: told[name] for name in _OF_JOBS if name in told}
    else:
        held = read_controller(controller)
        if columns is None or held is None:
            raise InputError(
                f"{where} is {'a file' if where.exists() else 'nowhere'}: name a folder that run "
                "or calibrate wrote, or a file of predictions with --target, the columns of the "
                "prediction and --config"
            )
        trace, job = replayed(where, columns, held)
    found = {**pages.metrics(trace), **more}
    if where.is_dir():
        _compare(where, found, told)
    name = job["name"] if title is None else title
    own = where / "report.html" if where.is_dir() else Path("report.html")
    page = pages.write(trace, own if out is None else out, title=name, metrics=found)
    if where.is_dir() and out is None:
        add_to_list(where, page.name)
    made = {page.name: page}
    if png is not None:
        picture = pages.png(trace, png, title=name)
        made[picture.name] = picture
    return Reported(found, made)


def _compare(folder: Path, found: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Raises an error if the rows of a folder are not those that its numbers were made of."""
    for name in ("rows", *found):
        now, then = found[name], told.get(name)
        if not isinstance(now, int | float) or not isinstance(then, int | float):
            continue
        if not isclose(now, then, rel_tol=1e-6, abs_tol=1e-12):
            raise StateError(
                f"{folder} holds other rows than its job wrote: with them {name} is {now}, and "
                f"metrics.json says {then}; do the job again, or name the file of rows itself"
            )


def retrace(folder: str | os.PathLike[str]) -> tuple[Trace, dict[str, Any]]:
    """The trace of a folder that `run` or `calibrate` wrote, and what the job was.

    The rows are replayed under the controller beside them, so the trace is the one that the job
    reported, to the bit, even where someone has moved the folder.
    """
    where = Path(folder)
    try:
        told = json.loads((where / "metrics.json").read_text("utf-8"))
        job = told["job"]
        name = next((file for file in told["files"] if file.startswith("rows.")), None)
        if name is None:
            raise KeyError(f"a {job['command']} leaves no rows")
        controller = spec.from_toml((where / "controller.toml").read_text("utf-8"))
    except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{where} must hold rows, metrics.json and controller.toml as `setpoint run` and "
            f"`setpoint calibrate` write them: {error.args[-1] if error.args else error}"
        ) from error
    rows = files.read(where / name)
    held = job["columns"]
    keys = {key: held.get(key) for key in ("id", "time", "group")}
    if held.get("probabilities"):
        columns = Columns(held["target"], probabilities=tuple(held["probabilities"]), **keys)
        tape, order, _ = read(rows, columns)
    else:
        prediction = {
            name: rows.numbers(column, name) for name, column in job["prediction"].items()
        }
        tape, order, _ = taped(rows, prediction, rows.numbers(held["target"], "target"), **keys)
    burnt = rows.column(job["added"]["burn_in"], "burn_in")
    early = np.array([str(value).lower() == "true" for value in burnt.to_pylist()], dtype=bool)
    _, later = split(tape, early if order is None else early[order])
    return replay(controller, later), job


def replayed(
    path: str | os.PathLike[str], columns: Columns, controller: Controller
) -> tuple[Trace, dict[str, Any]]:
    """The trace of a file of predictions under a controller that leaves nothing open."""
    check_controller(controller, columns.family(Goal()))
    rows = files.read(path)
    columns, _ = timed(rows, columns)
    tape, _, _ = read(rows, columns)
    name = Path(path).name
    return replay(controller, tape), {"name": name[: -len(rows.suffix)], "file": name}
