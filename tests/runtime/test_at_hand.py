"""Work that a worker does itself, at once, for a run that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.errors import Fenced
from afl.kernel.model import (
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    State,
    Suspend,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.lang.api import compile_sources
from afl.runtime.at_hand import keys_at_hand
from afl.runtime.calls import EXECUTE
from afl.runtime.evaluator import Evaluator, ExecutionStatus, Turn
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.memory_store import MemoryStore
from afl.runtime.replies import Reply
from afl.runtime.step import ROOT, WorkflowId
from afl.runtime.working.at_hand import QUICK_SECONDS, Pace, may_be_at_hand
from afl.testing.clock import VirtualClock
from tests.runtime.serving import Serving, paying, serving

_OK = CallStatus.OK
FLOW = """
namespace t {
  event facet Add(a: Int) => (b: Int)

  workflow W(x: Int) => (y: Int) andThen {
    one = Add(a = $.x)
    two = Add(a = one.b)
    yield W(y = two.b)
  }
}
"""


def tasks_of(served: Serving, run: WorkflowId) -> list[Task]:
    tasks = served.store.kernel.find_tasks(limit=1000)
    return [
        task
        for task in tasks
        if isinstance(task.input, dict) and task.input.get("run") == run and task.kind != "flow"
    ]


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving(MemoryStore()) as made:
        yield made


def test_work_that_has_been_quick_before_needs_no_task(served: Serving) -> None:
    first = served.start("billing.Again", amount=1)
    worker = served.worker(paying())
    assert served.result(first).outputs == {"paid": 5}
    # nobody knows how long the first takes
    assert [task.name for task in tasks_of(served, first)] == ["billing.Pay"]
    second = served.start("billing.Again", amount=10)
    assert served.result(second).outputs == {"paid": 14}
    assert tasks_of(served, second) == []
    assert worker.counters.by_facet() == {("billing.Pay", "success"): 8}


def test_its_failure_is_the_failure_of_its_step(served: Serving) -> None:
    def pay(invocation: Invocation) -> dict[str, Json]:
        amount = invocation.params["amount"]
        assert isinstance(amount, int)
        if amount == 4:
            raise ValueError("no more")
        return {"paid": amount + 1}

    table = HandlerTable()
    table.register("Pay", pay)
    served.worker(table)
    result = served.result(served.start("billing.Again", amount=2))
    assert result.status is ExecutionStatus.ERROR
    assert result.error == {"type": "ValueError", "message": "no more", "step": "0/c"}


@pytest.mark.parametrize("workflow", ["Retried", "Wired"])
def test_what_needs_a_task_always_has_one(served: Serving, workflow: str) -> None:
    served.worker(paying("Tried", "Wire"))
    for amount in range(4):
        run = served.start(f"billing.{workflow}", amount=amount)
        assert served.result(run).outputs == {"paid": amount + 1}
        assert len(tasks_of(served, run)) == 1


def test_the_pace_of_a_facet() -> None:
    pace = Pace()
    assert not pace.is_quick("a"), "nothing is known of it"
    pace.note("a", QUICK_SECONDS / 2)
    assert pace.is_quick("a")
    pace.note("a", QUICK_SECONDS * 2)
    assert not pace.is_quick("a")
    for _ in range(19):
        pace.note("a", 0.0)
    assert not pace.is_quick("a"), "slow work has to be quick for a while"
    pace.note("a", 0.0)
    assert pace.is_quick("a")


class Holder:
    """A worker that does one thing at a time, on a clock that stands still."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self.store = store
        self.evaluator = Evaluator(store)
        self.id = WorkerId(name)
        store.kernel.register(WorkerSpec(self.id, name, lease=timedelta(seconds=30)))

    def claim(self) -> Turn:
        (claim,) = self.store.kernel.claim(ClaimRequest(self.id, (EXECUTE,)))
        return self.evaluator.evaluate(claim)


def held_run() -> tuple[MemoryStore, VirtualClock, Holder, WorkflowId, Turn]:
    """A run whose first step is at hand of a worker."""
    clock = VirtualClock()
    store = MemoryStore(clock)
    holder = Holder(store, "one")
    program = compile_sources([("t.afl", FLOW)]).program
    assert program is not None
    run = holder.evaluator.start(holder.evaluator.plans.add(program), "t.W", {"x": 1})
    turn = holder.claim()
    assert [may_be_at_hand(call) for call in turn.commit.calls] == [True]
    turn = holder.evaluator.keep_at_hand(turn)
    holder.evaluator.commit(turn)
    return store, clock, holder, run, turn


def test_the_result_is_committed_with_the_next_turn() -> None:
    store, _, holder, run, turn = held_run()
    assert store.kernel.calls_of(TaskId(run)) == []
    root = store.get_step(turn.context.row(ROOT).id)
    assert root is not None
    assert keys_at_hand(root) == ["0/one"]
    following = holder.evaluator.go_on(turn, [(None, Reply("0/one", _OK, {"b": 2}))])
    assert [call.key for call in following.commit.calls] == ["0/two"]
    holder.evaluator.commit(following)
    row = store.get_step(turn.context.row("0/one").id)
    assert row is not None
    assert row.is_complete
    assert row.returns == {"b": 2}


def test_a_lost_worker_s_work_at_hand_becomes_a_task_of_others() -> None:
    store, clock, holder, run, turn = held_run()
    clock.advance(timedelta(seconds=31))
    assert store.kernel.sweep().tasks_recovered == 1
    other = Holder(store, "two")
    taken_over = other.claim()
    assert [call.key for call in taken_over.commit.calls] == ["0/one"]
    assert isinstance(taken_over.commit.then, Suspend)
    other.evaluator.commit(taken_over)
    # the first one comes back, and is too late
    late = holder.evaluator.go_on(turn, [(None, Reply("0/one", _OK, {"b": 99}))])
    with pytest.raises(Fenced):
        holder.evaluator.commit(late)
    for result in (2, 3):
        (claim,) = store.kernel.claim(ClaimRequest(other.id, ("Add",)))
        store.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS, {"b": result}))])
        other.evaluator.resume(run)
    assert other.evaluator.result(run).outputs == {"y": 3}
    task = store.kernel.get_task(TaskId(run))
    assert task is not None
    assert task.state is State.CLOSED
