"""The operations of mailboxes on MongoDB. They block; threads may share.

Whoever did not hear an answer asks again with the same operation and gets it, so a lost connection
neither doubles nor loses anything.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from random import Random

from pymongo import DeleteMany, DeleteOne, UpdateOne

from afl.base.system import SystemIds
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.transaction import Document, MongoTransaction, opened
from afl.kernel.mongo.values import to_micros
from afl.kernel.port import Transaction
from afl.messaging.coordinator import Settings
from afl.messaging.database_coordinator import Received
from afl.messaging.errors import MessageRefused
from afl.messaging.letters import parse_token, read, storable_error
from afl.messaging.models import (
    AgentMessage,
    CoordinatorConfig,
    DeadLetter,
    FailureType,
    MailboxCounts,
)
from afl.messaging.mongo.answers import Answers, Busy
from afl.messaging.mongo.boxes import BOXES, CONFIG, config_of, left, read_boxes, read_heads
from afl.messaging.mongo.burials import DEAD, DEAD_ORDER, PAGE, Burials
from afl.messaging.mongo.documents import dead_of, letter_of, micros, received_of
from afl.messaging.mongo.receiving import FREED, Receiver, held_of, waiting_of
from afl.messaging.mongo.sending import MAIL, SEEN, Sender
from afl.messaging.rules import backoff_seconds, changed, verdict

#: One send of so many forgets what is over.
_PRUNE_EVERY = 500
_PRUNED = 5000
#: So many messages are sent in one transaction.
_SENT_AT_ONCE = 100
_LARGEST = 2**63


class MongoMail:
    """The mailboxes of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._random = Random()
        ids = SystemIds()
        self._answers = Answers(database, ids)
        self._sender = Sender(ids, self._random)
        self._receiver = Receiver(database, self._random)
        self._burials = Burials(ids, self._random)

    # Sending

    def send(self, messages: Sequence[AgentMessage]) -> list[str]:
        """Of each message: `sent`, `known` or `full`."""
        letters = [letter_of(each) for each in messages]
        outcomes: list[str] = []
        for start in range(0, len(letters), _SENT_AT_ONCE):
            outcomes += self._send(letters[start : start + _SENT_AT_ONCE])
        if self._random.random() * _PRUNE_EVERY < len(letters):
            self._prune()
        return outcomes

    def send_in(self, transaction: Transaction, message: AgentMessage) -> None:
        """Has a message sent if and when the transaction is committed."""
        self._sender.put(opened(transaction), [letter_of(message)], whole=True)

    def _send(self, letters: Sequence[Document]) -> list[str]:
        def work(transaction: MongoTransaction) -> list[str]:
            return self._sender.put(transaction, letters, whole=False)

        # no answer is kept: what was sent is known the next time, which is as good
        return self._answers.transact(work)

    # Receiving

    def receive(self, agent: str, receipt: str, limit: int, visibility: float) -> Received:
        lasting = micros(visibility)

        def ask(again: bool) -> Received:
            now = self._answers.now()
            found = self._receiver.held_by(agent, receipt, now) if again else []
            if found:
                return Received([received_of(each) for each in found], 0, None)
            config, box, is_late = self._receiver.look(agent, now)
            buried = self._sweep(agent)[1] if is_late else 0
            found = self._receiver.take(box, config, receipt, limit, now, now + lasting)
            due = None if found else self._receiver.due(agent, now)
            wait = None if due is None else (due - now) / 1e6
            return Received([received_of(each) for each in found], buried, wait)

        return self._answers.ask(ask)

    def give_back(self, agent: str, receipt: str) -> None:
        """Undoes a receipt that nobody waits for any more."""
        self._answers.ask(
            lambda again: self._receiver.give_back(agent, receipt, self._answers.now())
        )

    def extend(self, agent: str, token: str, visibility: float) -> bool:
        receipt, id_ = parse_token(token) or ("", "")
        lasting = micros(visibility)

        def ask(again: bool) -> bool:
            now = self._answers.now()
            where = {**held_of(agent, {"$gt": now}), "_id": id_, "receipt": receipt}
            more = UpdateOne(where, {"$set": {"deadline": now + lasting}})
            return self._database.write(MAIL, [more]).matched_count > 0

        return self._answers.ask(ask)

    # Settling

    def ack(self, agent: str, token: str) -> bool:
        receipt, id_ = parse_token(token) or ("", "")

        def work(transaction: MongoTransaction) -> str | None:
            held = held_of(agent, {"$gt": to_micros(transaction.now)})
            done = DeleteOne({**held, "_id": id_, "receipt": receipt})
            if not transaction.update(MAIL, done):
                return None
            transaction.write(BOXES, left(self._random, agent, acked=1, living=1))
            return ""

        return self._answers.answer(work) is not None

    def nack(
        self, agent: str, token: str, permanent: bool, error: str | None
    ) -> str | float | None:
        """Why it is dead, or after how many seconds it comes again; None if it is lost."""
        receipt, id_ = parse_token(token) or ("", "")
        chance, kept_error = self._random.random(), storable_error(error)
        failure = FailureType.PERMANENT if permanent else FailureType.TRANSIENT

        def work(transaction: MongoTransaction) -> str | None:
            now = to_micros(transaction.now)
            where = {**held_of(agent, {"$gt": now}), "_id": id_, "receipt": receipt}
            letter = transaction.find_one(MAIL, where, fields={"body": 0})
            if letter is None:
                return None
            config, _ = read_heads(transaction, agent)
            reason = verdict(letter["attempts"], config.retry_attempts, failure)
            if reason is not None:
                self._burials.bury(transaction, [{**letter, "last_error": kept_error}], reason)
                transaction.write(BOXES, left(self._random, agent, living=1))
                return reason
            wait = backoff_seconds(config, letter["attempts"], chance)
            later = {"last_error": kept_error, "ready_at": now + micros(wait)}
            back = {**FREED, "$set": {**FREED["$set"], **later}}
            transaction.write(MAIL, UpdateOne({"_id": id_}, back))
            return repr(wait)

        answer = self._answers.answer(work)
        try:
            return None if answer is None else float(answer)
        except ValueError:
            return answer

    def recover(self, agent: str | None) -> tuple[int, int]:
        """How many were held too long, and how many are dead now."""
        late = buried = 0
        for each in self._late_agents() if agent is None else [agent]:
            while any(swept := self._sweep(each)):
                late, buried = late + swept[0], buried + swept[1]
        if agent is None:
            self._prune()
        return late, buried

    # Dead letters

    def dead_letters(self, agent: str, limit: int) -> list[DeadLetter]:
        if limit <= 0:
            return []
        where = {"recipient": agent}
        return [
            dead_of(each)
            for each in self._answers.ask(
                lambda again: self._database.find(DEAD, where, sort=DEAD_ORDER, limit=limit)
            )
        ]

    def redrive(self, agent: str, message_id: str | None) -> int:
        return self._answers.in_pages(
            lambda transaction, before: self._burials.redrive(
                transaction, agent, message_id, before
            )
        )

    def purge(self, agent: str, message_id: str | None) -> int:
        return self._answers.in_pages(
            lambda transaction, before: self._burials.purge(transaction, agent, message_id, before)
        )

    # Looking

    def peek(self, agent: str, limit: int) -> list[AgentMessage]:
        def ask(again: bool) -> list[Document]:
            config, box = read_heads(self._database, agent)
            return self._receiver.peek(box, config, limit, self._answers.now())

        return [read(each["body"]) for each in self._answers.ask(ask)]

    def counts(self, agent: str) -> MailboxCounts:
        def work(transaction: MongoTransaction) -> MailboxCounts:
            _, boxes = read_boxes(transaction, [agent])
            is_ready = {"$lte": ["$ready_at", to_micros(transaction.now)]}
            grouped = {"$group": {"_id": is_ready, "count": {"$sum": 1}}}
            found = transaction.aggregate(MAIL, [{"$match": waiting_of(agent)}, grouped])
            waiting = {each["_id"]: each["count"] for each in found}
            counted = [{"$count": "count"}]
            held = transaction.aggregate(MAIL, [{"$match": held_of(agent, {"$gt": 0})}, *counted])
            dead = transaction.aggregate(DEAD, [{"$match": {"recipient": agent}}, *counted])
            box = boxes[agent]
            return MailboxCounts(
                sent=box.sent,
                ready=waiting.get(True, 0),
                delayed=waiting.get(False, 0),
                reserved=sum(each["count"] for each in held),
                acked=box.acked,
                dead=sum(each["count"] for each in dead),
                purged=box.purged,
            )

        return self._answers.transact(work)

    # Settings

    def subscribe(self, agent: str, types: Sequence[str]) -> str:
        """The id of the subscription."""
        id_ = f"sub_{secrets.token_hex(6)}"
        first = {"recipient": agent, "turn": 0}
        wish = {"subscriptions": {"id": id_, "types": list(types)}}
        added = UpdateOne({"_id": agent}, {"$setOnInsert": first, "$addToSet": wish}, upsert=True)
        self._answers.transact(lambda transaction: transaction.write(BOXES, added))
        return id_

    def unsubscribe(self, agent: str, subscription: str) -> None:
        gone = UpdateOne({"_id": agent}, {"$pull": {"subscriptions": {"id": subscription}}})
        self._answers.transact(lambda transaction: transaction.write(BOXES, gone))

    def config(self) -> CoordinatorConfig:
        return config_of(
            self._answers.ask(lambda again: self._database.find(BOXES, {"_id": CONFIG}))
        )

    def configure(self, settings: Settings) -> None:
        for name, value in settings.items():
            if isinstance(value, int) and value >= _LARGEST:
                raise MessageRefused(f"{name} must be less than {_LARGEST}, not {value}")

        def work(transaction: MongoTransaction) -> None:
            before = config_of(transaction.find(BOXES, {"_id": CONFIG}))
            values = {"recipient": "", **changed(before, settings).model_dump()}
            transaction.write(BOXES, UpdateOne({"_id": CONFIG}, {"$set": values}, upsert=True))

        self._answers.transact(work)

    # The rest

    def _sweep(self, agent: str) -> tuple[int, int]:
        """Some of what is late: how many were held too long, and how many are dead now."""
        now = self._answers.now()
        late = self._answers.ask(lambda again: self._receiver.late(agent, now, PAGE))
        return self._sweep_these(agent, late)

    def _sweep_these(self, agent: str, ids: Sequence[str]) -> tuple[int, int]:
        """All of them, but those that others have in a transaction."""
        if not ids:
            return 0, 0

        def work(transaction: MongoTransaction) -> str | None:
            late, buried = self._burials.sweep(transaction, agent, ids)
            return f"{late} {buried}" if late or buried else None

        try:
            late, buried = (self._answers.answer_soon(work) or "0 0").split()
        except Busy:
            if len(ids) == 1:
                return 0, 0
            middle = len(ids) // 2
            halves = [self._sweep_these(agent, each) for each in (ids[:middle], ids[middle:])]
            return halves[0][0] + halves[1][0], halves[0][1] + halves[1][1]
        return int(late), int(buried)

    def _late_agents(self) -> list[str]:
        """Whose mailboxes a sweep would change."""
        now = self._answers.now()
        # the agent stands first in the indexes
        anybody = {"recipient": {"$gt": ""}}
        held = {**anybody, "held": True, "deadline": {"$gt": 0, "$lte": now}}
        expired = {**anybody, "attempts": 0, "expires_at": {"$gt": 0, "$lte": now}}
        found = self._answers.ask(
            lambda again: [
                each["_id"]
                for where in (held, expired)
                for each in self._database.aggregate(
                    MAIL, [{"$match": where}, {"$group": {"_id": "$recipient"}}]
                )
            ]
        )
        return sorted(set(found))

    def _prune(self) -> None:
        """Forgets ids whose time is over, and answers that nobody can ask for any more."""

        def ask(again: bool) -> None:
            over = {"until": {"$lte": self._answers.now()}}
            found = self._database.find(
                SEEN, over, fields={"_id": 1}, sort=[("until", 1)], limit=_PRUNED
            )
            if found:
                ids = {"_id": {"$in": [each["_id"] for each in found]}}
                self._database.write(SEEN, [DeleteMany({**ids, **over})])

        self._answers.ask(ask)
        self._answers.prune()
