from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.runtime.kept import clear_runs, whole_schema


@pytest.fixture(scope="session")
def app_database() -> Iterator[str]:
    """A database with the whole schema, which the tests of this process share."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as url:
        whole_schema(url)
        yield url


@pytest.fixture(params=["memory", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of a store with nothing in it, memory and PostgreSQL by turns."""
    if request.param == "memory":
        return f"memory:{secrets.token_hex(4)}"
    conninfo = str(request.getfixturevalue("app_database"))
    clear_runs(conninfo)
    return _as_url(conninfo)


def _as_url(conninfo: str) -> str:
    parts = dict(part.split("=", 1) for part in conninfo.split())
    return f"postgresql://{parts['host']}/{parts['dbname']}"
