"""The folder of a job: its files appear together, and take nothing away that is not a job's."""

import json
import os
import re
from pathlib import Path

from setpoint._files import staged
from setpoint.errors import InputError
from setpoint.tape.files import suffix_of

LIST = "metrics.json"
"""The file that lists the files of a job."""
_OF_JOBS = re.compile(
    r"(rows|paths|forecast|past)\.[a-z.]+|history\.parquet|metrics\.json|controller\.toml|state\.zip|report\.html|demand\.csv"
)
"""What a job may call its files: nothing else is ever taken away."""


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
