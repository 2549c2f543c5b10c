"""What a store asks of a database, the tables it keeps there, and SQLite as the database."""

import errno
import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setpoint.errors import StateError, TakenOver, WriteError

__all__ = ["FORMAT", "SCHEMA", "Change", "Database", "Notice", "Row", "SQLite", "Saved", "Tables"]

FORMAT = 1
"""The format of the tables that this version reads and writes."""
SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE streams (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, controller TEXT NOT NULL,
    state TEXT NOT NULL, overview TEXT NOT NULL, predictions INTEGER NOT NULL,
    epoch INTEGER NOT NULL
);
CREATE TABLE predictions (
    stream INTEGER NOT NULL REFERENCES streams, number INTEGER NOT NULL, id TEXT NOT NULL,
    receipt TEXT NOT NULL, made REAL NOT NULL,
    y TEXT, loss TEXT, covered INTEGER, ended TEXT, closed REAL,
    PRIMARY KEY (stream, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ids ON predictions (stream, id);
CREATE INDEX waiting ON predictions (stream, number) WHERE ended IS NULL;
CREATE TABLE alarms (
    key INTEGER PRIMARY KEY, stream TEXT NOT NULL, alarm TEXT NOT NULL, made REAL NOT NULL,
    due REAL
);
CREATE INDEX untold ON alarms (due) WHERE due IS NOT NULL;
"""
"""The tables, in the words of SQLite."""

_ROW = "number, id, receipt, made, y, loss, covered, ended, closed"
_MADE = f"INSERT INTO predictions (stream, {_ROW}) VALUES ", ""
_CLOSED = (
    "UPDATE predictions SET y = v.column1, loss = v.column2, covered = v.column3, "
    "ended = v.column4, closed = v.column5 FROM (VALUES ",
    ") AS v WHERE stream = v.column6 AND number = v.column7",
)
_FORGET = "DELETE FROM predictions WHERE stream = ? AND number <= ? AND ended IS NOT NULL"
_ALARM = "INSERT INTO alarms (stream, alarm, made, due) VALUES (?, ?, ?, 0)"
_NOTICE = "key, stream, alarm, made"


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
    covered: int | None = None
    ended: str | None = None
    closed: float | None = None


class Notice(NamedTuple):
    """An alarm as the database has it: its number, its stream, what it says as JSON, and when."""

    key: int
    stream: str
    alarm: str
    made: float


class Saved(NamedTuple):
    """A stream as the database has it, with the predictions that wait, oldest first."""

    controller: str
    state: str
    overview: str
    predictions: int
    epoch: int
    waiting: list[Row]


class Change(NamedTuple):
    """What a batch did to one stream.

    `epoch` is that of the owner, 0 if the stream is new; `controller` is "" where it stays.
    Closed rows up to the number `forget` go. `alarms` are those that began, as JSON.
    """

    name: str
    epoch: int
    controller: str
    state: str
    overview: str
    predictions: int
    made: Sequence[Row]
    closed: Sequence[Row]
    forget: int
    alarms: Sequence[str]
    time: float


@runtime_checkable
class Database(Protocol):
    """All that a store asks of a database; values are text, and ids are JSON.

    A batch is one transaction. `begin` opens it: the streams that it names are locked until it
    ends, and their epochs are given, those of streams that exist. `load` gives None if there is no
    such stream; with a claim it raises the epoch. `commit` writes changes and ends the batch, all
    or none; it raises `TakenOver` if the epoch of a stream is not the one of its change.
    `rollback` ends it with nothing written.

    `find` gives the predictions under some ids, as far as they are known, `history` those after a
    number, `answered` the last ones that were answered, `overviews` the names and overviews of
    all streams or one, `alarms` the last ones.
    `take` lends alarms that were not told yet, for some seconds; `told` says that they were.
    """

    def settings(self) -> dict[str, str]: ...
    def set(self, settings: dict[str, str]) -> None: ...
    def names(self) -> list[str]: ...
    def begin(self, names: Iterable[str]) -> dict[str, int]: ...
    def load(self, name: str, *, claim: bool) -> Saved | None: ...
    def find(self, name: str, ids: Iterable[str]) -> list[Row]: ...
    def commit(self, changes: Sequence[Change]) -> None: ...
    def rollback(self) -> None: ...
    def history(self, name: str, after: int, most: int) -> list[Row]: ...
    def answered(self, name: str, most: int) -> list[Row]: ...
    def overviews(self, name: str | None = None) -> list[tuple[str, str]]: ...
    def alarms(self, most: int) -> list[Notice]: ...
    def take(self, now: float, seconds: float) -> list[Notice]: ...
    def told(self, keys: Iterable[int]) -> None: ...
    def close(self) -> None: ...


class Tables(ABC):
    """The tables of a store in SQL that SQLite and PostgreSQL both read; a `Database` but for how
    statements reach it.
    """

    _LOCK = ""  # what is behind a SELECT that locks its rows
    _LISTED = "(SELECT value FROM json_each(?))"  # a list as one value, in JSON
    _BY_ID = " INDEXED BY ids"

    def __init__(self) -> None:
        self._keys: dict[str, int] = {}

    @abstractmethod
    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement gives."""

    @abstractmethod
    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement for every row."""

    @abstractmethod
    def _insert(self, rows: Sequence[Sequence[Any]]) -> None:
        """Writes new predictions: the key of the stream, then a row."""

    @abstractmethod
    def _close_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Writes what became of predictions: y and what follows it, then stream and number."""

    @abstractmethod
    def _open(self, *, reads: bool = False) -> None:
        """Opens a transaction."""

    @abstractmethod
    def _end(self, how: str) -> None:
        """Ends the transaction, if there is one."""

    @abstractmethod
    def _inside(self) -> bool:
        """Whether a transaction is open."""

    @abstractmethod
    def _said(self) -> AbstractContextManager[None]:
        """Turns what the database refuses into one sentence."""

    @abstractmethod
    def _list(self, values: Iterable[Any]) -> Any:
        """A list as `_LISTED` reads it."""

    @abstractmethod
    def close(self) -> None:
        """Lets the database go."""

    @contextmanager
    def _transaction(self, *, reads: bool = False) -> Iterator[None]:
        with self._said():
            self._open(reads=reads)
            try:
                yield
                self._end("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    def settings(self) -> dict[str, str]:
        with self._transaction(reads=True):
            return dict(self._ask("SELECT name, value FROM settings"))

    def set(self, settings: dict[str, str]) -> None:
        with self._transaction():
            statement = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value "
            self._each(f"{statement}= excluded.value", list(settings.items()))

    def names(self) -> list[str]:
        with self._transaction(reads=True):
            return [name for (name,) in self._ask("SELECT name FROM streams ORDER BY key")]

    def begin(self, names: Iterable[str]) -> dict[str, int]:
        with self._said():
            self._open()
            try:
                rows = self._ask(
                    f"SELECT name, key, epoch FROM streams WHERE name IN {self._LISTED} "
                    f"ORDER BY name{self._LOCK}", [self._list(names)],
                )  # fmt: skip
            except BaseException:
                self._end("ROLLBACK")
                raise
        self._keys |= {name: key for name, key, _ in rows}
        return {name: epoch for name, _, epoch in rows}

    def load(self, name: str, *, claim: bool) -> Saved | None:
        if not self._inside():
            with self._transaction(reads=not claim):
                return self.load(name, claim=claim)
        with self._said():
            if claim:
                self._ask("UPDATE streams SET epoch = epoch + 1 WHERE name = ? RETURNING 1", [name])
            fields = "key, controller, state, overview, predictions, epoch"
            rows = self._ask(f"SELECT {fields} FROM streams WHERE name = ?", [name])
            if not rows:
                return None
            (key, *values), *_ = rows
            self._keys[name] = key
            waiting = self._ask(
                f"SELECT {_ROW} FROM predictions WHERE stream = ? AND ended IS NULL "
                "ORDER BY number", [key],
            )  # fmt: skip
            return Saved._make((*values, list(map(Row._make, waiting))))

    def find(self, name: str, ids: Iterable[str]) -> list[Row]:
        with self._said():
            rows = self._ask(
                f"SELECT {_ROW} FROM predictions{self._BY_ID} WHERE stream = ? AND id IN "
                f"{self._LISTED}", [self._keys.get(name), self._list(ids)],
            )  # fmt: skip
            return list(map(Row._make, rows))

    def commit(self, changes: Sequence[Change]) -> None:
        made: list[Any] = []
        closed: list[Any] = []
        work: dict[str, list[Any]] = {_FORGET: [], _ALARM: []}
        with self._said():
            try:
                for change in sorted(changes):  # in one order everywhere, so that none waits twice
                    self._keys[change.name] = key = self._own(change)
                    made += [(key, *row) for row in change.made]
                    closed += [(*row[4:], key, row.number) for row in change.closed]
                    if change.forget >= 0:
                        work[_FORGET].append((key, change.forget))
                    work[_ALARM] += [(change.name, text, change.time) for text in change.alarms]
                if made:
                    self._insert(made)
                if closed:
                    self._close_rows(closed)
                for statement, rows in work.items():
                    if rows:
                        self._each(statement, rows)
                self._end("COMMIT")
            except BaseException:
                self.rollback()
                raise

    def rollback(self) -> None:
        with self._said():
            self._end("ROLLBACK")

    def _own(self, change: Change) -> int:
        """Writes the state of a stream, which proves that it is still the owner's; its key."""
        state = change.state, change.overview, change.predictions
        if change.epoch == 0:
            rows = self._ask(
                "INSERT INTO streams (name, controller, state, overview, predictions, epoch) "
                "VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (name) DO NOTHING RETURNING key",
                [change.name, change.controller, *state],
            )
        else:
            controller = [change.controller] if change.controller else []
            rows = self._ask(
                "UPDATE streams SET state = ?, overview = ?, predictions = ?"
                f"{', controller = ?' if controller else ''} WHERE name = ? AND epoch = ? "
                "RETURNING key",
                [*state, *controller, change.name, change.epoch],
            )
        if not rows:
            raise TakenOver(change.name)
        return int(rows[0][0])

    def history(self, name: str, after: int, most: int) -> list[Row]:
        with self._transaction(reads=True):
            rows = self._ask(
                f"SELECT {_ROW} FROM predictions WHERE number > ? AND stream = "
                "(SELECT key FROM streams WHERE name = ?) ORDER BY number LIMIT ?",
                [after, name, most],
            )
            return list(map(Row._make, rows))

    def answered(self, name: str, most: int) -> list[Row]:
        with self._transaction(reads=True):
            rows = self._ask(
                f"SELECT {_ROW} FROM predictions WHERE ended = 'answered' AND stream = "
                "(SELECT key FROM streams WHERE name = ?) ORDER BY number DESC LIMIT ?",
                [name, most],
            )
            return list(map(Row._make, reversed(rows)))

    def overviews(self, name: str | None = None) -> list[tuple[str, str]]:
        with self._transaction(reads=True):
            one, values = ("", []) if name is None else ("WHERE name = ? ", [name])
            return self._ask(f"SELECT name, overview FROM streams {one}ORDER BY key", values)

    def alarms(self, most: int) -> list[Notice]:
        with self._transaction(reads=True):
            rows = self._ask(f"SELECT {_NOTICE} FROM alarms ORDER BY key DESC LIMIT ?", [most])
            return list(map(Notice._make, rows))

    def take(self, now: float, seconds: float) -> list[Notice]:
        with self._transaction():
            rows = self._ask(
                f"UPDATE alarms SET due = ? WHERE due <= ? RETURNING {_NOTICE}",
                [now + seconds, now],
            )
            return sorted(map(Notice._make, rows))

    def told(self, keys: Iterable[int]) -> None:
        with self._transaction():
            self._each("UPDATE alarms SET due = NULL WHERE key = ?", [(key,) for key in keys])


class SQLite(Tables):
    """One SQLite file; in a folder it is called streams.sqlite.

    Every commit is forced to the disk. Any number of processes may use one file.

    Parameters
    ----------
    path
        The file, or a folder that exists.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path) / "streams.sqlite" if Path(path).is_dir() else Path(path)
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
        (written,) = self._database.execute("PRAGMA user_version").fetchone()
        if written == 0:
            with self._transaction():
                ((written,),) = self._ask("PRAGMA user_version")  # another may have been faster
                if written == 0:
                    if self._ask("SELECT * FROM sqlite_master"):
                        raise StateError(f"{self.path} is a database of something else")
                    for statement in SCHEMA.split(";"):
                        self._ask(statement)
                    self._ask(f"PRAGMA user_version = {FORMAT}")
                    written = FORMAT
        if written != FORMAT:
            raise StateError(
                f"{self.path} has format {written}; this setpoint reads {FORMAT}: update setpoint "
                "to read it"
            )
        self._ask("PRAGMA journal_mode = WAL")
        self._ask("PRAGMA synchronous = FULL")
        self._ask("PRAGMA cache_size = -16000")

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(statement, values).fetchall()

    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._database.executemany(statement, rows)

    def _insert(self, rows: Sequence[Sequence[Any]]) -> None:
        self._together(*_MADE, rows)

    def _close_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        self._together(*_CLOSED, rows)

    def _together(self, start: str, end: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement on many rows at once.

        Row by row a busy thread would take the interpreter after each, and this one would wait.
        """
        place, marks = 0, f"(?{', ?' * (len(rows[0]) - 1)})"
        while place < len(rows):
            count = 1 << min((len(rows) - place).bit_length() - 1, 8)  # few, so each is known
            values = chain.from_iterable(rows[place : place + count])
            self._ask(f"{start}{', '.join([marks] * count)}{end}", list(values))
            place += count

    def _open(self, *, reads: bool = False) -> None:
        self._database.execute("BEGIN DEFERRED" if reads else "BEGIN IMMEDIATE")

    def _end(self, how: str) -> None:
        if how == "COMMIT" or self._inside():  # a commit of nothing is refused: it was lost
            self._database.execute(how)

    def _inside(self) -> bool:
        return self._database.in_transaction

    def _list(self, values: Iterable[Any]) -> str:
        return json.dumps(list(values))

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
        except sqlite3.Error as error:
            raise StateError(f"{self.path} is damaged or no store: {error}") from error
