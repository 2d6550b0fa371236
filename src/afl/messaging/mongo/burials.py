"""Dead letters: who becomes one, who comes back, who is removed. In transactions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from pymongo import DeleteMany, InsertOne, UpdateMany

from afl.base.system import SystemIds
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.messaging.mongo.boxes import BOXES, arrived, left, read_boxes, read_heads
from afl.messaging.mongo.documents import dead_letter, redriven_letter
from afl.messaging.mongo.receiving import FREED
from afl.messaging.mongo.sending import MAIL
from afl.messaging.rules import EXPIRED, HELD_TOO_LONG, RETRIES, verdict

DEAD = "mail_dead"
DEAD_ORDER = [("died_at", 1), ("_id", 1)]
#: How many one transaction moves.
PAGE = 200


class Burials:
    """Moves letters between the mailboxes of a database and their dead letters."""

    def __init__(self, ids: SystemIds, random: Random) -> None:
        self._ids = ids
        self._random = random

    def sweep(
        self, transaction: MongoTransaction, agent: str, ids: Sequence[str]
    ) -> tuple[int, int]:
        """Takes those of these letters back that are held too long, and buries what nobody came for
        in time. Tells how many were held too long, and how many are dead now."""
        now = to_micros(transaction.now)
        config, _ = read_heads(transaction, agent)
        found = transaction.find(MAIL, {"_id": {"$in": list(ids)}}, fields={"body": 0})
        by_id = {each["_id"]: each for each in found}
        letters = [by_id[each] for each in ids if each in by_id]
        held = [each for each in letters if each["held"] and each["deadline"] <= now]
        freed: list[Document] = []
        worn: list[Document] = []
        for each in held:
            is_over = verdict(each["attempts"], config.retry_attempts, None)
            (worn if is_over else freed).append({**each, "last_error": HELD_TOO_LONG})
        expired = [
            each
            for each in letters
            if not each["attempts"] and each.get("expires_at", now + 1) <= now
        ]
        if freed:
            which = {"_id": {"$in": [each["_id"] for each in freed]}}
            back = {**FREED, "$set": {**FREED["$set"], "last_error": HELD_TOO_LONG}}
            transaction.update(MAIL, UpdateMany(which, back))
        self.bury(transaction, worn, RETRIES)
        self.bury(transaction, expired, EXPIRED)
        buried = len(worn) + len(expired)
        if buried:
            transaction.write(BOXES, left(self._random, agent, living=buried))
        return len(held), buried

    def bury(self, transaction: MongoTransaction, letters: Sequence[Document], reason: str) -> None:
        """Gives letters up, in their order; they come without their bodies. Who calls counts."""
        if not letters:
            return
        which = {"_id": {"$in": [each["_id"] for each in letters]}}
        found = transaction.find(MAIL, which, fields={"body": 1})
        bodies = {each["_id"]: each["body"] for each in found}
        transaction.update(MAIL, DeleteMany(which))
        now = to_micros(transaction.now)
        for each in letters:
            whole = {**each, "body": bodies[each["_id"]]}
            kept = dead_letter(whole, self._ids.new_id(), reason, now)
            transaction.write(DEAD, InsertOne(kept))

    def redrive(
        self, transaction: MongoTransaction, agent: str, message_id: str | None, before: int
    ) -> int:
        """Some dead letters from before a time into the mailbox again, the oldest first, as many as
        it takes; tells how many."""
        now = to_micros(transaction.now)
        config, boxes = read_boxes(transaction, [agent])
        room = min(PAGE, boxes[agent].room(config))
        if room < 1:
            return 0
        where = _dead_of(agent, message_id, before)
        found = transaction.find(DEAD, where, sort=DEAD_ORDER, limit=room)
        if found:
            which = {"_id": {"$in": [each["_id"] for each in found]}}
            transaction.write(DEAD, DeleteMany(which))
            back = [redriven_letter(each, self._ids.new_id(), now) for each in found]
            transaction.write(MAIL, *map(InsertOne, back))
            counts = arrived(self._random, boxes[agent], config, living=len(found))
            transaction.write(BOXES, *counts)
        return len(found)

    def purge(
        self, transaction: MongoTransaction, agent: str, message_id: str | None, before: int
    ) -> int:
        """Removes some dead letters from before a time for good; tells how many."""
        where = _dead_of(agent, message_id, before)
        found = transaction.find(DEAD, where, fields={"_id": 1}, sort=DEAD_ORDER, limit=PAGE)
        if found:
            which = {"_id": {"$in": [each["_id"] for each in found]}}
            transaction.write(DEAD, DeleteMany(which))
            transaction.write(BOXES, left(self._random, agent, purged=len(found)))
        return len(found)


def _dead_of(agent: str, message_id: str | None, before: int) -> dict[str, Any]:
    where: dict[str, Any] = {"recipient": agent, "died_at": {"$lte": before}}
    return where if message_id is None else {**where, "message_id": message_id}
