"""Budgets on PostgreSQL: what may be spent, what is reserved, who waits for room.

Locks are taken in one order everywhere: the task (by the kernel), what it has reserved, then the
budgets in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from afl.kernel.model import TaskId
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import PostgresTransaction, Row
from afl.kernel.postgres.packing import Parameters, array, interval, word_array
from afl.kernel.postgres.rows import is_id
from afl.kernel.postgres.transactions import opened
from afl.turns.budgeting import (
    PROMISED_FOR,
    allowance_in,
    hand_out,
    keys_in,
    minus,
    refuse,
    spending_in,
)
from afl.turns.model import Allowance, Budget, BudgetKey, Hold, Spending
from afl.turns.ports import BudgetWait
from afl.turns.postgres.core import PostgresCore
from afl.turns.postgres.rows import budget_of, pack_amount, pack_keys, pack_wait, wait_of
from afl.turns.postgres.statements import hot

_HOLD_OF, _LOCK_BUDGETS, _BUDGETS = hot("hold_of"), hot("lock_budgets"), hot("budgets")
_DROP_HOLD, _TAKE_HOLD = hot("drop_hold"), hot("take_hold")
_SETTLE, _SPEND = hot("settle"), hot("spend")
_AWAIT_BUDGET, _FIND_WAITS, _PROMISED = hot("await_budget"), hot("find_waits"), hot("promised")
_PLACE_WAITS, _DROP_WAITS = hot("place_waits"), hot("drop_waits")
#: How many of those that wait for the same budget are looked at, from the oldest on. Behind as many
#: that want more than there is, one that wants less has to wait; but a look costs little, however
#: many there are.
_WINDOW = 200
_PROMISED_FOR = interval(PROMISED_FOR)


class PostgresBudgets(PostgresCore):
    """See `ports.Budgets` for what each method promises."""

    def set_budget(self, key: BudgetKey, limit: Allowance) -> Budget:
        keys_in([key])
        names = {"tenant": key.tenant, "scope": key.scope, "key": key.key}
        row = self._row("set_budget", {**names, **pack_amount(allowance_in(limit))})
        assert row is not None
        return budget_of(row)

    def get_budget(self, key: BudgetKey) -> Budget | None:
        return next(iter(self.budgets([key])), None)

    def budgets(self, keys: Sequence[BudgetKey]) -> list[Budget]:
        return [budget_of(row) for row in self._rows("budgets", pack_keys(dict.fromkeys(keys)))]

    def list_budgets(self, tenant: str | None = "default", limit: int = 100) -> list[Budget]:
        rows = self._rows("list_budgets", {"tenant": tenant, "limit": max(limit, 0)})
        return [budget_of(row) for row in rows]

    def reserve(self, transaction: Transaction, hold: Hold) -> None:
        amount, keys = spending_in(hold.amount), keys_in(hold.budgets)
        turn: Parameters = {"task": hold.task, "number": hold.number}
        transaction = opened(transaction)
        transaction.send(_HOLD_OF, turn)
        transaction.send(_LOCK_BUDGETS, {**turn, **pack_keys(keys)})
        held, locked = transaction.flush()[-2:]
        released = _released(held, hold.number)
        found = {budget.key: budget for budget in map(budget_of, locked)}
        covering = [found[key] for key in keys if key in found]
        for budget in covering:
            free = minus(budget.reserved, released.get(budget.key, Spending()))
            if (refusal := refuse(replace(budget, reserved=free), amount)) is not None:
                raise refusal
        transaction.send(_DROP_HOLD, turn)
        if covering:
            taken = pack_keys(budget.key for budget in covering)
            transaction.send(_TAKE_HOLD, {**turn, **taken, **pack_amount(amount)})

    def settle(self, transaction: Transaction, task: TaskId, number: int, spent: Spending) -> None:
        turn: Parameters = {"task": task, "number": number}
        opened(transaction).send(_SETTLE, {**turn, **pack_amount(spending_in(spent))})

    def spend(
        self, transaction: Transaction, budgets: Sequence[BudgetKey], spent: Spending
    ) -> None:
        keys, amount = keys_in(budgets), spending_in(spent)
        if keys:
            opened(transaction).send(_SPEND, {**pack_keys(keys), **pack_amount(amount)})

    def await_budget(self, transaction: Transaction, wait: BudgetWait) -> None:
        kept = replace(wait, budgets=keys_in(wait.budgets), amount=spending_in(wait.amount))
        opened(transaction).send(_AWAIT_BUDGET, pack_wait(kept))

    def ready_waits(self, limit: int = 100) -> list[BudgetWait]:
        ready: list[BudgetWait] = []

        def work(transaction: PostgresTransaction) -> None:
            transaction.send(_DROP_WAITS, {"tasks": "{}", "promised_for": _PROMISED_FOR})
            transaction.send(_PROMISED, {"promised_for": _PROMISED_FOR})
            transaction.send(_FIND_WAITS, {"window": max(_WINDOW, limit)})
            promised, found = transaction.flush()[-2:]
            closed = [row[0] for row in found if row[-1]]
            waits = [wait_of(row) for row in found if not row[-1]]
            keys = dict.fromkeys(key for wait in waits for key in wait.budgets)
            budgets = _read_budgets(transaction, list(keys)) if keys else {}
            # again, if it lost a race
            ready[:], blocked = hand_out(waits, map(wait_of, promised), budgets, limit)
            _place(
                transaction, [(each, blocked[each.task]) for each in waits if each.task in blocked]
            )
            if closed:
                ended = {"tasks": word_array(closed), "promised_for": _PROMISED_FOR}
                transaction.send(_DROP_WAITS, ended)

        self._kernel.database.transact(work)
        return ready

    def end_wait(self, task: TaskId, call_key: str) -> None:
        if is_id(task):
            self._execute("end_wait", {"task": task, "call_key": call_key})

    def settle_holds_of_closed(self, limit: int = 100) -> int:
        row = self._row("settle_closed", {"limit": max(limit, 0)})
        assert row is not None
        return int(row[0])

    def forget_closed(self) -> None:
        """Leaves nothing of turns that have ended or are forgotten: no wait, and nothing reserved.

        It looks at every wait, for a day's cleaning; those whose time has come go without this.
        """
        self._execute("forget_waits", {})
        while self.settle_holds_of_closed():
            pass


def _released(held: Sequence[Row], number: int) -> Mapping[BudgetKey, Spending]:
    """What the hold of this number, which is to be replaced, has reserved in which budget."""
    return {
        BudgetKey(scope, key, tenant): Spending(*amount)
        for found, tenant, scope, key, *amount in held
        if found == number
    }


def _read_budgets(
    transaction: PostgresTransaction, keys: Sequence[BudgetKey]
) -> Mapping[BudgetKey, Budget]:
    transaction.send(_BUDGETS, pack_keys(keys))
    return {budget.key: budget for budget in map(budget_of, transaction.flush()[-1])}


def _place(transaction: PostgresTransaction, waits: Sequence[tuple[BudgetWait, BudgetKey]]) -> None:
    """Notes what these waits are behind."""
    if waits:
        behind = pack_keys(key for _, key in waits)
        tasks = word_array(wait.task for wait, _ in waits)
        calls = array(wait.call_key for wait, _ in waits)
        transaction.send(_PLACE_WAITS, {"tasks": tasks, "call_keys": calls, **behind})
