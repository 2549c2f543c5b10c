"""What the tests of the service share: a PostgreSQL server."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.postgres import Server, binaries, running

_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'setpoint[postgres]'")
    if binaries() is None:
        pytest.skip("needs the programs of PostgreSQL: apt-get install postgresql")
    with running() as server:
        yield server


@pytest.fixture
def address(server: Server) -> str:
    """An empty database."""
    return server.new(f"test{next(_numbers)}")
