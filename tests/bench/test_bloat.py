"""Claims in a database with a past: the finished rows are true to life and do not slow claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from afl.kernel.model import ClaimRequest, Outcome, State, TaskId, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.postgres.store import PostgresStore
from bench.bloat import Latency, Plan, Series, measure, report
from bench.finished import NAMES, finish
from tests.bench.servers import SERVER, needs_postgres
from tests.kernel.postgres.databases import migrated_database

COPIES = 1000
_INDEXES = "select indexname, indexdef from pg_indexes where schemaname = 'afl'"


@pytest.fixture(scope="module")
def past() -> Iterator[str]:
    """A database with finished tasks."""
    with migrated_database() as url:
        with psycopg.connect(url) as connection:
            before = set(connection.execute(_INDEXES))
        finish(url, COPIES)
        with psycopg.connect(url) as connection:
            assert set(connection.execute(_INDEXES)) == before, "the indexes are as they were"
        yield url


@needs_postgres
def test_finished_tasks_are_as_the_store_leaves_them(past: str) -> None:
    with PostgresStore.connect(past) as store:
        tasks = store.find_tasks(limit=2 * COPIES)
        assert len(tasks) == COPIES + len(NAMES)
        assert {task.name for task in tasks} == set(NAMES)
        now = datetime.now(UTC)
        for task in tasks:
            assert (task.state, task.outcome) == (State.CLOSED, Outcome.SUCCESS)
            assert task.created_at <= now
            assert task.closed_at is not None
            assert task.created_at <= task.closed_at <= now
            assert task.result == {"ok": True}
        assert [task.id for task in tasks] == sorted(task.id for task in tasks)
        by_age = sorted(tasks, key=lambda task: task.created_at)
        assert [task.id for task in by_age] == [task.id for task in tasks], "ids tell the time"
        assert store.why(tasks[0].id) is None


@needs_postgres
def test_every_finished_task_has_its_closed_event(past: str) -> None:
    with PostgresStore.connect(past) as store:
        entries = store.read_outbox(limit=2 * COPIES)
        tasks = {task.id for task in store.find_tasks(limit=2 * COPIES)}
        assert [entry.topic for entry in entries] == ["closed"] * (COPIES + len(NAMES))
        assert {TaskId(entry.task) for entry in entries} == tasks


@needs_postgres
def test_work_goes_on_among_finished_tasks(past: str) -> None:
    with PostgresStore.connect(past) as store:
        worker = WorkerId("w")
        store.register(WorkerSpec(worker, "w", handlers=("Pay",), lease=timedelta(hours=1)))
        assert store.claim(ClaimRequest(worker, ("Pay",))) == []
        (task,) = store.enqueue([TaskSpec("event", "billing.Pay")])
        (claim,) = store.claim(ClaimRequest(worker, ("Pay",)))
        assert claim.task.id == task.id


def test_a_ratio_is_of_neighbours_and_the_pinned_one_of_the_last_half() -> None:
    fresh = [Latency(1.0, 2.0, 10), Latency(2.0, 4.0, 10), Latency(1.0, 2.0, 10)]
    burdened = [Latency(1.0, 2.0, 10), Latency(3.0, 8.0, 10), Latency(3.0, 6.0, 10)]
    series = Series("past", fresh, burdened)
    assert (series.median_ratio, series.p99_ratio) == (1.5, 2.0)
    assert series.last_half().median_ratio == 2.25
    assert series.last_half().p99_ratio == 2.5


@needs_postgres
@pytest.mark.slow
def test_finished_tasks_and_an_open_snapshot_do_not_slow_claims_much() -> None:
    """Bounds on medians, and generous ones, since other tests use the machine at the same time."""
    plan = Plan(finished=100_000, pinned_seconds=12, seconds=1, rounds=6, rate=300, workers=2)
    finished, pinned = measure(SERVER, plan)
    assert all(each.claims > 20 for each in (*finished.fresh, *finished.burdened))
    figures = json.loads(report(finished, pinned, plan).splitlines()[-1])
    assert figures["finished"] == plan.finished
    assert finished.median_ratio < 3, figures
    assert pinned.median_ratio < 3, figures
