"""The folder of a job: its files appear together, and those of the job before it go."""

import json
import os
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from setpoint import _store, spec
from setpoint._files import put, staged
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.replay import Trace
from setpoint.bulk.vectors import scalar
from setpoint.errors import InputError, SetpointError, StateError
from setpoint.stream import Stream
from setpoint.tape.files import suffix_of

__all__ = ["KIND", "add_to_list", "folder_for", "load_streams", "results", "save"]

KIND = "streams"
"""What the file of several streams says it is, where they are no fleet."""
LIST = "metrics.json"
"""The file that lists the files of a job."""
_OWN = re.compile(
    r"rows\.[a-z.]+|metrics\.json|controller\.toml|state\.zip|report\.html|demand\.csv"
)
"""What a job may call its files: nothing else is ever taken away."""


def folder_for(path: str | os.PathLike[str]) -> Path:
    """Where the results of a file go: a folder of its name in the present one.

    >>> folder_for("data/power.csv.gz").name
    'power-setpoint'
    """
    name = Path(path).name
    return Path(f"{name[: -len(suffix_of(name))]}-setpoint")


def results(folder: str | os.PathLike[str], source: Path | None = None) -> staged:
    """A folder for the files of a job.

    Parameters
    ----------
    folder
        Made if there is none. What no job wrote is not replaced.
    source
        The file that the job read, which is neither replaced nor taken away.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file, and results need a folder: name another")
    if (place / "options.json").exists() or any(place.glob("log-*.jsonl")):
        raise InputError(
            f"{place} holds the state of `setpoint stream`, and results would replace its "
            "controller: name another folder"
        )

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
        told = json.loads((folder / LIST).read_text("utf-8"))
        files, is_job = told["files"], isinstance(told["job"], dict)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
    if not is_job or not isinstance(files, list):
        return set()
    return {name for name in files if isinstance(name, str) and _OWN.fullmatch(name)}


def add_to_list(folder: Path, name: str) -> None:
    """Adds a file to those that the job of a folder wrote."""
    told = json.loads((folder / LIST).read_text("utf-8"))
    files = sorted({*told.get("files", []), name})
    put(folder / LIST, json.dumps({**told, "files": files}, indent=2, ensure_ascii=False) + "\n")


# The streams of a job as they ended, in one file


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Writes the states that the streams of a trace ended in, whole or not at all.

    One stream is written as `Stream.save` does, several under scalar rules as `Fleet.save` does,
    and others side by side.
    """
    controller = trace.controller
    if len(trace.states) == 1:
        Stream(controller, state=trace.state).save(path)
        return
    ids = [_plain(id) for id in trace.states]
    if scalar(controller):
        fleet = Fleet(controller, ())
        fleet.add(ids, [trace.states[id] for id in trace.states])
        fleet.save(path)
        return
    streams = [Stream(controller, state=trace.states[id]) for id in trace.states]
    content = {"ids": ids, "streams": [stream.content() for stream in streams]}
    _store.write(path, KIND, {"controller": spec.to_dict(controller), **content})


def load_streams(path: str | os.PathLike[str]) -> Mapping[Hashable, Stream]:
    """The streams that were written side by side."""
    content = _store.read(path, KIND)
    try:
        controller = spec.from_dict(content["controller"])
        pairs = zip(content["ids"], content["streams"], strict=True)
        return {id: Stream.restored(controller, stream) for id, stream in pairs}
    except SetpointError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error


def _plain(id: Any) -> Any:
    """An id as Python has it."""
    return id.item() if hasattr(id, "item") else id
