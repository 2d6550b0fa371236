"""Messages into mailboxes, in a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from pymongo import InsertOne, UpdateOne

from afl.base.system import SystemIds
from afl.kernel.errors import StoreUnavailable
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.messaging.models import CoordinatorConfig
from afl.messaging.mongo.boxes import BOXES, arrived, read_boxes
from afl.messaging.mongo.documents import micros, sent_letter

MAIL, SEEN = "mail", "mail_seen"


class Sender:
    """Puts letters into the mailboxes of a database."""

    def __init__(self, ids: SystemIds, random: Random) -> None:
        self._ids = ids
        self._random = random

    def put(
        self, transaction: MongoTransaction, letters: Sequence[Document], *, whole: bool
    ) -> list[str]:
        """Of each letter: sent, known (it was sent before) or full; with `whole` a full mailbox is
        an error instead, after which trying again later is right."""
        now = to_micros(transaction.now)
        config, boxes = read_boxes(transaction, (each["recipient"] for each in letters))
        names = [f"{each['recipient']} {each['message_id']}" for each in letters]
        remembered = transaction.find(SEEN, {"_id": {"$in": names}})
        known = {each["_id"] for each in remembered if each["until"] > now}
        until = now + micros(config.dedupe_seconds)
        coming: Counter[str] = Counter()
        outcomes = []
        for name, letter in zip(names, letters, strict=True):
            agent = letter["recipient"]
            if name in known:
                outcomes.append("known")
            elif boxes[agent].room(config) - coming[agent] < 1:
                if whole:
                    raise _full(agent, config)
                outcomes.append("full")
            else:
                known.add(name)
                coming[agent] += 1
                remember = UpdateOne({"_id": name}, {"$set": {"until": until}}, upsert=True)
                transaction.write(SEEN, remember)
                kept = sent_letter(letter, self._ids.new_id(), now)
                transaction.write(MAIL, InsertOne(kept))
                outcomes.append("sent")
        for agent, count in coming.items():
            counts = arrived(self._random, boxes[agent], config, sent=count, living=count)
            transaction.write(BOXES, *counts)
        return outcomes


def _full(agent: str, config: CoordinatorConfig) -> StoreUnavailable:
    return StoreUnavailable(
        f"The mailbox {agent} is full ({config.queue_size} messages); let its agent take some, or "
        "configure a larger queue_size."
    )
