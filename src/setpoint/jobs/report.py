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
from setpoint.errors import DataError, InputError, SetpointError, StateError
from setpoint.jobs.columns import Columns, read_tape, timed
from setpoint.jobs.folders import LIST, add_to_list
from setpoint.jobs.job import Config, check_work
from setpoint.jobs.rows import read
from setpoint.tape.files import suffix_of

__all__ = ["Reported", "report", "retrace"]

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
    controller: Controller | str | os.PathLike[str] | None = None,
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
    if where.is_dir():
        trace, told = _retraced(where)
        own = {name: told[name] for name in _OF_JOBS if name in told}
        numbers, name = {**pages.metrics(trace), **own}, told["job"].get("name")
        _compare(where, numbers, told)
    else:
        trace = _replayed(where, columns, Config.read(controller))
        numbers, name = pages.metrics(trace), where.name[: -len(suffix_of(where))]
    title = str(name) if title is None else title
    default = where / "report.html" if where.is_dir() else Path("report.html")
    try:
        page = pages.write(trace, default if out is None else out, title=title, metrics=numbers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if not where.is_dir() or isinstance(error, SetpointError):
            raise
        raise DataError(_not_as_written(where, error)) from error
    if where.is_dir() and out is None:
        add_to_list(where, page.name)
    files = {page.name: page}
    if png is not None:
        picture = pages.png(trace, png, title=title)
        files[picture.name] = picture
    return Reported(numbers, files)


def retrace(folder: str | os.PathLike[str]) -> tuple[Trace, dict[str, Any]]:
    """The trace of a folder that `run` or `calibrate` wrote, and what the job was.

    The rows are replayed under the controller beside them, so the trace is the one that the job
    reported, to the bit, even where someone has moved the folder.
    """
    trace, told = _retraced(Path(folder))
    return trace, told["job"]


def _retraced(folder: Path) -> tuple[Trace, dict[str, Any]]:
    """The trace of a job's folder, and what its metrics file tells."""
    try:
        told = json.loads((folder / LIST).read_text("utf-8"))
        job = told["job"]
        name = next((file for file in told["files"] if file.startswith("rows.")), None)
        if name is None or Path(name).name != name:
            raise KeyError(f"a {job['command']} leaves no rows")
        controller = spec.from_toml((folder / "controller.toml").read_text("utf-8"))
        columns, burn_in = _columns(job["columns"]), str(job["added"]["burn_in"])
    except (SetpointError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise DataError(_not_as_written(folder, error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(_not_as_written(folder, error)) from error
    rows = read(folder / name)
    tape, _ = read_tape(rows, columns)
    cells = rows.column(burn_in, "burn_in").to_pylist()
    early = np.array([str(cell).lower() == "true" for cell in cells], dtype=np.int64)
    early = tape.by_stream(early if tape.places is None else early[tape.places])
    _, later = tape.split(np.add.reduceat(early, tape.segments.offsets[:-1]))
    return replay(controller, later), told


def _columns(told: Mapping[str, Any]) -> Columns:
    """The columns that a metrics file tells of."""
    columns: dict[str, Any] = {}
    for role, name in told.items():
        names = name if isinstance(name, list) else [name]
        if not all(isinstance(each, str) for each in names):
            raise TypeError(f"{role} is {name!r}, and a column has a name")
        columns[role] = tuple(name) if isinstance(name, list) else name
    return Columns(**columns)


def _not_as_written(folder: Path, error: Exception) -> str:
    return (
        f"{folder} must hold rows, {LIST} and controller.toml as `setpoint run` and `setpoint "
        f"calibrate` write them: {error.args[-1] if error.args else error}"
    )


def _compare(folder: Path, numbers: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Raises an error if the rows of a folder are not those that its numbers were made of."""
    for name in ("rows", *numbers):
        now, then = numbers[name], told.get(name)
        if not isinstance(now, int | float) or not isinstance(then, int | float):
            continue
        if not isclose(now, then, rel_tol=1e-6, abs_tol=1e-12):
            raise StateError(
                f"{folder} holds other rows than its job wrote: with them {name} is {now}, and "
                f"{LIST} says {then}; do the job again, or name the file of rows itself"
            )


def _replayed(path: Path, columns: Columns | None, config: Config | None) -> Trace:
    """The trace of a file of predictions under a controller that leaves nothing open."""
    if columns is None or config is None:
        raise InputError(
            f"{path} is {'a file' if path.exists() else 'nowhere'}: name a folder that run "
            "or calibrate wrote, or a file of predictions with --target, the columns of the "
            "prediction and --config"
        )
    check_work(config.controller, "report", one_set=True)
    rows = read(path)
    columns, _ = timed(rows, columns)
    config.check_family(columns.family(rows))
    tape, _ = read_tape(rows, columns)
    return replay(config.controller, tape)
