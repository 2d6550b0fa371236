from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import Fenced
from afl.kernel.model import (
    ClaimRequest,
    Json,
    Outcome,
    ReasonCode,
    State,
    Task,
    TaskId,
    TaskSpec,
    WorkerState,
)
from afl.kernel.waiting import PollPolicy
from afl.runtime.evaluator import ExecutionStatus
from afl.runtime.handler_table import HandlerTable, Invocation, Permanent
from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import PersistenceAPI
from tests.runtime.serving import (
    PATIENCE_SECONDS,
    SCRIPTS,
    Gate,
    Serving,
    die,
    eventually,
    pay,
    pay_elsewhere,
    paying,
    serving,
)


@pytest.fixture
def quick() -> Iterator[Serving]:
    """On the memory store."""
    with serving(MemoryStore()) as made:
        yield made


@pytest.fixture
def served(real_store: PersistenceAPI) -> Iterator[Serving]:
    with serving(real_store) as made:
        yield made


def tasks_of(served: Serving, run: str) -> list[Task]:
    """The tasks that a run has called for."""
    flow = served.store.kernel.get_task(TaskId(run))
    assert flow is not None
    return [task for task in served.store.kernel.find_tasks(run=flow.run) if task.kind != "flow"]


# Runs


def test_a_sequence_takes_one_transaction_for_each_step(served: Serving) -> None:
    run = served.start("billing.Again", amount=1)
    worker = served.worker(paying())
    assert served.result(run).outputs == {"paid": 5}
    # the flow's first turn, and one for each of the four steps; only the first of them, of which
    # nobody knows how long it takes, has a task to close
    assert worker.counters.stays == 4
    assert worker.counters.turns == 5
    assert worker.counters.commits == 6
    assert worker.counters.by_facet() == {("billing.Pay", "success"): 4}


def test_many_runs_in_few_slots(served: Serving) -> None:
    runs = [served.start("billing.Again", amount=n) for n in range(20)]
    served.worker(paying(), slots=3)
    assert [served.result(run).outputs["paid"] for run in runs] == [n + 4 for n in range(20)]


@pytest.mark.parametrize("slots", [4, 16])
def test_steps_side_by_side_each_end_by_themselves(served: Serving, slots: int) -> None:
    """With enough slots the flow stays for all of them; else it waits like any other."""
    run = served.start("billing.Wide", amounts=list(range(12)))
    worker = served.worker(paying(), slots=slots)
    assert served.result(run).outputs == {"paid": list(range(1, 13))}
    assert bool(worker.counters.stays) is (slots > 12)


def test_a_workflow_called_as_a_step(served: Serving) -> None:
    run = served.start("billing.Outer", amount=1)
    served.worker(paying(), slots=2)
    assert served.result(run).outputs == {"paid": 6}


def test_two_workers_do_each_step_once(served: Serving) -> None:
    done: Counter[tuple[Json, Json]] = Counter()
    lock = threading.Lock()

    def count(invocation: Invocation) -> dict[str, Json]:
        given = invocation.task.input
        assert isinstance(given, dict)
        with lock:
            done[given["run"], given["step"]] += 1
        return pay(invocation)

    table = HandlerTable()
    table.register("Pay", count)
    runs = [served.start("billing.Again", amount=n) for n in range(15)]
    workers = [served.worker(table, slots=3) for _ in range(2)]
    assert [served.result(run).outputs["paid"] for run in runs] == [n + 4 for n in range(15)]
    assert sum(worker.counters.by_facet()["billing.Pay", "success"] for worker in workers) == 60
    assert len(done) == 60
    assert set(done.values()) == {1}


def test_a_slow_callee_has_its_flow_suspended(quick: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    run = quick.start("billing.Once", amount=1)
    quick.worker(table)
    gate.wait_entered()

    def is_waiting() -> bool:
        flow = quick.store.kernel.get_task(TaskId(run))
        return flow is not None and flow.state is State.WAITING

    eventually(is_waiting, "the flow waits for its callee")
    gate.open.set()
    assert quick.result(run).outputs == {"paid": 2}


# What is claimed


def test_a_short_name_claims_its_facet_and_nothing_else(served: Serving) -> None:
    kernel = served.store.kernel
    mine, others, flow, other_list = kernel.enqueue(
        [
            TaskSpec("event", "billing.Pay", input={"params": {"amount": 1}}),
            TaskSpec("event", "billing.Repay", input={"params": {"amount": 1}}),
            TaskSpec("flow", "afl:execute"),
            TaskSpec("event", "billing.Pay", list="elsewhere"),
        ]
    )
    worker = served.worker(paying("Pay"), all_flows=False)
    eventually(lambda: _outcome(served, mine.id) is Outcome.SUCCESS, "the task is served")
    assert worker.drain(PATIENCE_SECONDS)
    for task in (others, flow, other_list):
        found = kernel.get_task(task.id)
        assert found is not None
        assert (found.state, found.fence, found.crashes) == (State.READY, None, 0)
    assert worker.counters.claims == 1


def _outcome(served: Serving, task: TaskId) -> Outcome | None:
    found = served.store.kernel.get_task(task)
    return None if found is None else found.outcome


def test_without_a_handler_nothing_is_claimed_and_why_says_so(quick: Serving) -> None:
    refund = quick.start("billing.Back", amount=1)
    pay_run = quick.start("billing.Once", amount=1)
    quick.worker(paying("Pay"))
    quick.result(pay_run)
    eventually(lambda: bool(tasks_of(quick, refund)), "the step is called")
    (task,) = tasks_of(quick, refund)
    assert (task.name, task.state) == ("billing.Refund", State.READY)
    reason = quick.store.kernel.why(task.id)
    assert reason is not None
    assert reason.code is ReasonCode.NO_WORKER


def test_the_qualified_name_wins_then_the_short_one_then_the_default() -> None:
    table = HandlerTable()
    table.register("Pay", pay)
    table.register("billing.Pay", die)
    assert [_function(table, name) for name in ("billing.Pay", "other.Pay", "x.Y")] == [
        die,
        pay,
        None,
    ]
    table.set_default(pay_elsewhere)
    assert _function(table, "x.Y") is pay_elsewhere


def _function(table: HandlerTable, name: str) -> object:
    found = table.find(name)
    return None if found is None else found.function


# Doorbells


def test_a_ring_is_enough(quick: Serving) -> None:
    doorbell = LocalDoorbell()
    never = PollPolicy(60.0, 60.0)
    # one advances flows, the other serves: neither polls, so each must ring for the other
    quick.worker(HandlerTable(), doorbell=doorbell, poll=never)
    quick.worker(paying(), doorbell=doorbell, poll=never, all_flows=False)
    run = quick.start("billing.Again", amount=1)
    doorbell.ring(["default"])
    assert quick.result(run).outputs == {"paid": 5}


# Failures


def test_a_failure_fails_the_run(served: Serving) -> None:
    def fail(invocation: Invocation) -> dict[str, Json]:
        raise LookupError(f"no account {invocation.params['amount']}")

    table = HandlerTable()
    table.register("billing.Pay", fail)
    run = served.start("billing.Once", amount=7)
    served.worker(table)
    result = served.result(run)
    assert result.status is ExecutionStatus.ERROR
    assert result.error is not None
    assert result.error["type"] == "LookupError"
    assert result.error["message"] == "no account 7"


def test_what_ends_a_thread_is_a_failure_too(quick: Serving) -> None:
    table = paying("Refund")
    table.register("Pay", die)
    runs = [quick.start("billing.Once", amount=1) for _ in range(3)]
    quick.worker(table, slots=1)
    for run in runs:
        error = quick.result(run).error
        assert error is not None
        assert (error["type"], error["message"]) == ("SystemExit", "attempt 1")


class Attempts:
    """A handler that fails as often as it is told."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.seen: list[int] = []

    def __call__(self, invocation: Invocation) -> dict[str, Json]:
        self.seen.append(invocation.attempt)
        if self._errors:
            raise self._errors.pop(0)
        return pay(invocation)


@pytest.mark.parametrize(
    ("workflow", "facet", "errors", "seen", "paid"),
    [
        ("Retried", "Tried", [OSError("a"), OSError("b")], [1, 2, 3], 2),
        ("Retried", "Tried", [Permanent("for good"), OSError("b")], [1], None),
        ("Picked", "Picky", [ConnectionError("a")], [1, 2], 2),
        ("Picked", "Picky", [ValueError("a")], [1], None),
    ],
)
def test_what_is_tried_again(
    served: Serving,
    workflow: str,
    facet: str,
    errors: list[Exception],
    seen: list[int],
    paid: int | None,
) -> None:
    attempts = Attempts(*errors)
    table = HandlerTable()
    table.register(facet, attempts)
    run = served.start(f"billing.{workflow}", amount=1)
    served.worker(table)
    assert served.result(run).outputs.get("paid") == paid
    assert attempts.seen == seen


class Spiteful(dict[str, Json]):
    """A result that fails when it is looked at, after its handler has ended."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("do not look at me")

    keys = __iter__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, "BadResult"),
        ([1, 2], "BadResult"),
        ({"paid": {1, 2}}, "BadResult"),
        ({"paid": float("nan")}, "BadResult"),
        ({1: 2}, "BadResult"),
        (Spiteful(), "RuntimeError"),
    ],
)
def test_a_wrong_result_is_a_failure_that_names_the_handler(
    quick: Serving, result: object, kind: str
) -> None:
    table = HandlerTable()
    table.register("Tried", lambda invocation: result)  # type: ignore[arg-type,return-value]
    runs = [quick.start("billing.Retried", amount=1) for _ in range(2)]
    worker = quick.worker(table, slots=1)
    for run in runs:  # the second needs the slot that the first has had
        error = quick.result(run).error
        assert error is not None
        assert error["type"] == kind
        if kind == "BadResult":
            assert "`Tried`" in str(error["message"])
    if kind == "BadResult":
        assert worker.counters.by_facet() == {("billing.Tried", "failed"): 2}


def test_a_run_that_the_store_refuses_is_given_up_alone(served: Serving) -> None:
    """Times that lie beyond the calendar are found by the store, in a transaction that others
    share."""
    text = """
    namespace far {
      event facet Pay(amount: Int) => (paid: Int)
      event facet Slow(amount: Int) => (paid: Int) with Timeout(hours = 1000000)
      workflow Bad(amount: Int) => (paid: Int) andThen {
        a = Slow(amount = $.amount)
        yield Bad(paid = a.paid)
      }
      workflow Outer(amount: Int) => (paid: Int) andThen {
        a = Bad(amount = $.amount)
        yield Outer(paid = a.paid)
      }
      workflow Good(amount: Int) => (paid: Int) andThen {
        a = Pay(amount = $.amount)
        yield Good(paid = a.paid)
      }
    }
    """
    refused = served.start("far.Outer", text, amount=1)
    others = [served.start("far.Good", text, amount=n) for n in range(3)]
    worker = served.worker(paying())
    error = served.result(refused).error
    assert error is not None
    assert error["type"] == "BadRequest"
    assert [served.result(run).outputs["paid"] for run in others] == [1, 2, 3]
    assert worker.counters.refused >= 1


# Time


def test_an_attempt_that_hangs_is_given_up_and_frees_its_slot(served: Serving) -> None:
    gate = Gate()
    table = paying("Pay")
    table.register("Timed", gate)
    hung = served.start("billing.InTime", amount=1)
    worker = served.worker(table, slots=1)
    gate.wait_entered()
    next_run = served.start("billing.Once", amount=1)
    error = served.result(hung).error
    assert error is not None
    assert error["type"] == "Timeout"
    assert served.result(next_run).outputs == {"paid": 2}
    assert gate.invocations[0].cancelled.is_set()
    gate.open.set()
    eventually(lambda: worker.counters.late_results == 1, "the late result is ignored")
    assert served.evaluator.result(hung).status is ExecutionStatus.ERROR


def test_a_heartbeat_gives_an_attempt_more_time(quick: Serving) -> None:
    def slow(invocation: Invocation) -> dict[str, Json]:
        assert invocation.heartbeat(timedelta(seconds=20)) is not None
        assert not invocation.cancelled.wait(0.6)  # twice what the facet has
        return pay(invocation)

    table = HandlerTable()
    table.register("Timed", slow)
    run = quick.start("billing.InTime", amount=1)
    quick.worker(table)
    assert quick.result(run).outputs == {"paid": 2}


# Where handlers run


def test_a_coroutine_that_blocks_the_loop_loses_nothing(
    quick: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    renewals = threading.Semaphore(0)
    kernel = quick.store.kernel
    renew = kernel.renew

    def counted(*given: object) -> object:
        try:
            return renew(*given)  # type: ignore[arg-type]
        finally:
            renewals.release()

    kernel.renew = counted  # type: ignore[method-assign,assignment]

    async def block(invocation: Invocation) -> dict[str, Json]:
        return gate(invocation)  # waits without letting the loop go on

    table = paying("Tried")
    table.register("Pay", block)
    blocked = quick.start("billing.Once", amount=1)
    quick.worker(table, lease_seconds=0.5, renew_seconds=0.1)
    gate.wait_entered()
    for _ in range(10):  # longer than the lease
        assert renewals.acquire(timeout=PATIENCE_SECONDS)
    assert quick.result(quick.start("billing.Retried", amount=1)).outputs == {"paid": 2}
    gate.open.set()
    assert quick.result(blocked).outputs == {"paid": 2}
    assert len(gate.invocations) == 1
    (warning,) = [each for each in caplog.messages if "event loop" in each]
    assert "`Pay`" in warning


def test_a_process_of_its_own(quick: Serving) -> None:
    table = HandlerTable()
    table.register("Pay", pay_elsewhere, process=True)
    run = quick.start("billing.Once", amount=1)
    quick.worker(table)
    assert quick.result(run).outputs == {"paid": 1}


def test_scripts_run_in_processes_of_their_own(quick: Serving) -> None:
    quick.worker(HandlerTable())
    slug = quick.start("scripts.Slugs", SCRIPTS, title="A Nice Day")
    seen = quick.start("scripts.Sees", SCRIPTS, x=1)
    broken = quick.start("scripts.Breaks", SCRIPTS, x=1)
    endless = quick.start("scripts.Never", SCRIPTS, x=1)
    assert quick.result(slug).outputs == {"slug": "a-nice-day"}
    assert quick.result(seen).outputs == {"environment": [], "files": []}
    error = quick.result(broken).error
    assert error is not None
    assert error["message"] == "ValueError: invalid literal for int() with base 10: 'no such thing'"
    error = quick.result(endless).error
    assert error is not None
    assert error["type"] == "Timeout"


# Stopping


def test_a_stopped_run_tells_its_handlers(quick: Serving) -> None:
    told = threading.Event()
    entered = threading.Event()

    def wait(invocation: Invocation) -> dict[str, Json]:
        entered.set()
        assert invocation.cancelled.wait(PATIENCE_SECONDS)
        told.set()
        raise InterruptedError("as was asked")

    table = HandlerTable()
    table.register("Pay", wait)
    run = quick.start("billing.Once", amount=1)
    quick.worker(table)
    assert entered.wait(PATIENCE_SECONDS)
    quick.store.kernel.stop(TaskId(run))
    assert told.wait(PATIENCE_SECONDS)
    (task,) = tasks_of(quick, run)
    eventually(lambda: _outcome(quick, task.id) is Outcome.CANCELED, "the task is canceled")
    assert _outcome(quick, TaskId(run)) is Outcome.CANCELED


def test_a_flow_that_stays_is_stopped(quick: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    run = quick.start("billing.Once", amount=1)
    worker = quick.worker(table)
    gate.wait_entered()
    quick.store.kernel.stop(TaskId(run))
    eventually(lambda: _outcome(quick, TaskId(run)) is Outcome.CANCELED, "the flow is canceled")
    gate.open.set()
    assert worker.drain(PATIENCE_SECONDS)
    assert quick.evaluator.result(run).status is ExecutionStatus.CANCELED


def test_a_lost_fence_costs_nobody_else(served: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    runs = [served.start("billing.Once", amount=n) for n in range(4)]
    worker = served.worker(table, slots=4, renew_seconds=4.0)  # it does not hear of the loss
    gate.wait_entered(4)
    (lost,) = tasks_of(served, runs[0])
    served.store.kernel.stop(lost.id, force=True)
    gate.open.set()
    for n in (1, 2, 3):
        assert served.result(runs[n]).outputs == {"paid": n + 1}
    error = served.result(runs[0]).error
    assert error is not None
    assert error["type"] == "Canceled"
    assert worker.counters.refused >= 1
    assert _outcome(served, lost.id) is Outcome.CANCELED


def test_a_handler_learns_that_its_task_is_lost(quick: Serving) -> None:
    ended: list[type[BaseException]] = []
    entered, done = threading.Event(), threading.Event()

    def slow(invocation: Invocation) -> dict[str, Json]:
        entered.set()
        assert invocation.cancelled.wait(PATIENCE_SECONDS)
        try:
            invocation.heartbeat(timedelta(seconds=1))
        except Fenced as error:
            ended.append(type(error))
        done.set()
        return pay(invocation)

    table = HandlerTable()
    table.register("Pay", slow)
    run = quick.start("billing.Once", amount=1)
    worker = quick.worker(table)
    assert entered.wait(PATIENCE_SECONDS)
    (task,) = tasks_of(quick, run)
    quick.store.kernel.stop(task.id, force=True)
    assert done.wait(PATIENCE_SECONDS)
    assert ended == [Fenced]
    eventually(lambda: worker.counters.late_results == 1, "the result is thrown away")


def test_what_a_lost_claim_has_taken_is_given_back(served: Serving) -> None:
    worker = served.worker(paying())
    kernel = served.store.kernel
    (task,) = kernel.enqueue(
        [TaskSpec("event", "billing.Pay", list="later", input={"params": {"amount": 1}})]
    )
    # the answer to this claim never reaches the worker
    (claim,) = kernel.claim(ClaimRequest(worker.id, ("Pay",), ("later",)))
    assert claim.task.id == task.id

    def is_free() -> bool:
        found = kernel.get_task(task.id)
        return found is not None and found.state is State.READY

    eventually(is_free, "the stray is given back")


# Draining


def test_a_drain_lets_handlers_finish(served: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    run = served.start("billing.Again", amount=1)
    worker = served.worker(table, slots=1)
    gate.wait_entered()
    drained = threading.Thread(target=worker.drain, args=(PATIENCE_SECONDS,))
    drained.start()
    eventually(lambda: worker.is_draining, "it drains")
    gate.open.set()
    drained.join(PATIENCE_SECONDS)
    assert not worker.is_running
    found = served.store.kernel.get_worker(worker.id)
    assert found is not None
    assert found.state is WorkerState.SHUTDOWN
    # what it was at is done, and nothing is held or begun
    assert [task.outcome for task in tasks_of(served, run)][:1] == [Outcome.SUCCESS]
    assert len(gate.invocations) == 1
    served.worker(paying())
    assert served.result(run).outputs == {"paid": 5}


def test_a_drain_hands_back_what_does_not_finish(served: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    run = served.start("billing.Once", amount=1)
    worker = served.worker(table)
    gate.wait_entered()
    assert not worker.drain(0.05)
    assert gate.invocations[0].cancelled.is_set()
    (task,) = tasks_of(served, run)
    assert (task.state, task.crashes) == (State.READY, 0)
    served.worker(paying())
    assert served.result(run).outputs == {"paid": 2}
    gate.open.set()


def test_what_cannot_be_taken_back_is_not_handed_back(served: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Wire", gate)
    run = served.start("billing.Wired", amount=1)
    worker = served.worker(table, lease_seconds=0.5, renew_seconds=0.1)
    gate.wait_entered()
    assert not worker.drain(0.05)
    served.worker(paying("Wire"))
    error = served.result(run).error
    gate.open.set()
    assert error is not None
    assert error["code"] == "crashed"
    (task,) = tasks_of(served, run)
    assert (task.outcome, task.dead) == (Outcome.FAILED, True)
