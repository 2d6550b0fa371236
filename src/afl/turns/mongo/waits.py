"""Turns that wait for room in budgets, on MongoDB.

A wait is `fresh` until somebody has looked at it, then `behind` the budget that had no room: nobody
looks again before that one has some. It is `woken` when its turn was told that there is room; until
the turn has taken it, or for a while, that room is not given to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pymongo import DeleteMany, UpdateOne

from afl.kernel.model import TaskId
from afl.kernel.mongo.transaction import Document, MongoTransaction, opened
from afl.kernel.mongo.values import to_micros
from afl.kernel.port import Transaction
from afl.turns.budgeting import PROMISED_FOR, fits, hand_out, keys_in, plus, spending_in
from afl.turns.model import Budget, Spending
from afl.turns.mongo.budgets import WAITS, MongoBudgets, read_budgets
from afl.turns.mongo.documents import amount_out, key_in, key_out, wait_in, wait_out
from afl.turns.ports import BudgetWait

_FRESH, _BEHIND, _WOKEN = "fresh", "behind", "woken"
_ORDER = [("since", 1), ("_id", 1)]
#: How many of those that wait for the same budget are looked at, from the oldest on. Behind as many
#: that want more than there is, one that wants less has to wait; but a look costs little, however
#: many there are.
_WINDOW = 200
#: How many waits one look of a cleaning reads.
_PAGE = 1000


class MongoWaits(MongoBudgets):
    """See `ports.Budgets` for what each method promises."""

    def await_budget(self, transaction: Transaction, wait: BudgetWait) -> None:
        kept = replace(wait, budgets=keys_in(wait.budgets), amount=spending_in(wait.amount))
        transaction = opened(transaction)
        again = {**wait_in(kept), "state": _FRESH, "behind": None, "woken_at": None}
        # whoever was told that there is room, and found none, has not lost its place
        place = {"since": to_micros(transaction.now)}
        change = {"$set": again, "$setOnInsert": place}
        transaction.write(WAITS, UpdateOne({"_id": wait.task}, change, upsert=True))

    def ready_waits(self, limit: int = 100) -> list[BudgetWait]:
        window = max(_WINDOW, limit)

        def work(transaction: MongoTransaction) -> list[BudgetWait]:
            lapsed = to_micros(transaction.now - PROMISED_FOR)
            over = {"state": _WOKEN, "woken_at": {"$lte": lapsed}}
            transaction.update(WAITS, DeleteMany(over))
            promised = transaction.find(WAITS, {"state": _WOKEN, "woken_at": {"$gt": lapsed}})
            found = _candidates(transaction, window)
            tasks = {"_id": {"$in": [each["_id"] for each in found]}, "alive": True}
            alive = {each["_id"] for each in transaction.find("task", tasks, fields={"_id": 1})}
            ended = [each["_id"] for each in found if each["_id"] not in alive]
            waits = [wait_out(each) for each in found if each["_id"] in alive]
            budgets = read_budgets(transaction, (key for wait in waits for key in wait.budgets))
            ready, blocked = hand_out(waits, map(wait_out, promised), budgets, limit)
            before = {each["_id"]: each["behind"] for each in found}
            for task, key in blocked.items():
                if before[task] != key_in(key):
                    behind = {"state": _BEHIND, "behind": key_in(key)}
                    transaction.write(WAITS, UpdateOne({"_id": task}, {"$set": behind}))
            if ended:
                transaction.write(WAITS, DeleteMany({"_id": {"$in": ended}}))
            return ready

        return self._database.transact(work)

    def end_wait(self, task: TaskId, call_key: str) -> None:
        where = {"_id": task, "call_key": call_key, "state": {"$in": [_FRESH, _BEHIND]}}

        def work(transaction: MongoTransaction) -> None:
            told = {"state": _WOKEN, "woken_at": to_micros(transaction.now)}
            transaction.write(WAITS, UpdateOne(where, {"$set": told}))

        # in a transaction, which does not wait for one that somebody has left behind
        self._database.transact(work)

    def forget_closed(self) -> None:
        """Leaves nothing of turns that have ended or are forgotten: no wait, and nothing reserved.

        It looks at every wait, for a day's cleaning; those whose time has come go without this.
        """
        after = ""
        while page := self._database.find(
            WAITS, {"_id": {"$gt": after}}, fields={"_id": 1}, sort=[("_id", 1)], limit=_PAGE
        ):
            after = page[-1]["_id"]
            ended = self._ended(each["_id"] for each in page)
            if ended:
                self._database.write(WAITS, [DeleteMany({"_id": {"$in": ended}})])
        while self.settle_holds_of_closed():
            pass


def _candidates(transaction: MongoTransaction, window: int) -> list[Document]:
    """Waits that may have room, the oldest first: those that nobody has looked at, and behind each
    budget that somebody waits for, those that fit it."""
    found = transaction.find(WAITS, {"state": _FRESH}, sort=_ORDER, limit=window)
    for budget in _waited_for(transaction):
        where = {"state": _BEHIND, "behind": key_in(budget.key)}
        behind = transaction.find(WAITS, where, sort=_ORDER, limit=window)
        found += [each for each in behind if _has_room(budget, amount_out(each["amount"]))]
    found.sort(key=lambda each: (each["since"], each["_id"]))
    return found[:window]


def _waited_for(transaction: MongoTransaction) -> Sequence[Budget]:
    """The budgets that somebody waits behind and that may have room."""
    # the index has the state too, so that this goes from one budget to the next in it
    each_once = [{"$match": {"state": _BEHIND}}, {"$group": {"_id": "$behind"}}]
    keys = transaction.aggregate(WAITS, each_once)
    budgets = read_budgets(transaction, (key_out(each["_id"]) for each in keys))
    return [each for each in budgets.values() if _has_room(each, Spending())]


def _has_room(budget: Budget, amount: Spending) -> bool:
    return fits(budget.limit, plus(budget.reserved, budget.spent), amount)
