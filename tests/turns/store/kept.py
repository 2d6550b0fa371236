"""What tests of the stores of turns need: a store on a clock that they move, and turns in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Protocol

import psycopg
from psycopg import Connection

from afl.kernel import memory
from afl.kernel.model import Json, TaskId, TaskSpec
from afl.kernel.mongo import database as mongo
from afl.kernel.mongo.store import MongoStore
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.store import PostgresStore
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.model import TURN, Allowance, Budget, BudgetKey, Hold, Spending
from afl.turns.mongo_store import MongoTurnStore
from afl.turns.ports import BudgetWait, TurnStore
from afl.turns.postgres_store import PostgresTurnStore
from tests.kernel.postgres.databases import clear, set_clock
from tests.turns.lasting_stores import LastingTurnStore

RUN = BudgetKey("run", "r")
TENANT = BudgetKey("tenant", "default")
_TABLES = "agent budget budget_hold budget_wait usage mcp_pin"


class Kept(Protocol):
    @property
    def store(self) -> TurnStore: ...
    def advance(self, by: timedelta) -> None: ...


class MemoryKept:
    def __init__(self) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.store: TurnStore = MemoryTurnStore(memory.MemoryStore(self._clock, SequentialIds()))

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)


class LastingKept(Kept, Protocol):
    """A store that several processes may share."""

    @property
    def turns(self) -> LastingTurnStore: ...


class PostgresKept:
    """The database is told the virtual time before each transaction."""

    def __init__(self, url: str) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.url = url
        self.kernel = PostgresStore(
            Database(url, max_size=4, prepare=self._set_clock), SequentialIds()
        )
        self.turns = PostgresTurnStore(self.kernel)
        self.store: TurnStore = self.turns

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def close(self) -> None:
        self.kernel.close()

    def _set_clock(self, connection: Connection[Row]) -> None:
        set_clock(connection, self._clock.now())


class MongoKept:
    """Each transaction is told the virtual time."""

    def __init__(self, url: str) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.url = url
        self.kernel = MongoStore(mongo.Database(url, clock=self._clock.now), SequentialIds())
        self.turns = MongoTurnStore(self.kernel)
        self.store: TurnStore = self.turns

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def close(self) -> None:
        self.kernel.close()


def clear_turns(url: str) -> None:
    """Removes every row."""
    clear(url)
    with psycopg.connect(url) as connection:
        for table in _TABLES.split():
            connection.execute(f"delete from afl.{table}".encode())


def write(kept: Kept, work: Callable[[Transaction], None]) -> None:
    """A transaction with nothing but these writes."""
    kept.store.kernel.commit((), writes=work)


def turn(kept: Kept, given: Json = None) -> TaskId:
    """A turn that nobody has taken; its id."""
    (task,) = kept.store.kernel.enqueue([TaskSpec(TURN, "agent:default", input=given)])
    return task.id


def usd(amount: str) -> Spending:
    return Spending(usd=Decimal(amount))


def allow(kept: Kept, key: BudgetKey, amount: str) -> Budget:
    return kept.store.set_budget(key, Allowance(usd=Decimal(amount)))


def reserve(
    kept: Kept,
    task: TaskId,
    amount: Spending,
    number: int = 0,
    budgets: tuple[BudgetKey, ...] = (RUN,),
) -> None:
    hold = Hold(task, number, budgets, amount)
    write(kept, lambda transaction: kept.store.reserve(transaction, hold))


def settle(kept: Kept, task: TaskId, spent: Spending, number: int = 0) -> None:
    write(kept, lambda transaction: kept.store.settle(transaction, task, number, spent))


def await_room(
    kept: Kept,
    task: TaskId,
    amount: Spending,
    budgets: tuple[BudgetKey, ...] = (RUN,),
    call_key: str = "budget:0",
) -> None:
    wait = BudgetWait(task, call_key, budgets, amount)
    write(kept, lambda transaction: kept.store.await_budget(transaction, wait))


def ready(kept: Kept, limit: int = 100) -> list[TaskId]:
    """The turns that there is room for."""
    return [wait.task for wait in kept.store.ready_waits(limit)]


def figures(kept: Kept, key: BudgetKey = RUN) -> tuple[Decimal | int, Decimal | int]:
    """How much money of a budget is reserved, and how much was spent."""
    budget = kept.store.get_budget(key)
    assert budget is not None
    return budget.reserved.usd, budget.spent.usd
