"""Servers for tests: an application on a store, and clients of it with and without tokens."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict
from starlette.testclient import TestClient

from afl.app.migrating import migrate
from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.mongo_store import MongoServerStore
from afl.server.serving import open_backend
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.runtime.kept import clear_runs
from tests.server.calling import clear_server, token_for
from tests.server.run_stage import Stage, open_stage

#: The kinds of stores that servers are tested on, each with what has the URL of an empty one.
STORES = {"memory": "", "postgres": "empty_url", "mongo": "empty_mongo_url"}


@pytest.fixture(scope="session")
def server_database() -> Iterator[str]:
    """The URL of a database with the whole schema, which the tests of this process share."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as conninfo:
        migrate(conninfo)
        parts = conninfo_to_dict(conninfo)
        yield f"postgresql://{parts['host']}/{parts['dbname']}"


@pytest.fixture
def empty_url(server_database: str) -> str:
    """The same, with nothing in it."""
    clear_runs(server_database)
    clear_server(server_database)
    return server_database


@pytest.fixture(scope="session")
def mongo_database() -> Iterator[str]:
    """The URL of a MongoDB with the whole schema, which the tests of this process share."""
    if not mongo.server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with mongo.empty_database() as url:
        migrate(url)
        yield url


@pytest.fixture
def empty_mongo_url(mongo_database: str) -> str:
    """The same, with nothing in it."""
    mongo.clear(mongo_database)
    return mongo_database


@pytest.fixture
def mongo_store(empty_mongo_url: str) -> Iterator[MongoServerStore]:
    """What the server keeps in a MongoDB, with nothing in it."""
    with MongoServerStore.connect(empty_mongo_url) as made:
        yield made


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a store with nothing in it, of each kind by turns."""
    if request.param == "memory":
        return f"memory:{secrets.token_hex(4)}"
    return str(request.getfixturevalue(STORES[request.param]))


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database that processes can share, of each kind by turns."""
    return str(request.getfixturevalue(STORES[request.param]))


@pytest.fixture
def backend(store_url: str) -> Iterator[Backend]:
    """A backend with nothing in it that asks callers who they are, on each kind of store."""
    with open_backend(store_url, Settings()) as made:
        yield made


@pytest.fixture
def stage(store_url: str) -> Iterator[Stage]:
    """A server with an app whose handlers serve its runs, on each kind of store."""
    with open_stage(store_url) as made:
        yield made


@pytest.fixture
def memory_backend() -> Iterator[Backend]:
    """The same, in memory alone."""
    with open_backend(f"memory:{secrets.token_hex(4)}", Settings()) as made:
        yield made


@pytest.fixture
def anonymous(backend: Backend) -> TestClient:
    """A client without a token."""
    return TestClient(create_app(backend))


@pytest.fixture
def admin(backend: Backend) -> TestClient:
    """A client that may do everything."""
    return TestClient(create_app(backend), headers=token_for(backend, "admin"))
