"""What only the PostgreSQL store promises: indexes, one round trip, and a schema with a history."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from importlib.resources import files
from typing import TypeVar

import psycopg
import pytest
from psycopg.pq.abc import PGconn

from afl.kernel.model import Commit, Json, Suspend
from afl.kernel.port import Transaction
from afl.kernel.postgres import migrate as kernel_migrate
from afl.kernel.postgres.database import Database, PostgresTransaction, Row, Sent, Session
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.persistence import Await, LogLine, Needed, Wait
from afl.runtime.postgres.migrate import migrate, migrations, status
from afl.runtime.postgres.statements import SQL
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.states import StepState
from afl.runtime.step import WorkflowId
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.kernel.postgres.test_migrate import catalogue
from tests.kernel.postgres.test_plans import Plans
from tests.runtime.kept import PostgresKept, begin, changes, claim, end, save, step, write

SOURCES = [
    path for path in files("afl.runtime.postgres").iterdir() if path.name.endswith(".py")
] + [files("afl.runtime").joinpath("postgres_store.py")]
MANY = 100_000
_FILL = """
insert into afl.step (run, path, object_type, statement_id, facet_name, state, yields_to, params,
                      created_at, changed_at)
select %(run)s::uuid, '0/' || n || '/y', 'YieldAssignment', 's', '', 'state.statement.Complete',
       case when n %% 2 = 0 then '0/' || n end, '{"x": 1}', now(), now()
from generate_series(1, %(many)s) as n
"""
_FILL_WAITS = """
insert into afl.step_wait (run, on_path, block)
select %(run)s::uuid, '0/' || n, '1' from generate_series(1, %(many)s) as n
"""
#: How many rows of steps this transaction has updated, and how many of them without an index.
_UPDATES = """
select pg_stat_get_xact_tuples_updated('afl.step'::regclass),
       pg_stat_get_xact_tuples_hot_updated('afl.step'::regclass)
"""
#: How many pieces of large values of steps this transaction has written.
_LARGE_PIECES = """
select pg_stat_get_xact_tuples_inserted(reltoastrelid)
from pg_class where oid = 'afl.step'::regclass
"""
#: Who waits for somebody in this database.
_WAITERS = """
select pid from pg_stat_activity
where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0
"""
T = TypeVar("T")


@pytest.fixture
def empty() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url:
        yield url


class _Noting(Session):
    """A connection that notes the statements of every round trip."""

    def __init__(self, pgconn: PGconn) -> None:
        super().__init__(pgconn)
        self.trips: list[list[bytes]] = []

    def call_all(self, statements: Sequence[Sent]) -> list[list[Row]]:
        self.trips.append([statement.name for statement, _ in statements])
        return super().call_all(statements)


class Watched:
    """A store whose plans can be looked at."""

    def __init__(self, url: str) -> None:
        self.plans = Plans()
        self.store = PostgresPersistence(
            PostgresStore(Database(url, max_size=1, prepare=self.plans.watch))
        )


@pytest.mark.parametrize("analyze", [False, True])
def test_load_reads_by_index_in_a_run_of_many_steps(
    postgres_kept: PostgresKept, analyze: bool
) -> None:
    url = postgres_kept.url
    run = begin(postgres_kept)
    with psycopg.connect(url, autocommit=True) as admin:
        row = admin.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
        if row != (True,):
            pytest.skip("looking at plans needs a superuser")
        # what the server knows of the rows is this test's to say, and not that of a moment
        admin.execute("alter table afl.step set (autovacuum_enabled = off)")
        for statement in (_FILL, _FILL_WAITS):
            admin.execute(statement.encode(), {"run": run, "many": MANY})
        if analyze:
            admin.execute("analyze afl.step, afl.step_wait")
        else:
            # nor what it has learnt from the rows of other tests
            admin.execute("delete from pg_statistic where starelid = 'afl.step'::regclass")
    asked = Needed(
        frozenset(f"0/{n}/y" for n in range(7, 12)),
        frozenset(["0/8", "0/9"]),
        frozenset(["0/8", "0/nobody"]),
    )
    watched = Watched(url)
    with watched.store as store:
        for _ in range(8):  # beyond the point where the server may choose a general plan
            found = store.load(run, asked)
            assert store.load(run, Needed(asked.steps)).steps == found.steps
    assert (len(found.steps), len(found.yields["0/8"]), found.waits) == (5, 1, {"0/8": ["1"]})
    loads = [plan for plan in watched.plans.seen if "from afl.step s" in plan]
    assert len(loads) == 16, "one statement each"
    for plan in loads:
        assert "Seq Scan" not in plan
        conditions = re.findall(r"Index Cond: (.*)", plan)
        assert len(conditions) == (3 if "'wait'" in plan else 1)
        assert all("ANY" in each for each in conditions), "not all rows of the run"


def test_changes_of_many_runs_are_one_statement_and_need_no_answer(
    postgres_kept: PostgresKept,
) -> None:
    store = postgres_kept.store
    runs = [begin(postgres_kept) for _ in range(3)]
    made = []
    for run in runs:
        each = changes(step(run, ""), step(run, "0/y", yields_to=""))
        each.waits.append(Wait("0/y", "1"))
        each.logs.append(LogLine("0/l", {}))
        each.awaits.append(Await("0/w", "n", "k"))
        made.append((run, each))
    with _Noting.connect(postgres_kept.url, autocommit=True) as session:
        transaction = PostgresTransaction(session)
        store.write_many(transaction, made[:2])
        store.start_run(transaction, runs[0])
        store.write_changes(transaction, *made[2])
        assert session.trips == []
        transaction.end()
        assert session.trips == [[b"afl_write_changes", b"afl_start_run"]]
    for run in runs:
        assert len(store.get_steps_by_workflow(run)) == 2


def test_a_step_that_changes_touches_no_index(postgres_kept: PostgresKept) -> None:
    run = begin(postgres_kept)
    first = step(run, "0/a", params={"x": "y" * 100})
    save(postgres_kept, first)
    first.mark_completed()
    first.set_attribute("r", 1, is_return=True)
    seen: list[Row | None] = []

    def writes(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        postgres_kept.store.write_changes(transaction, run, changes(first))
        seen.append(transaction.cursor.execute(_UPDATES).fetchone())

    write(postgres_kept, writes)
    assert seen == [(1, 1)]


def test_a_large_value_that_stays_is_not_written_again(postgres_kept: PostgresKept) -> None:
    run = begin(postgres_kept)
    numbers: Json = [(n * 7919) % 1_000_003 for n in range(100_000)]
    large = step(run, "0/a", params={"numbers": numbers})
    seen: list[int] = []

    def pieces(transaction: PostgresTransaction) -> int:
        row = transaction.cursor.execute(_LARGE_PIECES).fetchone()
        assert row is not None
        return int(row[0])

    def writes(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        # a connection counts on from one transaction to the next
        before = pieces(transaction)
        postgres_kept.store.write_changes(transaction, run, changes(large))
        seen.append(pieces(transaction) - before)

    write(postgres_kept, writes)
    large.state = StepState.EVENT_TRANSMIT
    write(postgres_kept, writes)
    first, second = seen
    assert first > 100
    assert second == 0
    assert postgres_kept.store.get_step(large.id) == large


def test_times_are_the_databases(postgres_kept: PostgresKept) -> None:
    run = begin(postgres_kept)
    given = step(run, "0/a")
    save(postgres_kept, given)
    statement = "select created_at, changed_at, ended_at from afl.step where path = '0/a'"
    (made,) = postgres_kept.database.rows(statement.encode(), {})
    assert made[0] == made[1]
    assert made[2] is None
    given.mark_completed()
    save(postgres_kept, given)
    (ended,) = postgres_kept.database.rows(statement.encode(), {})
    assert ended[0] == made[0]
    assert ended[1] == ended[2] > made[1]
    save(postgres_kept, given)
    (again,) = postgres_kept.database.rows(statement.encode(), {})
    assert again[2] == ended[2]
    assert again[1] > ended[1]


def test_what_comes_during_a_match_is_for_the_next_one(postgres_kept: PostgresKept) -> None:
    """A match that is held up must not take as seen what it has not seen."""
    store = postgres_kept.store
    first, second = begin(postgres_kept), begin(postgres_kept)

    def meet(run: WorkflowId, key: str) -> None:
        made = changes()
        made.awaits.append(Await("0/w", "n", key))
        write(postgres_kept, lambda transaction: store.write_changes(transaction, run, made))
        store.emit("n", key, key)

    meet(first, "early")
    with held(postgres_kept.url, "select from afl.signal_wait for update") as end_hold:
        matching = started(postgres_kept.url, store.match_events)
        meet(second, "late")
        end_hold()
    assert matching.result(20) == [(first, "0/w", "early")]
    assert store.match_events() == [(first, "0/w", "early"), (second, "0/w", "late")]


def test_matches_take_turns(postgres_kept: PostgresKept) -> None:
    lock = "select pg_advisory_xact_lock(hashtextextended('afl signals', 0))"
    with held(postgres_kept.url, lock) as end_hold:
        matching = started(postgres_kept.url, postgres_kept.store.match_events)
        assert not matching.done()
        end_hold()
    assert matching.result(20) == []


@contextmanager
def held(url: str, statement: str) -> Iterator[Callable[[], None]]:
    """A transaction that has run a statement and is open until its end is called for."""
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())
        yield connection.rollback


def started(url: str, action: Callable[[], T]) -> Future[T]:
    """Starts something and returns when it waits for another transaction, or has ended."""
    future: Future[T] = Future()
    threading.Thread(target=lambda: future.set_result(action()), daemon=True).start()
    deadline = time.monotonic() + 20
    with psycopg.connect(url, autocommit=True) as onlooker:
        while not future.done() and not onlooker.execute(_WAITERS).fetchall():
            assert time.monotonic() < deadline, "it neither waits nor ends"
    return future


def test_the_migrations_come_to_what_schema_sql_says(empty: str) -> None:
    migrate(empty)
    with empty_database() as other:
        kernel_migrate.migrate(other)
        with psycopg.connect(other) as connection:
            connection.execute(files("afl.runtime.postgres").joinpath("schema.sql").read_bytes())
        migrated, described = catalogue(empty), catalogue(other)
    assert migrated == described
    assert any("afl.step_yields" in row[1] for row in migrated)


def test_the_history_is_one(empty: str) -> None:
    numbers = [each.number for each in migrations()]
    own = [number for number in numbers if number > 100]
    assert numbers == sorted(numbers)
    assert own == [*range(101, 101 + len(own))]
    kernel_migrate.migrate(empty)
    assert [step.migration.number for step in status(empty) if step.applied_at is None] == own
    with ThreadPoolExecutor(3) as pool:
        applied = [each.number for done in pool.map(migrate, [empty] * 3) for each in done]
    assert sorted(applied) == own
    assert all(step.applied_at for step in status(empty))


@pytest.mark.parametrize("name", SQL)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    assert re.match(rb"-- [A-Z][^\n]+[.;:,\w]\n", SQL[name])
    assert not re.search(rb"\{\w+\}", SQL[name])


def test_forgetting_goes_on_after_a_batch(
    postgres_kept: PostgresKept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afl.runtime.postgres.runs._STEPS_PER_BATCH", 1)
    for _ in range(3):
        run = begin(postgres_kept)
        save(postgres_kept, step(run, ""), step(run, "0/a"))
        end(postgres_kept, run)
    assert postgres_kept.store.forget_runs(timedelta(0)) == 3
    assert postgres_kept.database.rows(b"select from afl.step", {}) == []


def test_every_statement_is_used_and_no_other() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    unused = [name for name in SQL if f'"{name}"' not in code]
    unknown = [name for name in re.findall(r'SQL\["(\w+)"\]', code) if name not in SQL]
    assert (unused, unknown) == ([], [])


def test_the_port_is_open_to_a_pooler(runs_url: str) -> None:
    """Nothing depends on prepared statements or on the connection."""
    with PostgresPersistence.connect(runs_url, prepare_threshold=None) as store:
        assert store.find_runs() == []
        assert store.now().tzinfo is not None


def test_a_transaction_of_another_store_is_refused(postgres_kept: PostgresKept) -> None:
    run = begin(postgres_kept)
    held = claim(postgres_kept)

    class Other:
        pass

    def writes(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        postgres_kept.store.write_changes(Other(), run, changes())

    with pytest.raises(TypeError, match="not one of the PostgreSQL store"):
        postgres_kept.store.kernel.commit([Commit(held.fence, Suspend())], writes=writes)
