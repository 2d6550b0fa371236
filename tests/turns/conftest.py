"""Databases for the tests of turns that need real processes or many workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afl.app.migrating import migrate
from tests.kernel.postgres.databases import migrated_database, server_is_there


@pytest.fixture
def fresh_turns_url() -> Iterator[str]:
    """A database with the whole schema, for one test."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as url:
        migrate(url)
        yield url
