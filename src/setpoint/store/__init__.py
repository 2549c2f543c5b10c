"""Streams in a database: what was acknowledged survives a crash, and nothing is counted twice.

A store is one SQLite file, or a PostgreSQL database, with any number of streams. Events are taken
in by whole batches, each in one transaction, and no answer is given before it is committed.
`database.Database` is all that a store asks of a database.
"""

from setpoint.store.sqlite import SQLite
from setpoint.store.store import Store

__all__ = ["SQLite", "Store"]
