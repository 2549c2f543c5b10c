"""What every job comes to: it prints itself, and writes a folder that is whole or as it was."""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from setpoint._check import option
from setpoint._files import staged
from setpoint._html import preformatted
from setpoint.errors import InputError
from setpoint.tape.files import suffix_of, write
from setpoint.tape.rows import Rows

LIST = "metrics.json"
"""The file with every number, which lists the files of a job."""
_OF_JOBS = re.compile(
    r"(rows|paths|forecast|past)\.[a-z.]+|history\.parquet|metrics\.json|controller\.toml|state\.zip|report\.html|demand\.csv"
)
"""What a job may call its files: nothing else is ever taken away."""


class Result(ABC):
    """A finished job: every number of it, its words, and its files."""

    rows: Rows | None
    folder: ClassVar[str]
    """What the folder is called, behind the name of the file."""

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Every number as plain values."""

    @abstractmethod
    def _put(self, stage: staged, report: bool) -> None:
        """Writes all files but the list."""

    def _repr_html_(self) -> str:
        return preformatted(self)

    def _table(self, stage: staged, name: str, table: Any) -> None:
        """Writes a table as a file of the kind that the rows came from."""
        assert self.rows is not None
        file = self.rows.file
        write(table, stage / f"{name}{file.suffix}", file.delimiter)

    def write(
        self, folder: str | os.PathLike[str] | None = None, *, report: bool = True
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
        """
        source = None if self.rows is None else self.rows.source
        if folder is None:
            if source is None:
                raise InputError(
                    f"a job without a file needs a folder to write to: name it by {option('out')}"
                )
            folder = f"{source.name[: -len(suffix_of(source))]}-{self.folder}"
        with _staged(Path(folder), source) as stage:
            self._put(stage, report)
            listed = {**self.metrics(), "files": sorted([*stage.names(), LIST])}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / LIST).write_text(f"{text}\n", "utf-8")
        return dict(sorted(stage.moved.items()))


def aligned(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Cells in columns, of which the first ones begin at the left.

    >>> aligned([["", "width"], ["path", "2.5"]], left=1)
    ['      width', 'path    2.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:{'<' if place < left else '>'}{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _staged(place: Path, source: Path | None) -> staged:
    """A folder for files, which replaces nothing but what a job wrote, and not what it read."""
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file, and results need a folder: name another")
    if (place / "streams.sqlite").exists():
        raise InputError(f"{place} holds the state of `setpoint stream`: name another folder")

    def stale(names: list[str]) -> set[str]:
        before = _listed(place)
        kept = {name for name in before.union(names) if _is_same(place / name, source)}
        for name in names:
            if name in kept:
                raise InputError(
                    f"{place / name} is the file that was read, and results would replace it: "
                    "name another folder"
                )
            if name not in before and (place / name).exists():
                raise InputError(
                    f"{place / name} is there already and no job wrote it: name another folder, "
                    "or move the file"
                )
        return before - kept

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
