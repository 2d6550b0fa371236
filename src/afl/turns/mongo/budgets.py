"""Budgets on MongoDB: what may be spent, and what is reserved.

Whoever takes room writes to every budget that it has looked at, so of two that take the same room
at once one begins again and sees what the other has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pymongo import DeleteOne, ReplaceOne, UpdateOne

from afl.kernel.model import TaskId
from afl.kernel.mongo.transaction import MongoTransaction, opened
from afl.kernel.port import Transaction
from afl.turns.budgeting import allowance_in, keys_in, minus, refuse, spending_in
from afl.turns.model import Allowance, Budget, BudgetKey, Hold, Spending
from afl.turns.mongo.core import MongoCore
from afl.turns.mongo.documents import (
    added,
    amount_in,
    budget_out,
    hold_in,
    hold_out,
    key_in,
)

BUDGETS, HOLDS, WAITS = "budget", "budget_hold", "budget_wait"
_NOTHING = Spending()
#: How many holds one look reads.
_PAGE = 1000


class MongoBudgets(MongoCore):
    """See `ports.Budgets` for what each method promises."""

    def set_budget(self, key: BudgetKey, limit: Allowance) -> Budget:
        keys_in([key])
        nothing = amount_in(_NOTHING)
        change = UpdateOne(
            {"_id": key_in(key)},
            {
                "$set": {"limit": amount_in(allowance_in(limit))},
                "$setOnInsert": {"reserved": nothing, "spent": nothing},
            },
            upsert=True,
        )

        def work(transaction: MongoTransaction) -> Budget:
            transaction.write(BUDGETS, change)
            return read_budgets(transaction, [key])[key]

        return self._database.transact(work)

    def get_budget(self, key: BudgetKey) -> Budget | None:
        return next(iter(self.budgets([key])), None)

    def budgets(self, keys: Sequence[BudgetKey]) -> list[Budget]:
        names = [key_in(key) for key in dict.fromkeys(keys)]
        found = self._database.find(BUDGETS, {"_id": {"$in": names}})
        by_key = {budget.key: budget for budget in map(budget_out, found)}
        return [by_key[key] for key in dict.fromkeys(keys) if key in by_key]

    def list_budgets(self, tenant: str | None = "default", limit: int = 100) -> list[Budget]:
        if limit <= 0:
            return []
        order = [("_id.tenant", 1), ("_id.scope", 1), ("_id.key", 1)]
        wanted = {} if tenant is None else {"_id.tenant": tenant}
        found = self._database.find(BUDGETS, wanted, sort=order, limit=limit)
        return [budget_out(row) for row in found]

    def reserve(self, transaction: Transaction, hold: Hold) -> None:
        amount, keys = spending_in(hold.amount), keys_in(hold.budgets)
        transaction = opened(transaction)
        before = _hold_of(transaction, hold.task)
        again = before is not None and before.number == hold.number
        found = read_budgets(transaction, keys)
        covering = [found[key] for key in keys if key in found]
        for budget in covering:
            if before is not None and again and budget.key in before.budgets:
                budget = replace(budget, reserved=minus(budget.reserved, before.amount))
            if (refusal := refuse(budget, amount)) is not None:
                raise refusal
        if before is not None:
            _end(transaction, before, _NOTHING if again else before.amount)
        if covering:
            taken = replace(hold, budgets=tuple(each.key for each in covering), amount=amount)
            for key in taken.budgets:
                _add(transaction, key, reserved=amount)
            kept = ReplaceOne({"_id": hold.task}, hold_in(taken), upsert=True)
            transaction.write(HOLDS, kept)
        transaction.write(WAITS, DeleteOne({"_id": hold.task}))

    def settle(self, transaction: Transaction, task: TaskId, number: int, spent: Spending) -> None:
        kept = spending_in(spent)
        hold = _hold_of(opened(transaction), task)
        if hold is not None and hold.number == number:
            _end(opened(transaction), hold, kept)

    def spend(
        self, transaction: Transaction, budgets: Sequence[BudgetKey], spent: Spending
    ) -> None:
        kept = spending_in(spent)
        for key in keys_in(budgets):
            _add(opened(transaction), key, spent=kept)

    def settle_holds_of_closed(self, limit: int = 100) -> int:
        settled = 0
        after = ""
        while settled < limit:
            page = self._database.find(
                HOLDS, {"_id": {"$gt": after}}, fields={"_id": 1}, sort=[("_id", 1)], limit=_PAGE
            )
            if not page:
                break
            after = page[-1]["_id"]
            # each by itself: the budgets are everybody's
            for task in self._ended(each["_id"] for each in page)[: limit - settled]:
                settled += self._settle_whole(task)
        return settled

    def _settle_whole(self, task: TaskId) -> bool:
        """Counts a hold as spent; false if somebody else has."""

        def work(transaction: MongoTransaction) -> bool:
            hold = _hold_of(transaction, task)
            if hold is not None:
                _end(transaction, hold, hold.amount)
            return hold is not None

        return self._database.transact(work)

    def _ended(self, tasks: Iterable[str]) -> list[TaskId]:
        """Those of these turns that have ended, or are forgotten."""
        every = list(tasks)
        where = {"_id": {"$in": every}, "alive": True}
        alive = {each["_id"] for each in self._database.find("task", where, fields={"_id": 1})}
        return [TaskId(task) for task in every if task not in alive]


def read_budgets(
    transaction: MongoTransaction, keys: Iterable[BudgetKey]
) -> Mapping[BudgetKey, Budget]:
    """Those of the keys that have a document."""
    names = [key_in(key) for key in dict.fromkeys(keys)]
    found = transaction.find(BUDGETS, {"_id": {"$in": names}}) if names else []
    return {budget.key: budget for budget in map(budget_out, found)}


def _hold_of(transaction: MongoTransaction, task: TaskId) -> Hold | None:
    found = transaction.find_one(HOLDS, {"_id": task})
    return None if found is None else hold_out(found)


def _end(transaction: MongoTransaction, hold: Hold, spent: Spending) -> None:
    """Nothing is reserved any more, and this was spent."""
    for key in hold.budgets:
        _add(transaction, key, reserved=minus(_NOTHING, hold.amount), spent=spent)
    transaction.write(HOLDS, DeleteOne({"_id": hold.task}))


def _add(
    transaction: MongoTransaction,
    key: BudgetKey,
    *,
    reserved: Spending = _NOTHING,
    spent: Spending = _NOTHING,
) -> None:
    transaction.write(BUDGETS, UpdateOne({"_id": key_in(key)}, added(reserved, spent)))
