"""Requests that are answered: a message, and the response that correlates with it.

Responses come to a mailbox that only requests receive from: one that is made for the coordinator,
or the message's own `reply_to`. Whatever else comes there is acknowledged and dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import Any
from weakref import WeakKeyDictionary

from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId, AgentMessage, MessageType

#: A response is handed on at once; this is for who dies in between.
_VISIBILITY_SECONDS = 30.0
_BATCH = 10
_LOOK_SECONDS = 5.0
_LONGEST_ID = 200


async def request(
    coordinator: MessageCoordinator, message: AgentMessage, timeout: float
) -> AgentMessage:
    """Sends a message and waits for the response to it, at most so many seconds.

    Raises:
        MessageCoordinatorError: the mailbox is full, or no answer came in time. The request may
            still be worked on; a response that comes later is dropped.
    """
    desk = _desk(coordinator, message)
    message = message.model_copy(update={"reply_to": desk.replies})
    answer = desk.expect(coordinator, message.message_id)
    try:
        async with asyncio.timeout(timeout):
            result = await coordinator.send_message(message.sender, message.recipient, message)
            if not result.delivered:
                raise MessageCoordinatorError(result.error)
            return await answer
    except TimeoutError as error:
        raise MessageCoordinatorError(
            f"There was no answer from {message.recipient} to {message.message_id} within"
            f" {timeout:g} s; no answer does not mean that nothing was done. Look whether anybody"
            " receives there, or wait longer."
        ) from error
    finally:
        await desk.forget(message.message_id)


def response_to(
    question: AgentMessage,
    payload: dict[str, Any],
    **fields: Any,  # noqa: ANN401 - of AgentMessage
) -> AgentMessage:
    """The response to a request. Whoever receives the request again makes the same response, and
    sends it once."""
    return AgentMessage(
        message_id=_response_id(question.message_id),
        sender=question.recipient,
        recipient=question.reply_to or question.sender,
        message_type=MessageType.RESPONSE,
        payload=payload,
        priority=fields.pop("priority", question.priority),
        correlation_id=question.message_id,
        headers=fields.pop("headers", question.headers),
        **fields,
    )


class _Desk:
    """Waits at one mailbox for the responses to all requests under way."""

    def __init__(self, replies: AgentId) -> None:
        self.replies = replies
        self._expected: dict[str, asyncio.Future[AgentMessage]] = {}
        self._receiver: asyncio.Task[None] | None = None

    def expect(
        self, coordinator: MessageCoordinator, message_id: str
    ) -> asyncio.Future[AgentMessage]:
        if message_id in self._expected:
            raise MessageRefused(
                f"The request {message_id} is under way already; give a new request a new id."
            )
        future = self._expected[message_id] = asyncio.get_running_loop().create_future()
        if self._receiver is None or self._receiver.done():
            self._receiver = asyncio.create_task(self._receive(coordinator))
        return future

    async def forget(self, message_id: str) -> None:
        self._expected.pop(message_id).cancel()
        if not self._expected and self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.cancel()
            await asyncio.gather(receiver, return_exceptions=True)

    async def _receive(self, coordinator: MessageCoordinator) -> None:
        try:
            while True:
                for received in await coordinator.receive_batch(
                    self.replies, _BATCH, _VISIBILITY_SECONDS, wait_seconds=_LOOK_SECONDS
                ):
                    # before it is handed on, since nobody may be here afterwards
                    await coordinator.ack(self.replies, received.token)
                    message = received.queue_message.message
                    future = self._expected.get(message.correlation_id or "")
                    if future is not None and not future.done():
                        future.set_result(message)
        except MessageCoordinatorError as error:
            for future in self._expected.values():
                if not future.done():
                    future.set_exception(error)


#: By where responses are wanted; None for the mailbox that is made for the coordinator. A desk must
#: not hold the coordinator, or it would never be forgotten.
_desks: WeakKeyDictionary[MessageCoordinator, dict[AgentId | None, _Desk]] = WeakKeyDictionary()


def _desk(coordinator: MessageCoordinator, message: AgentMessage) -> _Desk:
    desks = _desks.setdefault(coordinator, {})
    if message.reply_to not in desks:
        own = AgentId(type=message.sender.type, instance=f"replies-{secrets.token_hex(8)}")
        desks[message.reply_to] = _Desk(message.reply_to or own)
    return desks[message.reply_to]


def _response_id(message_id: str) -> str:
    """The same for the same request."""
    made = f"{message_id}.response"
    if len(made) <= _LONGEST_ID:
        return made
    return f"{hashlib.sha256(message_id.encode()).hexdigest()}.response"
