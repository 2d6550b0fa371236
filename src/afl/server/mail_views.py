"""Mailboxes and breakers in the shapes of the API, and the way to them.

Mailboxes are reached on an event loop of their own for each request: what they need belongs to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from afl.app.extras import mail_part
from afl.server.backend import Backend
from afl.server.errors import BadForm, Missing, TooMany
from afl.server.models.agents import MailboxView, MessageView
from afl.server.models.system import BreakerView

if TYPE_CHECKING:
    from afl.messaging.breaker_list import ListedBreaker
    from afl.messaging.coordinator import MessageCoordinator
    from afl.messaging.models import AgentId, AgentMessage, DeadLetter, MailboxCounts

T = TypeVar("T")


class BadAddress(BadForm):
    """This is not an address of an agent."""

    code = "server.bad_address"


class UnknownMessage(Missing):
    """There is no such message."""

    code = "server.unknown_message"


class MailboxFull(TooMany):
    """The mailbox is full."""

    code = "server.mailbox_full"
    retryable = True


class UnknownBreaker(Missing):
    """There is no such circuit breaker."""

    code = "server.unknown_breaker"


def with_mail(backend: Backend, work: Callable[[MessageCoordinator], Awaitable[T]]) -> T:
    """Has work done with the mailboxes of the settings."""
    mailing = mail_part("afl.app.mailing")

    async def done() -> T:
        async with mailing.mailboxes(backend.services, backend.settings) as mailboxes:
            return await work(mailboxes)

    return asyncio.run(done())


def address(text: str) -> AgentId:
    """An agent's address, `TYPE` or `TYPE:INSTANCE`."""
    models = mail_part("afl.messaging.models")
    try:
        found: AgentId = models.AgentId.parse(text)
    except ValueError as error:
        raise BadAddress(
            f"`{text}` is not an address. Write TYPE or TYPE:INSTANCE, such as reviewer:2."
        ) from error
    return found


def mailbox_view(agent: AgentId, counts: MailboxCounts) -> MailboxView:
    """How much is in a mailbox."""
    return MailboxView(
        agent=str(agent),
        ready=counts.ready + counts.delayed,
        taken=counts.reserved,
        dead=counts.dead,
    )


def message_view(
    message: AgentMessage, *, attempts: int = 0, reason: str | None = None
) -> MessageView:
    """A message."""
    sent = message.timestamp
    return MessageView(
        id=message.message_id,
        sender=str(message.sender),
        recipient=str(message.recipient),
        type=message.message_type.value,
        payload=message.payload,
        attempts=attempts,
        reason=reason,
        sent_at=None if sent is None else datetime.fromisoformat(sent),
    )


def dead_view(letter: DeadLetter) -> MessageView:
    """A message that was given up, and why."""
    kept = letter.queue_message
    told = letter.reason if not kept.last_error else f"{letter.reason}: {kept.last_error}"
    return message_view(kept.message, attempts=kept.delivery_attempts, reason=told)


def breaker_views(backend: Backend) -> list[BreakerView]:
    """The breakers that processes share; none without a Redis."""
    if backend.settings.redis_url is None:
        return []
    part = mail_part("afl.app.redis_breakers")
    shown = mail_part("afl.bridges.breakers").shown_name
    found: list[ListedBreaker] = asyncio.run(part.list_all(backend.settings))
    return [
        BreakerView(
            name=shown(each.name),
            state=each.state.value,
            failures=each.failures,
            retry_at=each.until,
        )
        for each in found
    ]


def close_breaker(backend: Backend, name: str) -> BreakerView:
    """Closes a breaker for all processes.

    Raises:
        UnknownBreaker: there is none of that name.
    """
    known = [each.name for each in breaker_views(backend)]
    if name not in known:
        raise UnknownBreaker(
            f"There is no breaker {name}. `afl breakers list` shows those there are."
        )
    asyncio.run(mail_part("afl.app.redis_breakers").reset(backend.settings, name))
    return next(each for each in breaker_views(backend) if each.name == name)
