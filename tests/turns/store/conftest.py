"""Stores for the tests of what turns keep: each test that asks for `kept` runs on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afl.app.migrating import migrate
from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.turns.store.kept import Kept, MemoryKept, PostgresKept, clear_turns


@pytest.fixture(scope="session")
def turns_database() -> Iterator[str]:
    """A database with the whole schema, which the tests of this process share."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as url:
        migrate(url)
        yield url


@pytest.fixture
def turns_url(turns_database: str) -> str:
    """A database with the whole schema and no rows."""
    clear_turns(turns_database)
    return turns_database


@pytest.fixture
def postgres_kept(turns_url: str) -> Iterator[PostgresKept]:
    kept = PostgresKept(turns_url)
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
