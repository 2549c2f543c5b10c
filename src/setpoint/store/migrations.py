"""The tables of a store, made and changed by named migrations, each in one transaction.

A database lists the migrations that it has had. One that is missing is made up for when the store
is opened; one that this version does not know is refused. A migration is never edited: what is to
change gets another one at the end.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

Ask = Callable[[str, Sequence[Any]], list[Any]]
_PAGE = 1000


class Migration(NamedTuple):
    """Statements in the words of SQLite, and what is computed from the rows that are there."""

    name: str
    statements: str
    compute: Callable[[Ask], None] = lambda _: None


def crc(*values: Any) -> int:
    """The checksum of a row.

    >>> crc(1, "a", None) == crc(1, "a", "b")
    False
    """
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def _check(ask: Ask) -> None:
    """Computes the checksums of the rows of a store that had none."""
    for name, value in ask("SELECT name, value FROM settings", []):
        ask("UPDATE settings SET crc = ? WHERE name = ?", [crc(name, value), name])
    fields = "key, name, controller, state, predictions, overview"
    for key, name, controller, state, predictions, overview in ask(
        f"SELECT {fields} FROM streams", []
    ):
        checks = crc(name, controller, state, predictions), crc(name, overview)
        ask(
            "UPDATE streams SET first = controller, crc = ?, overview_crc = ? WHERE key = ?",
            [*checks, key],
        )
        _check_rows(ask, key)
    for key, stream, alarm, made in ask("SELECT key, stream, alarm, made FROM alarms", []):
        ask("UPDATE alarms SET crc = ? WHERE key = ?", [crc(stream, alarm, made), key])


def _check_rows(ask: Ask, stream: int) -> None:
    fields, after = "number, id, receipt, made, y, loss, covered, ended, closed", -1
    while rows := ask(
        f"SELECT {fields} FROM predictions WHERE stream = ? AND number > ? ORDER BY number LIMIT ?",
        [stream, after, _PAGE],
    ):
        for row in rows:
            ask(
                "UPDATE predictions SET crc = ? WHERE stream = ? AND number = ?",
                [crc(stream, *row), stream, row[0]],
            )
        after = rows[-1][0]


def _words(ask: Ask) -> None:
    """Renames what overviews called by other words than everything else."""
    for key, name, overview in ask("SELECT key, name, overview FROM streams", []):
        renamed = overview.replace('"waiting":', '"pending":').replace('"limits":', '"bounds":')
        ask(
            "UPDATE streams SET overview = ?, overview_crc = ? WHERE key = ?",
            [renamed, crc(name, renamed), key],
        )


MIGRATIONS = (
    Migration(
        "tables",
        """
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
CREATE INDEX untold ON alarms (due) WHERE due IS NOT NULL
""",
    ),
    Migration(
        "alarms of streams",
        """
ALTER TABLE alarms RENAME TO named_alarms;
DROP INDEX untold;
CREATE TABLE alarms (
    key INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES streams, alarm TEXT NOT NULL,
    made REAL NOT NULL, due REAL
);
INSERT INTO alarms (stream, alarm, made, due)
    SELECT s.key, a.alarm, a.made, a.due FROM named_alarms AS a JOIN streams AS s
    ON a.stream = s.name ORDER BY a.key;
DROP TABLE named_alarms;
CREATE INDEX untold ON alarms (due) WHERE due IS NOT NULL;
CREATE INDEX alarmed ON alarms (stream)
""",
    ),
    Migration(
        "checksums",
        """
ALTER TABLE settings ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN first TEXT NOT NULL DEFAULT '';
ALTER TABLE streams ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN overview_crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE predictions ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alarms ADD COLUMN crc INTEGER NOT NULL DEFAULT 0
""",
        _check,
    ),
    Migration(
        "parts of arrays",
        """
CREATE TABLE parts (
    stream INTEGER NOT NULL REFERENCES streams, name TEXT NOT NULL, number INTEGER NOT NULL,
    numbers TEXT NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (stream, name, number)
) WITHOUT ROWID
""",
    ),
    Migration("words of overviews", "", _words),
    Migration("alarms are asked for", "DROP INDEX untold"),
)
"""Every migration, in the order in which they are made."""
