"""The schema of a MongoDB: applied once, in order, by any number of processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import Migration, MigrationError, migrate, migrations, status
from tests.kernel.mongo.databases import empty_database, server_is_there

MORE = Migration(9001, "more", json.dumps({"collections": [{"name": "more"}]}))


@pytest.fixture
def empty() -> Iterator[Database]:
    if not server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with empty_database() as url, closing(Database(url)) as database:
        yield database


def test_the_numbers_have_no_gaps() -> None:
    assert [each.number for each in migrations()] == list(range(1, len(migrations()) + 1))


def test_each_is_applied_once(empty: Database) -> None:
    assert all(step.applied_at is None for step in status(empty))
    assert migrate(empty) == migrations()
    assert migrate(empty) == []
    assert all(step.applied_at is not None for step in status(empty))
    assert migrate(empty, [MORE]) == [MORE]


def test_several_at_once_come_to_the_same(empty: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate(empty), range(4)))
    assert all(step.applied_at is not None for step in status(empty))
    names = {index["name"] for index in empty.collection("task").list_indexes()}
    assert names >= {"claimable", "fence", "lane_holder"}


def test_one_that_was_interrupted_goes_on(empty: Database) -> None:
    empty.command("create", "task")
    assert migrate(empty) == migrations()
    rules = empty.command("listCollections", filter={"name": "task"})["cursor"]["firstBatch"]
    assert "validator" in rules[0]["options"]


def test_a_changed_migration_is_noticed(empty: Database) -> None:
    migrate(empty, [MORE])
    with pytest.raises(MigrationError, match="9001 was applied as 'more'"):
        status(empty, [Migration(9001, "other", "{}")])


def test_a_newer_schema_is_refused(empty: Database) -> None:
    migrate(empty, [MORE])
    with pytest.raises(MigrationError, match="use a newer version"):
        migrate(empty)
