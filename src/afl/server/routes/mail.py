"""Mailboxes, and the circuit breakers that processes share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from afl.app.extras import mail_part
from afl.base.system import SystemIds
from afl.server import mail_views as views
from afl.server.access import EveryOperator, EveryViewer
from afl.server.backend import Work
from afl.server.models.agents import MailboxView, MailForm, MessageView
from afl.server.models.system import BreakerView

if TYPE_CHECKING:
    from afl.messaging.coordinator import MessageCoordinator
    from afl.messaging.models import AgentMessage

router = APIRouter(prefix="", tags=["mail"])

#: So many agents of the roster have their mailboxes counted.
_MOST_AGENTS = 200


@router.get("/mail")
def list_mailboxes(backend: Work, caller: EveryViewer) -> list[MailboxView]:
    """The mailboxes of the agents on the roster, and how much is in them."""
    agents = [views.address(agent.id) for agent in backend.client.agents.list(limit=_MOST_AGENTS)]

    async def work(mailboxes: MessageCoordinator) -> list[MailboxView]:
        return [views.mailbox_view(agent, await mailboxes.counts(agent)) for agent in agents]

    return views.with_mail(backend, work)


@router.get("/mail/{agent}")
def peek(
    backend: Work,
    caller: EveryViewer,
    agent: str,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[MessageView]:
    """Messages that wait in a mailbox, the next first."""
    to = views.address(agent)

    async def work(mailboxes: MessageCoordinator) -> list[AgentMessage]:
        return await mailboxes.peek(to, limit)

    return [views.message_view(each) for each in views.with_mail(backend, work)]


@router.get("/mail/{agent}/dead")
def dead_messages(
    backend: Work,
    caller: EveryViewer,
    agent: str,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[MessageView]:
    """Messages that were given up, the oldest first."""
    to = views.address(agent)

    async def work(mailboxes: MessageCoordinator) -> list[MessageView]:
        return [views.dead_view(each) for each in await mailboxes.dead_letters(to, limit)]

    return views.with_mail(backend, work)


@router.post("/mail", status_code=201)
def send(backend: Work, caller: EveryOperator, form: MailForm) -> MessageView:
    """Sends a message from whoever asks."""
    models = mail_part("afl.messaging.models")
    message: AgentMessage = models.AgentMessage(
        message_id=SystemIds().new_id(),
        sender=models.AgentId(type="person", instance=_name(caller.subject)),
        recipient=views.address(form.to),
        message_type=models.MessageType(form.type),
        payload=form.payload,
        priority=models.MessagePriority[form.priority.upper()],
        timestamp=datetime.now(UTC).isoformat(),
    )

    async def work(mailboxes: MessageCoordinator) -> bool:
        result = await mailboxes.send_message(message.sender, message.recipient, message)
        return result.delivered

    if not views.with_mail(backend, work):
        raise views.MailboxFull(f"The mailbox of {form.to} is full. Try again later.")
    return views.message_view(message)


@router.post("/mail/{agent}/dead/{message}/redrive")
def redrive_message(backend: Work, caller: EveryOperator, agent: str, message: str) -> MessageView:
    """Puts a dead message back into its mailbox."""
    to = views.address(agent)

    async def work(mailboxes: MessageCoordinator) -> MessageView:
        counts = await mailboxes.counts(to)
        letters = await mailboxes.dead_letters(to, counts.dead)
        found = [each for each in letters if each.queue_message.message.message_id == message]
        if not found or not await mailboxes.redrive(to, message):
            raise views.UnknownMessage(
                f"There is no dead message {message} of {agent}. `afl mail dlq {agent}` shows "
                "those there are."
            )
        return views.message_view(found[0].queue_message.message)

    return views.with_mail(backend, work)


@router.get("/breakers")
def list_breakers(backend: Work, caller: EveryViewer) -> list[BreakerView]:
    """The circuit breakers that processes share; there are none without a Redis."""
    return views.breaker_views(backend)


@router.post("/breakers/{name:path}/reset")
def reset_breaker(backend: Work, caller: EveryOperator, name: str) -> BreakerView:
    """Closes a breaker, for all processes."""
    return views.close_breaker(backend, name)


def _name(subject: str) -> str:
    """A subject as the second half of an address."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in subject)
