"""What only the PostgreSQL store can show: its constraints, its errors, its views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from afl.kernel import rules
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Retry,
    State,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database, PostgresTransaction
from afl.kernel.postgres.store import PostgresStore
from tests.kernel.round_trip import check_round_trip

W = WorkerId("w")
HOUR = timedelta(hours=1)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        store.register(WorkerSpec(W, "w", handlers=("work", "tool"), lease=HOUR))
        yield store


def enqueue(store: PostgresStore, name: str = "work", **values: Any) -> Task:  # noqa: ANN401
    return store.enqueue([TaskSpec("test", name, **values)])[0]


def take(store: PostgresStore, name: str = "work") -> Claim:
    (claim,) = store.claim(ClaimRequest(W, (name,)))
    return claim


def call(key: str) -> CallSpec:
    return CallSpec(key, TaskSpec("tool", "tool"), HOUR)


class TestConstraints:
    """A mistake in the code hits one of these before it reaches a user."""

    @pytest.mark.parametrize(
        ("change", "refusal"),
        [
            ("state = 'paused'", "unknown state"),
            ("state = 'running'", "I3: running is to have a fence"),
            ("fence = 1", "I3: running is to have a fence"),
            ("state = 'closed'", "I4: closed is to have an outcome"),
            ("outcome = 'success'", "I4: closed is to have an outcome"),
            ("outcome = 'fine'", "unknown outcome"),
            ("dead = true", "dead is closed"),
            ("state = 'queued'", "queued is queued for a lane"),
            ("depth = 20", "I11: too deep"),
            ("reason_code = null, reason_since = null", "whoever does not run says why"),
            ("parent_call = id", "a call has a caller"),
            ("seq = -1", "counts start at 0"),
            ("worker = 'w'", "I3: running is to have a worker"),
            ("closed_at = now()", "I4: closed is to have a time"),
            ("reason_since = null", "a reason has a time"),
            ("wake = 'some'", "unknown wake"),
            ("caller = id", "a call has a caller"),
            ("depth = -1", "I11: too deep"),
            ("name = 'other.x'", "the short name is another"),
        ],
    )
    def test_of_a_task(self, url: str, store: PostgresStore, change: str, refusal: str) -> None:
        enqueue(store)
        with (
            psycopg.connect(url) as connection,
            pytest.raises(psycopg.errors.CheckViolation, match=refusal),
        ):
            connection.execute(f"update afl.task set {change}".encode())

    @pytest.mark.parametrize(
        "statement",
        [
            "update afl.task set lane = 'l'",  # I2
            "update afl.task set idem = 'i'",
            "insert into afl.outbox (topic, task, run, created_at) "
            "select 'closed', id, run, now() from afl.task, generate_series(1, 2)",  # I4
            "update afl.task set parent_call = %(id)s, caller = %(id)s",  # I5
            "update afl.task set state = 'running', fence = 7, worker = 'w'",  # I1
        ],
    )
    def test_what_there_is_only_once(self, url: str, store: PostgresStore, statement: str) -> None:
        first, _second = enqueue(store), enqueue(store)
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(statement.encode(), {"id": first.id})

    @pytest.mark.parametrize(
        ("change", "refusal"),
        [
            ("status = 'ok'", "I5: open has no answer"),
            ("status = 'well'", "unknown status"),
            ("applied = true", "what is applied was answered"),
        ],
    )
    def test_of_a_call(self, url: str, store: PostgresStore, change: str, refusal: str) -> None:
        enqueue(store)
        store.commit([Commit(take(store).fence, Suspend(), calls=(call("k"),))])
        with (
            psycopg.connect(url) as connection,
            pytest.raises(psycopg.errors.CheckViolation, match=refusal),
        ):
            connection.execute(f"update afl.call set {change}".encode())


def test_every_field_of_a_spec_comes_back(store: PostgresStore) -> None:
    check_round_trip(store)


@pytest.mark.parametrize("jitter", [True, False])
def test_the_wait_before_a_retry_is_that_of_the_rules(store: PostgresStore, jitter: bool) -> None:
    retry = Retry(40, timedelta(milliseconds=1), 1.7, timedelta(seconds=30), jitter)
    task = enqueue(store, retry=retry, delay=timedelta(0))
    statement = b"select extract(epoch from afl.retry_wait_v1(t)) from afl.task t"
    with psycopg.connect(store_url(store)) as connection:
        for failures in (0, 1, 7, 30, 39):
            connection.execute("update afl.task set failures = %s", [failures])
            row = connection.execute(statement).fetchone()
            assert row is not None
            failed = store.get_task(task.id)
            assert failed is not None
            expected = rules.retry_wait(_with_failures(task, failures)).total_seconds()
            assert float(row[0]) == pytest.approx(expected, abs=1e-6)


def store_url(store: PostgresStore) -> str:
    def url(cursor: psycopg.Cursor[Any]) -> str:
        return cursor.connection.info.dsn

    return store._database.run(url)


def _with_failures(task: Task, failures: int) -> Task:
    values = {each.name: getattr(task, each.name) for each in fields(task)}
    return Task(**{**values, "failures": failures})


class TestConnections:
    def test_no_server(self) -> None:
        database = Database("postgresql://127.0.0.1:1/nothing", timeout_seconds=0.2)
        with PostgresStore(database) as store, pytest.raises(StoreUnavailable) as caught:
            store.get_task(TaskId("00000000-0000-7000-8000-000000000001"))
        assert caught.value.retryable

    def test_a_lost_connection_is_unavailable_and_then_replaced(
        self, url: str, store: PostgresStore
    ) -> None:
        task = enqueue(store)
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name = 'afl' and datname = current_database()"
            )
        with pytest.raises(StoreUnavailable):
            store.get_task(task.id)
        assert store.get_task(task.id) == task

    def test_a_lost_connection_undoes_the_writes(self, url: str, store: PostgresStore) -> None:
        def write_and_die(transaction: Transaction) -> None:
            assert isinstance(transaction, PostgresTransaction)
            transaction.cursor.execute("insert into public.mark values ('x')")
            with psycopg.connect(url, autocommit=True) as admin:
                pid = transaction.cursor.connection.info.backend_pid
                admin.execute("select pg_terminate_backend(%s)", [pid])

        with pytest.raises(StoreUnavailable):
            store.enqueue([TaskSpec("test", "work")], writes=write_and_die)
        assert store.find_tasks() == []

    def test_a_deadlock_is_tried_again(self, store: PostgresStore) -> None:
        tries = []

        def write(transaction: Transaction) -> None:
            assert isinstance(transaction, PostgresTransaction)
            tries.append(1)
            if len(tries) < 3:
                transaction.cursor.execute(
                    "do $$ begin raise exception using errcode = '40P01'; end $$"
                )

        store.enqueue([TaskSpec("test", "work")], writes=write)
        assert len(tries) == 3
        assert len(store.find_tasks()) == 1

    def test_it_works_without_prepared_statements(self, url: str, store: PostgresStore) -> None:
        """As a pooler in transaction mode may demand it."""
        with PostgresStore(Database(url, prepare_threshold=None)) as plain:
            for _ in range(3):
                enqueue(plain)
                plain.commit([Commit(take(plain).fence, Close(Outcome.SUCCESS))])
            prepared = plain._database.rows(b"select count(*) from pg_prepared_statements", {})
        assert prepared == [(0,)]
        assert len(store.find_tasks(state=State.CLOSED)) == 3


class TestAgentViews:
    """The same rows in the words of those who operate agents."""

    def test_an_agent_through_a_turn(self, url: str, store: PostgresStore) -> None:
        spec = TaskSpec("turn", "work", lane="ann", input={"ask": 1})
        first, second = store.enqueue([spec, spec])
        head = self._head(url)
        assert (head["status"], head["active_agent_turn_id"]) == ("dispatched", first.id)
        assert self._statuses(url, "agent_inbox") == {first.id: "pending", second.id: "queued"}
        claim = take(store)
        head = self._head(url)
        assert (head["status"], head["turn_epoch"]) == ("running", claim.fence)
        (waits,) = store.commit([Commit(claim.fence, Suspend(), calls=(call("t1"), call("t2")))])
        head = self._head(url)
        assert (head["status"], head["waiting_tool_count"]) == ("suspended", 2)
        assert head["turn_epoch"] == claim.fence
        tools = self._rows(url, "turn_waiting_tools")
        assert {each["tool_call_id"]: each["wait_status"] for each in tools} == {
            "t1": "waiting",
            "t2": "waiting",
        }
        store.reply(waits.calls["t1"], CallStatus.OK, {"x": 1})
        store.reply(waits.calls["t2"], CallStatus.TIMEOUT)
        tools = self._rows(url, "turn_waiting_tools")
        assert sorted(each["wait_status"] for each in tools) == ["expired", "received"]
        inbox = self._rows(url, "agent_inbox")
        assert sorted((each["message_type"], each["status"]) for each in inbox) == [
            ("timeout", "pending"),
            ("tool_result", "pending"),
            ("turn", "consumed"),
            ("turn", "queued"),
        ]
        claim = take(store)
        applied = tuple(reply.id for reply in claim.replies)
        store.commit([Commit(claim.fence, Close(Outcome.SUCCESS), applied=applied)])
        head = self._head(url)
        assert (head["status"], head["active_agent_turn_id"]) == ("dispatched", second.id)
        store.stop(second.id)
        assert self._head(url)["status"] == "idle"
        assert self._statuses(url, "agent_inbox")[second.id] == "skipped"
        edges = self._rows(url, "execution_edges")
        assert sorted((each["primitive"], each["edge_phase"]) for each in edges) == [
            ("enqueue", "request"),
            ("enqueue", "request"),
            ("report", "response"),
            ("report", "response"),
            ("tool_call", "request"),
            ("tool_call", "request"),
        ]

    def _head(self, url: str) -> dict[str, Any]:
        (head,) = self._rows(url, "agent_state_head")
        assert (head["project_id"], head["agent_id"]) == ("default", "ann")
        return head

    def _statuses(self, url: str, view: str) -> dict[str, str]:
        return {each["agent_turn_id"]: each["status"] for each in self._rows(url, view)}

    @staticmethod
    def _rows(url: str, view: str) -> list[dict[str, Any]]:
        with psycopg.connect(url) as connection:
            cursor = connection.execute(f"select * from state.{view}".encode())
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return [
            {
                name: str(value) if name.endswith("turn_id") and value else value
                for name, value in row.items()
            }
            for row in rows
        ]


def test_an_outbox_reader_misses_nothing(url: str, store: PostgresStore) -> None:
    """An entry that was written first but committed last comes last."""
    with psycopg.connect(url) as slow:
        slow.execute(
            "insert into afl.outbox (topic, task, run, created_at) "
            "values ('slow', gen_random_uuid(), 'r', now())"
        )
        store.stop(enqueue(store).id)
        (seen,) = store.read_outbox()
        assert seen.topic == "closed"
        slow.commit()
    (late,) = store.read_outbox(after=seen.id)
    assert late.topic == "slow"
    assert store.trim_outbox(late.id) == 2
    assert store.read_outbox() == []


def test_a_backlog_of_others_does_not_slow_claims(url: str) -> None:
    """A claim looks only at what it may take: not at other names, lists, or the future."""
    with (
        psycopg.connect(url, autocommit=True) as connection,
        PostgresStore.connect(url, max_size=1) as store,
    ):
        store.register(WorkerSpec(W, "w", lease=HOUR))
        store.enqueue([TaskSpec("test", "other")] * 300)
        store.enqueue([TaskSpec("test", "work", list="other")] * 300)
        store.enqueue([TaskSpec("test", "work", delay=HOUR, priority=5)] * 300)
        enqueue(store)
        before = _tuples_read(store, connection)
        take(store)
        assert _tuples_read(store, connection) - before < 20


def _tuples_read(store: PostgresStore, connection: psycopg.Connection[Any]) -> int:
    """How many rows of the task table this store has looked at so far, in whatever way."""
    store._database.rows(b"select pg_stat_force_next_flush()", {})
    store._database.rows(b"select 1", {})
    connection.execute("select pg_stat_clear_snapshot()")
    row = connection.execute(
        "select coalesce(sum(idx_tup_read), 0) + (select seq_tup_read from pg_stat_user_tables "
        "where relid = 'afl.task'::regclass) "
        "from pg_stat_user_indexes where relid = 'afl.task'::regclass"
    ).fetchone()
    assert row is not None
    return int(row[0])
