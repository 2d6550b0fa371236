from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    RunId,
    State,
    TaskId,
    TaskSpec,
    Wake,
)
from afl.testing.clock import VirtualClock
from afl.turns.errors import BadBrief
from afl.turns.joining import (
    JoinAttendant,
    Joining,
    JoinMode,
    decide,
    join_spec,
    read_join,
)
from afl.turns.task_specs import spec_from_json, spec_to_json
from tests.turns.driving import Hand, memory_turns, task_of

BRANCH = TaskSpec("event", "Work")
OK, ERROR, TIMEOUT, OPEN = CallStatus.OK, CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.OPEN


def calls(*statuses: CallStatus) -> list[Call]:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return [
        Call(
            CallId(f"c{index}"),
            RunId("r"),
            TaskId("join"),
            f"branch:{index}",
            TaskId(f"t{index}"),
            status,
            now,
            None if status is OPEN else {"n": index},
            None,
            applied=False,
        )
        for index, status in enumerate(statuses)
    ]


def decided(mode: str, statuses: Sequence[CallStatus], quorum: int = 0) -> str | None:
    joining = Joining(JoinMode(mode), (BRANCH,) * len(statuses), quorum)
    decision = decide(joining, calls(*statuses))
    return None if decision is None else decision.status


# Deciding


@pytest.mark.parametrize(
    ("mode", "statuses", "expected"),
    [
        ("all", [OK, OPEN], None),
        ("all", [ERROR, OPEN], None),
        ("all", [OK, OK], "success"),
        ("all", [OK, ERROR], "partial"),
        ("all", [ERROR, TIMEOUT], "failed"),
        ("all", [TIMEOUT, TIMEOUT], "timeout"),
        ("any", [OPEN, OK, OPEN], "success"),
        ("any", [ERROR, OPEN], None),
        ("any", [ERROR, ERROR], "failed"),
        ("fail_fast", [OK, OPEN], None),
        ("fail_fast", [OK, ERROR, OPEN], "failed"),
        ("fail_fast", [OK, OK], "success"),
        ("fail_fast", [OK, TIMEOUT, OPEN], "failed"),
    ],
)
def test_a_join_is_decided_as_soon_as_it_can_be(
    mode: str, statuses: list[CallStatus], expected: str | None
) -> None:
    assert decided(mode, statuses) == expected


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([OK, OPEN, OPEN], None),
        ([OK, OK, OPEN], "success"),
        ([OK, ERROR, OPEN], None),
        ([OK, ERROR, ERROR], "partial"),
        ([ERROR, ERROR, OPEN], "failed"),
    ],
)
def test_a_quorum_is_decided_when_it_is_reached_or_cannot_be(
    statuses: list[CallStatus], expected: str | None
) -> None:
    assert decided("quorum", statuses, quorum=2) == expected


def test_results_are_told_in_the_order_of_the_branches() -> None:
    decision = decide(Joining(JoinMode.ANY, (BRANCH,) * 3), calls(ERROR, OK, OPEN))
    assert decision is not None
    assert decision.results == (
        {"index": 0, "status": "error", "error": {"n": 0}},
        {"index": 1, "status": "ok", "result": {"n": 1}},
        {"index": 2, "status": "open"},
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "branches"),
        ({"mode": "all", "branches": []}, "at least one"),
        ({"mode": "most", "branches": [{}]}, "one of all, any"),
        ({"mode": "quorum", "quorum": 2, "branches": [{}]}, "from 1 to 1"),
        ({"mode": "all", "branches": [{"kind": "event"}]}, "`kind`, `name`"),
        ({"mode": "all", "branches": [{"kind": "event", "name": "A", "id": "x"}]}, "described"),
    ],
)
def test_an_input_that_makes_no_join_is_refused(given: object, told: str) -> None:
    with pytest.raises(BadBrief, match=told):
        read_join(given)  # type: ignore[arg-type]


def test_a_task_survives_the_way_through_json() -> None:
    spec = TaskSpec(
        "turn",
        "agent:default",
        tenant="acme",
        list="fast",
        lane="ann",
        hold=False,
        wake=Wake.ANY,
        max_crashes=0,
        priority=3,
        timeout=timedelta(seconds=90),
        input={"a": [1]},
        trace="t",
    )
    assert spec_from_json(spec_to_json(spec)) == spec
    assert spec_to_json(BRANCH) == {"kind": "event", "name": "Work"}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"lane": 1}, "`lane`"),
        ({"priority": "high"}, "`priority`"),
        ({"timeout_seconds": 0}, "`timeout_seconds`"),
        ({"wake": "never"}, "`wake`"),
    ],
)
def test_a_branch_that_describes_no_task_is_refused(more: dict[str, Json], told: str) -> None:
    with pytest.raises(BadBrief, match=told):
        spec_from_json({"kind": "event", "name": "Work", **more})


# On the kernel


class Joined:
    """A join on a store in memory, whose branches are answered by hand."""

    def __init__(self, mode: JoinMode, branches: int, **options: object) -> None:
        store, self.clock = memory_turns()
        self.kernel: MemoryStore = store.kernel
        self.rung: set[str] = set()
        attendant = JoinAttendant(self.kernel, self.rung.update)
        self.hand = Hand(self.kernel, attendant)
        quorum = options.pop("quorum", 0)
        assert isinstance(quorum, int)
        specs = (TaskSpec("event", "Work", list="work"),) * branches
        spec = join_spec(Joining(mode, specs, quorum), **options)  # type: ignore[arg-type]
        (self.task,) = self.kernel.enqueue([spec])

    @property
    def id(self) -> TaskId:
        return self.task.id

    def branches(self) -> list[TaskId]:
        return [call.callee for call in self.kernel.calls_of(self.id) if call.callee is not None]

    def answer(self, index: int, close: Close) -> None:
        (task,) = [t for t in self.branches() if t == self.branches()[index]]
        claim = self.kernel.take(self.hand.id, task)
        assert claim is not None
        self.kernel.commit([Commit(claim.fence, close)])


def test_the_first_claim_opens_every_branch_in_one_commit() -> None:
    joined = Joined(JoinMode.ALL, 3)
    assert joined.hand.work_off() == 1
    assert len(joined.branches()) == 3
    assert task_of(joined.kernel, joined.id).commits == 1
    assert joined.rung == {"work", "default"}


def test_a_join_of_all_answers_when_the_last_has() -> None:
    joined = Joined(JoinMode.ALL, 2)
    joined.hand.work_off()
    joined.answer(1, Close(Outcome.SUCCESS, result=2))
    joined.hand.work_off()
    assert task_of(joined.kernel, joined.id).state is State.WAITING
    joined.answer(0, Close(Outcome.FAILED, error={"code": "x"}))
    joined.hand.work_off()
    closed = task_of(joined.kernel, joined.id)
    assert closed.outcome is Outcome.PARTIAL
    assert closed.result == {
        "status": "partial",
        "results": [
            {"index": 0, "status": "error", "error": {"code": "x"}},
            {"index": 1, "status": "ok", "result": 2},
        ],
    }


def test_what_a_decided_join_leaves_behind_is_stopped() -> None:
    joined = Joined(JoinMode.ANY, 3)
    joined.hand.work_off()
    joined.answer(1, Close(Outcome.SUCCESS, result="first"))
    joined.hand.work_off()
    assert task_of(joined.kernel, joined.id).outcome is Outcome.SUCCESS
    assert joined.kernel.sweep().orphans_stopped == 2
    outcomes = [task_of(joined.kernel, branch).outcome for branch in joined.branches()]
    assert outcomes == [Outcome.CANCELED, Outcome.SUCCESS, Outcome.CANCELED]


def test_a_join_that_fails_says_what_each_branch_said() -> None:
    joined = Joined(JoinMode.FAIL_FAST, 2)
    joined.hand.work_off()
    joined.answer(0, Close(Outcome.FAILED, error={"code": "x"}))
    joined.hand.work_off()
    closed = task_of(joined.kernel, joined.id)
    assert closed.outcome is Outcome.FAILED
    assert isinstance(closed.error, dict)
    assert closed.error["code"] == "join_failed"
    assert closed.error["message"] == "0 of 2 branches succeeded"
    assert closed.error["results"] == [
        {"index": 0, "status": "error", "error": {"code": "x"}},
        {"index": 1, "status": "open"},
    ]


def test_branches_are_over_before_the_join_is_so_that_it_can_tell() -> None:
    joined = Joined(JoinMode.ALL, 2, timeout=timedelta(seconds=100))
    joined.hand.work_off()
    joined.answer(0, Close(Outcome.SUCCESS, result=1))
    joined.hand.work_off()
    joined.clock.advance(timedelta(seconds=96))
    joined.kernel.renew(joined.hand.id)
    joined.kernel.sweep()
    joined.hand.work_off()
    closed = task_of(joined.kernel, joined.id)
    assert closed.outcome is Outcome.PARTIAL
    assert isinstance(closed.result, dict)
    results = closed.result["results"]
    assert isinstance(results, list)
    assert [each["status"] for each in results if isinstance(each, dict)] == ["ok", "timeout"]


@pytest.mark.parametrize("crash_at", range(4))
def test_a_join_that_loses_its_worker_anywhere_ends_the_same(crash_at: int) -> None:
    joined = Joined(JoinMode.ALL, 3)
    claims = 0

    def drive(clock: VirtualClock) -> None:
        nonlocal claims
        for claim in joined.hand.claim():
            claims += 1
            if claims - 1 == crash_at:
                # its worker is lost, with the claim in its hands
                clock.advance(timedelta(minutes=1))
                joined.kernel.sweep()
                joined.kernel.renew(joined.hand.id)
                drive(clock)
            else:
                joined.hand.work(claim)

    drive(joined.clock)
    for index in range(3):
        joined.answer(index, Close(Outcome.SUCCESS, result=index))
        drive(joined.clock)
    assert claims == 5
    assert len(joined.branches()) == 3
    closed = task_of(joined.kernel, joined.id)
    assert closed.outcome is Outcome.SUCCESS


def test_a_branch_that_the_kernel_refuses_fails_the_join() -> None:
    joined = Joined(JoinMode.ALL, 1)
    spec = join_spec(Joining(JoinMode.ALL, (TaskSpec("event", "Work", list=""),)))
    (task,) = joined.kernel.enqueue([spec])
    joined.hand.work_off()
    closed = task_of(joined.kernel, task.id)
    assert closed.outcome is Outcome.FAILED
    assert "list is empty" in str(closed.error)


def test_a_join_may_be_a_branch_of_a_join() -> None:
    joined = Joined(JoinMode.ALL, 1)
    inner = join_spec(Joining(JoinMode.ANY, (BRANCH, BRANCH)))
    (task,) = joined.kernel.enqueue([join_spec(Joining(JoinMode.ALL, (inner,)))])
    joined.hand.work_off()
    (call,) = joined.kernel.calls_of(task.id)
    assert call.callee is not None
    first, _ = joined.kernel.calls_of(call.callee)
    assert first.callee is not None
    claim = joined.kernel.take(joined.hand.id, first.callee)
    assert claim is not None
    joined.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS, result=1))])
    joined.hand.work_off()
    assert task_of(joined.kernel, task.id).outcome is Outcome.SUCCESS


def test_a_join_with_a_broken_input_fails_for_good() -> None:
    joined = Joined(JoinMode.ALL, 1)
    (task,) = joined.kernel.enqueue([TaskSpec("join", "afl:join", input={"mode": "all"})])
    joined.hand.work_off()
    assert task_of(joined.kernel, task.id).outcome is Outcome.FAILED
    assert not joined.kernel.claim(ClaimRequest(joined.hand.id, ("afl:join",)))
