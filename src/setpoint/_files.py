"""Files written whole or not at all: beside their place, forced to the disk, then moved there.

A reader, and whoever looks after a crash, sees the old file or the new one. What the system
refuses becomes a `WriteError`, one sentence with the path, the reason and what to do.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from setpoint.errors import WriteError

_Path = str | os.PathLike[str]

_HINTS = {
    errno.ENOSPC: "free some space on its disk, or choose another one",
    errno.EDQUOT: "free some space on its disk, or choose another one",
    errno.EFBIG: "raise the limit on the size of files, or choose another disk",
    errno.ENOENT: "make the folder {folder} first",
    errno.ENOTDIR: "{folder} is no folder: choose another place",
    errno.EISDIR: "it is a folder: name a file",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENAMETOOLONG: "choose a shorter name",
}


@contextmanager
def writing(path: _Path) -> Iterator[None]:
    """Turns what the system refuses into an error that names `path` and says what to do."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "try again, or choose another place")
        reason = f"{error.strerror or error}; {hint.format(folder=Path(path).parent)}"
        refusal = WriteError(error.errno, f"{os.fspath(path)} cannot be written: {reason}")
        refusal.filename = os.fspath(path)
        raise refusal from error


@contextmanager
def whole(path: _Path) -> Iterator[BinaryIO]:
    """A file to write in a `with` block; it appears at `path` once the block has ended well.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole(f"{folder}/new.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     Path(f"{folder}/new.txt").read_text()
    'all of it'
    """
    target = Path(path)
    beside = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.tmp")
    with writing(target):
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise OSError(errno.EPERM, "a device or a pipe is not replaced by a file")
        try:
            with beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        sync_folder(target.parent)


def put(path: _Path, data: bytes | str) -> Path:
    """Writes `data`, text as UTF-8, to `path`, whole or not at all."""
    with whole(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return Path(path)


def make_folder(path: _Path) -> Path:
    """Makes a folder and those above it where there are none, so that they survive a crash."""
    folder = Path(path)
    fresh = _absent(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for new in fresh:
        sync_folder(new.parent)
    return folder


def _absent(folder: Path) -> list[Path]:
    """The folder and those above it that there are not."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


class staged:  # noqa: N801
    """A folder whose files appear together: they are written aside in it and moved at the end.

    They are written inside the folder, because only there a move is surely no copy. `stale` is
    called with the names of the files before any is moved, and returns those of the files to take
    away, or raises; `last` is the file to move last.
    """

    def __init__(
        self, folder: _Path, stale: Callable[[list[str]], Iterable[str]], last: str = ""
    ) -> None:
        self.folder = Path(folder)
        self.moved: dict[str, Path] = {}
        self._stale, self._last = stale, last
        self._stage = self.folder / f".setpoint.{secrets.token_hex(4)}.tmp"
        self._fresh = _absent(self.folder)

    def __truediv__(self, name: str) -> Path:
        return self._stage / name

    def names(self) -> list[str]:
        """What is written so far."""
        return sorted(file.name for file in self._stage.iterdir())

    def __enter__(self) -> "staged":
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
        names = self.names()
        stale = set(self._stale(names)).difference(names)
        for name in sorted(names, key=self._last.__eq__):
            os.replace(self._stage / name, self.folder / name)
            self.moved[name] = self.folder / name
        for name in stale:
            (self.folder / name).unlink(missing_ok=True)
        sync_folder(self.folder)


def sync_folder(folder: _Path) -> None:
    """Forces the names in a folder to the disk, where the system can."""
    with suppress(OSError):  # not every system can open a folder
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
