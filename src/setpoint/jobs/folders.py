"""The folder of a job: its files appear together, and those of the job before it go."""

import json
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from setpoint._files import make_folder, put, sync_folder, writing
from setpoint.errors import InputError, WriteError

__all__ = ["add_to_list", "staged"]

_OWN = re.compile(
    r"rows\.[a-z.]+|metrics\.json|controller\.toml|state\.zip|report\.html|demand\.csv"
)
"""What a job may call its files: nothing else is ever taken away."""


class staged:  # noqa: N801
    """A folder whose files appear together: they are written aside in it and moved at the end.

    They are written inside the folder and not beside it, because only there one can be sure that
    a move is no copy: the folder may be a disk of its own.

    Parameters
    ----------
    folder
        Made if there is none.
    source
        The file that the job read, which is neither replaced nor taken away.
    """

    def __init__(self, folder: str | os.PathLike[str], source: Path | None = None) -> None:
        self.folder = Path(folder)
        self._source = source
        self.moved: dict[str, Path] = {}
        self._stage = self.folder / f".setpoint.{secrets.token_hex(4)}.tmp"
        self._fresh: list[Path] = []

    def __truediv__(self, name: str) -> Path:
        return self._stage / name

    def names(self) -> list[str]:
        """What is written so far."""
        return sorted(file.name for file in self._stage.iterdir())

    def __enter__(self) -> "staged":
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file, and results need a folder: name another")
        if (self.folder / "options.json").exists() or any(self.folder.glob("log-*.jsonl")):
            raise InputError(
                f"{self.folder} holds the state of `setpoint stream`, and results would replace "
                "its controller: name another folder"
            )
        self._fresh = [each for each in (self.folder, *self.folder.parents) if not each.exists()]
        make_folder(self.folder)
        with writing(self.folder):
            self._stage.mkdir()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                with writing(self.folder):
                    self._move()
            elif isinstance(error, OSError):
                if isinstance(error, WriteError):  # it names a place that nobody knows
                    error = error.__cause__ or error
                with writing(self.folder):
                    raise error
        finally:
            shutil.rmtree(self._stage, ignore_errors=True)
            if not self.moved:
                for folder in self._fresh:
                    with suppress(OSError):  # someone else has found it useful meanwhile
                        folder.rmdir()

    def _move(self) -> None:
        before, names = _listed(self.folder), self.names()
        read = {name for name in before.union(names) if self._was_read(self.folder / name)}
        for name in read.intersection(names):
            raise InputError(
                f"{self.folder / name} is the file that was read, and results would replace it: "
                "name another folder"
            )
        # The list of files comes last: until then that of the job before is the valid one.
        for name in sorted(names, key="metrics.json".__eq__):
            os.replace(self._stage / name, self.folder / name)
            self.moved[name] = self.folder / name
        for name in before.difference(names, read):
            (self.folder / name).unlink(missing_ok=True)
        sync_folder(self.folder)

    def _was_read(self, path: Path) -> bool:
        there = self._source is not None and self._source.exists() and path.exists()
        return there and path.samefile(self._source or "")


def _listed(folder: Path) -> set[str]:
    """The files that a job before this one says it wrote into the folder."""
    try:
        held = json.loads((folder / "metrics.json").read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    if not isinstance(held, list):
        return set()
    return {name for name in held if isinstance(name, str) and _OWN.fullmatch(name)}


def add_to_list(folder: Path, name: str) -> None:
    """Adds a file to those that the job of a folder wrote."""
    path = folder / "metrics.json"
    found = json.loads(path.read_text("utf-8"))
    files = set(found.get("files", [])) | {name}
    put(path, json.dumps({**found, "files": sorted(files)}, indent=2, ensure_ascii=False) + "\n")
