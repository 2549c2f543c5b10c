"""Files written whole or not at all: beside their place, forced to the disk, then moved there.

A reader, and whoever looks after a crash, sees the old file or the new one. What the system
refuses becomes a `WriteError`, one sentence with the path, the reason and what to do.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from setpoint.errors import WriteError

__all__ = ["make_folder", "put", "sync_folder", "whole", "writing"]

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
        said = f"{error.strerror or error}; {hint.format(folder=Path(path).parent)}"
        told = WriteError(error.errno, f"{os.fspath(path)} cannot be written: {said}")
        told.filename = os.fspath(path)
        raise told from error


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
    fresh = [each for each in (folder, *folder.parents) if not each.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for each in fresh:
        sync_folder(each.parent)
    return folder


def sync_folder(folder: _Path) -> None:
    """Forces the names in a folder to the disk, where the system can."""
    with suppress(OSError):  # not every system can open a folder
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
