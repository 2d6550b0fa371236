"""Stores for the tests of the runtime: each test that asks for `kept` runs on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.runtime.kept import Kept, MemoryKept, PostgresKept, clear_runs, whole_schema


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


@pytest.fixture(params=["memory", "postgres"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    """A store with nothing in it, on a virtual clock."""
    if request.param == "memory":
        yield MemoryKept()
        return
    kept: PostgresKept = request.getfixturevalue("postgres_kept")
    yield kept
