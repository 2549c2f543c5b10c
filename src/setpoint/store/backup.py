"""A store put back as it was when the whole of it was exported."""

import errno
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from setpoint._files import sync_folder
from setpoint.errors import WriteError
from setpoint.store import copies
from setpoint.store.sqlite import file_of
from setpoint.store.store import Store

__all__ = ["restore"]


def restore(
    where: str | os.PathLike[str], lines: Iterable[bytes] | str | os.PathLike[str]
) -> Path | None:
    """Makes a store what it was when a file was exported from the whole of it.

    Nobody may be using the store. A SQLite file is replaced in one step, its log with it; the
    earlier file is kept beside it, and its path is returned.
    """
    target = file_of(where)
    if target is None:
        with copies.lines_of(lines) as source, Store(where) as store:
            store._take_in(source, whole=True)
        return None
    if target.exists():
        _alone(target)
    with TemporaryDirectory(prefix=".restoring", dir=target.parent) as folder:
        fresh = Path(folder) / target.name
        with copies.lines_of(lines) as source, Store(fresh) as store:
            store._take_in(source, whole=True)
        return _swap(fresh, target)


def _swap(fresh: Path, path: Path) -> Path | None:
    """Puts a new database file in the place of another; where the other one is now.

    Its log is taken in first, so that nothing of it can come back. Nobody may be using it.
    """
    before = path.with_name(f"{path.name}.before")
    known = path.exists()
    if not known:
        pass
    elif _alone(path):
        with suppress(FileNotFoundError):
            before.unlink()
        os.link(path, before)  # so that there is a file at the path all the time
    else:
        os.replace(path, before)
    for end in ("-wal", "-shm"):  # of a damaged file, or of one that was deleted
        rest = Path(f"{path}{end}")
        if rest.exists():
            os.replace(rest, f"{path}.before{end}")
    os.replace(fresh, path)
    sync_folder(path.parent)
    return before if known else None


def _alone(path: Path) -> bool:
    """Takes in the log of a database that nobody uses; False if the file is damaged."""
    database = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            told = f"{path} is in use: stop the service and every process that uses it"
            raise WriteError(errno.EBUSY, told) from error
        return False
    except sqlite3.Error:
        return False
    finally:
        database.close()
    return True
