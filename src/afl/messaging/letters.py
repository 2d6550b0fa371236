"""Messages as the JSON text in which the stores of this package keep them."""

from __future__ import annotations

import json

from afl.messaging.errors import MessageRefused
from afl.messaging.models import AgentMessage, MessagePriority, QueueMessage
from afl.messaging.tracing import traced

#: Three hundred years: no calendar of a database ends before.
_MAX_SECONDS = 1e10


def written(message: AgentMessage) -> str:
    """The message as JSON, in ASCII, with its payload to the bit. It is written to be sent, so it
    takes the trace context of its sender along.

    Raises:
        MessageRefused: the payload has something that JSON has not.
    """
    message = traced(message)
    fields = message.model_dump(mode="json", exclude={"payload"}, exclude_defaults=True)
    try:
        return json.dumps({**fields, "payload": message.payload}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageRefused(
            f"the payload of {message.message_id} cannot be written as JSON: {error}; use text, "
            "finite numbers, lists and objects"
        ) from error


def read(text: str) -> AgentMessage:
    """The message that was written."""
    return AgentMessage.model_validate(json.loads(text))


def queued(
    text: str, priority: int, enqueued_at: str, attempts: int, last_error: str | None
) -> QueueMessage:
    """A message that was written, as it lies in a mailbox."""
    return QueueMessage(
        message=read(text),
        priority=MessagePriority(priority),
        enqueued_at=enqueued_at,
        delivery_attempts=attempts,
        last_error=last_error,
    )


# What databases keep


def storable_id(message_id: str) -> str:
    """The id of a message, unless it has what some database cannot store."""
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


def storable_error(error: str | None) -> str | None:
    """The text of an error, without what some database cannot store."""
    if error is None:
        return None
    return error.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_seconds(value: float) -> float:
    """A duration that a database can add to a time."""
    return min(float(value), _MAX_SECONDS)


def token_of(receipt: str, id_: object) -> str:
    """What acknowledges a message that was received."""
    return f"res_{receipt}_{id_}"


def parse_token(token: str) -> tuple[str, str] | None:
    """The receipt and the id in a token; None if it is not one of ours."""
    _, receipt, id_ = token.split("_") if token.count("_") == 2 else ("", "", "")
    return (receipt, id_) if receipt.isalnum() and id_ else None
