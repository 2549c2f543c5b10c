"""PostgreSQL as the database of a store: for several processes and machines."""

import errno
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import pq

from setpoint.errors import StateError, WriteError
from setpoint.store.database import Database

_LOCK = 0x5E7901  # of the tables, while they are made
_WORDS = {
    "key INTEGER PRIMARY KEY": "key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    " WITHOUT ROWID": "",
    "stream INTEGER": "stream BIGINT",
    "number INTEGER": "number BIGINT",
    "predictions INTEGER": "predictions BIGINT",
    "epoch INTEGER": "epoch BIGINT",
    "crc INTEGER": "crc BIGINT",
    "REAL": "DOUBLE PRECISION",
}
_SESSION = (
    "-c idle_in_transaction_session_timeout={0} -c lock_timeout={0} -c statement_timeout={1} "
    "-c synchronous_commit=on"
)


class PostgreSQL(Database):
    """A PostgreSQL database, whose tables are made if there are none.

    The streams of a batch are locked from its beginning to its end, so no two processes work on
    one stream at once. A process that stalls in the middle of a batch loses its connection, and
    with it the locks; the next one goes on, and what the stalled one writes is refused. A lost
    connection is made anew with the next batch.

    Parameters
    ----------
    address
        As libpq reads it: postgresql://user:password@host/database.
    stall
        After how many seconds of silence in a batch a process has lost its streams.
    patience
        For how many seconds to go on trying to connect.
    """

    _LOCK = " FOR UPDATE"
    _ALONE = "LOCK TABLE streams IN EXCLUSIVE MODE"
    _LISTED = "(SELECT unnest(?::text[]))"
    _BY_ID = ""

    def __init__(self, address: str, *, stall: float = 10.0, patience: float = 5.0) -> None:
        super().__init__()
        self._address, self._patience = address, patience
        self._options = _SESSION.format(int(1000 * stall), int(6000 * stall))
        self._connection: psycopg.Connection[Any] | None = None
        with self._said():
            self._connect()
            try:
                self._migrate()
            except BaseException:
                self.close()
                raise

    def _connect(self) -> None:
        """Connects, and goes on trying for a while where the server is just starting again."""
        self.close()
        until = time.monotonic() + self._patience
        while True:
            try:
                self._connection = psycopg.connect(
                    self._address, autocommit=True, options=self._options,
                    connect_timeout=max(2, int(self._patience)), application_name="setpoint",
                    keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
                    tcp_user_timeout=20_000,
                )  # fmt: skip
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    @property
    def where(self) -> str:
        return "the database"

    def _migrations(self) -> list[str]:
        if self._inside():
            self._ask("SELECT 1 FROM (SELECT pg_advisory_xact_lock(?)) AS lock", [_LOCK])
        # Not by to_regclass: its cache may be older than the wait for the lock.
        known = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
        tables = {name for (name,) in self._ask(known)}
        if "migrations" not in tables:
            return []
        return [name for (name,) in self._ask("SELECT name FROM migrations")]

    def _change(self, statements: str) -> None:
        for word, other in _WORDS.items():
            statements = statements.replace(word, other)
        for statement in filter(str.strip, statements.split(";")):
            self._ask(statement)

    def check(self) -> list[str]:
        return []  # its own pages are checked by its own tools

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        cursor = self._live.execute(_worded(statement), values)
        return cursor.fetchall() if cursor.description else []

    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._live.cursor() as cursor:
            cursor.executemany(_worded(statement), rows)

    @property
    def _live(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            raise psycopg.OperationalError("the connection is closed")
        return self._connection

    def _open(self, *, reads: bool = False) -> None:
        statement: Any = "BEGIN"
        if reads:
            statement = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self._connection is not None:
            try:
                self._connection.execute(statement)
                return
            except psycopg.Error:
                if not self._connection.closed:
                    raise
                # cut while nobody used it: nothing is lost
        self._connect()
        self._live.execute(statement)

    def _end(self, how: str) -> None:
        if how == "COMMIT":
            if not self._inside():
                raise psycopg.OperationalError("the transaction was lost")
            self._live.execute("COMMIT")
        elif self._inside():
            with suppress(psycopg.Error):  # a connection that is gone has rolled back
                self._live.execute("ROLLBACK")

    def _inside(self) -> bool:
        connection = self._connection
        if connection is None or connection.closed:  # it has rolled back
            return False
        return connection.info.transaction_status != pq.TransactionStatus.IDLE

    def _list(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            lost = self._connection is None or self._connection.closed
            if lost or isinstance(error, psycopg.OperationalError):
                told = f"the database cannot be used: {reason}; send what was not answered again"
                raise WriteError(errno.EIO, told) from error
            raise StateError(f"the database is damaged or no store: {reason}") from error


def _worded(statement: str) -> Any:
    """A statement with PostgreSQL's own placeholders; none is made of what users send."""
    return statement.replace("?", "%s")
