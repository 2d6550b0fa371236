"""What tests of workers need: programs, stores on the real clock, and a way to wait for runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from afl.kernel.model import Json
from afl.kernel.waiting import PollPolicy
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator, ExecutionResult, Turn
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.step import WorkflowId
from afl.runtime.worker import Worker, WorkerConfig

PATIENCE_SECONDS = 30.0

#: One event facet, and workflows that call it in every way.
BILLING = """
namespace billing {
  event facet Pay(amount: Int) => (paid: Int)
  event facet Refund(amount: Int) => (refunded: Int)
  event facet Tried(amount: Int) => (paid: Int)
    with Retry(max_attempts = 3, delay = 1ms, jitter = false)
  event facet Picky(amount: Int) => (paid: Int)
    with Retry(max_attempts = 3, delay = 1ms, on = ["ConnectionError"])
  event facet Wire(amount: Int) => (paid: Int) with Effect(kind = irreversible)
  event facet Timed(amount: Int) => (paid: Int) with Timeout(ms = 300)

  workflow Once(amount: Int) => (paid: Int) andThen {
    a = Pay(amount = $.amount)
    yield Once(paid = a.paid)
  }
  workflow Again(amount: Int) => (paid: Int) andThen {
    a = Pay(amount = $.amount)
    b = Pay(amount = a.paid)
    c = Pay(amount = b.paid)
    d = Pay(amount = c.paid)
    yield Again(paid = d.paid)
  }
  workflow Wide(amounts: [Int]) => (paid: [Int]) andThen foreach amount in $.amounts {
    a = Pay(amount = $.amount)
    yield Wide(paid = [a.paid])
  }
  workflow Back(amount: Int) => (refunded: Int) andThen {
    a = Refund(amount = $.amount)
    yield Back(refunded = a.refunded)
  }
  workflow Both(amount: Int) => (paid: Int, refunded: Int) andThen {
    a = Pay(amount = $.amount)
    b = Refund(amount = $.amount)
    c = Pay(amount = a.paid + b.refunded)
    yield Both(paid = c.paid, refunded = b.refunded)
  }
  workflow Retried(amount: Int) => (paid: Int) andThen {
    a = Tried(amount = $.amount)
    yield Retried(paid = a.paid)
  }
  workflow Picked(amount: Int) => (paid: Int) andThen {
    a = Picky(amount = $.amount)
    yield Picked(paid = a.paid)
  }
  workflow Wired(amount: Int) => (paid: Int) andThen {
    a = Wire(amount = $.amount)
    yield Wired(paid = a.paid)
  }
  workflow InTime(amount: Int) => (paid: Int) andThen {
    a = Timed(amount = $.amount)
    yield InTime(paid = a.paid)
  }
  workflow Outer(amount: Int) => (paid: Int) andThen {
    a = Again(amount = $.amount)
    b = Pay(amount = a.paid)
    yield Outer(paid = b.paid)
  }
}
"""

SCRIPTS = """
namespace scripts {
  event facet Slug(title: String) => (slug: String) script {
    print("this is not the answer")
    result["slug"] = params["title"].lower().replace(" ", "-")
  }
  event facet Seen(x: Int) => (environment: [String], files: [String]) script {
    import os
    result["environment"] = sorted(name for name in os.environ if name != "LC_CTYPE")
    result["files"] = os.listdir(".")
  }
  event facet Broken(x: Int) => (y: Int) script {
    result["y"] = int("no such thing")
  }
  event facet Endless(x: Int) => (y: Int) with Timeout(ms = 400) script {
    while params:
        result["y"] = 1
  }
  workflow Slugs(title: String) => (slug: String) andThen {
    a = Slug(title = $.title)
    yield Slugs(slug = a.slug)
  }
  workflow Sees(x: Int) => (environment: [String], files: [String]) andThen {
    a = Seen(x = $.x)
    yield Sees(environment = a.environment, files = a.files)
  }
  workflow Breaks(x: Int) => (y: Int) andThen {
    a = Broken(x = $.x)
    yield Breaks(y = a.y)
  }
  workflow Never(x: Int) => (y: Int) andThen {
    a = Endless(x = $.x)
    yield Never(y = a.y)
  }
}
"""


class Ends:
    """The runs that have ended, by whichever evaluator."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._ended: set[str] = set()

    def add(self, run: str) -> None:
        with self._condition:
            self._ended.add(run)
            self._condition.notify_all()

    def wait(self, *runs: str) -> None:
        with self._condition:
            there = self._condition.wait_for(
                lambda: self._ended.issuperset(runs), timeout=PATIENCE_SECONDS
            )
        assert there, f"{len(set(runs) - self._ended)} of {len(runs)} runs have not ended"


class TellingEvaluator(Evaluator):
    """An evaluator that tells when a run ends."""

    def __init__(self, persistence: PersistenceAPI, ends: Ends) -> None:
        super().__init__(persistence)
        self._ends = ends

    def accepted(self, turn: Turn) -> None:
        super().accepted(turn)
        if turn.end is not None:
            self._ends.add(turn.run.id)


class Serving:
    """A store, an evaluator, and the workers that a test starts on them."""

    def __init__(self, store: PersistenceAPI) -> None:
        self.store = store
        self.ends = Ends()
        self.evaluator = TellingEvaluator(store, self.ends)
        self._programs: dict[str, str] = {}
        self._workers: list[Worker] = []

    def start(self, workflow: str, text: str = BILLING, **inputs: Json) -> WorkflowId:
        """Starts a run without advancing it."""
        program = self._programs.get(text)
        if program is None:
            compiled = compile_sources([("test.afl", text)])
            assert compiled.program is not None, [d.message for d in compiled.diagnostics]
            program = self._programs[text] = self.evaluator.plans.add(compiled.program)
        return self.evaluator.start(program, workflow, inputs)

    def result(self, run: WorkflowId) -> ExecutionResult:
        """How a run has ended, once it has."""
        self.ends.wait(run)
        return self.evaluator.result(run)

    def worker(self, table: HandlerTable, **options: object) -> Worker:
        """A worker that renews often, with an evaluator of its own; drained after the test."""
        given = {"lease_seconds": 5.0, "renew_seconds": 0.1, "poll": QUICK, **options}
        doorbell = given.pop("doorbell", None)
        evaluator = TellingEvaluator(self.store, self.ends)
        worker = Worker(evaluator, table, WorkerConfig(**given), doorbell=doorbell)  # type: ignore[arg-type]
        worker.start()
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        for worker in self._workers:
            worker.drain(0.5)
        self.store.close()


QUICK = PollPolicy(0.01, 0.05)


def paying(*names: str) -> HandlerTable:
    """Handlers that answer with one more than they were given."""
    table = HandlerTable()
    for name in names or ("Pay",):
        table.register(name, pay)
    return table


def pay(invocation: Invocation) -> dict[str, Json]:
    amount = invocation.params["amount"]
    assert isinstance(amount, int)
    return {"paid": amount + 1}


def pay_elsewhere(invocation: Invocation) -> dict[str, Json]:
    """For a process of its own: it can only tell by its answer that it was there."""
    here = threading.main_thread() is threading.current_thread()
    return {"paid": 1 if here else -1}


def die(invocation: Invocation) -> dict[str, Json]:
    raise SystemExit(f"attempt {invocation.attempt}")


class Gate:
    """A handler that waits until it is let through; it tells that it is there."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.invocations: list[Invocation] = []

    def __call__(self, invocation: Invocation) -> dict[str, Json]:
        self.invocations.append(invocation)
        self.entered.release()
        assert self.open.wait(PATIENCE_SECONDS)
        return pay(invocation)

    def wait_entered(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.entered.acquire(timeout=PATIENCE_SECONDS), "the handler was not called"


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Waits for something that only the store, or another process, can tell."""
    end, pause = monotonic() + PATIENCE_SECONDS, threading.Event()
    while not condition():
        assert monotonic() < end, f"not in time: {what}"
        pause.wait(0.01)


@contextmanager
def serving(store: PersistenceAPI) -> Iterator[Serving]:
    made = Serving(store)
    try:
        yield made
    finally:
        made.close()
