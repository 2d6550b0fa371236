"""Random games with budgets, against a plain account of what must come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from afl.kernel.model import TaskId
from afl.turns.errors import BudgetExhausted
from afl.turns.model import Allowance, BudgetKey, Spending
from tests.kernel.mongo.databases import clear
from tests.turns.store.kept import (
    Kept,
    MemoryKept,
    MongoKept,
    PostgresKept,
    await_room,
    clear_turns,
    reserve,
    settle,
    turn,
    write,
)

KEYS = (
    BudgetKey("run", "r"),
    BudgetKey("agent", "a"),
    BudgetKey("tenant", "default"),
    BudgetKey("tenant", "default", "other"),
)
#: Cents and tokens: enough to see that units are counted apart.
Amount = tuple[int, int]
amounts = st.tuples(st.integers(0, 40), st.integers(0, 40))
limits = st.tuples(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100))
turns = st.integers(0, 4)
key_sets = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True).map(tuple)


@dataclass
class Row:
    limit: tuple[int | None, int | None]
    reserved: Amount = (0, 0)
    spent: Amount = (0, 0)

    def fits(self, amount: Amount, besides: Amount = (0, 0)) -> bool:
        parts = zip(self.limit, self.reserved, self.spent, amount, besides, strict=True)
        return all(limit is None or sum(rest) <= limit for limit, *rest in parts)


@dataclass
class Taken:
    number: int
    amount: Amount
    keys: tuple[BudgetKey, ...]


@dataclass
class Waits:
    place: int
    amount: Amount
    keys: tuple[BudgetKey, ...]
    woken: bool = False


@dataclass
class Account:
    rows: dict[BudgetKey, Row] = field(default_factory=dict)
    holds: dict[TaskId, Taken] = field(default_factory=dict)
    waits: dict[TaskId, Waits] = field(default_factory=dict)
    places: int = 0

    def end_hold(self, task: TaskId, spent: Amount) -> None:
        hold = self.holds.pop(task)
        for key in hold.keys:
            row = self.rows[key]
            row.reserved = less(row.reserved, hold.amount)
            row.spent = more(row.spent, spent)

    def ready(self) -> list[TaskId]:
        besides = dict.fromkeys(self.rows, (0, 0))
        found = []
        by_age = sorted(self.waits.items(), key=lambda item: item[1].place)
        for _, wait in by_age:
            if wait.woken:
                self._count(besides, wait)
        for task, wait in by_age:
            covering = [key for key in wait.keys if key in self.rows]
            if not wait.woken and all(
                self.rows[key].fits(wait.amount, besides[key]) for key in covering
            ):
                self._count(besides, wait)
                found.append(task)
        return found

    def _count(self, besides: dict[BudgetKey, Amount], wait: Waits) -> None:
        for key in wait.keys:
            if key in besides:
                besides[key] = more(besides[key], wait.amount)


def more(one: Amount, other: Amount) -> Amount:
    return one[0] + other[0], one[1] + other[1]


def less(one: Amount, other: Amount) -> Amount:
    return one[0] - other[0], one[1] - other[1]


def spending(amount: Amount) -> Spending:
    return Spending(usd=Decimal(amount[0]) / 100, tokens=amount[1])


class BudgetGames(RuleBasedStateMachine):
    """Games on stores that `fresh` makes."""

    fresh: Callable[[], Kept] = MemoryKept

    def __init__(self) -> None:
        super().__init__()
        self.kept = type(self).fresh()
        self.account = Account()
        self.tasks = [turn(self.kept) for _ in range(5)]

    @rule(key=st.sampled_from(KEYS), limit=limits)
    def set_budget(self, key: BudgetKey, limit: tuple[int | None, int | None]) -> None:
        cents, tokens = limit
        usd = None if cents is None else Decimal(cents) / 100
        self.kept.store.set_budget(key, Allowance(usd, tokens))
        self.account.rows.setdefault(key, Row(limit)).limit = limit

    @rule(which=turns, number=st.integers(0, 2), amount=amounts, keys=key_sets)
    def ask(self, which: int, number: int, amount: Amount, keys: tuple[BudgetKey, ...]) -> None:
        task, account = self.tasks[which], self.account
        covering = tuple(key for key in keys if key in account.rows)
        before = account.holds.get(task)
        again = before is not None and before.number == number
        released = {} if before is None or not again else dict.fromkeys(before.keys, amount)
        fits = all(
            account.rows[key].fits(
                amount,
                less((0, 0), before.amount) if before and key in released else (0, 0),
            )
            for key in covering
        )
        if not fits:
            with pytest.raises(BudgetExhausted):
                reserve(self.kept, task, spending(amount), number, keys)
            return
        reserve(self.kept, task, spending(amount), number, keys)
        if before is not None:
            account.end_hold(task, (0, 0) if again else before.amount)
        for key in covering:
            row = account.rows[key]
            row.reserved = more(row.reserved, amount)
            assert row.fits((0, 0)), "never above the limit when it is reserved"
        if covering:
            account.holds[task] = Taken(number, amount, covering)
        account.waits.pop(task, None)

    @rule(which=turns, number=st.integers(0, 2), amount=amounts)
    def settle(self, which: int, number: int, amount: Amount) -> None:
        task = self.tasks[which]
        settle(self.kept, task, spending(amount), number)
        hold = self.account.holds.get(task)
        if hold is not None and hold.number == number:
            self.account.end_hold(task, amount)

    @rule(amount=amounts, keys=key_sets)
    def spend(self, amount: Amount, keys: tuple[BudgetKey, ...]) -> None:
        store = self.kept.store
        write(self.kept, lambda transaction: store.spend(transaction, keys, spending(amount)))
        for key in keys:
            if key in self.account.rows:
                row = self.account.rows[key]
                row.spent = more(row.spent, amount)

    @rule(which=turns, amount=amounts, keys=key_sets)
    def wait(self, which: int, amount: Amount, keys: tuple[BudgetKey, ...]) -> None:
        task, account = self.tasks[which], self.account
        await_room(self.kept, task, spending(amount), keys)
        before = account.waits.get(task)
        account.places += 1
        place = account.places if before is None else before.place
        account.waits[task] = Waits(place, amount, keys)

    @rule(tell=st.integers(0, 3))
    def tell(self, tell: int) -> None:
        ready = [wait.task for wait in self.kept.store.ready_waits()]
        assert ready == self.account.ready()
        for task in ready[:tell]:
            self.kept.store.end_wait(task, "budget:0")
            self.account.waits[task].woken = True

    @rule()
    def let_promises_lapse(self) -> None:
        self.kept.advance(timedelta(minutes=2))
        # those that nobody came for are dropped by the next look
        self.kept.store.ready_waits()
        waits = self.account.waits
        for task in [task for task, wait in waits.items() if wait.woken]:
            del waits[task]

    @rule(which=turns)
    def end(self, which: int) -> None:
        task = self.tasks[which]
        self.kept.store.kernel.stop(task)
        self.account.waits.pop(task, None)
        hold = self.account.holds.get(task)
        assert self.kept.store.settle_holds_of_closed() == (hold is not None)
        if hold is not None:
            self.account.end_hold(task, hold.amount)
        self.tasks[which] = turn(self.kept)

    @invariant()
    def the_store_agrees_with_the_account(self) -> None:
        budgets = {budget.key: budget for budget in self.kept.store.budgets(KEYS)}
        assert budgets.keys() == self.account.rows.keys()
        for key, row in self.account.rows.items():
            assert budgets[key].reserved == spending(row.reserved)
            assert budgets[key].spent == spending(row.spent)
            held = [hold.amount for hold in self.account.holds.values() if key in hold.keys]
            assert row.reserved == (
                sum(each[0] for each in held),
                sum(each[1] for each in held),
            )


def rounds(games: int, steps: int) -> settings:
    return settings(
        max_examples=games,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def test_games_in_memory() -> None:
    run_state_machine_as_test(BudgetGames, settings=rounds(150, 40))


def play(make: Callable[[], PostgresKept | MongoKept], games: int, steps: int) -> None:
    open_: list[PostgresKept | MongoKept] = []

    def fresh() -> Kept:
        while open_:
            open_.pop().close()
        open_.append(make())
        return open_[0]

    try:
        played = type("LastingGames", (BudgetGames,), {"fresh": staticmethod(fresh)})
        run_state_machine_as_test(played, settings=rounds(games, steps))
    finally:
        while open_:
            open_.pop().close()


@pytest.mark.timeout(300)
def test_games_on_postgres(turns_url: str) -> None:
    def make() -> PostgresKept:
        clear_turns(turns_url)
        return PostgresKept(turns_url)

    play(make, 15, 30)


@pytest.mark.timeout(300)
def test_games_on_mongo(turns_mongo_url: str) -> None:
    def make() -> MongoKept:
        clear(turns_mongo_url)
        return MongoKept(turns_mongo_url)

    play(make, 15, 30)
