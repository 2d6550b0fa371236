"""A caller's own writes in the transaction of a step: with it or not at all, in one round trip."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from afl.kernel.errors import BadRequest, StoreUnavailable
from afl.kernel.model import Commit, Continue, Stopped, WorkerSpec
from afl.kernel.port import Transaction, Writes
from afl.kernel.postgres.database import PostgresTransaction
from afl.kernel.postgres.statements import numbered
from afl.kernel.postgres.store import PostgresStore
from tests.kernel.postgres.databases import url_of
from tests.kernel.postgres.stepping import (
    HOUR,
    NOTE,
    W,
    begin,
    call,
    check,
    flows,
    note,
    notes,
    request,
    step,
)

ROOT = Path(__file__).parents[3]
COST = ("python", "backend", "wall")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        store.register(WorkerSpec(W, "w", handlers=("flow", "tool"), lease=HOUR))
        yield store


def _reads(transaction: Transaction) -> None:
    assert isinstance(transaction, PostgresTransaction)
    transaction.send(NOTE, {"name": "sent"})
    row = transaction.cursor.execute("select count(*) from public.mark").fetchone()
    transaction.send(NOTE, {"name": f"after {row}"})


def test_writes_may_read_in_between(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    done, _ = store.commit_and_claim(step(flow, callee, 1, call("1")), request(), writes=_reads)
    check(store, done)
    assert notes(store) == ["after (1,)", "sent"]


def _fails_at_once(transaction: Transaction) -> None:
    raise ZeroDivisionError


def _fails_late(transaction: Transaction) -> None:
    assert isinstance(transaction, PostgresTransaction)
    transaction.send(numbered("wrong", "select 1 / %(zero)s::int"), {"zero": 0})


def _fails_in_between(transaction: Transaction) -> None:
    assert isinstance(transaction, PostgresTransaction)
    transaction.cursor.execute("insert into public.mark values ('x')")
    raise ZeroDivisionError


def _hides_a_failure(transaction: Transaction) -> None:
    assert isinstance(transaction, PostgresTransaction)
    with pytest.raises(psycopg.errors.DivisionByZero):
        transaction.cursor.execute("select 1 / 0")


@pytest.mark.parametrize(
    ("writes", "error"),
    [
        (_fails_at_once, ZeroDivisionError),
        (_fails_late, BadRequest),
        (_fails_in_between, ZeroDivisionError),
        (_hides_a_failure, psycopg.errors.InFailedSqlTransaction),
    ],
)
@pytest.mark.parametrize("short", [True, False])
def test_writes_that_fail_leave_no_trace(
    store: PostgresStore, writes: Writes, error: type[Exception], short: bool
) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    before = store.find_tasks(limit=9)
    commits = step(flow, callee, 1, call("1"))
    if not short:
        commits.insert(0, Commit(flow.fence, Continue(), 0))
    with pytest.raises(error):
        store.commit(commits, writes=writes)
    assert store.find_tasks(limit=9) == before
    assert notes(store) == []
    # the connection is as good as before, and so is the claim
    store.commit(commits, writes=note("now"))
    assert notes(store) == ["now"]


def test_a_race_that_was_lost_is_run_again(url: str) -> None:
    tries = 0

    def unlucky(transaction: Transaction) -> None:
        nonlocal tries
        tries += 1
        assert isinstance(transaction, PostgresTransaction)
        if tries < 3:
            statement = "do $$ begin raise sqlstate '40001'; end $$"
            transaction.send(numbered("unlucky", statement), {})
        transaction.send(NOTE, {"name": "lucky"})

    with PostgresStore.connect(url, max_size=1) as store:
        store.register(WorkerSpec(W, "w", handlers=("flow", "tool"), lease=HOUR))
        (flow,) = flows(store)
        (callee,) = begin(store, [flow])
        check(store, store.commit(step(flow, callee, 1), writes=unlucky))
        assert tries == 3
        assert notes(store) == ["lucky"]


def test_what_the_server_has_forgotten_is_prepared_again(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    for number in (1, 2):
        store.database.run(lambda cursor: cursor.execute("deallocate all"))
        done, (callee,) = store.commit_and_claim(
            step(flow, callee, number, call(str(number))), request(), writes=note(str(number))
        )
        check(store, done)
    assert notes(store) == ["1", "2"]


def test_without_prepared_statements(url: str) -> None:
    with PostgresStore.connect(url, max_size=1, prepare_threshold=None) as store:
        store.register(WorkerSpec(W, "w", handlers=("flow", "tool"), lease=HOUR))
        (flow,) = flows(store)
        (callee,) = begin(store, [flow])
        done, _ = store.commit_and_claim(
            step(flow, callee, 1, call("1")), request(), writes=note("yes")
        )
        check(store, done)
        assert notes(store) == ["yes"]


def test_a_connection_that_is_lost_leaves_the_claim_to_the_next_try(
    store: PostgresStore, url: str
) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    commits = step(flow, callee, 1, call("1"))

    def cut(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        pid = transaction.cursor.connection.info.backend_pid
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("select pg_terminate_backend(%s, 5000)", [pid])

    with pytest.raises(StoreUnavailable):
        store.commit_and_claim(commits, request(), writes=cut)
    done, _ = store.commit_and_claim(commits, request(), writes=note("again"))
    assert [each.task for each in done] == [store.get_task(each.task.id) for each in done]
    assert notes(store) == ["again"]


def test_writes_that_ignore_a_failure_do_not_hide_why(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    assert store.stop(flow.task.id) is Stopped.REQUESTED

    def careless(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        with suppress(psycopg.Error):
            transaction.cursor.execute("insert into public.mark values ('x')")

    # not plain any more: it goes the long way, where nothing fails
    done = store.commit(step(flow, callee, 1), writes=careless)
    check(store, done, short=False)
    assert notes(store) == ["x"]


def test_a_quick_measurement_compares_both_sides() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.kernel_steps",
        "--quick",
        "--server",
        url_of("postgres"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout.splitlines()[-1])["cells"]
    assert [cell["shape"] for cell in cells] == [
        "sequence 1",
        "sequence 10",
        "sequence 50",
        "fan 10",
        "fan 50",
    ]
    assert all(cell[side][what] > 0 for cell in cells for side in ("ours", "bare") for what in COST)
