"""Messages as the JSON text in which the stores of this package keep them."""

from __future__ import annotations

import json

from afl.messaging.errors import MessageRefused
from afl.messaging.models import AgentMessage
from afl.messaging.tracing import traced


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
