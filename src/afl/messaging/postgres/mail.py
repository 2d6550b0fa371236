"""The operations of mailboxes on PostgreSQL, one round trip each. They block; threads may share.

Whoever did not hear an answer asks again with the same operation and gets it, so a lost connection
neither doubles nor loses anything.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence

import psycopg

from afl.base.system import SystemIds
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.packing import Parameters, word_array
from afl.kernel.postgres.transactions import opened
from afl.messaging.asking import NOT_MIGRATED, ask_until_heard
from afl.messaging.coordinator import Settings
from afl.messaging.database_coordinator import Received
from afl.messaging.errors import MessageRefused
from afl.messaging.letters import parse_token, read, storable_error
from afl.messaging.models import AgentMessage, CoordinatorConfig, DeadLetter, MailboxCounts
from afl.messaging.postgres.rows import dead_of, flag, pack_messages, received_of, seconds
from afl.messaging.postgres.statements import HOT
from afl.messaging.rules import ROUND, deal
from afl.messaging.tracing import traced

_ROUND = word_array(level.value for level in ROUND)
_NOT_MIGRATED = (
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
)
_SETTINGS = [name for name in CoordinatorConfig.model_fields if name != "version"]
#: One send of so many forgets what is over.
_PRUNE_EVERY = 500


class PostgresMail:
    """The mailboxes of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = SystemIds()
        self._random = random.Random()

    def send(self, messages: Sequence[AgentMessage]) -> list[str]:
        """Of each message: `sent`, `known` or `full`."""
        rows = self._ask("send", pack_messages(messages, whole=False))
        if self._random.random() * _PRUNE_EVERY < len(messages):
            self._ask("prune", {})
        return [outcome for _, outcome in rows]

    def send_in(self, transaction: Transaction, message: AgentMessage) -> None:
        """Has a message sent if and when the transaction is committed."""
        message = traced(message)  # now: whoever commits may be in another span, or in none
        pack_messages([message], whole=True)  # refuse now what cannot be written
        opened(transaction).gather(
            HOT["send"], lambda items: pack_messages(items, whole=True), message
        )

    def receive(self, agent: str, receipt: str, limit: int, visibility: float) -> Received:
        parameters: Parameters = {
            "recipient": agent,
            "receipt": receipt,
            "limit": max(limit, 0),
            "visibility": seconds(visibility),
            "round": _ROUND,
        }
        rows = self._ask("receive", parameters)
        # an answer that was asked for again has no head
        head = rows[0] if rows[0][0] == 0 else None
        return Received(
            [received_of(receipt, row) for row in rows if row[0] > 0],
            buried=head[-2] if head else 0,
            due_seconds=head[-1] if head else None,
        )

    def give_back(self, agent: str, receipt: str) -> None:
        """Undoes a receipt that nobody waits for any more."""
        self._ask("give_back", {"recipient": agent, "receipt": receipt})

    def ack(self, agent: str, token: str) -> bool:
        held = self._held(agent, token)
        return held is not None and bool(self._answer("ack", held))

    def nack(
        self, agent: str, token: str, permanent: bool, error: str | None
    ) -> str | float | None:
        """Why it is dead, or after how many seconds it comes again; None if it is lost."""
        held = self._held(agent, token)
        if held is None:
            return None
        chance = repr(self._random.random())
        more = {"permanent": flag(permanent), "error": storable_error(error), "chance": chance}
        answer = self._answer("nack", {**held, **more})
        try:
            return None if answer is None else float(str(answer))
        except ValueError:
            return str(answer)

    def extend(self, agent: str, token: str, visibility: float) -> bool:
        held = self._held(agent, token)
        return held is not None and bool(
            self._ask("extend", {**held, "visibility": seconds(visibility)})
        )

    def recover(self, agent: str | None) -> tuple[int, int]:
        """How many were held too long, and how many are dead now."""
        ((late, buried),) = self._ask("recover", {"recipient": agent, "operation": self._new_id()})
        if agent is None:
            self._ask("prune", {})
        return late, buried

    def redrive(self, agent: str, message_id: str | None) -> int:
        return int(str(self._answer("redrive", {"recipient": agent, "message_id": message_id})))

    def purge(self, agent: str, message_id: str | None) -> int:
        return int(str(self._answer("purge", {"recipient": agent, "message_id": message_id})))

    def peek(self, agent: str, limit: int) -> list[AgentMessage]:
        rows = self._ask("peek", {"recipient": agent, "limit": max(limit, 0)})
        if not rows:
            return []
        fairness, turn = rows[0][:2]
        queues: dict[int, list[str]] = {}
        for _, _, priority, body in rows:
            queues.setdefault(priority, []).append(body)
        return [read(body) for body in deal(queues, fairness, turn)][:limit]

    def counts(self, agent: str) -> MailboxCounts:
        (row,) = self._ask("counts", {"recipient": agent})
        return MailboxCounts(**dict(zip(MailboxCounts.model_fields, row, strict=True)))

    def dead_letters(self, agent: str, limit: int) -> list[DeadLetter]:
        rows = self._ask("dead_letters", {"recipient": agent, "limit": max(limit, 0)})
        return [dead_of(row) for row in rows]

    def subscribe(self, agent: str, types: Sequence[str]) -> str:
        """The id of the subscription."""
        id_ = f"sub_{secrets.token_hex(6)}"
        self._ask("subscribe", {"id": id_, "recipient": agent, "types": word_array(types)})
        return id_

    def unsubscribe(self, agent: str, subscription: str) -> None:
        self._ask("unsubscribe", {"id": subscription})

    def config(self) -> CoordinatorConfig:
        (row,) = self._ask("config", {})
        return CoordinatorConfig(**dict(zip(CoordinatorConfig.model_fields, row, strict=True)))

    def configure(self, settings: Settings) -> None:
        unchanged: Parameters = dict.fromkeys(_SETTINGS)
        self._ask("configure", {**unchanged, **{name: str(settings[name]) for name in settings}})

    def _held(self, agent: str, token: str) -> Parameters | None:
        receipt, id_ = parse_token(token) or ("", "")
        return {"recipient": agent, "receipt": receipt, "id": id_} if id_.isdecimal() else None

    def _answer(self, name: str, parameters: Parameters) -> object:
        ((answer,),) = self._ask(name, {**parameters, "operation": self._new_id()})
        return answer

    def _new_id(self) -> str:
        return self._ids.new_id()

    def _ask(self, name: str, parameters: Parameters) -> list[Row]:
        """Runs a statement, again if its answer is lost."""

        def ask(again: bool) -> list[Row]:
            try:
                return self._database.call(HOT[name], {**parameters, "again": flag(again)})
            except _NOT_MIGRATED as error:
                raise MessageRefused(NOT_MIGRATED) from error

        return ask_until_heard(ask)
