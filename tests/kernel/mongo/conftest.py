from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.mongo.databases import MongoHarness, clear, migrated_database, server_is_there


@pytest.fixture(scope="session")
def shared_url() -> Iterator[str]:
    """A database that the tests of this process share, one after the other."""
    if not server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with migrated_database() as url:
        yield url


@pytest.fixture
def url(shared_url: str) -> str:
    """A database with the schema and no documents."""
    clear(shared_url)
    return shared_url


@pytest.fixture
def harness(url: str) -> Iterator[MongoHarness]:
    harness = MongoHarness(url)
    yield harness
    harness.close()
