"""Budgets in memory: what may be spent, what is reserved, who waits for room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from afl.kernel import memory
from afl.kernel.memory.tables import opened, write_tables
from afl.kernel.memory.transaction import MemoryTransaction, Table, Tables
from afl.kernel.model import State, TaskId
from afl.kernel.port import Transaction
from afl.turns.budgeting import (
    PROMISED_FOR,
    allowance_in,
    hand_out,
    keys_in,
    minus,
    plus,
    refuse,
    spending_in,
)
from afl.turns.model import Allowance, Budget, BudgetKey, Hold, Spending
from afl.turns.ports import BudgetWait

_BUDGETS = "budget"
#: What is reserved, by task: a turn has one request under way at most. Its budgets are those that
#: had a row.
_HOLDS = "budget-hold"
#: Who waits, by task: a turn waits once at most.
_WAITS = "budget-wait"
_NOTHING = Spending()


@dataclass(frozen=True, slots=True)
class _Waiting:
    number: int
    wait: BudgetWait
    #: when it was told that there is room, until it has taken that
    woken_at: datetime | None = None


class MemoryBudgets:
    """See `ports.Budgets` for what each method promises."""

    def __init__(self, kernel: memory.MemoryStore) -> None:
        self._kernel = kernel
        self._numbers = count()

    def set_budget(self, key: BudgetKey, limit: Allowance) -> Budget:
        keys_in([key])
        kept = allowance_in(limit)

        def work(transaction: MemoryTransaction) -> Budget:
            table = transaction.tables[_BUDGETS]
            found: Budget | None = table.get(_name(key))
            budget = Budget(key, kept) if found is None else replace(found, limit=kept)
            table[_name(key)] = budget
            return budget

        return write_tables(self._kernel, work)

    def get_budget(self, key: BudgetKey) -> Budget | None:
        return next(iter(self.budgets([key])), None)

    def budgets(self, keys: Sequence[BudgetKey]) -> list[Budget]:
        names = [_name(key) for key in dict.fromkeys(keys)]
        return self._kernel.read_tables(
            lambda tables: [tables[_BUDGETS][name] for name in names if name in tables[_BUDGETS]]
        )

    def list_budgets(self, tenant: str | None = "default", limit: int = 100) -> list[Budget]:
        every = self._kernel.read_table(_BUDGETS)
        found = (each for _, each in sorted(every.items()) if tenant in (None, each.key.tenant))
        return list(found)[: max(limit, 0)]

    def reserve(self, transaction: Transaction, hold: Hold) -> None:
        tables = opened(transaction).tables
        table, amount = tables[_BUDGETS], spending_in(hold.amount)
        covering = [each for key in keys_in(hold.budgets) if (each := table.get(_name(key)))]
        before: Hold | None = tables[_HOLDS].get(hold.task)
        again = before is not None and before.number == hold.number
        for budget in covering:
            if before is not None and again and budget.key in before.budgets:
                budget = replace(budget, reserved=minus(budget.reserved, before.amount))
            if (refusal := refuse(budget, amount)) is not None:
                raise refusal
        if before is not None:
            _settle(tables, before, _NOTHING if again else before.amount)
        for budget in covering:
            _add(table, budget.key, reserved=amount)
        keys = tuple(budget.key for budget in covering)
        if keys:
            tables[_HOLDS][hold.task] = replace(hold, budgets=keys, amount=amount)
        tables[_WAITS].pop(hold.task, None)

    def settle(self, transaction: Transaction, task: TaskId, number: int, spent: Spending) -> None:
        tables = opened(transaction).tables
        hold: Hold | None = tables[_HOLDS].get(task)
        kept = spending_in(spent)
        if hold is not None and hold.number == number:
            _settle(tables, hold, kept)

    def spend(
        self, transaction: Transaction, budgets: Sequence[BudgetKey], spent: Spending
    ) -> None:
        table, kept = opened(transaction).tables[_BUDGETS], spending_in(spent)
        for key in keys_in(budgets):
            if _name(key) in table:
                _add(table, key, spent=kept)

    def await_budget(self, transaction: Transaction, wait: BudgetWait) -> None:
        waits = opened(transaction).tables[_WAITS]
        kept = replace(wait, budgets=keys_in(wait.budgets), amount=spending_in(wait.amount))
        before: _Waiting | None = waits.get(wait.task)
        # whoever was told that there is room, and found none, has not lost its place
        number = next(self._numbers) if before is None else before.number
        waits[wait.task] = _Waiting(number, kept)

    def ready_waits(self, limit: int = 100) -> list[BudgetWait]:
        def work(transaction: MemoryTransaction) -> list[BudgetWait]:
            table = transaction.tables[_WAITS]
            for task, each in list(table.items()):
                is_over = each.woken_at is not None and (
                    each.woken_at <= transaction.now - PROMISED_FOR
                )
                if is_over or self._is_closed(TaskId(task)):
                    del table[task]
            waits = sorted(table.values(), key=lambda each: each.number)
            budgets = {each.key: each for each in transaction.tables[_BUDGETS].values()}
            ready, _ = hand_out(
                (each.wait for each in waits if each.woken_at is None),
                (each.wait for each in waits if each.woken_at is not None),
                budgets,
                limit,
            )
            return ready

        return write_tables(self._kernel, work)

    def end_wait(self, task: TaskId, call_key: str) -> None:
        def work(transaction: MemoryTransaction) -> None:
            waits = transaction.tables[_WAITS]
            found: _Waiting | None = waits.get(task)
            if found is not None and found.wait.call_key == call_key and found.woken_at is None:
                waits[task] = replace(found, woken_at=transaction.now)

        write_tables(self._kernel, work)

    def settle_holds_of_closed(self, limit: int = 100) -> int:
        def work(transaction: MemoryTransaction) -> int:
            holds = transaction.tables[_HOLDS]
            closed = [task for task in sorted(holds) if self._is_closed(TaskId(task))]
            for task in closed[:limit]:
                _settle(transaction.tables, holds[task], holds[task].amount)
            return len(closed[:limit])

        return write_tables(self._kernel, work)

    def _is_closed(self, task: TaskId) -> bool:
        """Whether the turn has ended; one that was forgotten has."""
        found = self._kernel.get_task(task)
        return found is None or found.state is State.CLOSED


def _settle(tables: Tables, hold: Hold, spent: Spending) -> None:
    """Nothing is reserved any more, and this was spent."""
    for key in hold.budgets:
        _add(tables[_BUDGETS], key, reserved=minus(_NOTHING, hold.amount), spent=spent)
    del tables[_HOLDS][hold.task]


def _add(
    table: Table, key: BudgetKey, *, reserved: Spending = _NOTHING, spent: Spending = _NOTHING
) -> None:
    found: Budget = table[_name(key)]
    table[_name(key)] = replace(
        found, reserved=plus(found.reserved, reserved), spent=plus(found.spent, spent)
    )


def _name(key: BudgetKey) -> str:
    return f"{key.tenant}\0{key.scope}\0{key.key}"
