"""What a store asks of a database, and the tables that it keeps there."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from setpoint.errors import StateError, TakenOver

ROW = "number, id, receipt, made, y, loss, covered, ended, closed"
"""The columns of a prediction, as `Row` has them."""
_FORGET = "DELETE FROM predictions WHERE stream = ? AND number <= ? AND ended IS NOT NULL"
_ALARM = "INSERT INTO alarms (stream, alarm, made, crc) VALUES (?, ?, ?, ?)"
_PART = (
    "INSERT INTO parts (stream, name, number, numbers, crc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (stream, name, number) DO UPDATE SET numbers = excluded.numbers, "
    "crc = excluded.crc"
)
_MADE = f"INSERT INTO predictions (stream, {ROW}, crc) VALUES ", ""
_CLOSED = (
    "UPDATE predictions SET y = v.column1, loss = v.column2, "
    "covered = CAST(v.column3 AS INTEGER), ended = v.column4, "
    "closed = CAST(v.column5 AS DOUBLE PRECISION), crc = v.column6 FROM (VALUES ",
    ") AS v WHERE predictions.stream = v.column7 AND predictions.number = v.column8",
)
_CLEAR = "DELETE FROM parts WHERE stream = ? AND name = ?"
_KEY = "(SELECT key FROM streams WHERE name = ?)"


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


class Part(NamedTuple):
    """A part of a large array of a state: its array, its place, and its numbers as text."""

    name: str
    number: int
    numbers: str


class Saved(NamedTuple):
    """A stream as the database has it, with the predictions that wait, oldest first.

    They are None where they were not asked for. `first` is the controller that it began with.
    """

    controller: str
    first: str
    state: str
    overview: str
    predictions: int
    epoch: int
    waiting: list[Row] | None
    parts: list[Part]


class Change(NamedTuple):
    """What a batch did to one stream.

    `epoch` is that of the owner, and with `new` the one that the stream begins with. `cleared` are
    the arrays whose parts so far go, before `parts` are written. Closed rows up to the number
    `forget` go. `alarms` are those that began, as JSON.
    """

    name: str
    epoch: int
    new: bool
    controller: str
    state: str
    overview: str
    predictions: int
    time: float
    made: Sequence[Row] = ()
    closed: Sequence[Row] = ()
    forget: int = -1
    parts: Sequence[Part] = ()
    cleared: Sequence[str] = ()
    alarms: Sequence[str] = ()
    first: str = ""


class Migration(NamedTuple):
    """Statements in the words of SQLite, and what is computed from the rows that are there."""

    name: str
    statements: str
    compute: Callable[[Callable[..., list[Any]]], None] = lambda _: None


MIGRATIONS = (
    Migration(
        "tables",
        """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE streams (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, first TEXT NOT NULL,
    controller TEXT NOT NULL, state TEXT NOT NULL, overview TEXT NOT NULL,
    predictions INTEGER NOT NULL, epoch INTEGER NOT NULL, crc INTEGER NOT NULL,
    overview_crc INTEGER NOT NULL
);
CREATE TABLE predictions (
    stream INTEGER NOT NULL REFERENCES streams, number INTEGER NOT NULL, id TEXT NOT NULL,
    receipt TEXT NOT NULL, made REAL NOT NULL, y TEXT, loss TEXT, covered INTEGER, ended TEXT,
    closed REAL, crc INTEGER NOT NULL,
    PRIMARY KEY (stream, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ids ON predictions (stream, id);
CREATE INDEX waiting ON predictions (stream, number) WHERE ended IS NULL;
CREATE TABLE parts (
    stream INTEGER NOT NULL REFERENCES streams, name TEXT NOT NULL, number INTEGER NOT NULL,
    numbers TEXT NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (stream, name, number)
) WITHOUT ROWID;
CREATE TABLE alarms (
    key INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES streams, alarm TEXT NOT NULL,
    made REAL NOT NULL, crc INTEGER NOT NULL
);
CREATE INDEX alarmed ON alarms (stream)
""",
    ),
)
"""Every migration, in the order in which they are made, each in one transaction.

One that a database has not had is made up for when it is opened; one that this version does not
know is refused. A migration is never edited: what is to change gets another one at the end.
"""


def crc(*values: Any) -> int:
    """The checksum of a row.

    >>> crc(1, "a", None) == crc(1, "a", "b")
    False
    """
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


class Database(ABC):
    """The tables of a store, in SQL that SQLite and PostgreSQL both read; values are text.

    A batch is one transaction. `begin` opens it and locks the streams that it names; `commit`
    writes changes, all or none; `rollback` ends it with nothing written. Within `reading` all that
    is read is of one moment.
    """

    _LOCK = ""  # what is behind a SELECT that locks its rows
    _ALONE = ""  # lets no other batch begin before this one ends; needed if several can at once
    _LISTED = "(SELECT value FROM json_each(?))"  # a list as one value, in JSON
    _BY_ID = " INDEXED BY ids"

    def __init__(self) -> None:
        self._keys: dict[str, int] = {}  # of the streams of this batch

    @property
    @abstractmethod
    def where(self) -> str:
        """What the database is called in messages."""

    @abstractmethod
    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement gives."""

    @abstractmethod
    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement for every row."""

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
    def _migrations(self) -> list[str]:
        """The migrations that the database has had; none if it is empty."""

    @abstractmethod
    def _change(self, statements: str) -> None:
        """Runs the statements of a migration in the words of this database."""

    @abstractmethod
    def check(self) -> list[str]:
        """What the database itself finds wrong."""

    @abstractmethod
    def close(self) -> None:
        """Lets the database go."""

    @contextmanager
    def _transaction(self, *, reads: bool = False) -> Iterator[None]:
        """A transaction of its own, or the one that is open."""
        with self._said():
            if self._inside():
                yield
                return
            self._open(reads=reads)
            try:
                yield
                self._end("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    def reading(self) -> AbstractContextManager[None]:
        """A transaction in which all that is read is of one moment."""
        return self._transaction(reads=True)

    def _migrate(self) -> None:
        """Makes up for migrations that the database has not had, each in one transaction."""
        for migration in MIGRATIONS:
            if migration.name in self._known():
                continue
            with self._transaction():
                if migration.name in self._known():  # another process was faster
                    continue
                self._change(migration.statements)
                migration.compute(self._ask)
                self._change("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, "
                             "made REAL NOT NULL)")  # fmt: skip
                row = migration.name, time.time()
                self._ask("INSERT INTO migrations VALUES (?, ?)", row)

    def _known(self) -> list[str]:
        had, known = self._migrations(), [migration.name for migration in MIGRATIONS]
        if strange := [name for name in had if name not in known]:
            told = ", ".join(map(str, strange))
            raise StateError(
                f"{self.where} was changed by a newer setpoint ({told}): update setpoint to read it"
            )
        return had

    def _sound(self, check: int, what: str, *values: Any) -> None:
        """Refuses a row whose checksum does not fit."""
        if check != crc(*values):
            raise StateError(
                f"{self.where} is damaged: {what} does not fit its checksum; restore a backup "
                "(setpoint store restore)"
            )

    def _rows(self, what: str, values: Sequence[Any]) -> list[Row]:
        """Predictions, each with a checksum that fits."""
        listed = []
        for key, *row, check in self._ask(
            f"SELECT stream, {ROW}, crc FROM predictions{what}", values
        ):
            self._sound(check, f"prediction {row[0]}", key, *row)
            listed.append(Row._make(row))
        return listed

    def count(self) -> int:
        """How many streams there are."""
        with self._transaction(reads=True):
            return int(self._ask("SELECT count(*) FROM streams")[0][0])

    def settings(self) -> dict[str, str]:
        """The settings of the store."""
        with self._transaction(reads=True):
            rows = self._ask("SELECT name, value, crc FROM settings")
            for name, value, check in rows:
                self._sound(check, f"the setting {name}", name, value)
            return {name: value for name, value, _ in rows}

    def set(self, settings: dict[str, str]) -> None:
        """Keeps settings."""
        with self._transaction():
            self._each(
                "INSERT INTO settings (name, value, crc) VALUES (?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET value = excluded.value, crc = excluded.crc",
                [(name, value, crc(name, value)) for name, value in settings.items()],
            )

    def names(self) -> list[str]:
        """The streams, in the order in which they began."""
        with self._transaction(reads=True):
            return [name for (name,) in self._ask("SELECT name FROM streams ORDER BY key")]

    def begin(self, names: Iterable[str]) -> dict[str, int]:
        """Opens a batch and locks the streams that it names; their epochs, of those that exist."""
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
        self._keys = {name: key for name, key, _ in rows}
        return {name: epoch for name, _, epoch in rows}

    def load(self, name: str, *, claim: bool, waiting: bool = True) -> Saved | None:
        """A stream as it is saved, without what waits if that is not asked for; a claim raises its
        epoch.
        """
        with self._transaction(reads=not claim):
            if claim:
                self._ask("UPDATE streams SET epoch = epoch + 1 WHERE name = ? RETURNING 1", [name])
            fields = (
                "key, crc, overview_crc, controller, first, state, overview, predictions, epoch"
            )
            rows = self._ask(f"SELECT {fields} FROM streams WHERE name = ?", [name])
            if not rows:
                return None
            (key, check, seen, controller, first, state, overview, predictions, epoch), *_ = rows
            self._sound(check, f"the stream {name!r}", name, controller, state, predictions)
            self._sound(seen, f"the stream {name!r}", name, overview)
            self._keys[name] = key
            where = " WHERE stream = ? AND ended IS NULL ORDER BY number"
            open_rows = self._rows(where, [key]) if waiting else None
            parts = []
            fields = "name, number, numbers, crc"
            for *part, check in self._ask(f"SELECT {fields} FROM parts WHERE stream = ?", [key]):
                self._sound(check, f"a part of the stream {name!r}", key, *part)
                parts.append(Part._make(part))
            return Saved(controller, first, state, overview, predictions, epoch, open_rows, parts)

    def find(self, name: str, ids: Iterable[str]) -> list[Row]:
        """The predictions under some ids, as far as they are known."""
        with self._said():
            return self._rows(
                f"{self._BY_ID} WHERE stream = ? AND id IN {self._LISTED}",
                [self._keys.get(name), self._list(ids)],
            )

    def write(self, changes: Sequence[Change]) -> None:
        """Writes changes in the batch; `TakenOver` if a stream has another owner."""
        made: list[Any] = []
        closed: list[Any] = []
        work: dict[str, list[Any]] = {_FORGET: [], _CLEAR: [], _PART: [], _ALARM: []}
        with self._said():
            for change in sorted(changes):  # in one order everywhere, so that none waits twice
                self._keys[change.name] = key = self._own(change)
                made += [(key, *row, crc(key, *row)) for row in change.made]
                closed += [(*row[4:], crc(key, *row), key, row.number) for row in change.closed]
                if change.forget >= 0:
                    work[_FORGET].append((key, change.forget))
                work[_CLEAR] += [(key, array) for array in change.cleared]
                work[_PART] += [(key, *part, crc(key, *part)) for part in change.parts]
                work[_ALARM] += [
                    (key, text, change.time, crc(key, text, change.time)) for text in change.alarms
                ]
            self._together(*_MADE, made)
            self._together(*_CLOSED, closed)
            for statement, rows in work.items():
                if rows:
                    self._each(statement, rows)

    def _together(self, start: str, end: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement on many rows at once.

        Row by row a busy thread would take the interpreter after each, and this one would wait.
        """
        place, marks = 0, f"(?{', ?' * (len(rows[0]) - 1)})" if rows else ""
        while place < len(rows):
            count = 1 << min((len(rows) - place).bit_length() - 1, 8)  # few, so each is known
            values = chain.from_iterable(rows[place : place + count])
            self._ask(f"{start}{', '.join([marks] * count)}{end}", list(values))
            place += count

    def commit(self, changes: Sequence[Change]) -> None:
        """Writes changes and ends the batch, all or none."""
        try:
            self.write(changes)
            with self._said():
                self._end("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Ends the batch with nothing written."""
        with self._said():
            self._end("ROLLBACK")

    def _own(self, change: Change) -> int:
        """Writes the state of a stream, which proves that it is still the owner's; its key."""
        name, controller, state = change.name, change.controller, change.state
        check = crc(name, controller, state, change.predictions)
        values = [controller, state, change.overview, change.predictions, check,
                  crc(name, change.overview)]  # fmt: skip
        if change.new:
            rows = self._ask(
                "INSERT INTO streams (name, epoch, first, controller, state, overview, "
                "predictions, crc, overview_crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO NOTHING RETURNING key",
                [name, change.epoch, change.first or controller, *values],
            )
        else:
            rows = self._ask(
                "UPDATE streams SET controller = ?, state = ?, overview = ?, predictions = ?, "
                "crc = ?, overview_crc = ? WHERE name = ? AND epoch = ? RETURNING key",
                [*values, name, change.epoch],
            )
        if not rows:
            raise TakenOver(name)
        return int(rows[0][0])

    def history(self, name: str, after: int, most: int) -> list[Row]:
        """The predictions of a stream after a number."""
        with self._transaction(reads=True):
            return self._rows(
                f" WHERE number > ? AND stream = {_KEY} ORDER BY number LIMIT ?",
                [after, name, most],
            )

    def answered(self, name: str, most: int) -> list[Row]:
        """The last predictions that were answered."""
        with self._transaction(reads=True):
            last = f" WHERE ended = 'answered' AND stream = {_KEY} ORDER BY number DESC LIMIT ?"
            return self._rows(last, [name, most])[::-1]

    def overviews(self, name: str | None = None) -> list[tuple[str, str]]:
        """The names and overviews of all streams, or of one."""
        with self._transaction(reads=True):
            one, values = ("", []) if name is None else ("WHERE name = ? ", [name])
            fields = "name, overview, overview_crc"
            rows = self._ask(f"SELECT {fields} FROM streams {one}ORDER BY key", values)
        for listed, overview, check in rows:
            self._sound(check, f"the overview of {listed!r}", listed, overview)
        return [(listed, overview) for listed, overview, _ in rows]

    def alarms(self, most: int, name: str | None = None) -> list[Notice]:
        """The last alarms of all streams, or of one, the newest first."""
        with self._transaction(reads=True):
            one, values = ("", []) if name is None else (f"WHERE stream = {_KEY} ", [name])
            where = f"IN (SELECT key FROM alarms {one}ORDER BY key DESC LIMIT ?)"
            return self._notices(where, [*values, most])[::-1]

    def _notices(self, where: str, values: Sequence[Any]) -> list[Notice]:
        fields = "a.key, s.name, a.alarm, a.made, a.stream, a.crc"
        joined = "alarms AS a JOIN streams AS s ON s.key = a.stream"
        listed = []
        for *row, key, check in self._ask(
            f"SELECT {fields} FROM {joined} WHERE a.key {where} ORDER BY a.key", values
        ):
            self._sound(check, f"alarm {row[0]}", key, *row[2:])
            listed.append(Notice._make(row))
        return listed

    def rename(self, name: str, to: str) -> bool:
        """Gives a stream another name; whether there was such a stream."""
        with self._transaction():
            saved = self.load(name, claim=True)
            if saved is None:
                return False
            check = crc(to, saved.controller, saved.state, saved.predictions)
            rows = self._ask(
                "UPDATE streams SET name = ?, crc = ?, overview_crc = ? WHERE name = ? AND NOT "
                "EXISTS (SELECT 1 FROM streams WHERE name = ?) RETURNING key",
                [to, check, crc(to, saved.overview), name, to],
            )
            if not rows:
                raise StateError(f"there is a stream {to!r} already")
            return True

    def delete(self, name: str) -> bool:
        """Deletes a stream and all of it; whether there was such a stream."""
        with self._transaction():  # locked first: a batch that is under way still adds to it
            known = self._ask(f"SELECT key FROM streams WHERE name = ?{self._LOCK}", [name])
            for table in ("predictions", "parts", "alarms"):
                self._each(f"DELETE FROM {table} WHERE stream = ?", known)
            self._each("DELETE FROM streams WHERE key = ?", known)
        self._purge()
        return bool(known)

    def erase(self, name: str, ids: Sequence[str] | None, before: float | None) -> int:
        """Deletes closed predictions: all, or those under some ids or closed before a time."""
        where, values = f"WHERE stream = {_KEY} AND ended IS NOT NULL", list[Any]([name])
        if ids is not None:
            where, values = f"{where} AND id IN {self._LISTED}", [*values, self._list(ids)]
        if before is not None:
            where, values = f"{where} AND closed < ?", [*values, before]
        with self._transaction():
            ((count,),) = self._ask(f"SELECT count(*) FROM predictions {where}", values)
            self._each(f"DELETE FROM predictions {where}", [values])
        self._purge()
        return int(count)

    def _purge(self) -> None:  # noqa: B027
        """Leaves nothing of deleted rows in the files, as far as the database lets us."""

    def wipe(self) -> None:
        """Deletes everything in the present batch, once those under way elsewhere have ended."""
        with self._said():
            if self._ALONE:
                self._ask(self._ALONE)
            for table in ("predictions", "parts", "alarms", "streams", "settings"):
                self._ask(f"DELETE FROM {table}")
