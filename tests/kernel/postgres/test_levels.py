"""Levels and their floors: claims keep their order, forget nobody, and do not walk through the past
while somebody's snapshot keeps it from being cleaned up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from afl.kernel.model import (
    CallSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Retry,
    Suspend,
    Task,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.store import PostgresStore
from tests.kernel.postgres.interleaving import two_players
from tests.kernel.postgres.test_plans import Plans

W = WorkerId("w")
HOUR = timedelta(hours=1)
DONE = Close(Outcome.SUCCESS)
FAILED = Close(Outcome.FAILED, permanent=True)
_NIL = "00000000-0000-0000-0000-000000000000"
#: A floor at this distance from the present, to be looked below at another.
_FLOOR = """
insert into afl.claim_floor (list, short_name, priority, run_at, id, noted_at, look_at, tend_at)
select l.list, l.short_name, l.priority, now() + %(floor)s, %(nil)s, now(), now() + %(look)s,
       now() + %(look)s
from afl.claim_level l
"""
_NEWEST = """
select nullif(run_at, '-infinity') from afl.claim_floor
where list = 'default' and short_name = 'work' and priority = 0 order by number desc limit 1
"""
_ALL = _NEWEST.removesuffix("order by number desc limit 1\n")
_TEND = "select afl.tend_levels_v1('{default}', '{work}', clock_timestamp())"


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=1) as store:
        store.register(WorkerSpec(W, "w", handlers=("work",), lease=HOUR))
        yield store


@pytest.fixture
def admin(url: str) -> Iterator[Connection[Row]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def enqueue(store: PostgresStore, **values: Any) -> Task:  # noqa: ANN401
    return store.enqueue([TaskSpec("test", **{"name": "work", **values})])[0]


def claim(store: PostgresStore, names: Sequence[str] = ("work",), n: int = 1) -> list[Claim]:
    return store.claim(ClaimRequest(W, tuple(names), n=n))


def ids(claims: Sequence[Claim]) -> list[str]:
    return [each.task.id for each in claims]


def put_floor(admin: Connection[Row], *, floor: timedelta, look: timedelta) -> None:
    admin.execute(_FLOOR.encode(), {"floor": floor, "look": look, "nil": _NIL})


@contextmanager
def long_ago(url: str) -> Iterator[PostgresStore]:
    """A store whose clock is an hour late."""

    def set_clock(connection: Connection[Row]) -> None:
        connection.execute(
            "select set_config('afl.test_clock', (clock_timestamp() - interval '1 hour')::text, "
            "false)"
        )

    with PostgresStore(Database(url, max_size=1, prepare=set_clock)) as store:
        yield store


@contextmanager
def open_snapshot(url: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute("select count(*) from afl.worker")
        yield


class TestOrder:
    @pytest.mark.parametrize("names", [("work",), ("work", "other")])
    @pytest.mark.parametrize("n", [1, 2, 9])
    def test_by_priority_then_time_whoever_made_them(
        self, url: str, store: PostgresStore, names: Sequence[str], n: int
    ) -> None:
        made: list[Task] = []
        with PostgresStore.connect(url, max_size=1) as other:
            for each, name, priority in zip(
                (store, other) * 4, (*names, names[0]) * 4, (1, 5, -3, 5, 1, 1, 7, -3), strict=False
            ):
                made.append(enqueue(each, name=name, priority=priority))
        expected = sorted(made, key=lambda task: (-task.priority, task.run_at, task.id))
        claims: list[Claim] = []
        while more := claim(store, names, n):
            claims += more
        assert ids(claims) == [task.id for task in expected]

    def test_lists_of_their_own(self, store: PostgresStore) -> None:
        first = enqueue(store, list="one", priority=1)
        second = enqueue(store, list="two", priority=2)
        request = ClaimRequest(W, ("work",), ("one", "two"), 5)
        assert ids(store.claim(request)) == [second.id, first.id]

    @pytest.mark.parametrize("names", [("work",), ("work", "other")])
    def test_more_in_the_hands_of_others_than_a_portion_has(
        self, url: str, store: PostgresStore, names: Sequence[str]
    ) -> None:
        tasks = store.enqueue([TaskSpec("test", "work")] * 60)
        with two_players(url) as table:
            assert ids(claim(table.first, n=50)) == sorted(task.id for task in tasks)[:50]
            assert ids(claim(store, names, n=4)) == sorted(task.id for task in tasks)[50:54]
            table.end_first(commit=False)
        assert len(claim(store, names, n=90)) == 56


@pytest.mark.parametrize("names", [("work",), ("work", "other")])
@pytest.mark.parametrize("n", [1, 3])
class TestBelowTheFloor:
    def test_nobody_looks_before_it_is_time_and_then_finds_it(
        self, url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
    ) -> None:
        with long_ago(url) as late:
            old = enqueue(late)
        put_floor(admin, floor=timedelta(minutes=-1), look=HOUR)
        assert claim(store, names, n) == []
        put_floor(admin, floor=timedelta(minutes=-1), look=timedelta(0))
        assert ids(claim(store, names, n)) == [old.id]
        row = admin.execute(_NEWEST).fetchone()
        assert row == (old.run_at,), "the floor goes back"

    def test_it_is_found_while_there_is_enough_to_do(
        self, url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
    ) -> None:
        with long_ago(url) as late:
            old = enqueue(late)
        put_floor(admin, floor=timedelta(minutes=-1), look=timedelta(0))
        store.enqueue([TaskSpec("test", "work")] * 100)
        found: list[str] = []
        while old.id not in found:
            assert len(found) < 48, "nobody looks below"
            found += ids(claim(store, names, n))

    def test_what_a_slow_transaction_leaves(
        self, url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
    ) -> None:
        enqueue(store)
        with two_players(url) as table:
            slow = enqueue(table.first)
            (first,) = claim(store, names, 1)
            put_floor(admin, floor=timedelta(0), look=timedelta(0))
            assert claim(store, names, n) == []
            put_floor(admin, floor=timedelta(0), look=timedelta(0))
            table.end_first(commit=True)
        assert ids(claim(store, names, n)) == [slow.id]
        assert first.task.id != slow.id

    def test_a_floor_does_not_pass_one_in_the_hands_of_a_claim_that_fails(
        self, url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
    ) -> None:
        with long_ago(url) as late:
            make_past(store, late)
            put_floor(admin, floor=timedelta(hours=-2), look=HOUR)
            admin.execute("update afl.claim_floor set noted_at = noted_at - interval '1 minute'")
            old = enqueue(late)
        with two_players(url) as table, open_snapshot(url):
            assert ids(claim(table.first)) == [old.id]
            admin.execute(_TEND)
            assert claim(store, names, n) == []
            table.end_first(commit=False)
            assert ids(claim(store, names, n)) == [old.id]

    def test_a_note_of_a_clock_that_was_set_back_does_not_count(
        self, url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
    ) -> None:
        task = enqueue(store)
        put_floor(admin, floor=HOUR, look=2 * HOUR)
        admin.execute("update afl.claim_floor set noted_at = noted_at + interval '1 hour'")
        assert ids(claim(store, names, n)) == [task.id]


class TestRegistration:
    def test_two_at_once(self, url: str, admin: Connection[Row]) -> None:
        admin.execute("delete from afl.claim_level")
        specs = [TaskSpec("test", f"n{number}", priority=number % 7) for number in range(200)]
        with (
            PostgresStore.connect(url) as one,
            PostgresStore.connect(url) as two,
            ThreadPoolExecutor(2) as pool,
        ):
            made = pool.map(
                lambda each: each[0].enqueue(each[1]), [(one, specs), (two, specs[::-1])]
            )
            assert [len(tasks) for tasks in made] == [200, 200]
        row = admin.execute("select count(*) from afl.claim_level").fetchone()
        assert row == (200,)

    def test_callees_and_redriven_tasks_can_be_claimed(
        self, store: PostgresStore, admin: Connection[Row]
    ) -> None:
        enqueue(store)
        (held,) = claim(store)
        callee = TaskSpec("test", "a.callee", list="aside", priority=17, retry=Retry(1))
        store.commit([Commit(held.fence, Suspend(), calls=(CallSpec("k", callee, HOUR),))])
        (called,) = store.claim(ClaimRequest(W, ("callee",), ("aside",)))
        store.commit([Commit(called.fence, FAILED)])
        admin.execute("delete from afl.claim_level")
        again = store.redrive(called.task.id)
        assert ids(store.claim(ClaimRequest(W, ("callee",), ("aside",)))) == [again.id]

    def test_the_sweep_registers_what_is_missing(
        self, url: str, store: PostgresStore, admin: Connection[Row]
    ) -> None:
        tasks = [
            enqueue(store, name=name, list=list_, priority=priority)
            for list_ in ("a", "b")
            for name in ("x", "y.z")
            for priority in (1, 2, 3)
        ]
        admin.execute("delete from afl.claim_level")
        request = ClaimRequest(W, ("x", "y.z"), ("a", "b"), 20)
        assert store.claim(request) == []
        put_floor(admin, floor=-HOUR, look=HOUR)
        plans = Plans()
        with PostgresStore(Database(url, max_size=1, prepare=plans.watch)) as watched:
            watched._levels.mend()
        assert [scan for scan in plans.whole_scans() if "task" in scan] == []
        assert set(ids(store.claim(request))) == {task.id for task in tasks}

    def test_the_sweep_removes_notes_that_were_replaced(
        self, store: PostgresStore, admin: Connection[Row]
    ) -> None:
        enqueue(store)
        for minutes in (3, 2, 1):
            put_floor(admin, floor=timedelta(minutes=-minutes), look=HOUR)
        newest = admin.execute(_NEWEST).fetchall()
        store.sweep()
        assert (
            admin.execute("select run_at from afl.claim_floor where short_name = 'work'").fetchall()
            == newest
        )


def make_past(store: PostgresStore, late: PostgresStore) -> None:
    """Tasks of an hour ago that are done."""
    late.enqueue([TaskSpec("test", "work")] * 3000)
    store.commit([Commit(each.fence, DONE) for each in claim(store, n=3000)])


@pytest.mark.parametrize("names", [("work",), ("work", "other")])
@pytest.mark.parametrize("n", [1, 3])
def test_claims_look_only_at_what_is_near_while_a_snapshot_is_open(
    url: str, store: PostgresStore, admin: Connection[Row], names: Sequence[str], n: int
) -> None:
    with long_ago(url) as late, open_snapshot(url):
        make_past(store, late)
        claim(store, names, n)
        admin.execute(_TEND)
        row = admin.execute(_NEWEST).fetchone()
        assert row is not None, "there is a floor"
        assert row[0] is not None
        for _ in range(3):
            task = enqueue(store)
            before = _entries_read(store, admin)
            assert ids(claim(store, names, n)) == [task.id]
            assert _entries_read(store, admin) - before < 300
    admin.execute("vacuum afl.task")
    # a look may take long for other reasons: the first of a connection is planned
    for _ in range(50):
        put_floor(admin, floor=timedelta(minutes=-1), look=timedelta(0))
        assert claim(store, names, n) == []
        if admin.execute(_NEWEST).fetchone() == (None,):
            return
    pytest.fail("the floor stays when there is no need of it any more")


def _entries_read(store: PostgresStore, admin: Connection[Row]) -> int:
    """How many entries of the index of claims these two have met so far."""

    def flush(cursor: psycopg.Cursor[Row]) -> None:
        cursor.execute("select pg_stat_force_next_flush()")
        cursor.execute("select 1")

    store._database.run(flush)
    with admin.cursor() as cursor:
        flush(cursor)
    admin.execute("select pg_stat_clear_snapshot()")
    row = admin.execute(
        "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'task_claim'"
    ).fetchone()
    assert row is not None
    return int(row[0])
