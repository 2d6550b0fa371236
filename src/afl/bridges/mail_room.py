"""The mailroom: receives what is for this installation. Answers go to the steps that have asked,
and messages to agents start turns.

A message is acknowledged when what follows from it is in the store, and all that follows is found
there again by the message's id: what is received twice, or by two mailrooms, happens once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial

from afl.base.errors import AflError
from afl.bridges.mail_desk import letter_spec
from afl.bridges.mail_messages import (
    TRACE_HEADER,
    MailFailure,
    address_of,
    answer_body,
    turn_intent,
    turn_key,
    waiting_call,
    wants_answer,
)
from afl.kernel.doorbell import Doorbell
from afl.kernel.errors import KernelError, StoreUnavailable
from afl.kernel.model import CallStatus
from afl.kernel.port import Locks
from afl.kernel.requests import MAX_DURATION
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import AgentId, FailureType, ReceivedMessage
from afl.turns.errors import TurnError, UnknownAgent
from afl.turns.feed import SilentFeed
from afl.turns.l0 import L0Engine
from afl.turns.model import AgentId as RosterId
from afl.turns.ports import TurnStore

_log = logging.getLogger("afl.mail")
_ADDRESS = "afl.mail.answers"
#: What is received is done with in a moment; this is for a mailroom that dies.
_VISIBILITY_SECONDS = 30.0
_BATCH = 20
#: How long one look at a mailbox lasts, and how often the roster is read.
_LOOK_SECONDS, _ROSTER_SECONDS = 15.0, 5.0
#: At so many mailboxes somebody waits; if there are more, they are looked at by turns.
_MOST_WATCHED = 100
_PAGE = 500
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.5, 15.0

Deal = Callable[[ReceivedMessage], None]


def answers_address(locks: Locks) -> AgentId:
    """Where the answers to what is asked from this store are received. Another store with the same
    Redis has another."""
    token = secrets.token_hex(8)
    if locks.acquire_lock(_ADDRESS, token, MAX_DURATION) is None:
        held = locks.get_lock(_ADDRESS)
        assert held is not None, "nobody lets go of it"
        token = held.token
    return AgentId(type="afl-answers", instance=token)


class Outage:
    """Tells the log once that something is away, and once that it is back."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._waits: float | None = None

    def failed(self, error: Exception) -> float:
        """After how many seconds to try again."""
        if self._waits is None:
            _log.warning("%s, and is tried again and again: %s", self._what, error)
            self._waits = _FIRST_WAIT_SECONDS
        else:
            self._waits = min(self._waits * 2, _MAX_WAIT_SECONDS)
        return self._waits

    def is_over(self) -> None:
        if self._waits is not None:
            self._waits = None
            _log.warning("mail is received again")


class MailRoom:
    """Receives until it is cancelled. Used in one event loop."""

    def __init__(
        self,
        mail: MessageCoordinator,
        store: TurnStore,
        doorbell: Doorbell,
        answers: AgentId,
        targets: tuple[str, ...],
        outage: Outage,
    ) -> None:
        """
        Args:
            answers: where answers are received.
            targets: the agents with these targets take their turns here.
        """
        self._mail = mail
        self._store = store
        self._kernel = store.kernel
        self._doorbell = doorbell
        self._l0 = L0Engine(store, doorbell, SilentFeed())
        self._answers = answers
        self._targets = frozenset(targets)
        self._outage = outage
        #: agents of the roster by their addresses
        self._agents: dict[AgentId, str] = {}
        self._watched: set[AgentId] = set()
        self._round: asyncio.Queue[AgentId] = asyncio.Queue()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_answers())
            if self._targets:
                await self._watch_roster(group)

    # Watching

    async def _watch_answers(self) -> None:
        while True:
            await self._look(self._answers, _LOOK_SECONDS, self._take_answer)

    async def _watch_roster(self, group: asyncio.TaskGroup) -> None:
        watchers = 0
        while True:
            try:
                found = await asyncio.to_thread(self._roster)
            except KernelError as error:
                await asyncio.sleep(self._outage.failed(error))
                continue
            for address in found.keys() - self._watched:
                self._watched.add(address)
                self._round.put_nowait(address)
            self._agents = found
            while watchers < min(len(found), _MOST_WATCHED):
                group.create_task(self._watch_agents())
                watchers += 1
            await asyncio.sleep(_ROSTER_SECONDS)

    async def _watch_agents(self) -> None:
        """Looks at one mailbox after the other; at always the same one if there are few."""
        while True:
            address = await self._round.get()
            agent = self._agents.get(address)
            if agent is None:
                self._watched.discard(address)
                continue
            share = min(1.0, _MOST_WATCHED / len(self._agents))
            deal = partial(self._take_message, agent)
            await self._look(address, _LOOK_SECONDS * share, deal)
            self._round.put_nowait(address)

    def _roster(self) -> dict[AgentId, str]:
        """The agents whose turns are taken here, by their addresses."""
        found: dict[AgentId, str] = {}
        after: RosterId | None = None
        while True:
            page = self._store.list_agents(after=after, limit=_PAGE)
            for agent in page:
                address = address_of(agent.id)
                if agent.kind == "model" and agent.target in self._targets and address is not None:
                    found[address] = agent.id
            if len(page) < _PAGE:
                return found
            after = page[-1].id

    # Receiving

    async def _look(self, address: AgentId, seconds: float, deal: Deal) -> None:
        """Waits for messages and deals with them. Whatever is away is waited for."""
        try:
            received = await self._mail.receive_batch(
                address, _BATCH, _VISIBILITY_SECONDS, wait_seconds=seconds
            )
            self._outage.is_over()
            for each in received:
                await self._deal(address, each, deal)
        except AflError as error:
            await asyncio.sleep(self._outage.failed(error))

    async def _deal(self, address: AgentId, received: ReceivedMessage, deal: Deal) -> None:
        """What cannot be dealt with is a dead letter that says why."""
        try:
            await self._patiently(
                lambda: asyncio.to_thread(deal, received),
                lambda: self._mail.extend(address, received.token, _VISIBILITY_SECONDS),
            )
        except (MailFailure, TurnError, KernelError) as error:
            message = received.queue_message.message
            _log.warning("message %s of %s is dead: %s", message.message_id, address, error)
            await self._mail.nack(address, received.token, FailureType.PERMANENT, error.message)
            return
        await self._mail.ack(address, received.token)

    async def _patiently(
        self, ask: Callable[[], Awaitable[None]], keep: Callable[[], Awaitable[bool]]
    ) -> None:
        """Asks the store until it answers; a message must not die of that."""
        while True:
            try:
                await ask()
                return
            except StoreUnavailable as error:
                await asyncio.sleep(self._outage.failed(error))
                await keep()

    # What follows, in a thread

    def _take_answer(self, received: ReceivedMessage) -> None:
        message = received.queue_message.message
        call = waiting_call(message)
        if call is None:
            raise MailFailure(
                "BadMessage",
                "This is no answer: its correlation_id is not the id of a message that was asked.",
            )
        # the first answer counts; the same again, and a later one, change nothing
        self._l0.report(call, CallStatus.OK, answer_body(message))

    def _take_message(self, agent: str, received: ReceivedMessage) -> None:
        message = received.queue_message.message
        intent = turn_intent(message, agent)
        if not wants_answer(message):
            trace = message.headers.get(TRACE_HEADER)
            self._l0.enqueue(intent, correlation_id=turn_key(message), trace=trace)
            return
        if self._store.get_agent(RosterId(agent)) is None:
            raise UnknownAgent(
                f"There is no agent {agent}; `afl agents list` shows those that there are."
            )
        (task,) = self._kernel.enqueue([letter_spec(message, agent)])
        self._doorbell.ring([task.list])
