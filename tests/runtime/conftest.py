"""Stores for the tests of the runtime: each test that asks for `kept` runs on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import read_migrations
from afl.runtime.memory_store import MemoryStore
from afl.runtime.mongo.migrate import migrate
from afl.runtime.persistence import PersistenceAPI
from tests.chaos.mongo_server import PrivateMongo, find_mongod
from tests.kernel.mongo import databases
from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.runtime.kept import (
    Kept,
    MemoryKept,
    MongoKept,
    PostgresKept,
    clear_runs,
    connect,
    whole_schema,
)


@pytest.fixture(scope="session")
def runs_database() -> Iterator[str]:
    """A database with the whole schema, which the tests of this process share."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as url:
        whole_schema(url)
        yield url


@pytest.fixture
def runs_url(runs_database: str) -> str:
    """A database with the whole schema and no rows."""
    clear_runs(runs_database)
    return runs_database


@pytest.fixture
def postgres_kept(runs_url: str) -> Iterator[PostgresKept]:
    kept = PostgresKept(runs_url)
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def mongo_runs_database() -> Iterator[str]:
    """A MongoDB with the whole schema, which the tests of this process share."""
    if not databases.server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with databases.migrated_database(read_migrations("afl.runtime.mongo")) as url:
        yield url


@pytest.fixture
def mongo_runs_url(mongo_runs_database: str) -> str:
    """A MongoDB with the whole schema and no documents."""
    databases.clear(mongo_runs_database)
    return mongo_runs_database


@pytest.fixture
def mongo_kept(mongo_runs_url: str) -> Iterator[MongoKept]:
    kept = MongoKept(mongo_runs_url)
    yield kept
    kept.close()


@pytest.fixture(params=["memory", "postgres", "mongo"])
def kept(request: pytest.FixtureRequest) -> Kept:
    """A store with nothing in it, on a virtual clock."""
    if request.param == "memory":
        return MemoryKept()
    kept: Kept = request.getfixturevalue(f"{request.param}_kept")
    return kept


@pytest.fixture(params=["postgres", "mongo"])
def server_kept(request: pytest.FixtureRequest) -> Kept:
    """The same, on a server that processes share."""
    kept: Kept = request.getfixturevalue(f"{request.param}_kept")
    return kept


@pytest.fixture(scope="session")
def short_mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MongoDB that soon ends the transactions of a process that was killed."""
    program = find_mongod()
    if program is None:
        pytest.skip("there is no mongod on this machine")
    with closing(PrivateMongo(program, tmp_path_factory.mktemp("mongo"))) as server:
        with closing(Database(server.url)) as database:
            admin = database.collection("any").database.client.admin
            admin.command("setParameter", 1, transactionLifetimeLimitSeconds=3)
            migrate(database)
        yield server.url


@pytest.fixture
def short_mongo_url(short_mongo: str) -> str:
    databases.clear(short_mongo)
    return short_mongo


@pytest.fixture(params=["runs_url", "short_mongo_url"])
def server_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, for processes that are killed."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture(params=["memory", "postgres", "mongo"])
def real_store(request: pytest.FixtureRequest) -> PersistenceAPI:
    """A store with nothing in it, on the real clock. Whoever gets it closes it."""
    if request.param == "memory":
        return MemoryStore()
    name = "runs_url" if request.param == "postgres" else "mongo_runs_url"
    return connect(request.getfixturevalue(name))
