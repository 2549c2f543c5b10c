"""The folder of a job: its files appear together, and its report can be written again."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._files import put, staged
from setpoint.bulk.panels import starts
from setpoint.bulk.replay import replay
from setpoint.bulk.trace import Trace
from setpoint.errors import DataError, InputError, SetpointError, StateError
from setpoint.jobs.columns import read_tape
from setpoint.tape import Columns
from setpoint.tape.files import suffix_of
from setpoint.tape.rows import read

LIST = "metrics.json"
"""The file that lists the files of a job."""
_OF_JOBS = re.compile(
    r"(rows|forecast|past)\.[a-z.]+|history\.parquet|metrics\.json|controller\.toml|state\.zip|report\.html|demand\.csv"
)
"""What a job may call its files: nothing else is ever taken away."""
_BESIDE = ("before", "forecast_error", "warning", "notes", "job")
"""What the metrics file of a job holds beside the numbers of its trace."""
_ODD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""What a file raises that someone has changed."""


def folder_for(path: str | os.PathLike[str], what: str) -> Path:
    """Where the results of a file go: a folder of its name in the present one.

    >>> folder_for("data/power.csv.gz", "forecast").name
    'power-forecast'
    """
    name = Path(path).name
    return Path(f"{name[: -len(suffix_of(name))]}-{what}")


def results(folder: str | os.PathLike[str], source: Path | None = None) -> staged:
    """A folder for the files of a job, made if there is none.

    What no job wrote is not replaced, nor is the file that the job read.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file, and results need a folder: name another")
    if (place / "streams.sqlite").exists():
        raise InputError(f"{place} holds the state of `setpoint stream`: name another folder")

    def stale(names: list[str]) -> set[str]:
        before = _listed(place)
        source_names = {name for name in before.union(names) if _is_same(place / name, source)}
        for name in source_names.intersection(names):
            raise InputError(
                f"{place / name} is the file that was read, and results would replace it: name "
                "another folder"
            )
        for name in names:
            if name not in before and (place / name).exists():
                raise InputError(
                    f"{place / name} is there already and no job wrote it: name another folder, "
                    "or move the file"
                )
        return before - source_names

    # The list of files comes last: until then that of the job before is the valid one.
    return staged(place, stale, LIST)


def _is_same(path: Path, source: Path | None) -> bool:
    return source is not None and source.exists() and path.exists() and path.samefile(source)


def _listed(folder: Path) -> set[str]:
    """The files that a job before this one says it wrote into the folder."""
    try:
        content = json.loads((folder / LIST).read_text("utf-8"))
        names = content["files"] if isinstance(content["job"], dict) else []
        return {name for name in names if isinstance(name, str) and _OF_JOBS.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


# The report


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """A report that was made again: its numbers, and what was written, by name."""

    metrics: Mapping[str, Any]
    files: Mapping[str, Path]


def report(
    folder: str | os.PathLike[str],
    *,
    title: str | None = None,
    out: str | os.PathLike[str] | None = None,
    picture: str | os.PathLike[str] | None = None,
) -> Reported:
    """Writes the report again, as a page and as a picture, from what a job left behind.

    Parameters
    ----------
    folder
        What `calibrate` wrote.
    title
        What the page is called; by default as the file.
    out
        The page; by default report.html in the folder.
    picture
        A summary for a slide to write as well, .png or .pdf.
    """
    from setpoint import report as pages

    where = Path(folder)
    if not where.is_dir():
        raise InputError(
            f"{where} is {'a file' if where.exists() else 'nowhere'}: name a folder that "
            "calibrate wrote; calibrate with a controller replays a file"
        )
    trace, content = _retraced(where)
    more = {name: content[name] for name in _BESIDE if name in content}
    numbers, name = {**pages.metrics(trace), **more}, content["job"].get("name")
    _compare(where, numbers, content)
    title = str(name) if title is None else title
    page = where / "report.html" if out is None else out
    try:
        page = pages.write(trace, page, title=title, metrics=numbers)
    except _ODD as error:
        if isinstance(error, SetpointError):
            raise
        raise DataError(_not_as_written(where, error)) from error
    if out is None:
        names = sorted({*content["files"], page.name})
        text = json.dumps({**content, "files": names}, indent=2, ensure_ascii=False)
        put(where / LIST, f"{text}\n")
    files = {page.name: page}
    if picture is not None:
        slide = pages.picture(trace, picture, title=title, metrics=numbers)
        files[slide.name] = slide
    return Reported(numbers, files)


def retrace(folder: str | os.PathLike[str]) -> tuple[Trace, dict[str, Any]]:
    """The trace of a folder that `calibrate` wrote, and what the job was.

    The rows are replayed under the controller beside them, so the trace is the one that the job
    reported, to the bit, even where someone has moved the folder.
    """
    trace, content = _retraced(Path(folder))
    return trace, content["job"]


def _retraced(folder: Path) -> tuple[Trace, dict[str, Any]]:
    """The trace of a job's folder, and what is in its metrics file."""
    try:
        content = json.loads((folder / LIST).read_text("utf-8"))
        job = content["job"]
        name = next((file for file in content["files"] if file.startswith("rows.")), None)
        if name is None or Path(name).name != name:
            raise KeyError(f"a {job['command']} leaves no rows")
        controller = spec.from_toml((folder / "controller.toml").read_text("utf-8"))
        columns, burn_in = _columns(job["columns"]), str(job["added"]["burn_in"])
    except (SetpointError, FileNotFoundError, *_ODD) as error:
        raise DataError(_not_as_written(folder, error)) from error
    rows = read(folder / name)
    tape, _ = read_tape(rows, columns)
    cells = rows.column(burn_in, "burn_in").to_pylist()
    early = np.array([str(cell).lower() == "true" for cell in cells], dtype=np.int64)
    early = tape.by_stream(early[tape.places])
    _, later = tape.split(np.add.reduceat(early, tape.segments.offsets[:-1]))
    begun = starts(controller, later) if job.get("taught") else {}
    return replay(controller, later, begun), content


def _columns(names: Mapping[str, Any]) -> Columns:
    """The columns that a metrics file names."""
    for role, name in names.items():
        if role in ("delay", "period") and isinstance(name, int | str):
            continue
        if not all(isinstance(word, str) for word in (name if isinstance(name, list) else [name])):
            raise TypeError(f"{role} is {name!r}, and a column has a name")
    columns: dict[str, Any] = {
        role: tuple(name) if isinstance(name, list) else name for role, name in names.items()
    }
    return Columns(**columns)


def _not_as_written(folder: Path, error: Exception) -> str:
    return (
        f"{folder} must hold rows, {LIST} and controller.toml as `setpoint calibrate` "
        f"writes them: {error.args[-1] if error.args else error}"
    )


def _compare(folder: Path, numbers: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Raises an error if the rows of a folder are not those that its numbers were made of."""
    for name in ("rows", *numbers):
        now, then = numbers[name], content.get(name)
        if not isinstance(now, int | float) or not isinstance(then, int | float):
            continue
        if not isclose(now, then, rel_tol=1e-6, abs_tol=1e-12):
            raise StateError(
                f"{folder} holds other rows than its job wrote: with them {name} is {now}, and "
                f"{LIST} says {then}; do the job again, or name the file of rows itself"
            )
