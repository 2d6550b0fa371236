"""`MemoryMessageCoordinator`: mailboxes in the memory of this process, for tests and single ones.

It is the executable definition of what the other coordinators do. `MemoryMailboxes` is the post
office; coordinators that share one stand for processes that share a store.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.messaging.coordinator import MessageCoordinator, MessageMetrics, Settings
from afl.messaging.errors import MessageRefused
from afl.messaging.letters import read, written
from afl.messaging.memory_mailbox import Letter, MemoryMailbox
from afl.messaging.metrics import SILENT
from afl.messaging.models import (
    AgentId,
    AgentMessage,
    CoordinatorConfig,
    DeadLetter,
    FailureType,
    MailboxCounts,
    MessagePriority,
    MessageResult,
    MessageSubscription,
    MessageType,
    QueueMessage,
    ReceivedMessage,
)
from afl.messaging.rules import FULL, changed, check_addresses, check_sender

#: How often who waits looks whether time has made something ready.
_LOOK_SECONDS = 0.05


class MemoryMailboxes:
    """All mailboxes, their settings and who waits. Threads and loops may share them."""

    def __init__(
        self, clock: Clock | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        """`chance` gives random numbers from 0 to 1, for backoffs."""
        self.lock = threading.RLock()
        self.config = CoordinatorConfig()
        self.chance = chance
        self._clock = clock or SystemClock()
        self._boxes: dict[str, MemoryMailbox] = {}
        self._waiting: dict[str, set[Callable[[], None]]] = {}

    def now(self) -> float:
        return self._clock.now().timestamp()

    def box(self, agent: AgentId) -> MemoryMailbox:
        return self._boxes.setdefault(str(agent), MemoryMailbox())

    def every(self) -> list[MemoryMailbox]:
        return list(self._boxes.values())

    def wait_for(self, agent: AgentId, wake: Callable[[], None]) -> None:
        """From now on `wake` is called when something is sent to the agent."""
        with self.lock:
            self._waiting.setdefault(str(agent), set()).add(wake)

    def wait_no_more(self, agent: AgentId, wake: Callable[[], None]) -> None:
        with self.lock:
            self._waiting[str(agent)].discard(wake)

    def ring(self, agent: AgentId) -> None:
        for wake in self._waiting.get(str(agent), ()):
            wake()


class MemoryMessageCoordinator(MessageCoordinator):
    """See `MessageCoordinator` for what each method promises."""

    def __init__(
        self,
        mailboxes: MemoryMailboxes | None = None,
        metrics: MessageMetrics | None = None,
    ) -> None:
        self._mail = mailboxes or MemoryMailboxes()
        self._metrics = metrics or SILENT

    async def send_message(
        self, sender: AgentId, recipient: AgentId, message: AgentMessage
    ) -> MessageResult:
        check_addresses(sender, recipient, message)
        return self._send(message)

    async def broadcast_message(
        self, sender: AgentId, message: AgentMessage, recipients: list[AgentId]
    ) -> list[MessageResult]:
        check_sender(sender, message)
        return [self._send(message.model_copy(update={"recipient": each})) for each in recipients]

    def subscribe_to_messages(
        self, agent_id: AgentId, message_types: list[MessageType]
    ) -> MessageSubscription:
        if not message_types:
            raise MessageRefused("a subscription needs at least one type of message")
        made = MessageSubscription(
            subscription_id=f"sub_{secrets.token_hex(6)}",
            agent_id=agent_id,
            message_types=message_types,
        )
        with self._mail.lock:
            box = self._mail.box(agent_id)
            box.subscriptions[made.subscription_id] = frozenset(message_types)
        return made

    def unsubscribe(self, subscription: MessageSubscription) -> None:
        with self._mail.lock:
            box = self._mail.box(subscription.agent_id)
            box.subscriptions.pop(subscription.subscription_id, None)
            self._mail.ring(subscription.agent_id)

    async def receive(
        self, agent_id: AgentId, visibility_timeout: float = 5
    ) -> ReceivedMessage | None:
        return next(iter(self._receive(agent_id, 1, visibility_timeout)), None)

    async def receive_batch(
        self,
        agent_id: AgentId,
        limit: int,
        visibility_timeout: float = 5,
        *,
        wait_seconds: float = 0,
    ) -> list[ReceivedMessage]:
        found = self._receive(agent_id, limit, visibility_timeout)
        if found or limit < 1 or wait_seconds <= 0:
            return found
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_seconds
        rung = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(rung.set)

        self._mail.wait_for(agent_id, wake)
        try:
            while not (found := self._receive(agent_id, limit, visibility_timeout)):
                left = end - loop.time()
                if left <= 0:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(rung.wait(), min(left, _LOOK_SECONDS))
                rung.clear()
        finally:
            self._mail.wait_no_more(agent_id, wake)
        return found

    async def ack(self, agent_id: AgentId, token: str) -> bool:
        with self._mail.lock:
            return self._mail.box(agent_id).ack(token, self._mail.now())

    async def nack(
        self,
        agent_id: AgentId,
        token: str,
        failure: FailureType = FailureType.TRANSIENT,
        error: str | None = None,
    ) -> bool:
        mail = self._mail
        with mail.lock:
            done = mail.box(agent_id).nack(
                token, failure, error, mail.config, mail.chance, mail.now()
            )
        if done is None:
            return False
        self._metrics.inc_nacks(1)
        if done.reason is None:
            self._metrics.inc_retries_scheduled(1, done.backoff_seconds)
        else:
            self._metrics.inc_permanent(1)
        return True

    async def extend(self, agent_id: AgentId, token: str, visibility_timeout: float) -> bool:
        with self._mail.lock:
            now = self._mail.now()
            return self._mail.box(agent_id).extend(token, now + visibility_timeout, now)

    async def recover_pending(self, agent_id: AgentId | None = None) -> int:
        with self._mail.lock:
            boxes = self._mail.every() if agent_id is None else [self._mail.box(agent_id)]
            return sum(self._sweep(box) for box in boxes)

    async def _change(self, settings: Settings) -> None:
        with self._mail.lock:
            self._mail.config = changed(self._mail.config, settings)

    async def config(self) -> CoordinatorConfig:
        return self._mail.config

    async def peek(self, agent_id: AgentId, limit: int = 10) -> list[AgentMessage]:
        with self._mail.lock:
            fairness, now = self._mail.config.fairness, self._mail.now()
            letters = self._mail.box(agent_id).peek(max(limit, 0), fairness, now)
        return [read(letter.text) for letter in letters]

    async def counts(self, agent_id: AgentId) -> MailboxCounts:
        with self._mail.lock:
            return self._mail.box(agent_id).counts(self._mail.now())

    async def dead_letters(self, agent_id: AgentId, limit: int = 100) -> list[DeadLetter]:
        with self._mail.lock:
            return [
                DeadLetter(
                    queue_message=_queued(letter), reason=letter.reason, at=_iso(letter.died_at)
                )
                for letter in self._mail.box(agent_id).dead(max(limit, 0))
            ]

    async def redrive(self, agent_id: AgentId, message_id: str | None = None) -> int:
        mail = self._mail
        with mail.lock:
            redriven = mail.box(agent_id).redrive(message_id, mail.config, mail.now())
            mail.ring(agent_id)
        return redriven

    async def purge(self, agent_id: AgentId, message_id: str | None = None) -> int:
        with self._mail.lock:
            return self._mail.box(agent_id).purge(message_id)

    async def close(self) -> None:
        """There is nothing to give back."""

    def _send(self, message: AgentMessage) -> MessageResult:
        text = written(message)
        with self._mail.lock:
            now = self._mail.now()
            ttl = message.ttl_seconds
            letter = Letter(
                message.message_id,
                text,
                message.message_type,
                message.priority,
                order=0,
                sent_at=now,
                ready_at=now + message.delay_seconds,
                expires_at=None if ttl is None else now + ttl,
            )
            sent = self._mail.box(message.recipient).send(letter, self._mail.config, now)
            if sent:
                self._mail.ring(message.recipient)
        if sent is False:
            self._metrics.inc_delivered_error(1)
            return MessageResult(message_id=message.message_id, delivered=False, error=FULL)
        if sent:
            self._metrics.inc_delivered_ok(1)
        return MessageResult(message_id=message.message_id, delivered=True)

    def _receive(self, agent: AgentId, limit: int, visibility: float) -> list[ReceivedMessage]:
        receipt = secrets.token_hex(8)
        tokens = (f"res_{receipt}_{number}" for number in count())
        with self._mail.lock:
            now, box = self._mail.now(), self._mail.box(agent)
            self._sweep(box)
            fairness = self._mail.config.fairness
            taken = box.receive(tokens, max(limit, 0), now + visibility, fairness, now)
            return [
                ReceivedMessage(
                    token=letter.token,
                    queue_message=_queued(letter),
                    visibility_deadline=_iso(letter.deadline),
                )
                for letter in taken
            ]

    def _sweep(self, box: MemoryMailbox) -> int:
        late, dead = box.sweep(self._mail.config, self._mail.now())
        if dead:
            self._metrics.inc_permanent(dead)
        return late


def _queued(letter: Letter) -> QueueMessage:
    return QueueMessage(
        message=read(letter.text),
        priority=MessagePriority(letter.priority),
        enqueued_at=_iso(letter.sent_at),
        delivery_attempts=letter.attempts,
        last_error=letter.last_error,
    )


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
