"""Answers of scripts as values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from afl.messaging.letters import read
from afl.messaging.models import (
    AgentMessage,
    DeadLetter,
    MailboxCounts,
    MessagePriority,
    QueueMessage,
    ReceivedMessage,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: token, id, deadline, attempts, last error, message
_RECEIVED_FIELDS = 6
#: id, attempts, last error, death, message
_DEAD_FIELDS = 5

#: What Redis answers with, whether the client decodes or not.
Text = str | bytes


def text_of(value: Text) -> str:
    return value.decode() if isinstance(value, bytes) else value


def microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


def iso(stamp: Text) -> str:
    """A time in microseconds, for people."""
    return (_EPOCH + timedelta(microseconds=int(stamp))).isoformat()


def unpack(value: Text) -> AgentMessage:
    """The message of an entry of `messages`."""
    return read(_split(value)[1])


def unpack_received(answer: Sequence[Any]) -> list[ReceivedMessage]:
    """What `receive.lua` tells after its head."""
    found = []
    for place in range(0, len(answer), _RECEIVED_FIELDS):
        token, letter, deadline, attempts, error, value = answer[place : place + _RECEIVED_FIELDS]
        found.append(
            ReceivedMessage(
                token=text_of(token),
                queue_message=_queue_message(letter, attempts, error, value),
                visibility_deadline=iso(deadline),
            )
        )
    return found


def unpack_dead(answer: Sequence[Any]) -> list[DeadLetter]:
    """What `dead_letters.lua` tells."""
    found = []
    for place in range(0, len(answer), _DEAD_FIELDS):
        letter, attempts, error, death, value = answer[place : place + _DEAD_FIELDS]
        at, _, reason = text_of(death).partition(" ")
        queued = _queue_message(letter, attempts, error, value)
        found.append(DeadLetter(queue_message=queued, reason=reason, at=iso(at)))
    return found


def unpack_counts(answer: Sequence[int]) -> MailboxCounts:
    """What `counts.lua` tells."""
    sent, ready, delayed, reserved, acked, dead, purged = answer
    return MailboxCounts(
        sent=sent,
        ready=ready,
        delayed=delayed,
        reserved=reserved,
        acked=acked,
        dead=dead,
        purged=purged,
    )


def _queue_message(
    letter: Text, attempts: Text | int | None, error: Text | None, value: Text
) -> QueueMessage:
    enqueued_at, body = _split(value)
    return QueueMessage(
        message=read(body),
        priority=MessagePriority(int(text_of(letter).split(":", 2)[1])),
        enqueued_at=iso(enqueued_at),
        delivery_attempts=int(attempts or 0),
        last_error=None if error is None else text_of(error),
    )


def _split(value: Text) -> tuple[str, str]:
    """When a message was sent, and the message."""
    sent_at, _, message = text_of(value).partition(" ")
    return sent_at, message
