"""Short words for what tests of mailboxes do all the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import (
    AgentId,
    AgentMessage,
    DeadLetter,
    FailureType,
    MailboxCounts,
    MessageResult,
    MessageType,
    ReceivedMessage,
)
from afl.testing.mail_conformance.harness import Harness

SENDER = AgentId(type="sender")
AGENT = AgentId(type="worker", instance="1")

_numbers = count()


def message(
    message_id: str | None = None,
    recipient: AgentId = AGENT,
    message_type: MessageType = MessageType.REQUEST,
    **fields: Any,  # noqa: ANN401 - of AgentMessage
) -> AgentMessage:
    """A message to the agent of the tests, with an id that nobody has used unless one is given."""
    return AgentMessage(
        message_id=message_id or f"message-{next(_numbers)}",
        sender=fields.pop("sender", SENDER),
        recipient=recipient,
        message_type=message_type,
        **fields,
    )


class Driver:
    """A coordinator in a test's hands. Nothing here goes beyond the port and the harness."""

    def __init__(
        self,
        harness: Harness,
        coordinator: MessageCoordinator | None = None,
        agent: AgentId = AGENT,
    ) -> None:
        self.harness = harness
        self.coordinator = coordinator or harness.coordinator()
        self.agent = agent

    def another(self) -> Driver:
        """The same mailbox through a coordinator of its own."""
        return Driver(self.harness, agent=self.agent)

    def advance(self, seconds: float) -> None:
        self.harness.advance(seconds)

    def configure(self, **settings: Any) -> None:  # noqa: ANN401 - of CoordinatorConfig
        self.harness.run(self.coordinator.configure(**settings))

    def deliver(self, sent: AgentMessage) -> MessageResult:
        return self.harness.run(self.coordinator.send_message(sent.sender, sent.recipient, sent))

    def send(self, message_id: str | None = None, **fields: Any) -> str:  # noqa: ANN401
        """Sends one, which must be taken; answers its id."""
        result = self.deliver(message(message_id, self.agent, **fields))
        assert result.delivered, result.error
        return result.message_id

    def receive(self, visibility_timeout: float = 60) -> ReceivedMessage | None:
        return self.harness.run(self.coordinator.receive(self.agent, visibility_timeout))

    def take(self, visibility_timeout: float = 60) -> ReceivedMessage:
        """The one that must be there."""
        received = self.receive(visibility_timeout)
        assert received is not None, "there is nothing to receive"
        return received

    def batch(self, limit: int, visibility_timeout: float = 60) -> list[ReceivedMessage]:
        return self.harness.run(
            self.coordinator.receive_batch(self.agent, limit, visibility_timeout)
        )

    def drain(self) -> list[str]:
        """Receives everything; answers the ids in order."""
        return [id_of(each) for each in self.batch(100, 3600)]

    def ack(self, token: str) -> bool:
        return self.harness.run(self.coordinator.ack(self.agent, token))

    def nack(
        self,
        token: str,
        failure: FailureType = FailureType.TRANSIENT,
        error: str | None = None,
    ) -> bool:
        return self.harness.run(self.coordinator.nack(self.agent, token, failure, error))

    def extend(self, token: str, visibility_timeout: float) -> bool:
        return self.harness.run(self.coordinator.extend(self.agent, token, visibility_timeout))

    def recover(self) -> int:
        return self.harness.run(self.coordinator.recover_pending(self.agent))

    def counts(self) -> MailboxCounts:
        return self.harness.run(self.coordinator.counts(self.agent))

    def dead(self) -> list[DeadLetter]:
        return self.harness.run(self.coordinator.dead_letters(self.agent))

    def peek(self, limit: int = 10) -> list[str]:
        peeked = self.harness.run(self.coordinator.peek(self.agent, limit))
        return [each.message_id for each in peeked]

    def redrive(self, message_id: str | None = None) -> int:
        return self.harness.run(self.coordinator.redrive(self.agent, message_id))

    def purge(self, message_id: str | None = None) -> int:
        return self.harness.run(self.coordinator.purge(self.agent, message_id))

    def kill(self, message_id: str | None = None) -> str:
        """Sends one and makes it a dead letter at once; the mailbox must be empty."""
        sent = self.send(message_id)
        assert self.nack(self.take().token, FailureType.PERMANENT, "no")
        return sent

    @contextmanager
    def subscribed(self, *types: MessageType) -> Iterator[None]:
        subscription = self.coordinator.subscribe_to_messages(self.agent, list(types))
        yield
        self.coordinator.unsubscribe(subscription)


def id_of(received: ReceivedMessage) -> str:
    """The id of what was received."""
    return received.queue_message.message.message_id


def in_balance(counts: MailboxCounts) -> bool:
    """Whether every message that was sent is somewhere, and once."""
    return counts.sent == (
        counts.ready + counts.delayed + counts.reserved + counts.acked + counts.dead + counts.purged
    )
