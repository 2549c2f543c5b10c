"""SQLite as the database of a store: one file on one machine."""

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setpoint._files import sync_folder
from setpoint.errors import StateError, WriteError
from setpoint.store.database import Database

_PATIENCE = 30.0  # seconds to wait for who writes


class SQLite(Database):
    """One SQLite file; in a folder it is called streams.sqlite.

    Every commit is forced to the disk. Any number of processes may use one file.

    Parameters
    ----------
    path
        The file, or a folder that exists.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._files: list[tuple[int, int]] = []
        self.path = Path(path) / "streams.sqlite" if Path(path).is_dir() else Path(path)
        with self._said():
            self._database = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._begin()
            except BaseException:
                self._database.close()
                raise

    @property
    def where(self) -> str:
        return str(self.path)

    def _begin(self) -> None:
        self._migrate()
        self._ask("PRAGMA journal_mode = WAL")
        self._ask("PRAGMA synchronous = FULL")
        self._ask("PRAGMA cache_size = -16000")
        self._ask("PRAGMA secure_delete = ON")
        self._ask("SELECT count(*) FROM settings")  # now the log is there too
        self._files = self._stamp()

    def _stamp(self) -> list[tuple[int, int]]:
        """Which files are at the paths of the database and of its log."""
        try:
            found = [os.stat(path) for path in (self.path, f"{self.path}-wal")]
        except OSError:
            return []
        return [(file.st_dev, file.st_ino) for file in found]

    def _migrations(self) -> list[str]:
        tables = {name for (name,) in self._ask("SELECT name FROM sqlite_master")}
        if "migrations" in tables:
            return [name for (name,) in self._ask("SELECT name FROM migrations")]
        if tables:
            raise StateError(f"{self.path} is a database of something else")
        return []

    def _change(self, statements: str) -> None:
        for statement in statements.split(";"):
            self._ask(statement)

    def check(self) -> list[str]:
        with self._transaction(reads=True):
            found = [text for (text,) in self._ask("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(statement, values).fetchall()

    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._database.executemany(statement, rows)

    def _open(self, *, reads: bool = False) -> None:
        if self._files and self._files != self._stamp():
            told = f"{self.path} was deleted or replaced while it was in use: open the store again"
            raise WriteError(errno.EIO, told)
        self._database.execute("BEGIN DEFERRED" if reads else "BEGIN IMMEDIATE")

    def _end(self, how: str) -> None:
        if how == "COMMIT" or self._inside():  # a commit of nothing is refused: it was lost
            self._database.execute(how)

    def _inside(self) -> bool:
        return self._database.in_transaction

    def _list(self, values: Iterable[Any]) -> str:
        return json.dumps(list(values))

    def _purge(self) -> None:
        with self._said():  # the log has deleted rows too; who reads now is not waited for
            self._ask("PRAGMA busy_timeout = 1000")
            self._ask("PRAGMA wal_checkpoint(TRUNCATE)")
            self._ask(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = f"{self.path} cannot be used: {error}; see that its folder exists and may be "
            refusal = WriteError(errno.EIO, f"{reason}written to, and that its disk has room")
            refusal.filename = str(self.path)
            raise refusal from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StateError(f"{self.path} is damaged or no store: {error}") from error


def file_of(where: str | os.PathLike[str]) -> Path | None:
    """The file of a SQLite store; None for another database."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        return None
    return Path(where) / "streams.sqlite" if Path(where).is_dir() else Path(where)


def swap(fresh: Path, path: Path) -> Path | None:
    """Puts a new database file in the place of another; where the other one is now.

    Its log is taken in first, so that nothing of it can come back. Nobody may be using it.
    """
    before = path.with_name(f"{path.name}.before")
    known = path.exists()
    if not known:
        pass
    elif check_alone(path):
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


def check_alone(path: Path) -> bool:
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
