"""The store behind PgBouncer in transaction mode: every transaction may meet another server
connection than the one before, and there are fewer of them than clients."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from afl.app.migrating import migrate, migrations, status
from afl.app.services import connect as services_on
from afl.base.settings import Settings
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    State,
    Suspend,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction, Writes
from afl.kernel.postgres.database import Database, PostgresTransaction
from afl.kernel.postgres.store import PostgresStore
from afl.testing.clock import SequentialIds
from afl.testing.conformance.harness import Harness
from afl.testing.conformance.invariants import check
from afl.testing.conformance.suite import ConformanceSuite
from tests.cli.runner import run
from tests.kernel.pooler import Pooler, find_pgbouncer, pooler
from tests.kernel.postgres.databases import (
    PostgresHarness,
    clear,
    empty_database,
    migrated_database,
    server_is_there,
)

SERVERS = 2
CLIENTS = 8
FLOWS = 40
HOUR = timedelta(hours=1)
DONE = Close(Outcome.SUCCESS, result="done")
#: each flow calls two others
TASKS = FLOWS * 3


@pytest.fixture(scope="module")
def program() -> str:
    found = find_pgbouncer()
    if found is None:
        pytest.skip("there is no PgBouncer; the package `pgbouncer` has it")
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    return found


@pytest.fixture(scope="module")
def database(program: str) -> Iterator[str]:
    with migrated_database() as url:
        yield url


@pytest.fixture
def direct(database: str) -> str:
    """A database with the schema and no rows, without a pooler before it."""
    clear(database)
    return database


@pytest.fixture
def pool(program: str, direct: str) -> Iterator[Pooler]:
    with pooler(program, direct, SERVERS) as started:
        yield started


@pytest.fixture
def store(pool: Pooler) -> Iterator[PostgresStore]:
    with connect(pool) as store:
        store.register(WorkerSpec(WorkerId("w"), "w", handlers=("a", "b"), lease=HOUR))
        yield store
        assert check(store) == []


def connect(pool: Pooler, clients: int = 2) -> PostgresStore:
    """The way that the documentation names: nothing prepared."""
    return PostgresStore.connect(pool.url, max_size=clients, prepare_threshold=None)


def claim(store: PostgresStore, name: str = "a") -> Claim:
    (held,) = store.claim(ClaimRequest(WorkerId("w"), (name,)))
    return held


@pytest.mark.parametrize(("value", "is_prepared"), [("off", False), ("on", True)])
def test_a_setting_has_nothing_prepared(direct: str, value: str, is_prepared: bool) -> None:
    """What a pooler would have to carry, seen without one."""
    settings = Settings.from_env({"AFL_PREPARE": value})
    parts = conninfo_to_dict(direct)
    url = f"postgresql://{parts['host']}/{parts['dbname']}"
    with services_on(url, settings) as services:
        kernel = services.persistence.kernel
        for _ in range(10):
            kernel.enqueue([TaskSpec("event", "a")])
        assert isinstance(kernel, PostgresStore)
        found = kernel.database.rows(b"select count(*) from pg_prepared_statements", {})
    assert (found[0][0] > 0) is is_prepared


def mark(name: str) -> Writes:
    def write(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        transaction.cursor.execute("insert into public.mark values (%s)", [name])

    return write


def marks(direct: str) -> Counter[str]:
    with psycopg.connect(direct) as connection:
        return Counter(row[0] for row in connection.execute("select name from public.mark"))


def server_of(transaction: Transaction) -> int:
    """The process that serves this transaction; what the client was told is the pooler's."""
    assert isinstance(transaction, PostgresTransaction)
    row = transaction.cursor.execute("select pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


class TestOneClient:
    def test_a_call_from_enqueue_to_answer(self, store: PostgresStore) -> None:
        (task,) = store.enqueue([TaskSpec("test", "a", idem="once")])
        assert store.enqueue([TaskSpec("test", "a", idem="once")]) == [task]
        spec = CallSpec("k", TaskSpec("test", "b"), HOUR)
        (committed,) = store.commit([Commit(claim(store).fence, Suspend(), calls=(spec,))])
        assert committed.task.state is State.WAITING
        assert store.reply(committed.calls["k"], CallStatus.OK, {"n": 1})
        assert not store.reply(committed.calls["k"], CallStatus.OK, {"n": 2})
        again = claim(store)
        assert [reply.reply for reply in again.replies] == [{"n": 1}]
        applied = tuple(reply.id for reply in again.replies)
        (closed,) = store.commit([Commit(again.fence, DONE, applied=applied)])
        assert (closed.task.state, closed.task.result) == (State.CLOSED, "done")

    def test_the_sweep_takes_back_what_a_lost_worker_held(self, store: PostgresStore) -> None:
        store.enqueue([TaskSpec("test", "a")])
        held = claim(store)
        moment = timedelta(microseconds=1)
        store.register(WorkerSpec(WorkerId("w"), "w", handlers=("a",), lease=moment))
        assert store.sweep().tasks_recovered == 1
        assert store.renew(WorkerId("w"), [held.fence]).lost == (held.fence,)
        store.register(WorkerSpec(WorkerId("w"), "w", handlers=("a",), lease=HOUR))
        assert claim(store).fence > held.fence

    def test_writes_happen_with_the_commit_or_not_at_all(
        self, direct: str, store: PostgresStore
    ) -> None:
        def write_and_raise(transaction: Transaction) -> None:
            mark("never")(transaction)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            store.enqueue([TaskSpec("test", "a")], writes=write_and_raise)
        assert store.find_tasks() == []
        store.enqueue([TaskSpec("test", "a")], writes=mark("enqueue"))
        held = claim(store)
        with pytest.raises(ValueError, match="no"):
            store.commit([Commit(held.fence, DONE)], writes=write_and_raise)
        store.commit([Commit(held.fence, DONE)], writes=mark("commit"))
        store.commit([Commit(held.fence, DONE)], writes=mark("commit"))
        assert marks(direct) == {"enqueue": 1, "commit": 1}


@dataclass(slots=True)
class Crew:
    """Workers that share a few server connections, and what they saw of them."""

    pool: Pooler
    begin: threading.Barrier = field(default_factory=lambda: threading.Barrier(CLIENTS))
    lock: threading.Lock = field(default_factory=threading.Lock)
    closed: int = 0
    servers: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def work(self, number: int) -> None:
        """One client with one connection, until every task is closed."""
        worker = WorkerId(f"w{number}")
        with connect(self.pool, clients=1) as store:
            store.register(WorkerSpec(worker, "crew", handlers=("a", "b"), lease=HOUR))
            self.begin.wait()
            while self.closed < TASKS:
                for held in store.claim(ClaimRequest(worker, ("a", "b"), n=2)):
                    self._step(store, number, held)

    def _step(self, store: PostgresStore, number: int, held: Claim) -> None:
        if held.task.name == "a" and not held.replies:
            calls = tuple(CallSpec(key, TaskSpec("test", "b"), HOUR) for key in ("k1", "k2"))
            store.commit([Commit(held.fence, Suspend(), calls=calls)])
            return
        applied = tuple(reply.id for reply in held.replies)
        commit = Commit(held.fence, DONE, applied=applied)
        store.commit([commit], writes=self._seen(number, held.task.id))
        store.commit([commit], writes=mark("a repeated commit"))
        with self.lock:
            self.closed += 1

    def _seen(self, number: int, task: str) -> Writes:
        def write(transaction: Transaction) -> None:
            mark(task)(transaction)
            with self.lock:
                self.servers[number].add(server_of(transaction))

        return write


class TestMoreClientsThanServers:
    def test_every_task_is_closed_exactly_once(self, direct: str, pool: Pooler) -> None:
        with connect(pool) as store:
            store.enqueue([TaskSpec("test", "a") for _ in range(FLOWS)])
            crew = Crew(pool)
            with ThreadPoolExecutor(CLIENTS) as threads:
                for worker in [threads.submit(crew.work, number) for number in range(CLIENTS)]:
                    worker.result()
            tasks = store.find_tasks(limit=TASKS + 1)
            assert {task.state for task in tasks} == {State.CLOSED}
            assert marks(direct) == {task.id: 1 for task in tasks}
            assert len(tasks) == TASKS
            events = [entry.task for entry in store.read_outbox(limit=TASKS + 1)]
            assert sorted(events) == [task.id for task in tasks]
            assert check(store) == []
        # a run in which each client had a server of its own would prove nothing
        assert len(set().union(*crew.servers.values())) == SERVERS
        assert any(len(seen) == SERVERS for seen in crew.servers.values())


class TestLosses:
    @pytest.mark.parametrize("notices", ["at the next statement", "at the commit"])
    def test_a_lost_server_undoes_the_commit_and_is_replaced(
        self, direct: str, store: PostgresStore, notices: str
    ) -> None:
        def write_and_lose(transaction: Transaction) -> None:
            mark("lost")(transaction)
            with psycopg.connect(direct, autocommit=True) as admin:
                admin.execute("select pg_terminate_backend(%s, 5000)", [server_of(transaction)])
            if notices == "at the next statement":
                mark("lost")(transaction)

        store.enqueue([TaskSpec("test", "a")])
        commit = Commit(claim(store).fence, DONE)
        with pytest.raises(StoreUnavailable):
            store.commit([commit], writes=write_and_lose)
        (closed,) = store.commit([commit], writes=mark("kept"))
        assert closed.task.state is State.CLOSED
        assert marks(direct) == {"kept": 1}

    def test_a_server_that_is_lost_between_two_transactions_is_not_missed(
        self, direct: str, store: PostgresStore
    ) -> None:
        (task,) = store.enqueue([TaskSpec("test", "a")])
        with psycopg.connect(direct, autocommit=True) as admin:
            # the pooler's own name for its connections is that of their clients
            ended = admin.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            ).fetchall()
        assert ended
        assert store.get_task(task.id) == task

    def test_a_lost_pooler_undoes_the_commit_and_may_come_back(
        self, direct: str, pool: Pooler, store: PostgresStore
    ) -> None:
        def write_and_lose(transaction: Transaction) -> None:
            mark("lost")(transaction)
            pool.restart()

        store.enqueue([TaskSpec("test", "a")])
        commit = Commit(claim(store).fence, DONE)
        with pytest.raises(StoreUnavailable):
            store.commit([commit], writes=write_and_lose)
        (closed,) = store.commit([commit], writes=mark("kept"))
        assert closed.task.state is State.CLOSED
        assert marks(direct) == {"kept": 1}


def test_the_schema_is_migrated_through_the_pooler(program: str) -> None:
    with empty_database() as empty, pooler(program, empty, SERVERS) as pool:
        assert migrate(pool.url) == migrations()
        assert all(step.applied_at for step in status(pool.url))


def test_old_work_is_removed_through_the_pooler(pool: Pooler, store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a")])
    store.commit([Commit(claim(store).fence, DONE)])
    migrate(pool.url)  # the commands want the whole schema
    result = run("db", "rotate", "--older-than", "0s", "--database", pool.url)
    assert result.stderr == "removed 1 task\n"
    assert store.find_tasks() == []


class PooledHarness(PostgresHarness):
    """Through a pooler with a single server connection, which remembers the virtual clock."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._store.close()
        self._database = Database(url, max_size=2, prepare_threshold=None, prepare=self._set_clock)
        self._store = PostgresStore(self._database, SequentialIds())


@pytest.fixture(scope="module")
def single(program: str, database: str) -> Iterator[Pooler]:
    with pooler(program, database, 1) as started:
        yield started


class TestConformance(ConformanceSuite):
    @pytest.fixture
    def harness(self, direct: str, single: Pooler) -> Iterator[Harness]:
        harness = PooledHarness(single.url)
        yield harness
        harness.close()
