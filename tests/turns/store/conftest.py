"""Stores for the tests of what turns keep: each test that asks for `kept` runs on all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.mongo.databases import clear
from tests.turns.lasting_stores import fresh_turns
from tests.turns.store.kept import (
    Kept,
    LastingKept,
    MemoryKept,
    MongoKept,
    PostgresKept,
    clear_turns,
)


@pytest.fixture(scope="session")
def turns_database() -> Iterator[str]:
    """A database with the whole schema, which the tests of this process share."""
    with fresh_turns("postgres") as url:
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


@pytest.fixture(scope="session")
def turns_mongo_database() -> Iterator[str]:
    """A MongoDB with the whole schema, which the tests of this process share."""
    with fresh_turns("mongo") as url:
        yield url


@pytest.fixture
def turns_mongo_url(turns_mongo_database: str) -> str:
    """A MongoDB with the whole schema and no documents."""
    clear(turns_mongo_database)
    return turns_mongo_database


@pytest.fixture
def mongo_kept(turns_mongo_url: str) -> Iterator[MongoKept]:
    kept = MongoKept(turns_mongo_url)
    yield kept
    kept.close()


@pytest.fixture(params=["postgres", "mongo"])
def lasting_kept(request: pytest.FixtureRequest) -> LastingKept:
    """A store that several processes may share, with nothing in it, on a virtual clock."""
    kept: LastingKept = request.getfixturevalue(f"{request.param}_kept")
    return kept


@pytest.fixture(params=["memory", "postgres", "mongo"])
def kept(request: pytest.FixtureRequest) -> Kept:
    """A store with nothing in it, on a virtual clock."""
    if request.param == "memory":
        return MemoryKept()
    kept: Kept = request.getfixturevalue(f"{request.param}_kept")
    return kept
