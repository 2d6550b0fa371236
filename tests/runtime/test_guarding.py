"""Facets with `Breaker`: whom the worker asks, when it makes no attempt, and what it tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from afl.kernel.model import Json
from afl.runtime.guarding import BreakerWish, GoAhead, NotNow
from afl.runtime.handler_table import HandlerTable, Invocation, Permanent
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.worker import Worker, WorkerConfig
from tests.runtime.serving import PATIENCE_SECONDS, QUICK, Gate, Serving, pay, serving

FLOW = """
namespace billing {
  event facet Pay(amount: Int) => (paid: Int) with Breaker()
  event facet Timed(amount: Int) => (paid: Int)
    with Breaker(service = "bank", failures = 2, window = 10s, cooldown = 2s, probes = 1, slow = 3s)
    with Timeout(ms = 100)
  event facet Free(amount: Int) => (paid: Int)

  workflow Once(amount: Int) => (paid: Int) andThen {
    a = Pay(amount = $.amount)
    yield Once(paid = a.paid)
  }
  workflow InTime(amount: Int) => (paid: Int) andThen {
    a = Timed(amount = $.amount)
    yield InTime(paid = a.paid)
  }
  workflow Freely(amount: Int) => (paid: Int) andThen {
    a = Free(amount = $.amount)
    yield Freely(paid = a.paid)
  }
}
"""


@pytest.fixture
def store(real_store: PersistenceAPI) -> PersistenceAPI:
    return real_store


class FakeGuard:
    """Answers as it is told, and notes what it hears."""

    def __init__(self, *answers: NotNow) -> None:
        self._answers = list(answers)
        self.wishes: list[BreakerWish] = []
        self.settled: list[bool | None] = []
        self.told = threading.Event()

    def ask(self, wish: BreakerWish, answer: Callable[[GoAhead | NotNow], None]) -> None:
        self.wishes.append(wish)
        answer(self._answers.pop(0) if self._answers else GoAhead(self._settle))

    def _settle(self, good: bool | None) -> None:
        self.settled.append(good)
        self.told.set()

    def close(self) -> None:
        pass


@contextmanager
def guarded(store: PersistenceAPI, guard: FakeGuard, table: HandlerTable) -> Iterator[Serving]:
    with serving(store) as world:
        config = WorkerConfig(lease_seconds=5.0, renew_seconds=0.1, poll=QUICK)
        worker = Worker(world.evaluator, table, config, guard=guard)
        worker.start()
        try:
            yield world
        finally:
            worker.drain(5.0)


def table_of(handler: Callable[[Invocation], dict[str, Json]]) -> HandlerTable:
    table = HandlerTable()
    for name in ("Pay", "Timed", "Free"):
        table.register(name, handler)
    return table


def test_a_task_that_is_put_off_comes_back_and_no_attempt_is_counted(store: PersistenceAPI) -> None:
    guard = FakeGuard(NotNow(timedelta(milliseconds=30)), NotNow(timedelta(milliseconds=30)))
    attempts: list[int] = []

    def handler(invocation: Invocation) -> dict[str, Json]:
        attempts.append(invocation.attempt)
        return pay(invocation)

    with guarded(store, guard, table_of(handler)) as world:
        run = world.start("billing.Once", FLOW, amount=1)
        assert world.result(run).outputs == {"paid": 2}
    assert attempts == [1]
    assert guard.settled == [True]
    usual = BreakerWish(
        "facet/billing.Pay", "billing.Pay", 5, timedelta(minutes=5), timedelta(minutes=1), 3
    )
    assert guard.wishes == [usual] * 3


def test_a_facet_without_a_breaker_asks_nobody(store: PersistenceAPI) -> None:
    guard = FakeGuard()
    with guarded(store, guard, table_of(pay)) as world:
        run = world.start("billing.Freely", FLOW, amount=1)
        assert world.result(run).outputs == {"paid": 2}
    assert guard.wishes == []


@pytest.mark.parametrize(
    ("error", "good"), [(ConnectionError("no"), False), (Permanent("declined"), None)]
)
def test_what_a_failure_says(store: PersistenceAPI, error: Exception, good: bool | None) -> None:
    def handler(invocation: Invocation) -> dict[str, Json]:
        raise error

    guard = FakeGuard()
    with guarded(store, guard, table_of(handler)) as world:
        assert not world.result(world.start("billing.Once", FLOW, amount=1)).success
    assert guard.settled == [good]


def test_an_attempt_that_takes_too_long_is_a_failure(store: PersistenceAPI) -> None:
    guard, gate = FakeGuard(), Gate()
    with guarded(store, guard, table_of(gate)) as world:
        run = world.start("billing.InTime", FLOW, amount=1)
        assert not world.result(run).success
        assert guard.told.wait(PATIENCE_SECONDS)
        gate.open.set()
    assert guard.settled == [False]
    (wish,) = guard.wishes
    assert wish == BreakerWish(
        "service/bank",
        "billing.Timed",
        2,
        timedelta(seconds=10),
        timedelta(seconds=2),
        1,
        timedelta(seconds=3),
    )
