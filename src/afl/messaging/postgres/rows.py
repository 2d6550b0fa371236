"""Rows to values, and values to parameters."""

from __future__ import annotations

from collections.abc import Sequence

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import Parameters, array, word_array
from afl.kernel.postgres.rows import utc
from afl.messaging.errors import MessageRefused
from afl.messaging.letters import read, written
from afl.messaging.models import (
    AgentMessage,
    DeadLetter,
    MessagePriority,
    QueueMessage,
    ReceivedMessage,
)

#: Three hundred years: more than PostgreSQL's calendar needs to end.
_MAX_SECONDS = 1e10


def pack_messages(messages: Sequence[AgentMessage], *, whole: bool) -> Parameters:
    """The parameters of `send`; with `whole` a full mailbox is an error."""
    return {
        "recipients": array(str(each.recipient) for each in messages),
        "ids": array(_storable(each.message_id) for each in messages),
        "types": word_array(each.message_type.value for each in messages),
        "priorities": word_array(each.priority.value for each in messages),
        "bodies": array(written(each) for each in messages),
        "delays": word_array(seconds(each.delay_seconds) for each in messages),
        "ttls": word_array(
            None if each.ttl_seconds is None else seconds(each.ttl_seconds) for each in messages
        ),
        "whole": flag(whole),
    }


def seconds(value: float) -> str:
    """A duration that the database can add to a time."""
    return repr(min(float(value), _MAX_SECONDS))


def flag(value: bool) -> str:
    return "true" if value else "false"


def storable_error(error: str | None) -> str | None:
    """The text of an error, without what PostgreSQL cannot store."""
    if error is None:
        return None
    return error.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def token_of(receipt: str, id_: int) -> str:
    return f"res_{receipt}_{id_}"


def parse_token(token: str) -> tuple[str, int] | None:
    """The receipt and the id in a token; None if it is not one of ours."""
    _, receipt, id_ = token.split("_") if token.count("_") == 2 else ("", "", "")
    return (receipt, int(id_)) if receipt.isalnum() and id_.isdecimal() else None


def received_of(receipt: str, row: Row) -> ReceivedMessage:
    _, id_, body, priority, sent_at, attempts, last_error, deadline, *_ = row
    return ReceivedMessage(
        token=token_of(receipt, id_),
        queue_message=_queued(body, priority, utc(sent_at).isoformat(), attempts, last_error),
        visibility_deadline=utc(deadline).isoformat(),
    )


def dead_of(row: Row) -> DeadLetter:
    body, priority, sent_at, attempts, last_error, reason, died_at = row
    return DeadLetter(
        queue_message=_queued(body, priority, utc(sent_at).isoformat(), attempts, last_error),
        reason=reason,
        at=utc(died_at).isoformat(),
    )


def _queued(
    body: str, priority: int, sent_at: str, attempts: int, last_error: str | None
) -> QueueMessage:
    return QueueMessage(
        message=read(body),
        priority=MessagePriority(priority),
        enqueued_at=sent_at,
        delivery_attempts=attempts,
        last_error=last_error,
    )


def _storable(message_id: str) -> str:
    try:
        message_id.encode()
    except UnicodeEncodeError:
        pass
    else:
        if "\0" not in message_id:
            return message_id
    raise MessageRefused(
        f"the message id {message_id!r} cannot be stored; use letters, digits and signs"
    )
