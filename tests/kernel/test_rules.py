from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.kernel import rules
from afl.kernel.errors import BadRequest, LaneCycle, TooDeep
from afl.kernel.model import (
    MAX_DEPTH,
    CallSpec,
    CallStatus,
    Close,
    Fence,
    Outcome,
    ReasonCode,
    Retry,
    RunId,
    State,
    TaskId,
    TaskSpec,
    Wake,
    Worker,
    WorkerId,
    WorkerState,
)
from afl.testing.clock import START
from tests.kernel.rows import make_call, make_task

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def worker(**changes: object) -> Worker:
    made = Worker(
        id=WorkerId("w"),
        name="w",
        group="g",
        service="s",
        lists=("default",),
        handlers=("work",),
        slots=1,
        lease=HOUR,
        state=WorkerState.RUNNING,
        started_at=START,
        seen_at=START,
        expires_at=START + HOUR,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_worker_is_live_until_it_expires_or_ends() -> None:
    assert rules.is_live(worker(), START)
    assert rules.is_live(worker(state=WorkerState.STARTUP), START)
    assert not rules.is_live(worker(), START + HOUR)
    assert not rules.is_live(worker(state=WorkerState.SHUTDOWN), START)
    assert not rules.is_live(worker(state=WorkerState.ERROR), START)


def test_a_worker_serves_by_list_and_name() -> None:
    task = make_task()
    assert rules.worker_serves(worker(), task, START)
    assert rules.worker_serves(worker(), replace(task, name="x.work"), START)
    assert not rules.worker_serves(worker(lists=("other",)), task, START)
    assert not rules.worker_serves(worker(handlers=("x.work",)), task, START)
    assert not rules.worker_serves(worker(), task, START + HOUR)


def test_claims_go_by_priority_then_time_then_id() -> None:
    keys = [
        rules.claim_key(1, START + HOUR, TaskId("c")),
        rules.claim_key(0, START, TaskId("a")),
        rules.claim_key(0, START, TaskId("b")),
        rules.claim_key(0, START + HOUR, TaskId("a")),
        rules.claim_key(-1, START, TaskId("a")),
    ]
    shuffled = [keys[3], keys[0], keys[4], keys[2], keys[1]]
    assert sorted(shuffled) == keys


@pytest.mark.parametrize(("failures", "seconds"), [(0, 2), (1, 6), (2, 18), (3, 20), (500, 20)])
def test_the_wait_grows_up_to_its_cap(failures: int, seconds: int) -> None:
    retry = Retry(1000, 2 * SECOND, 3.0, 20 * SECOND, jitter=False)
    task = replace(make_task(), retry=retry, failures=failures)
    assert rules.retry_wait(task) == seconds * SECOND


@given(st.uuids(), st.integers(0, 30))
def test_jitter_cuts_up_to_half_and_is_always_the_same(task_id: object, failures: int) -> None:
    retry = Retry(100, 4 * SECOND, 1.0, HOUR)
    task = replace(_TASK, id=TaskId(str(task_id)), retry=retry, failures=failures)
    wait = rules.retry_wait(task)
    assert 2 * SECOND <= wait <= 4 * SECOND
    assert rules.retry_wait(task) == wait


_TASK = make_task()


def test_jitter_differs_between_tasks_and_attempts() -> None:
    retry = Retry(100, 4 * SECOND, 1.0, HOUR)
    tasks = [
        replace(_TASK, id=TaskId(str(n)), failures=m, retry=retry)
        for n in range(5)
        for m in range(5)
    ]
    assert len({rules.retry_wait(task) for task in tasks}) == len(tasks)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize("failures", [0, 1])
def test_only_a_failure_with_tries_left_is_tried_again(
    outcome: Outcome, permanent: bool, stopping: bool, failures: int
) -> None:
    task = replace(_TASK, retry=Retry(1), failures=failures, stop_requested=stopping)
    close = Close(outcome, permanent=permanent)
    failed = outcome is Outcome.FAILED
    expected = failed and not permanent and not stopping and failures == 0
    assert rules.failure_retries(task, close) is expected
    assert rules.failure_is_dead(task, close) is (failed and not stopping)
    assert not rules.failure_is_dead(replace(task, retry=Retry()), close)


def test_crashes_are_counted_against_the_cap() -> None:
    finals = [rules.crash_is_final(crashes, 2) for crashes in (1, 2, 3)]
    assert finals == [False, False, True]
    assert rules.crash_is_final(1, 0)


def test_deadlines_never_outlast_the_caller() -> None:
    spec = CallSpec("k", TaskSpec("test", "a", timeout=SECOND), HOUR)
    free, bound = _TASK, replace(_TASK, deadline=START + 10 * SECOND)
    assert rules.call_deadline(spec, free, START) == START + HOUR
    assert rules.call_deadline(spec, bound, START) == START + 10 * SECOND
    assert rules.callee_deadline(spec, START + HOUR, START) == START + SECOND
    assert rules.callee_deadline(spec, START, START) == START
    untimed = replace(spec, task=replace(spec.task, timeout=None))
    assert rules.callee_deadline(untimed, START + HOUR, START) == START + HOUR
    assert rules.root_deadline(untimed.task, START) is None
    assert rules.root_deadline(spec.task, START) == START + SECOND


def test_calls_nest_below_the_limit() -> None:
    assert rules.callee_depth(replace(_TASK, depth=MAX_DEPTH - 2)) == MAX_DEPTH - 1
    with pytest.raises(TooDeep, match="calls itself"):
        rules.callee_depth(replace(_TASK, depth=MAX_DEPTH - 1))


def test_a_callee_is_of_its_callers_run() -> None:
    assert rules.callee_run(TaskSpec("test", "a"), _TASK) == _TASK.run
    assert rules.callee_run(TaskSpec("test", "a", run=_TASK.run), _TASK) == _TASK.run
    with pytest.raises(BadRequest, match="leave `run` out"):
        rules.callee_run(TaskSpec("test", "a", run=RunId("other")), _TASK)


@pytest.mark.parametrize(
    "change",
    [{"lane": "m"}, {"tenant": "acme"}, {"hold": False}, {"state": State.CLOSED}],
    ids=str,
)
def test_a_lane_cycle_needs_a_live_caller_that_keeps_the_same_lane(
    change: dict[str, object],
) -> None:
    spec = TaskSpec("test", "a", lane="l")
    holder = replace(_TASK, lane="l")
    with pytest.raises(LaneCycle, match="hold=False"):
        rules.refuse_lane_cycle(spec, [_TASK, holder])
    rules.refuse_lane_cycle(spec, [_TASK, replace(holder, **change)])  # type: ignore[arg-type]


def test_an_answer_is_the_result_or_the_error() -> None:
    closed = replace(_TASK, result="r", error="e")
    answers = {
        outcome: (rules.status_of(outcome), rules.answer_of(replace(closed, outcome=outcome)))
        for outcome in Outcome
    }
    assert answers == {
        Outcome.SUCCESS: (CallStatus.OK, "r"),
        Outcome.PARTIAL: (CallStatus.OK, "r"),
        Outcome.FAILED: (CallStatus.ERROR, "e"),
        Outcome.TIMEOUT: (CallStatus.TIMEOUT, "e"),
        Outcome.CANCELED: (CallStatus.CANCELED, "e"),
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (None, None, True),
        (True, 1, False),
        (0, False, False),
        (1, 1.0, True),
        ("1", 1, False),
        ([1, [2]], [1, [2]], True),
        ([1], [True], False),
        ([1], [1, 2], False),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({}, [], False),
    ],
)
def test_json_is_compared_as_json(one: object, other: object, same: bool) -> None:
    assert rules.same_json(one, other) is same  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wake", "open_calls", "untaken", "state"),
    [
        (Wake.ALL, 0, 0, State.READY),
        (Wake.ALL, 0, 2, State.READY),
        (Wake.ALL, 1, 2, State.WAITING),
        (Wake.ANY, 0, 0, State.READY),
        (Wake.ANY, 1, 0, State.WAITING),
        (Wake.ANY, 1, 1, State.READY),
    ],
)
def test_where_a_suspended_task_goes(
    wake: Wake, open_calls: int, untaken: int, state: State
) -> None:
    assert rules.state_after_suspend(wake, open_calls, untaken) is state


def test_when_an_answer_wakes() -> None:
    assert rules.wakes(Wake.ANY, 3)
    assert rules.wakes(Wake.ALL, 0)
    assert not rules.wakes(Wake.ALL, 1)


def test_the_present_reason_knows_what_the_row_cannot() -> None:
    def present(task_state: State, **about: object) -> ReasonCode | None:
        facts = {"now": START, "served": True, "holder": None, "first_open": None, **about}
        task = replace(_TASK, state=task_state)
        reason = rules.present_reason(task, **facts)  # type: ignore[arg-type]
        return None if reason is None else reason.code

    assert present(State.READY) is ReasonCode.CLAIMABLE
    assert present(State.READY, served=False) is ReasonCode.NO_WORKER
    assert present(State.READY, served=False, now=START - SECOND) is ReasonCode.CLAIMABLE
    assert present(State.QUEUED, holder=_TASK.id) is ReasonCode.LANE_HELD
    assert present(State.WAITING, first_open=make_call(_TASK)) is ReasonCode.CALLS_OPEN
    delayed = replace(_TASK, reason=rules.reason_ready(START + HOUR, False, START))
    late = START + 2 * HOUR
    now = rules.present_reason(delayed, now=late, served=True, holder=None, first_open=None)
    assert now is not None
    assert now.code is ReasonCode.CLAIMABLE


def test_a_card_is_named_by_its_kind_and_content() -> None:
    name = rules.card_hash("note", {"a": 1, "b": [True, None]})
    assert name == rules.card_hash("note", {"b": [True, None], "a": 1})
    others = [("other", {"a": 1, "b": [True, None]}), ("note", {"a": 1, "b": [1, None]})]
    assert all(rules.card_hash(kind, content) != name for kind, content in others)  # type: ignore[arg-type]
    assert name.startswith("sha256:")


def test_commits_under_a_fence_are_numbered_without_gaps() -> None:
    fence = Fence(7)
    fresh, committed = _TASK, replace(_TASK, committed_fence=fence, commits=2)
    rules.refuse_gap(fresh, fence, 0)
    rules.refuse_gap(committed, fence, 2)
    rules.refuse_gap(committed, Fence(8), 0)
    for task, number in ((fresh, 1), (committed, 3)):
        with pytest.raises(BadRequest, match="the next number is"):
            rules.refuse_gap(task, fence, number)
    repeats = [rules.is_repeat(committed, fence, number) for number in (0, 1, 2)]
    assert repeats == [True, True, False]
    assert not rules.is_repeat(committed, Fence(8), 0)
