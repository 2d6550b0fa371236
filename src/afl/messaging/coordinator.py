"""The promises of a mailbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

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

#: Settings by their names in `CoordinatorConfig`.
Settings = Mapping[str, int | float | str]


class MessageMetrics(Protocol):
    """Who wants to know how it goes."""

    def inc_delivered_ok(self, count: int) -> None: ...
    def inc_delivered_error(self, count: int) -> None: ...
    def inc_retries_scheduled(self, count: int, last_backoff_seconds: float) -> None: ...
    def inc_nacks(self, count: int) -> None: ...
    def inc_permanent(self, count: int) -> None: ...


class MessageCoordinator(ABC):
    """Mailboxes of agents: at least once, by priority, then in the order of sending.

    Whoever receives a message has it until the visibility deadline, by the mailbox's own clock.
    Every receipt counts as an attempt, so a consumer that dies counts too; after `retry_attempts`
    retries the message is a dead letter. At any time sent = ready + delayed + reserved + acked +
    dead + purged.
    """

    @abstractmethod
    async def send_message(
        self, sender: AgentId, recipient: AgentId, message: AgentMessage
    ) -> MessageResult:
        """Puts a message into the recipient's mailbox.

        A message id that was sent before answers as it did then. A full mailbox is `delivered =
        False`. Raises `MessageCoordinatorError` if the sender or recipient is not the message's, or
        the store cannot be reached.
        """

    @abstractmethod
    async def broadcast_message(
        self, sender: AgentId, message: AgentMessage, recipients: list[AgentId]
    ) -> list[MessageResult]:
        """The same message to each recipient, addressed to it; one result each, in order."""

    @abstractmethod
    def subscribe_to_messages(
        self, agent_id: AgentId, message_types: list[MessageType]
    ) -> MessageSubscription:
        """From now on the agent receives only these types; what else comes stays in its mailbox."""

    @abstractmethod
    def unsubscribe(self, subscription: MessageSubscription) -> None:
        """Takes a subscription back. An agent without one receives everything."""

    @abstractmethod
    async def receive(
        self, agent_id: AgentId, visibility_timeout: float = 5
    ) -> ReceivedMessage | None:
        """The next message, for so many seconds; None if there is none now. What others held too
        long is looked at first."""

    @abstractmethod
    async def receive_batch(
        self,
        agent_id: AgentId,
        limit: int,
        visibility_timeout: float = 5,
        *,
        wait_seconds: float = 0,
    ) -> list[ReceivedMessage]:
        """Up to `limit` messages; waits for the first if there is none."""

    @abstractmethod
    async def ack(self, agent_id: AgentId, token: str) -> bool:
        """It is done. False if the token has lost the message."""

    @abstractmethod
    async def nack(
        self,
        agent_id: AgentId,
        token: str,
        failure: FailureType = FailureType.TRANSIENT,
        error: str | None = None,
    ) -> bool:
        """It is not: again later, or a dead letter. False if the token has lost the message."""

    @abstractmethod
    async def extend(self, agent_id: AgentId, token: str, visibility_timeout: float) -> bool:
        """More time, from now. False if the token has lost the message."""

    @abstractmethod
    async def recover_pending(self, agent_id: AgentId | None = None) -> int:
        """Hands what was held too long out again, or to the dead letters; tells how many."""

    async def configure(
        self,
        *,
        queue_size: int | None = None,
        retry_attempts: int | None = None,
        backoff_base: float | None = None,
        backoff_factor: float | None = None,
        backoff_max: float | None = None,
        fairness: str | None = None,
        dedupe_seconds: float | None = None,
    ) -> None:
        """Changes the settings of all processes that share the mailboxes."""
        settings: dict[str, int | float | str | None] = {
            "queue_size": queue_size,
            "retry_attempts": retry_attempts,
            "backoff_base": backoff_base,
            "backoff_factor": backoff_factor,
            "backoff_max": backoff_max,
            "fairness": fairness,
            "dedupe_seconds": dedupe_seconds,
        }
        await self._change({name: value for name, value in settings.items() if value is not None})

    @abstractmethod
    async def _change(self, settings: Settings) -> None:
        """Changes those settings that are given. Raises `MessageRefused` for impossible ones."""

    @abstractmethod
    async def config(self) -> CoordinatorConfig:
        """The settings in force."""

    @abstractmethod
    async def peek(self, agent_id: AgentId, limit: int = 10) -> list[AgentMessage]:
        """What would be received next, without receiving it."""

    @abstractmethod
    async def counts(self, agent_id: AgentId) -> MailboxCounts: ...

    @abstractmethod
    async def dead_letters(self, agent_id: AgentId, limit: int = 100) -> list[DeadLetter]:
        """The oldest first."""

    @abstractmethod
    async def redrive(self, agent_id: AgentId, message_id: str | None = None) -> int:
        """Dead letters into the mailbox again, with no attempts counted; one, or all."""

    @abstractmethod
    async def purge(self, agent_id: AgentId, message_id: str | None = None) -> int:
        """Removes dead letters for good; one, or all."""

    @abstractmethod
    async def close(self) -> None:
        """Gives back what this object holds. Messages stay."""
