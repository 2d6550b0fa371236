"""Asking the database, again if its answer was lost, and the answers that are kept for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pymongo import DeleteMany, InsertOne

from afl.base.system import SystemIds
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.refusals import LostRace
from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.messaging.asking import NOT_MIGRATED, ask_until_heard
from afl.messaging.errors import MessageRefused
from afl.messaging.mongo.burials import PAGE
from afl.messaging.mongo.documents import micros

T = TypeVar("T")

_ANSWERS = "mail_answer"
_HISTORY, _MIGRATION = "migration", 301
#: Enough for the database to look for transactions that were left behind.
_FEW_TRIES = 12
#: So long somebody may ask again.
_LAST_SECONDS = 3600.0


class Busy(Exception):
    """Somebody else changes these documents, and does not come to an end."""


class Answers:
    """Asks one database."""

    def __init__(self, database: Database, ids: SystemIds) -> None:
        self._database = database
        self._ids = ids
        self._is_migrated = False

    def now(self) -> int:
        return to_micros(self._database.now())

    def ask(self, ask: Callable[[bool], T]) -> T:
        """Does an operation; it is told whether it was asked for before."""
        if not self._is_migrated:
            # collections would make themselves, without their rules and indexes
            number = {"_id": _MIGRATION}
            if not ask_until_heard(lambda again: self._database.find(_HISTORY, number)):
                raise MessageRefused(NOT_MIGRATED)
            self._is_migrated = True
        return ask_until_heard(ask)

    def transact(self, work: Callable[[MongoTransaction], T]) -> T:
        """Does a transaction of which twice is the same as once."""
        return self.ask(lambda again: self._database.transact(work))

    def answer(self, work: Callable[[MongoTransaction], str | None]) -> str | None:
        """What a transaction answers, which is kept for who does not hear it. None is not kept:
        then nothing was changed."""
        return self._answer(work, self._database.transact)

    def answer_soon(self, work: Callable[[MongoTransaction], str | None]) -> str | None:
        """The same, for work that gives up where others are in the way. Raises `Busy`.

        A process that is killed in a transaction keeps what that has changed from everybody, until
        somebody ends the transaction some seconds later.
        """
        return self._answer(work, self._transact_soon)

    def in_pages(self, work: Callable[[MongoTransaction, int], int]) -> int:
        """Does it to all from before now, a page in each transaction; tells to how many."""
        before = self.ask(lambda again: self.now())

        def page(transaction: MongoTransaction) -> str | None:
            moved = work(transaction, before)
            return str(moved) if moved else None

        total, moved = 0, PAGE
        while moved == PAGE:
            moved = int(self.answer(page) or 0)
            total += moved
        return total

    def prune(self) -> None:
        """Forgets answers that nobody can ask for any more."""
        old = {"at": {"$lte": self.now() - micros(_LAST_SECONDS)}}
        self.ask(lambda again: self._database.write(_ANSWERS, [DeleteMany(old)]))

    def _answer(
        self,
        work: Callable[[MongoTransaction], str | None],
        transact: Callable[[Callable[[MongoTransaction], str | None]], str | None],
    ) -> str | None:
        operation = self._ids.new_id()

        def ask(again: bool) -> str | None:
            def once(transaction: MongoTransaction) -> str | None:
                if again:
                    kept = transaction.find_one(_ANSWERS, {"_id": operation})
                    if kept is not None:
                        return str(kept["answer"])
                answer = work(transaction)
                if answer is not None:
                    note = {"_id": operation, "answer": answer, "at": to_micros(transaction.now)}
                    transaction.write(_ANSWERS, InsertOne(note))
                return answer

            return transact(once)

        return self.ask(ask)

    def _transact_soon(self, work: Callable[[MongoTransaction], str | None]) -> str | None:
        try:
            return self._database.transact(work, tries=_FEW_TRIES)
        except LostRace as error:
            raise Busy from error
