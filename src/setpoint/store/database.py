"""What a store asks of a database, and SQLite as the database."""

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setpoint.errors import StateError, TakenOver, WriteError

__all__ = ["Change", "Database", "Row", "SQLite", "Saved"]

_FORMAT = 1
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, controller TEXT NOT NULL,
    state TEXT NOT NULL, predictions INTEGER NOT NULL, epoch INTEGER NOT NULL
);
CREATE TABLE predictions (
    stream INTEGER NOT NULL REFERENCES streams, number INTEGER NOT NULL, id TEXT NOT NULL,
    receipt TEXT NOT NULL, made REAL NOT NULL,
    y TEXT, loss TEXT, covered INTEGER, ended TEXT, closed REAL,
    PRIMARY KEY (stream, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ids ON predictions (stream, id);
CREATE INDEX waiting ON predictions (stream, number) WHERE ended IS NULL;
"""
_ROW = "number, id, receipt, made, y, loss, covered, ended, closed"
_MADE = f"INSERT INTO predictions (stream, {_ROW}) VALUES (?{', ?' * 9})"
_CLOSED = """UPDATE predictions SET y = ?, loss = ?, covered = ?, ended = ?, closed = ?
WHERE stream = ? AND number = ?"""
_FORGET = "DELETE FROM predictions WHERE stream = ? AND number <= ? AND ended IS NOT NULL"


class Row(NamedTuple):
    """One prediction and what became of it; values are JSON, times are seconds since 1970.

    `receipt` holds the prediction as it came, then the fields of a `Receipt` after its id. `ended`
    is None while it waits, then "answered", "missing", "dropped" or "expired".
    """

    number: int
    id: str
    receipt: str
    made: float
    y: str | None = None
    loss: str | None = None
    covered: bool | None = None
    ended: str | None = None
    closed: float | None = None


class Saved(NamedTuple):
    """A stream as the database has it, with the predictions that wait, oldest first."""

    controller: str
    state: str
    predictions: int
    epoch: int
    waiting: list[Row]


class Change(NamedTuple):
    """What a batch did to one stream.

    `epoch` is that of the owner, 0 if the stream is new. Closed rows up to the number `forget` go.
    """

    name: str
    epoch: int
    controller: str
    state: str
    predictions: int
    made: Sequence[Row]
    closed: Sequence[Row]
    forget: int


@runtime_checkable
class Database(Protocol):
    """All that a store asks of a database; values are text, and ids are JSON.

    `load` gives None if there is no such stream; with a claim it raises the epoch in the same
    transaction. `find` gives the predictions under some ids, as far as they are known, `history`
    those after a number. `commit` writes changes in one transaction, all or none, and raises
    `TakenOver` if the epoch of a stream is not the one of its change.
    """

    def settings(self) -> dict[str, str]: ...
    def set(self, settings: dict[str, str]) -> None: ...
    def names(self) -> list[str]: ...
    def load(self, name: str, *, claim: bool) -> Saved | None: ...
    def find(self, name: str, ids: Iterable[str]) -> list[Row]: ...
    def history(self, name: str, after: int, most: int) -> list[Row]: ...
    def commit(self, changes: Sequence[Change]) -> None: ...
    def close(self) -> None: ...


class SQLite:
    """One SQLite file; in a folder it is called streams.sqlite.

    Every commit is forced to the disk. Any number of processes may use one file.

    Parameters
    ----------
    path
        The file, or a folder that exists.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path) / "streams.sqlite" if Path(path).is_dir() else Path(path)
        self._keys: dict[str, int] = {}
        with self._said():
            self._database = sqlite3.connect(
                self.path, timeout=30.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._begin()
            except BaseException:
                self._database.close()
                raise

    def _begin(self) -> None:
        ask = self._database.execute
        (written,) = ask("PRAGMA user_version").fetchone()
        if written == 0:
            with self._transaction():
                (written,) = ask("PRAGMA user_version").fetchone()  # another may have been faster
                if written == 0:
                    if ask("SELECT * FROM sqlite_master").fetchone():
                        raise StateError(f"{self.path} is a database of something else")
                    for statement in _SCHEMA.split(";"):
                        ask(statement)
                    ask(f"PRAGMA user_version = {_FORMAT}")
                    written = _FORMAT
        if written != _FORMAT:
            raise StateError(
                f"{self.path} has format {written}; this setpoint reads {_FORMAT}: update setpoint "
                "to read it"
            )
        ask("PRAGMA journal_mode = WAL")
        ask("PRAGMA synchronous = FULL")
        ask("PRAGMA cache_size = -16000")

    def settings(self) -> dict[str, str]:
        with self._said():
            return dict(self._database.execute("SELECT name, value FROM settings").fetchall())

    def set(self, settings: dict[str, str]) -> None:
        with self._said(), self._transaction():
            self._database.executemany(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items()
            )

    def names(self) -> list[str]:
        with self._said():
            return [name for (name,) in self._database.execute("SELECT name FROM streams")]

    def load(self, name: str, *, claim: bool) -> Saved | None:
        ask = self._database.execute
        with self._said(), self._transaction("IMMEDIATE" if claim else "DEFERRED"):
            if claim:
                ask("UPDATE streams SET epoch = epoch + 1 WHERE name = ?", (name,))
            fields = "key, controller, state, predictions, epoch"
            row = ask(f"SELECT {fields} FROM streams WHERE name = ?", (name,)).fetchone()
            if row is None:
                return None
            self._keys[name] = row[0]
            waiting = ask(
                f"SELECT {_ROW} FROM predictions WHERE stream = ? AND ended IS NULL "
                "ORDER BY number", row[:1],
            )  # fmt: skip
            return Saved._make((*row[1:], list(map(Row._make, waiting))))

    def find(self, name: str, ids: Iterable[str]) -> list[Row]:
        with self._said():
            rows = self._database.execute(
                f"SELECT {_ROW} FROM predictions INDEXED BY ids WHERE stream = ? AND id IN "
                "(SELECT value FROM json_each(?))", (self._keys.get(name), json.dumps(list(ids))),
            )  # fmt: skip
            return list(map(Row._make, rows))

    def history(self, name: str, after: int, most: int) -> list[Row]:
        with self._said():
            rows = self._database.execute(
                f"SELECT {_ROW} FROM predictions WHERE number > ? AND stream = "
                "(SELECT key FROM streams WHERE name = ?) ORDER BY number LIMIT ?",
                (after, name, most),
            )
            return list(map(Row._make, rows))

    def commit(self, changes: Sequence[Change]) -> None:
        keys: dict[str, int] = {}
        work: dict[str, list[Any]] = {_MADE: [], _CLOSED: [], _FORGET: []}
        with self._said(), self._transaction():
            for change in changes:
                keys[change.name] = key = self._own(change)
                work[_MADE] += [(key, *row) for row in change.made]
                work[_CLOSED] += [(*row[4:], key, row.number) for row in change.closed]
                if change.forget >= 0:
                    work[_FORGET].append((key, change.forget))
            for statement, rows in work.items():
                if rows:
                    self._database.executemany(statement, rows)
        self._keys |= keys

    def _own(self, change: Change) -> int:
        """Writes the state of a stream, which proves that it is still the owner's; its key."""
        if change.epoch == 0:
            written = self._database.execute(
                "INSERT OR IGNORE INTO streams (name, controller, state, predictions, epoch) "
                "VALUES (?, ?, ?, ?, 1) RETURNING key",
                (change.name, change.controller, change.state, change.predictions),
            )
        else:
            written = self._database.execute(
                "UPDATE streams SET state = ?, predictions = ? WHERE name = ? AND epoch = ? "
                "RETURNING key",
                (change.state, change.predictions, change.name, change.epoch),
            )
        row = written.fetchall()
        if not row:
            raise TakenOver(change.name)
        return int(row[0][0])

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._database.execute(f"BEGIN {kind}")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Turns what SQLite refuses into one sentence with the path."""
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = f"{self.path} cannot be used: {error}; see that its folder exists and may be "
            refusal = WriteError(errno.EIO, f"{reason}written to, and that its disk has room")
            refusal.filename = str(self.path)
            raise refusal from error
        except sqlite3.Error as error:
            raise StateError(f"{self.path} is damaged or no store: {error}") from error
