"""What the coordinators on databases share: they block, so each statement has a thread.

A database's own part is its `DatabaseMail`, whose operations are done whole or not at all.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.kernel.port import Transaction
from afl.kernel.waiting import PollPolicy
from afl.messaging.coordinator import MessageCoordinator, MessageMetrics, Settings
from afl.messaging.errors import MessageRefused
from afl.messaging.metrics import SILENT
from afl.messaging.models import (
    AgentId,
    AgentMessage,
    CoordinatorConfig,
    DeadLetter,
    FailureType,
    MailboxCounts,
    MessageResult,
    MessageSubscription,
    MessageType,
    ReceivedMessage,
)
from afl.messaging.rules import FULL, changed, check_addresses, check_sender

#: How many may wait for messages at once; each has a thread while it does.
_MOST_WAITING = 256
POLL = PollPolicy(min_seconds=0.05, max_seconds=1.0)


@dataclass(frozen=True, slots=True)
class Received:
    """What a look into a mailbox found."""

    messages: list[ReceivedMessage]
    #: how many became dead letters on the way
    buried: int
    #: after so many seconds time may make something ready
    due_seconds: float | None


class DatabaseMail(Protocol):
    """The operations of mailboxes on a database. They block; threads may share.

    Agents are named as in `str(AgentId)`. Whoever did not hear an answer has asked again with the
    same operation before it raises `MessageCoordinatorError`.
    """

    def send(self, messages: Sequence[AgentMessage]) -> list[str]:
        """Of each message: `sent`, `known` or `full`."""
        ...

    def send_in(self, transaction: Transaction, message: AgentMessage) -> None:
        """Makes a message part of a transaction of the same database."""
        ...

    def receive(self, agent: str, receipt: str, limit: int, visibility: float) -> Received: ...
    def give_back(self, agent: str, receipt: str) -> None:
        """Undoes a receipt that nobody waits for any more."""
        ...

    def ack(self, agent: str, token: str) -> bool: ...
    def nack(
        self, agent: str, token: str, permanent: bool, error: str | None
    ) -> str | float | None:
        """Why it is dead, or after how many seconds it comes again; None if it is lost."""
        ...

    def extend(self, agent: str, token: str, visibility: float) -> bool: ...
    def recover(self, agent: str | None) -> tuple[int, int]:
        """How many were held too long, and how many are dead now."""
        ...

    def redrive(self, agent: str, message_id: str | None) -> int: ...
    def purge(self, agent: str, message_id: str | None) -> int: ...
    def peek(self, agent: str, limit: int) -> list[AgentMessage]: ...
    def counts(self, agent: str) -> MailboxCounts: ...
    def dead_letters(self, agent: str, limit: int) -> list[DeadLetter]: ...
    def subscribe(self, agent: str, types: Sequence[str]) -> str:
        """The id of the subscription."""
        ...

    def unsubscribe(self, agent: str, subscription: str) -> None: ...
    def config(self) -> CoordinatorConfig: ...
    def configure(self, settings: Settings) -> None:
        """Changes those that are given; each of them is possible."""
        ...


class DatabaseMessageCoordinator(MessageCoordinator):
    """See `MessageCoordinator` for what each method promises.

    Statements run in threads. The two methods that are not async ask the database at once.
    """

    def __init__(
        self,
        mail: DatabaseMail,
        doorbell: Doorbell | None = None,
        metrics: MessageMetrics | None = None,
        clock: Clock | None = None,
        poll: PollPolicy = POLL,
    ) -> None:
        """What was given stays the caller's.

        Args:
            doorbell: tells who waits that something came; without one, only what this object
                sends is heard at once, and everything else at the next look.
            clock: measures how long somebody has waited.
            poll: how often who waits looks when nothing rings.
        """
        self._mail = mail
        self._doorbell = doorbell or LocalDoorbell()
        self._metrics = metrics or SILENT
        self._clock = clock or SystemClock()
        self._poll = poll
        self._waiters = ThreadPoolExecutor(_MOST_WAITING, "afl-mail")
        self._closed = threading.Event()

    async def send_message(
        self, sender: AgentId, recipient: AgentId, message: AgentMessage
    ) -> MessageResult:
        check_addresses(sender, recipient, message)
        return (await self._send([message]))[0]

    async def broadcast_message(
        self, sender: AgentId, message: AgentMessage, recipients: list[AgentId]
    ) -> list[MessageResult]:
        check_sender(sender, message)
        return await self._send(
            [message.model_copy(update={"recipient": each}) for each in recipients]
        )

    def send_in(self, transaction: Transaction, message: AgentMessage) -> None:
        """Has a message sent by a transaction of the kernel's store, such as a commit's writes.

        It is sent exactly if the transaction is committed. A mailbox that is full makes it fail
        with `StoreUnavailable`, so that it is tried again later. Who waits hears of it when
        `ring` is called after the commit, or at its next look.

        Raises:
            MessageRefused: the message cannot be written as JSON.
        """
        self._mail.send_in(transaction, message)

    def ring(self, recipients: Iterable[AgentId]) -> None:
        """Tells who waits that there may be something."""
        self._doorbell.ring([_list_of(each) for each in recipients])

    def subscribe_to_messages(
        self, agent_id: AgentId, message_types: list[MessageType]
    ) -> MessageSubscription:
        if not message_types:
            raise MessageRefused("a subscription needs at least one type of message")
        types = [each.value for each in message_types]
        return MessageSubscription(
            subscription_id=self._mail.subscribe(str(agent_id), types),
            agent_id=agent_id,
            message_types=message_types,
        )

    def unsubscribe(self, subscription: MessageSubscription) -> None:
        self._mail.unsubscribe(str(subscription.agent_id), subscription.subscription_id)
        self.ring([subscription.agent_id])

    async def receive(
        self, agent_id: AgentId, visibility_timeout: float = 5
    ) -> ReceivedMessage | None:
        return next(iter(await self.receive_batch(agent_id, 1, visibility_timeout)), None)

    async def receive_batch(
        self,
        agent_id: AgentId,
        limit: int,
        visibility_timeout: float = 5,
        *,
        wait_seconds: float = 0,
    ) -> list[ReceivedMessage]:
        receipt = secrets.token_hex(8)
        unwanted = threading.Event()

        def work() -> list[ReceivedMessage]:
            found = self._find(
                agent_id,
                lambda: self._mail.receive(str(agent_id), receipt, limit, visibility_timeout),
                wait_seconds if limit > 0 else 0,
                unwanted,
            )
            if found and unwanted.is_set():
                # whoever asked is gone; nobody else shall wait for the deadline
                self._mail.give_back(str(agent_id), receipt)
                self.ring([agent_id])
            return found

        # a thread of the waiters, since all others of the loop could be asleep here
        threads = self._waiters if wait_seconds > 0 else None
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except asyncio.CancelledError:
            unwanted.set()
            # the thread sleeps until its next look, which may be far
            self.ring([agent_id])
            raise

    async def ack(self, agent_id: AgentId, token: str) -> bool:
        return await asyncio.to_thread(self._mail.ack, str(agent_id), token)

    async def nack(
        self,
        agent_id: AgentId,
        token: str,
        failure: FailureType = FailureType.TRANSIENT,
        error: str | None = None,
    ) -> bool:
        permanent = failure is FailureType.PERMANENT
        became = await asyncio.to_thread(self._mail.nack, str(agent_id), token, permanent, error)
        if became is None:
            return False
        self._metrics.inc_nacks(1)
        if isinstance(became, float):
            self._metrics.inc_retries_scheduled(1, became)
        else:
            self._metrics.inc_permanent(1)
        return True

    async def extend(self, agent_id: AgentId, token: str, visibility_timeout: float) -> bool:
        return await asyncio.to_thread(self._mail.extend, str(agent_id), token, visibility_timeout)

    async def recover_pending(self, agent_id: AgentId | None = None) -> int:
        agent = None if agent_id is None else str(agent_id)
        late, buried = await asyncio.to_thread(self._mail.recover, agent)
        self._count_buried(buried)
        return late

    async def _change(self, settings: Settings) -> None:
        # whether a setting is possible does not depend on the others
        changed(CoordinatorConfig(), settings)
        await asyncio.to_thread(self._mail.configure, settings)

    async def config(self) -> CoordinatorConfig:
        return await asyncio.to_thread(self._mail.config)

    async def peek(self, agent_id: AgentId, limit: int = 10) -> list[AgentMessage]:
        return await asyncio.to_thread(self._mail.peek, str(agent_id), limit)

    async def counts(self, agent_id: AgentId) -> MailboxCounts:
        return await asyncio.to_thread(self._mail.counts, str(agent_id))

    async def dead_letters(self, agent_id: AgentId, limit: int = 100) -> list[DeadLetter]:
        return await asyncio.to_thread(self._mail.dead_letters, str(agent_id), limit)

    async def redrive(self, agent_id: AgentId, message_id: str | None = None) -> int:
        redriven = await asyncio.to_thread(self._mail.redrive, str(agent_id), message_id)
        if redriven:
            self.ring([agent_id])
        return redriven

    async def purge(self, agent_id: AgentId, message_id: str | None = None) -> int:
        return await asyncio.to_thread(self._mail.purge, str(agent_id), message_id)

    async def close(self) -> None:
        """Ends all waiting; it finds nothing."""
        self._closed.set()
        await asyncio.to_thread(self._waiters.shutdown)

    async def _send(self, messages: list[AgentMessage]) -> list[MessageResult]:
        if not messages:
            return []
        outcomes = await asyncio.to_thread(self._mail.send, messages)
        sent = [
            each.recipient for each, how in zip(messages, outcomes, strict=True) if how == "sent"
        ]
        if sent:
            self.ring(sent)
            self._metrics.inc_delivered_ok(len(sent))
        if full := outcomes.count("full"):
            self._metrics.inc_delivered_error(full)
        return [
            MessageResult(message_id=each.message_id, delivered=False, error=FULL)
            if how == "full"
            else MessageResult(message_id=each.message_id, delivered=True)
            for each, how in zip(messages, outcomes, strict=True)
        ]

    def _find(
        self,
        agent: AgentId,
        look: Callable[[], Received],
        wait_seconds: float,
        unwanted: threading.Event,
    ) -> list[ReceivedMessage]:
        """Looks until something is found, or the time is up. In one thread, so that no ring between
        a look and the wait after it is missed."""
        end = self._clock.monotonic() + wait_seconds
        empty_looks = 0
        while True:
            found = look()
            self._count_buried(found.buried)
            left = end - self._clock.monotonic()
            if found.messages or left <= 0:
                return found.messages
            empty_looks += 1
            pause = min(left, self._poll.wait_seconds(empty_looks, chance=0.0))
            if found.due_seconds is not None:
                pause = min(pause, max(found.due_seconds, 0.0) + 0.001)
            if not self._doorbell.wait([_list_of(agent)], pause):
                # one that is closed does not wait
                self._closed.wait(max(0.0, end - left - self._clock.monotonic() + pause))
            if unwanted.is_set() or self._closed.is_set():
                return []

    def _count_buried(self, buried: int) -> None:
        if buried:
            self._metrics.inc_permanent(buried)


def _list_of(agent: AgentId) -> str:
    """What the doorbell rings for an agent."""
    return f"mail:{agent}"
