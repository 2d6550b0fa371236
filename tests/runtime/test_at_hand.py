"""Work that a worker does itself, at once, for a run that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Lock, Semaphore
from time import sleep

import pytest

from afl.kernel.errors import Fenced
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Fence,
    Json,
    Outcome,
    State,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.waiting import PollPolicy
from afl.kernel.working.hands import Held
from afl.lang.api import compile_sources
from afl.runtime.at_hand import is_at_hand
from afl.runtime.calls import EXECUTE
from afl.runtime.evaluator import Evaluator, ExecutionStatus, Turn
from afl.runtime.handler_table import Handler, HandlerKind, HandlerTable, Invocation
from afl.runtime.memory_store import MemoryStore
from afl.runtime.replies import Reply
from afl.runtime.step import ROOT, WorkflowId
from afl.runtime.working import at_hand, runs_in_hand, staying
from afl.runtime.working.at_hand import (
    QUICK_SECONDS,
    Pace,
    held_at_hand,
    may_be_at_hand,
    may_begin_unseen,
)
from afl.runtime.working.in_turn import InTurn
from afl.runtime.working.messages import Look
from afl.runtime.working.threads import HandlerThreads
from afl.testing.clock import VirtualClock
from tests.runtime.serving import Serving, paying, serving

_OK = CallStatus.OK
_CALL = CallSpec("0/a", TaskSpec("event", "t.Add"), timedelta(hours=1))
_HANDLER = Handler("t.Add", lambda invocation: {}, HandlerKind.SYNC)
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
APART = """
namespace t {
  event facet Add(a: Int) => (b: Int)
  event facet Other(a: Int) => (b: Int)

  workflow Apart() => (y: Int) andThen {
    long = Add(a = 100)
    short = Add(a = 1)
    other = Other(a = short.b)
    yield Apart(y = long.b + other.b)
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


def test_the_pace_of_a_facet(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(at_hand, "monotonic", lambda: now[0])

    def note(seconds: float) -> None:
        now[0] += seconds + 0.001
        pace.note("a", seconds)

    pace = Pace()
    assert not pace.is_quick("a"), "nothing is known of it"
    note(QUICK_SECONDS / 2)
    assert pace.is_quick("a")
    note(QUICK_SECONDS * 2)
    assert pace.is_quick("a"), "once is an exception"
    for _ in range(40):
        note(QUICK_SECONDS * 2)
    assert not pace.is_quick("a"), "this is how it is now"
    note(0.0)
    assert not pace.is_quick("a"), "slow work has to be quick for a while"
    for _ in range(40):
        note(0.0)
    assert pace.is_quick("a")
    note(3600.0)
    assert not pace.is_quick("a"), "far too slow, even for an exception"
    for _ in range(80):
        note(0.0)
    assert pace.is_quick("a"), "what was very slow is forgotten as soon"


def test_a_stall_of_the_machine_counts_once() -> None:
    """It hits all that is under way, which ends together and late."""
    pace = Pace()
    pace.note("a", 0.0)
    for _ in range(32):
        pace.note("a", QUICK_SECONDS * 10)
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
    root, one = (store.get_step(turn.context.row(path).id) for path in (ROOT, "0/one"))
    assert root is not None
    assert root.frame["at_hand"] == 1
    assert one is not None
    assert is_at_hand(one)
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


# Work that begins before its turn is committed


def begun_run() -> tuple[MemoryStore, VirtualClock, Holder, WorkflowId, Turn]:
    """A run whose first step has begun, and nothing says so."""
    clock = VirtualClock()
    store = MemoryStore(clock)
    holder = Holder(store, "one")
    program = compile_sources([("t.afl", FLOW)]).program
    assert program is not None
    run = holder.evaluator.start(holder.evaluator.plans.add(program), "t.W", {"x": 1})
    turn = holder.claim()
    assert may_begin_unseen(turn)
    return store, clock, holder, run, holder.evaluator.keep_at_hand(turn)


def test_a_turn_that_was_not_committed_is_committed_with_its_results() -> None:
    store, _, holder, run, turn = begun_run()
    extended = holder.evaluator.extend(turn, [(None, Reply("0/one", _OK, {"b": 2}))])
    assert store.get_steps_by_workflow(run) == [], "nothing is written by it"
    assert extended.commit.number == 0
    assert [call.key for call in extended.commit.calls] == ["0/two"]
    holder.evaluator.commit(extended)
    rows = {row.path: row for row in store.get_steps_by_workflow(run)}
    assert rows["0/one"].is_complete
    assert rows["0/one"].returns == {"b": 2}
    assert rows["0/two"].params == {"a": 2}
    assert (rows[ROOT].frame["open"], "at_hand" in rows[ROOT].frame) == (1, False)


def test_a_result_that_is_not_committed_leads_to_nothing_that_begins() -> None:
    _, _, holder, _, turn = begun_run()
    extended = holder.evaluator.extend(turn, [(None, Reply("0/one", _OK, {"b": 2}))])
    holder.evaluator.commit(extended)
    following = holder.evaluator.go_on(holder.evaluator.keep_at_hand(extended))
    assert not may_begin_unseen(following)


def test_work_that_began_unseen_is_done_again_when_the_worker_is_lost() -> None:
    store, clock, holder, run, turn = begun_run()
    clock.advance(timedelta(seconds=31))
    assert store.kernel.sweep().tasks_recovered == 1
    other = Holder(store, "two")
    again = other.claim()
    assert again.commit.calls[0].task.input == {
        "facet": "t.Add",
        "params": {"a": 1},
        "run": run,
        "step": "0/one",
        "program": again.run.program,
    }, "the same work, with the same arguments, under the same key"
    other.evaluator.commit(again)
    late = holder.evaluator.extend(turn, [(None, Reply("0/one", _OK, {"b": 99}))])
    with pytest.raises(Fenced):
        holder.evaluator.commit(late)


def test_a_run_whose_first_work_is_quick_costs_one_commit_for_each_step(served: Serving) -> None:
    worker = served.worker(paying(), poll=PollPolicy(5.0, 5.0))
    served.result(served.start("billing.Again", amount=1))
    before = worker.counters.commits
    assert served.result(served.start("billing.Again", amount=1)).outputs == {"paid": 5}
    assert worker.counters.commits - before == 4


def test_what_may_have_brought_a_worker_down_is_done_by_a_task(served: Serving) -> None:
    worker = served.worker(paying())
    served.result(served.start("billing.Once", amount=1))
    worker.drain(5.0)
    run = served.start("billing.Once", amount=2)
    lost = WorkerSpec(WorkerId("lost"), "lost", lease=timedelta(milliseconds=1))
    served.store.kernel.register(lost)
    assert served.store.kernel.take(lost.id, TaskId(run)) is not None
    sleep(0.01)
    assert served.store.kernel.sweep().tasks_recovered == 1
    served.worker(paying())
    assert served.result(run).outputs == {"paid": 3}
    assert len(tasks_of(served, run)) == 1


# More work than there are slots


def test_a_fan_of_quick_work_needs_no_tasks_and_no_more_slots(served: Serving) -> None:
    under_way, most = [0], [0]
    lock = Lock()

    def pay(invocation: Invocation) -> dict[str, Json]:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        sleep(0.0005)
        with lock:
            under_way[0] -= 1
        amount = invocation.params["amount"]
        assert isinstance(amount, int)
        return {"paid": amount + 1}

    table = HandlerTable()
    table.register("Pay", pay)
    worker = served.worker(table, slots=3)
    served.result(served.start("billing.Once", amount=1))
    before = worker.counters.commits
    amounts: list[Json] = list(range(50))
    run = served.start("billing.Wide", amounts=amounts)
    assert served.result(run).outputs == {"paid": list(range(1, 51))}
    assert tasks_of(served, run) == []
    assert most[0] <= 3
    assert worker.counters.commits - before < 50, "results that come together are one commit"


def test_a_fan_that_would_take_a_while_is_for_all_workers(served: Serving) -> None:
    def pay(invocation: Invocation) -> dict[str, Json]:
        sleep(QUICK_SECONDS / 2)
        amount = invocation.params["amount"]
        assert isinstance(amount, int)
        return {"paid": amount + 1}

    table = HandlerTable()
    table.register("Pay", pay)
    served.worker(table, slots=1)
    served.result(served.start("billing.Once", amount=1))
    amounts: list[Json] = list(range(50))
    run = served.start("billing.Wide", amounts=amounts)
    assert served.result(run).outputs == {"paid": list(range(1, 51))}
    assert len(tasks_of(served, run)) == 50


def test_a_worker_that_waits_for_work_at_hand_asks_the_store_for_nothing(served: Serving) -> None:
    go_on, begun = Event(), Event()

    def pay(invocation: Invocation) -> dict[str, Json]:
        if invocation.params["amount"] == 2:
            begun.set()
            assert go_on.wait(10)
        return {"paid": 0}

    table = HandlerTable()
    table.register("Pay", pay)
    worker = served.worker(table, poll=PollPolicy(20.0, 20.0))
    served.result(served.start("billing.Once", amount=1))
    run = served.start("billing.Once", amount=2)
    worker._dispatcher.inbox.put(Look())
    assert begun.wait(10)
    sleep(0.3)
    before = worker.counters.transactions
    sleep(0.3)
    assert worker.counters.transactions - before <= 1
    go_on.set()
    assert served.result(run).outputs == {"paid": 0}


class TestInTurn:
    """Attempts that are made in turn by a few threads."""

    def held(self, number: int) -> Held:
        (flow,) = MemoryStore().kernel.enqueue([TaskSpec("flow", EXECUTE)])
        return Held(Claim(held_at_hand(flow, _CALL).claim.task, Fence(-1000 - number), ()))

    def test_more_attempts_than_slots_are_made_one_after_the_other(self) -> None:
        made: list[Fence] = []
        threads = HandlerThreads(keep=4)
        ended = Semaphore(0)

        def make(held: Held, handler: Handler) -> None:
            made.append(held.fence)
            ended.release()

        in_turn = InTurn(threads.run, make)
        in_turn.add([(self.held(number), _HANDLER) for number in range(20)], 1)
        for _ in range(20):
            assert ended.acquire(timeout=10)
        assert made == [-1000 - number for number in range(20)]

    def test_one_that_is_given_up_holds_nobody_up(self) -> None:
        stuck, done = Event(), Semaphore(0)

        def make(held: Held, handler: Handler) -> None:
            if held.fence == -1000:
                stuck.wait(10)
            done.release()

        in_turn = InTurn(HandlerThreads(keep=4).run, make)
        first = self.held(0)
        in_turn.add([(first, _HANDLER), *((self.held(n), _HANDLER) for n in (1, 2))], 1)
        assert not done.acquire(timeout=0.05)
        in_turn.give_up(first)
        assert done.acquire(timeout=10)
        assert done.acquire(timeout=10)
        stuck.set()
        assert done.acquire(timeout=10)
        # and whoever comes later finds a thread
        in_turn.add([(self.held(3), _HANDLER)], 0)
        assert done.acquire(timeout=10)

    def test_nothing_begins_after_the_end(self) -> None:
        going, made = Event(), Semaphore(0)

        def make(held: Held, handler: Handler) -> None:
            going.wait(10)
            made.release()

        in_turn = InTurn(HandlerThreads(keep=4).run, make)
        in_turn.add([(self.held(number), _HANDLER) for number in range(3)], 1)
        in_turn.clear()
        going.set()
        assert made.acquire(timeout=10)
        assert not made.acquire(timeout=0.05)


def test_a_large_fan_is_begun_in_portions(served: Serving) -> None:
    served.worker(paying(), slots=4)
    served.result(served.start("billing.Once", amount=1))
    amounts: list[Json] = list(range(1200))
    run = served.start("billing.Wide", amounts=amounts)
    assert served.result(run).outputs == {"paid": list(range(1, 1201))}
    # a busy machine makes work slow, and slow work gets tasks
    assert len(tasks_of(served, run)) < 1000


def test_work_at_hand_is_waited_for_when_others_have_to_do_the_rest(served: Serving) -> None:
    """One of two works is at hand and turns slow, while the other leads to what somebody else
    serves."""
    done: list[Json] = []
    slow = Event()

    def add(invocation: Invocation) -> dict[str, Json]:
        amount = invocation.params["a"]
        if amount == 100:
            assert slow.wait(10)
        done.append(amount)
        return {"b": amount}

    table = HandlerTable()
    table.register("Add", add)
    served.worker(table)
    served.result(served.start("t.W", FLOW, x=1))
    run = served.start("t.Apart", APART)
    others = HandlerTable()
    others.register("Other", lambda invocation: {"b": 3})
    served.worker(others, all_flows=False)
    sleep(0.3)
    slow.set()
    assert served.result(run).outputs == {"y": 103}
    assert done.count(100) == 1, "it was not done again"
    assert [task.name for task in tasks_of(served, run)] == ["t.Other"]


LONG = """
namespace t {
  event facet Add(a: Int) => (b: Int)
  event facet Other(a: Int) => (b: Int)

  workflow Once(x: Int) => (y: Int) andThen {
    one = Add(a = $.x)
    yield Once(y = one.b)
  }
  workflow Bounded(xs: [Int]) => (ys: [Int]) andThen foreach x in $.xs limit 20 {
    one = Add(a = $.x)
    two = Add(a = one.b)
    yield Bounded(ys = [two.b])
  }
  workflow Free(xs: [Int]) => (ys: [Int]) andThen foreach x in $.xs {
    one = Add(a = $.x)
    yield Free(ys = [one.b])
  }
  workflow Mixed(xs: [Int]) => (ys: [Int]) andThen foreach x in $.xs limit 20 {
    one = Add(a = $.x)
    two = Other(a = one.b)
    yield Mixed(ys = [two.b])
  }
}
"""


def adding(name: str = "Add") -> HandlerTable:
    table = HandlerTable()
    table.register(name, lambda invocation: {"b": int(str(invocation.params["a"])) + 1})
    return table


@pytest.mark.parametrize(("workflow", "size", "more"), [("Bounded", 300, 2), ("Free", 1500, 1)])
def test_a_long_run_gives_others_their_turn_and_still_needs_no_tasks(
    served: Serving, monkeypatch: pytest.MonkeyPatch, workflow: str, size: int, more: int
) -> None:
    monkeypatch.setattr(runs_in_hand, "STAY_IN_ALL_SECONDS", 0.02)
    # a busy machine makes work slow, and slow work would get tasks
    monkeypatch.setattr(at_hand, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(staying, "STAY_SECONDS", 60.0)
    worker = served.worker(adding(), slots=4)
    served.result(served.start("t.Once", LONG, x=1))
    claims = worker.counters.claims
    run = served.start(f"t.{workflow}", LONG, xs=list(range(size)))
    assert served.result(run).outputs == {"ys": [x + more for x in range(size)]}
    assert worker.counters.claims - claims > 1, "it was let go and claimed again"
    assert tasks_of(served, run) == []


def test_a_long_run_that_needs_others_too_is_not_held_up_by_what_it_has_put_off(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_in_hand, "STAY_IN_ALL_SECONDS", 0.02)
    served.worker(adding(), slots=4)
    served.worker(adding("Other"), all_flows=False)
    served.result(served.start("t.Once", LONG, x=1))
    run = served.start("t.Mixed", LONG, xs=list(range(200)))
    assert served.result(run).outputs == {"ys": [x + 2 for x in range(200)]}
