"""Documents to values, and values to documents."""

from __future__ import annotations

from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_time
from afl.messaging.errors import MessageRefused
from afl.messaging.letters import queued, storable_id, storable_seconds, token_of, written
from afl.messaging.models import AgentMessage, DeadLetter, QueueMessage, ReceivedMessage

#: A document has at most 16 MiB, and the text of an error needs room too.
_MAX_BODY = 15 * 1024 * 1024
#: What a message has whether it lives or not.
_LASTING = ("recipient", "message_id", "type", "priority", "body", "sent_at")


def micros(seconds: float) -> int:
    """A duration as it is added to a time. Raises `MessageRefused`."""
    if not seconds >= 0:
        raise MessageRefused(f"a duration is 0 seconds or more, not {seconds}")
    return round(storable_seconds(seconds) * 1e6)


def letter_of(message: AgentMessage) -> Document:
    """A message as it is sent, without what only the time of sending tells. Raises
    `MessageRefused`."""
    body = written(message)
    if len(body) > _MAX_BODY:  # it is ASCII
        raise MessageRefused(
            f"the message {message.message_id} has {len(body):,} bytes, and MongoDB keeps at most "
            f"{_MAX_BODY:,}; put the content elsewhere and send where it is"
        )
    return {
        "recipient": str(message.recipient),
        "message_id": storable_id(message.message_id),
        "type": message.message_type.value,
        "priority": message.priority.value,
        "body": body,
        "delay": micros(message.delay_seconds),
        "ttl": None if message.ttl_seconds is None else micros(message.ttl_seconds),
    }


def sent_letter(letter: Document, id_: str, now: int) -> Document:
    """A letter as it lies in the mailbox from now on."""
    ttl = letter["ttl"]
    return {
        **_waiting(letter, id_, now + letter["delay"]),
        "sent_at": now,
        **({} if ttl is None else {"expires_at": now + ttl}),
    }


def redriven_letter(dead: Document, id_: str, now: int) -> Document:
    """A dead letter as it lies in the mailbox again."""
    return {**_waiting(dead, id_, now), "sent_at": dead["sent_at"]}


def dead_letter(letter: Document, id_: str, reason: str, now: int) -> Document:
    """A letter as it is given up."""
    lasting = {name: letter[name] for name in _LASTING}
    rest = {"attempts": letter["attempts"], "last_error": letter["last_error"]}
    return {"_id": id_, **lasting, **rest, "reason": reason, "died_at": now}


def received_of(letter: Document) -> ReceivedMessage:
    """A letter that somebody holds."""
    return ReceivedMessage(
        token=token_of(letter["receipt"], letter["_id"]),
        queue_message=_queued(letter),
        visibility_deadline=to_time(letter["deadline"]).isoformat(),
    )


def dead_of(dead: Document) -> DeadLetter:
    return DeadLetter(
        queue_message=_queued(dead),
        reason=dead["reason"],
        at=to_time(dead["died_at"]).isoformat(),
    )


def _waiting(letter: Document, id_: str, ready_at: int) -> Document:
    return {
        "_id": id_,
        "recipient": letter["recipient"],
        "message_id": letter["message_id"],
        "type": letter["type"],
        "priority": letter["priority"],
        "body": letter["body"],
        "ready_at": ready_at,
        "attempts": 0,
        "last_error": None,
        "held": False,
    }


def _queued(letter: Document) -> QueueMessage:
    sent_at = to_time(letter["sent_at"]).isoformat()
    return queued(
        letter["body"], letter["priority"], sent_at, letter["attempts"], letter["last_error"]
    )
