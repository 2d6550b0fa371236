"""What goes on beside the handlers, and what happens when the store fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from afl.kernel.errors import BadRequest, Fenced, StoreUnavailable
from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Fence,
    Outcome,
    Renewal,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.working.hands import Hands
from afl.kernel.working.loops import BackgroundLoop
from afl.runtime.evaluator import ExecutionStatus
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.worker import Worker, WorkerConfig
from afl.runtime.working.parts import Part
from afl.runtime.working.refusals import split
from afl.runtime.working.threads import HandlerThreads
from tests.runtime.serving import (
    PATIENCE_SECONDS,
    Gate,
    Serving,
    eventually,
    pay,
    paying,
    serving,
)


@pytest.fixture
def quick() -> Iterator[Serving]:
    with serving(MemoryStore()) as made:
        yield made


@pytest.fixture
def served(real_store: PersistenceAPI) -> Iterator[Serving]:
    with serving(real_store) as made:
        yield made


def health(worker: Worker, name: str) -> Any:  # noqa: ANN401 - LoopHealth
    (found,) = [loop for loop in worker.health() if loop.name == name]
    return found


class Failing:
    """Stands before a method of the store: fails some calls, before or after they are done."""

    def __init__(self, method: Callable[..., Any], times: int, *, after: bool = False) -> None:
        self._method = method
        self._left = times
        self._after = after
        self.failed = threading.Semaphore(0)

    def __call__(self, *given: object, **options: object) -> object:
        fails = self._left > 0
        if fails:
            self._left -= 1
        if fails and not self._after:
            self.failed.release()
            raise StoreUnavailable("the wire was cut")
        answer = self._method(*given, **options)
        if fails:
            self.failed.release()
            raise StoreUnavailable("the answer was lost")
        return answer

    def wait_failed(self, times: int) -> None:
        for _ in range(times):
            assert self.failed.acquire(timeout=PATIENCE_SECONDS)


def test_a_loop_outlives_its_failures_and_tells_of_them() -> None:
    went_well = threading.Event()
    results = [ValueError("one"), OSError("two")]

    def work() -> float:
        if results:
            raise results.pop(0)
        went_well.set()
        return PATIENCE_SECONDS

    loop = BackgroundLoop("test", work, after_error_seconds=0.001)
    assert loop.health.age_seconds() is None
    loop.start()
    assert went_well.wait(PATIENCE_SECONDS)
    loop.stop()
    assert loop.health.errors == 2
    assert loop.health.last_error == "OSError: two"
    age = loop.health.age_seconds()
    assert age is not None
    assert age < PATIENCE_SECONDS


@pytest.mark.parametrize(("method", "loop"), [("sweep", "sweep"), ("renew", "renewal")])
def test_a_worker_outlives_a_store_that_fails(
    quick: Serving, monkeypatch: pytest.MonkeyPatch, method: str, loop: str
) -> None:
    kernel = quick.store.kernel
    failing = Failing(getattr(kernel, method), times=2)
    monkeypatch.setattr(kernel, method, failing)
    worker = quick.worker(paying())
    failing.wait_failed(2)
    eventually(lambda: health(worker, loop).last_success is not None, f"{loop} goes well again")
    assert health(worker, loop).errors == 2
    assert "the wire was cut" in health(worker, loop).last_error
    assert quick.result(quick.start("billing.Again", amount=1)).outputs == {"paid": 5}


@pytest.mark.parametrize("after", [False, True])
def test_a_lost_answer_is_asked_for_again(
    served: Serving, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    done: list[str] = []

    def count(invocation: Invocation) -> dict[str, Any]:
        done.append(invocation.task.id)
        return pay(invocation)

    table = HandlerTable()
    table.register("Pay", count)
    kernel = served.store.kernel
    runs = [served.start("billing.Again", amount=n) for n in range(3)]
    failing = Failing(kernel.commit_and_claim, times=6, after=after)
    monkeypatch.setattr(kernel, "commit_and_claim", failing)
    worker = served.worker(table)
    assert [served.result(run).outputs["paid"] for run in runs] == [4, 5, 6]
    failing.wait_failed(6)
    assert len(done) == len(set(done)) == 12
    assert health(worker, "dispatcher").errors == 6


def test_a_run_that_cannot_be_evaluated_is_given_up_alone(
    quick: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = quick.start("billing.Once", amount=1)
    good = quick.start("billing.Once", amount=1)
    load = quick.store.get_run

    def refuse(run: str) -> object:
        if run == bad and threading.current_thread().name == "afl-dispatcher":
            raise AssertionError("a row that makes no sense")
        return load(bad if run == bad else good)

    monkeypatch.setattr(quick.store, "get_run", refuse)
    quick.worker(paying())
    assert quick.result(good).outputs == {"paid": 2}
    eventually(
        lambda: quick.evaluator.result(bad).status is ExecutionStatus.ERROR, "it is given up"
    )
    error = quick.evaluator.result(bad).error
    assert error is not None
    assert error["message"] == "a row that makes no sense"


def test_memory_that_is_gone_is_read_again(served: Serving) -> None:
    """What an evaluator knows of a run is a convenience: a flow that stays can do without."""

    def forgetful(invocation: Invocation) -> dict[str, Any]:
        for worker_evaluator in evaluators:
            with worker_evaluator._lock:
                worker_evaluator._kept.clear()
        return pay(invocation)

    table = HandlerTable()
    table.register("Pay", forgetful)
    worker = served.worker(table)
    evaluators = [worker._dispatcher._flows._evaluator]
    assert served.result(served.start("billing.Again", amount=1)).outputs == {"paid": 5}


def test_a_lease_that_was_lost_ends_nothing_but_what_it_covered(quick: Serving) -> None:
    gate = Gate()
    table = HandlerTable()
    table.register("Pay", gate)
    run = quick.start("billing.Once", amount=1)
    worker = quick.worker(table, lease_seconds=0.4, renew_seconds=0.3)
    gate.wait_entered()
    # the process stands still: it renews nothing, until its lease is over and its tasks are free
    worker._renewal.stop()
    second = quick.worker(paying())
    assert quick.result(run).outputs == {"paid": 2}
    gate.open.set()
    assert second.counters.by_facet() == {("billing.Pay", "success"): 1}
    eventually(
        lambda: worker.counters.refused + worker.counters.late_results >= 1,
        "what came too late is refused",
    )
    assert quick.evaluator.result(run).outputs == {"paid": 2}


# Hands


def _claim(fence: int, task: Any = None) -> Claim:  # noqa: ANN401 - nobody looks at the task
    return Claim(task, Fence(fence), ())


def _renewal(**fences: tuple[int, ...]) -> Renewal:
    given = {name: tuple(map(Fence, numbers)) for name, numbers in fences.items()}
    return Renewal(datetime.now(UTC), given.get("lost", ()), given.get("stop", ()), given["stray"])


def test_a_stray_is_one_that_no_claim_can_still_bring() -> None:
    hands = Hands()
    hands.begin_claim()
    # seen once, and again while the claim is under way: its answer may bring it
    assert hands.take_in((), _renewal(stray=(7,))) == []
    assert hands.take_in((), _renewal(stray=(7,))) == []
    hands.end_claim()
    assert hands.take_in((), _renewal(stray=(7,))) == [7]


def test_what_the_claim_has_brought_is_no_stray() -> None:
    hands = Hands()
    hands.begin_claim()
    assert hands.take_in((), _renewal(stray=(7,))) == []
    hands.put(_claim(7))
    hands.end_claim()
    assert hands.take_in((), _renewal(stray=(7,))) == []


def test_lost_and_stopped_tasks_are_cancelled() -> None:
    hands = Hands()
    lost, stopped, other = (hands.put(_claim(fence)) for fence in (1, 2, 3))
    hands.take_in(map(Fence, (1, 2, 3)), _renewal(lost=(1,), stop=(2,), stray=()))
    assert (lost.lost, lost.cancelled.is_set()) == (True, True)
    assert (stopped.stop, stopped.lost, stopped.cancelled.is_set()) == (True, False, True)
    assert not other.cancelled.is_set()


# Refusals


def test_a_result_that_is_refused_is_the_failure_of_its_handler() -> None:
    kernel, hands = MemoryStore().kernel, Hands()
    kernel.enqueue([TaskSpec("event", "billing.Pay")])
    kernel.register(WorkerSpec(WorkerId("w"), "w"))
    (claim,) = kernel.claim(ClaimRequest(WorkerId("w"), ("Pay",)))
    held = hands.put(claim)
    part = Part([Commit(held.fence, Close(Outcome.SUCCESS, {}))], [held])
    flows: Any = None  # there are none
    (instead,) = split(part, BadRequest("no"), flows, hands)
    (done,) = kernel.commit(instead.commits)
    assert isinstance(done.task.error, dict)
    assert (done.task.outcome, done.task.error["type"]) == (Outcome.FAILED, "BadResult")
    # what is refused even then is left alone, and what was lost is dropped
    assert split(instead, BadRequest("no"), flows, hands) == []
    assert hands.all() == []
    hands.put(claim)
    assert split(part, Fenced("lost"), flows, hands) == []
    assert hands.all() == []


# Threads


def test_work_that_never_ends_takes_no_thread_from_others() -> None:
    threads = HandlerThreads(keep=1)
    never, done = threading.Event(), threading.Semaphore(0)
    for _ in range(3):
        threads.run(lambda: _wait(never))
    for _ in range(5):
        threads.run(lambda: done.release())
    for _ in range(5):
        assert done.acquire(timeout=PATIENCE_SECONDS)
    never.set()
    threads.close()


def _wait(event: threading.Event) -> None:
    event.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("options", [{"slots": 0}, {"lease_seconds": 1.0, "renew_seconds": 1.0}])
def test_settings_that_contradict_themselves(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"slot|lease"):
        WorkerConfig(**options)
