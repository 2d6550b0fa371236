"""The stores of the server keep the same promises: in memory, in PostgreSQL and in
MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import psycopg
import pytest

from afl.app import migrating
from afl.kernel.errors import BadRequest
from afl.kernel.postgres import migrate as kernel_migrate
from afl.server.memory_store import MemoryServerStore
from afl.server.postgres.statements import SQL
from afl.server.postgres_store import PostgresServerStore
from afl.server.store import AuditEntry, Job, SavedFilter, ServerStore, Token, WebHook
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.kernel.postgres.test_migrate import catalogue

NOW = datetime(2027, 1, 31, 9, tzinfo=UTC)
TOKEN = Token("t1", "ada", "viewer", "default", b"\x01" * 32, NOW)
JOB = Job(
    id="j1",
    verb="cancel",
    form={"filter": {"state": "running"}},
    by="ada",
    tenant="default",
    state="running",
    total=3,
    done=0,
    failures=[],
    created_at=NOW,
)
needs_postgres = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL to test with")


@pytest.fixture(params=["memory", "postgres", "mongo"])
def store(request: pytest.FixtureRequest) -> Iterator[ServerStore]:
    if request.param == "memory":
        yield MemoryServerStore()
    elif request.param == "postgres":
        with PostgresServerStore.connect(str(request.getfixturevalue("empty_url"))) as made:
            yield made
    else:
        yield request.getfixturevalue("mongo_store")


class TestStore:
    def test_a_token_is_found_by_its_digest(self, store: ServerStore) -> None:
        expiring = replace(
            TOKEN, id="t2", name="bob", digest=b"\x02" * 32, expires_at=NOW + timedelta(days=1)
        )
        assert store.add_token(TOKEN)
        assert store.add_token(expiring)
        assert store.find_token(TOKEN.digest) == TOKEN
        assert store.find_token(b"\x02" * 32) == expiring
        assert store.find_token(b"\x03" * 32) is None
        assert store.tokens() == [TOKEN, expiring]

    def test_the_name_of_a_token_is_its_own(self, store: ServerStore) -> None:
        assert store.add_token(TOKEN)
        again = replace(TOKEN, id="t2", digest=b"\x02" * 32)
        assert not store.add_token(again)
        assert store.revoke_token("t1")
        assert not store.revoke_token("t1")
        assert store.find_token(TOKEN.digest) is None
        assert store.add_token(again)

    def test_uses_within_a_minute_are_one(self, store: ServerStore) -> None:
        store.add_token(TOKEN)
        used = []
        for seconds in (0, 59, 60, 61):
            store.note_use("t1", NOW + timedelta(seconds=seconds))
            found = store.find_token(TOKEN.digest)
            assert found is not None
            assert found.last_used_at is not None
            used.append((found.last_used_at - NOW).total_seconds())
        assert used == [0, 0, 60, 60]
        store.note_use("unknown", NOW)

    def test_an_entry_is_written_before_and_completed_after(self, store: ServerStore) -> None:
        first = store.begin_audit(AuditEntry("ada", "admin", "*", "POST /tokens", "", at=NOW))
        second = store.begin_audit(
            AuditEntry("bob", "viewer", "a", "POST /runs", "run=1", 403, {"x": 1})
        )
        assert second > first
        (newest, oldest) = store.audit()
        assert (newest.subject, newest.status, newest.detail) == ("bob", 403, {"x": 1})
        assert newest.at is not None
        assert oldest == AuditEntry("ada", "admin", "*", "POST /tokens", "", at=NOW, id=first)
        store.end_audit(first, 201, {"token": "t1"})
        store.end_audit(second, 200, {"y": 2})
        (newest, oldest) = store.audit()
        assert (oldest.status, oldest.detail) == (201, {"token": "t1"})
        assert newest.detail == {"x": 1, "y": 2}

    def test_the_trail_is_read_page_by_page(self, store: ServerStore) -> None:
        ids = [
            store.begin_audit(AuditEntry("ada", "admin", "ab"[n % 2], "POST /x", str(n)))
            for n in range(6)
        ]
        assert [each.id for each in store.audit(limit=2)] == [ids[5], ids[4]]
        assert [each.id for each in store.audit(before=ids[4], limit=2)] == [ids[3], ids[2]]
        assert [each.id for each in store.audit(tenant="a")] == [ids[4], ids[2], ids[0]]

    def test_old_entries_go_the_oldest_first(self, store: ServerStore) -> None:
        now = datetime.now(UTC)
        ids = [
            store.begin_audit(
                AuditEntry("ada", "admin", "a", "POST /x", "", at=now - timedelta(days=days))
            )
            for days in (40, 30, 20, 0)
        ]
        assert store.rotate_audit(timedelta(days=50)) == 0
        assert store.rotate_audit(timedelta(days=10), limit=1) == 1
        assert [each.id for each in store.audit()] == ids[:0:-1]
        assert store.rotate_audit(timedelta(days=10)) == 2
        assert store.rotate_audit(timedelta(days=10)) == 0
        (left,) = store.audit()
        store.end_audit(left.id, 200, {})
        assert store.begin_audit(AuditEntry("bob", "viewer", "a", "POST /y", "")) > left.id

    def test_views_are_of_their_owner_unless_shared(self, store: ServerStore) -> None:
        mine = SavedFilter("v1", "mine", "runs", "state=failed", False, "ada", "default")
        ours = SavedFilter("v2", "ours", "runs", "", True, "ada", "default")
        theirs = SavedFilter("v3", "theirs", "runs", "", True, "eve", "other")
        for view in (ours, mine, theirs):
            store.save_view(view)
        assert store.views("ada", "default") == [mine, ours]
        assert store.views("bob", "default") == [ours]
        assert store.views("ada", "other") == [theirs]
        assert not store.delete_view("v2", "bob")
        assert store.delete_view("v2", "ada")
        store.save_view(replace(mine, query="state=running"))
        assert [view.query for view in store.views("ada", "default")] == ["state=running"]

    def test_the_name_of_a_hook_is_its_own(self, store: ServerStore) -> None:
        hook = WebHook("push", "demo.Build", "default", "s3cret")
        assert store.add_hook(hook)
        assert not store.add_hook(replace(hook, secret="other"))
        assert store.hook("push") == hook
        assert store.hook("pull") is None
        assert store.hooks() == [hook]
        assert store.delete_hook("push")
        assert not store.delete_hook("push")

    def test_jobs_are_written_and_read(self, store: ServerStore) -> None:
        store.put_job(JOB)
        later = replace(JOB, id="j2")
        store.put_job(later)
        done = replace(
            JOB,
            state="done",
            done=3,
            failures=[{"run": "r", "error": "no"}],
            finished_at=NOW,
            cursor="r",
        )
        store.put_job(done)
        assert store.job("j1") == done
        assert store.job("j3") is None
        assert store.jobs() == [later, done]
        assert store.jobs(before="j2") == [done]
        assert store.jobs(limit=1) == [later]

    def test_a_running_job_has_one_server(self, store: ServerStore) -> None:
        store.put_job(JOB)
        assert store.take_job("one", 60) == JOB
        assert store.take_job("two", 60) is None
        assert store.take_job("one", 60) is None
        store.put_job(replace(JOB, done=1))  # it says how far it is, and stays the one
        assert store.renew_job("j1", "one", 60)
        assert not store.renew_job("j1", "two", 60)
        assert store.take_job("two", 60) is None
        assert store.renew_job("j1", "one", 0)  # as if it had died a minute ago
        assert store.take_job("two", 60) == replace(JOB, done=1)
        assert not store.renew_job("j1", "one", 60)
        store.put_job(replace(JOB, state="done"))
        assert not store.renew_job("j1", "two", 60)
        assert store.take_job("three", 60) is None

    def test_the_first_answer_is_kept(self, store: ServerStore) -> None:
        assert store.recall("k") is None
        assert store.remember("k", {"n": 1}) == {"n": 1}
        assert store.remember("k", {"n": 2}) == {"n": 1}
        assert store.recall("k") == {"n": 1}

    def test_of_many_who_answer_at_once_one_is_the_first(self, store: ServerStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda n: store.remember("k", n), range(16)))
        assert len(set(map(str, answers))) == 1

    def test_the_secret_is_made_once(self, store: ServerStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            found = set(pool.map(lambda _: store.secret(), range(8)))
        assert len(found) == 1
        assert len(found.pop()) >= 32


def test_answers_are_forgotten_after_a_day(empty_url: str) -> None:
    with PostgresServerStore.connect(empty_url) as store, psycopg.connect(empty_url) as connection:
        store.remember("old", 1)
        connection.execute("update afl.server_answer set kept_at = kept_at - interval '25 hours'")
        connection.commit()
        assert store.recall("old") is None
        assert store.remember("old", 2) == 2
        store.remember("other", 3)
        rows = connection.execute("select key from afl.server_answer order by key").fetchall()
        assert rows == [("old",), ("other",)]


@needs_postgres
def test_the_schema_is_what_the_migrations_make() -> None:
    with empty_database() as one, empty_database() as other:
        kernel_migrate.migrate(one, kernel_migrate.read_migrations("afl.server.postgres"))
        kernel_migrate.migrate(other)
        with psycopg.connect(other) as connection:
            connection.execute(files("afl.server.postgres").joinpath("schema.sql").read_bytes())
        assert catalogue(one) == catalogue(other)


@needs_postgres
def test_a_database_without_the_schema_says_what_to_do() -> None:
    with (
        empty_database() as url,
        PostgresServerStore.connect(url) as store,
        pytest.raises(BadRequest, match="afl db migrate"),
    ):
        store.tokens()


def test_the_migrations_of_the_server_are_part_of_the_history() -> None:
    assert [each.name for each in migrating.migrations() if each.number > 500] == [
        "server",
        "tenants",
    ]


def test_every_statement_has_a_name_and_a_use() -> None:
    source = files("afl.server").joinpath("postgres_store.py").read_text(encoding="utf-8")
    assert [name for name in SQL if f'"{name}"' not in source] == []
