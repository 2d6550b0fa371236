"""Rows to values, and values to parameters."""

from __future__ import annotations

from collections.abc import Sequence

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import Parameters, array, word_array
from afl.kernel.postgres.rows import utc
from afl.messaging.letters import queued, storable_id, storable_seconds, token_of, written
from afl.messaging.models import AgentMessage, DeadLetter, ReceivedMessage


def pack_messages(messages: Sequence[AgentMessage], *, whole: bool) -> Parameters:
    """The parameters of `send`; with `whole` a full mailbox is an error."""
    return {
        "recipients": array(str(each.recipient) for each in messages),
        "ids": array(storable_id(each.message_id) for each in messages),
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
    return repr(storable_seconds(value))


def flag(value: bool) -> str:
    return "true" if value else "false"


def received_of(receipt: str, row: Row) -> ReceivedMessage:
    _, id_, body, priority, sent_at, attempts, last_error, deadline, *_ = row
    return ReceivedMessage(
        token=token_of(receipt, id_),
        queue_message=queued(body, priority, utc(sent_at).isoformat(), attempts, last_error),
        visibility_deadline=utc(deadline).isoformat(),
    )


def dead_of(row: Row) -> DeadLetter:
    body, priority, sent_at, attempts, last_error, reason, died_at = row
    return DeadLetter(
        queue_message=queued(body, priority, utc(sent_at).isoformat(), attempts, last_error),
        reason=reason,
        at=utc(died_at).isoformat(),
    )
