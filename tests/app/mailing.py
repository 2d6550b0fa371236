"""Agents outside of AgentFlow, who send and receive at the mailboxes of a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from afl import App
from afl.app.mailing import mailboxes
from afl.base.settings import Settings
from afl.kernel.model import Json
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import AgentId, AgentMessage, MessageType
from afl.messaging.requesting import response_to

T = TypeVar("T")
PATIENCE_SECONDS = 30.0


def at_mail(app: App, work: Callable[[MessageCoordinator], Awaitable[T]]) -> T:
    """What somebody does at the mailboxes that the settings name."""

    async def do() -> T:
        async with mailboxes(app.services, Settings.load()) as mail:
            return await work(mail)

    return asyncio.run(do())


def receive(app: App, agent: str, seconds: float) -> AgentMessage | None:
    """The next message of an agent, if one comes in that time."""
    address = AgentId.parse(agent)

    async def work(mail: MessageCoordinator) -> AgentMessage | None:
        for each in await mail.receive_batch(address, 1, 30, wait_seconds=seconds):
            await mail.ack(address, each.token)
            return each.queue_message.message
        return None

    return at_mail(app, work)


def received(app: App, agent: str) -> AgentMessage:
    """The next message of an agent, once there is one."""
    found = receive(app, agent, PATIENCE_SECONDS)
    assert found is not None, "no message has come"
    return found


def answer(app: App, question: AgentMessage, payload: dict[str, Json], **fields: object) -> None:
    """Responds to a request."""
    post(app, response_to(question, payload, **fields))


def post(app: App, message: AgentMessage) -> None:
    async def work(mail: MessageCoordinator) -> None:
        result = await mail.send_message(message.sender, message.recipient, message)
        assert result.delivered, result

    at_mail(app, work)


def message(
    to: str,
    payload: dict[str, Json],
    kind: MessageType = MessageType.EVENT,
    id: str = "msg-0001",
    sender: str = "tester",
) -> AgentMessage:
    return AgentMessage(
        message_id=id,
        sender=AgentId.parse(sender),
        recipient=AgentId.parse(to),
        message_type=kind,
        payload=payload,
    )


def sent_to(app: App, agent: str) -> int:
    """How many messages were ever sent to an agent."""
    return at_mail(app, lambda mail: mail.counts(AgentId.parse(agent))).sent


def until(is_so: Callable[[], T]) -> T:
    """What somebody asks for again and again, once it is true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := is_so()):
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)
    return found
