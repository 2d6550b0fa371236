"""Stores of log lines for tests: in memory, in PostgreSQL and in MongoDB."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from afl.app import migrating
from afl.logs.memory_store import MemoryLogStore
from afl.logs.mongo_store import MongoLogStore
from afl.logs.postgres_store import PostgresLogStore
from afl.logs.store import LogStore
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres import databases as postgres


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    if not postgres.server_is_there():
        pytest.skip("no PostgreSQL to test with")
    with postgres.migrated_database() as made:
        migrating.migrate(made)
        yield made


@pytest.fixture(scope="session")
def mongo_url() -> Iterator[str]:
    if not mongo.server_is_there():
        pytest.skip("no MongoDB to test with")
    with mongo.empty_database() as made:
        migrating.migrate(made)
        yield made


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[PostgresLogStore]:
    """A store with nothing in it."""
    with psycopg.connect(postgres_url) as connection:
        for table in ("log_chunk", "log_stream", "log_spool"):
            connection.execute(f"delete from afl.{table}".encode())
    with PostgresLogStore.connect(postgres_url, max_size=4) as made:
        yield made


@pytest.fixture
def mongo_store(mongo_url: str) -> Iterator[MongoLogStore]:
    """A store with nothing in it."""
    mongo.clear(mongo_url)
    with MongoLogStore.connect(mongo_url) as made:
        yield made


@pytest.fixture(params=["memory", "postgres_store", "mongo_store"])
def store(request: pytest.FixtureRequest) -> LogStore:
    """Each of the stores by turns, with nothing in it."""
    if request.param == "memory":
        return MemoryLogStore()
    made: LogStore = request.getfixturevalue(request.param)
    return made
