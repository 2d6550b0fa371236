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
from afl.server.serving import open_backend
from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.runtime.kept import clear_runs
from tests.server.calling import clear_server, token_for


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


@pytest.fixture(params=["memory", "postgres"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A backend with nothing in it that asks callers who they are, memory and PostgreSQL by
    turns."""
    if request.param == "memory":
        url = f"memory:{secrets.token_hex(4)}"
    else:
        url = str(request.getfixturevalue("empty_url"))
    with open_backend(url, Settings()) as made:
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
