"""The checks of the invariants notice each kind of damage."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from afl.kernel.model import (
    CallId,
    CallStatus,
    Fence,
    OutboxEntry,
    Outcome,
    State,
    Task,
    TaskId,
    Wake,
    WorkerId,
)
from afl.testing.conformance.driver import Driver
from afl.testing.conformance.harness import MemoryHarness
from afl.testing.conformance.invariants import Snapshot, Watch, check_snapshot, take_snapshot


@pytest.fixture
def driver() -> Driver:
    made = Driver(MemoryHarness())
    made.register()
    return made


@pytest.fixture
def rows(driver: Driver) -> Snapshot:
    """A caller that holds a lane and waits, its callee that runs, one that queues, one closed."""
    driver.caller("a", lane="l", timeout=timedelta(hours=2))
    driver.take("a")
    driver.enqueue("queued", lane="l")
    driver.store.stop(driver.enqueue("closed").id)
    return take_snapshot(driver.store)


def _named(rows: Snapshot, name: str) -> Task:
    return next(task for task in rows.tasks.values() if task.name == name)


def _damaged(rows: Snapshot, name: str, **changes: object) -> list[str]:
    task = replace(_named(rows, name), **changes)  # type: ignore[arg-type]
    return check_snapshot(replace(rows, tasks={**rows.tasks, task.id: task}))


def test_a_sound_store_has_no_problems(rows: Snapshot) -> None:
    assert check_snapshot(rows) == []


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("queued", {"state": State.READY}, "I2"),
        ("a", {"fence": None}, "I3"),
        ("a", {"worker": None}, "I3"),
        ("caller", {"fence": Fence(1), "worker": WorkerId("w")}, "I3"),
        ("closed", {"outcome": None}, "I4"),
        ("closed", {"closed_at": None}, "I4"),
        ("queued", {"outcome": Outcome.SUCCESS}, "I4"),
        ("queued", {"dead": True}, "I4"),
        ("closed", {"state": State.RUNNING}, "I4"),
        ("queued", {"lane": "other"}, "I7"),
        ("a", {"seq": 1}, "I8"),
        ("a", {"depth": 20}, "I11"),
        ("a", {"depth": 3}, "I11"),
        ("a", {"deadline": None}, "I11"),
        ("a", {"lane": "l"}, "I11"),
        ("a", {"parent_call": CallId("gone")}, "I12"),
        ("queued", {"reason": None}, "reason"),
        ("a", {"stop_requested": True}, "reason"),
    ],
)
def test_a_damaged_task_is_noticed(
    rows: Snapshot, name: str, changes: dict[str, object], problem: str
) -> None:
    problems = _damaged(rows, name, **changes)
    assert any(each.startswith(f"{problem}:") for each in problems), problems


def test_two_holders_of_a_fence_are_noticed(rows: Snapshot) -> None:
    fence = _named(rows, "a").fence
    problems = _damaged(rows, "queued", state=State.RUNNING, fence=fence, worker=WorkerId("w"))
    assert any(each.startswith("I1:") for each in problems)


def test_two_callees_of_a_call_are_noticed(rows: Snapshot) -> None:
    parent = _named(rows, "a").parent_call
    assert any(each.startswith("I5:") for each in _damaged(rows, "queued", parent_call=parent))


def test_damaged_calls_are_noticed(rows: Snapshot) -> None:
    (call,) = rows.calls.values()
    late = call.deadline + timedelta(days=1)
    for changes, problem in (
        ({"replied_at": call.deadline}, "I5"),
        ({"applied": True}, "I5"),
        ({"status": CallStatus.OK, "replied_at": call.deadline}, "I6"),
        ({"deadline": late}, "I11"),
        ({"caller": TaskId("gone")}, "I12"),
    ):
        damaged = replace(call, **changes)
        problems = check_snapshot(replace(rows, calls={call.id: damaged}))
        assert any(each.startswith(f"{problem}:") for each in problems), (changes, problems)


def test_a_flow_that_sleeps_through_an_answer_is_noticed(driver: Driver) -> None:
    caller = driver.caller("a", "b")
    driver.store.reply(caller.calls["a"], CallStatus.OK)
    rows = take_snapshot(driver.store)
    assert check_snapshot(rows) == []
    assert any(e.startswith("I6:") for e in _damaged(rows, "caller", wake=Wake.ANY))


def test_missing_and_doubled_events_are_noticed(rows: Snapshot) -> None:
    (event,) = rows.outbox
    for outbox in ((), (event, replace(event, id=99))):
        damaged: tuple[OutboxEntry, ...] = outbox
        assert any(each.startswith("I4:") for each in check_snapshot(replace(rows, outbox=damaged)))
    assert check_snapshot(replace(rows, outbox=()), trimmed=True) == []


def test_a_watch_sees_what_changes_between_two_looks(driver: Driver, rows: Snapshot) -> None:
    watch = Watch(driver.store)
    assert watch.check() == []
    closed, running = _named(rows, "closed"), _named(rows, "a")
    tasks = {
        **rows.tasks,
        closed.id: replace(closed, result="again"),
        running.id: replace(running, fence=Fence(0)),
    }
    problems = watch.check_snapshot(replace(rows, tasks=tasks))
    assert {each.split(":")[0] for each in problems} == {"I9", "I10"}
