"""The decisions about a message, as values: when it comes again, when it is dead, who is next."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError

from afl.messaging.errors import MessageRefused
from afl.messaging.models import (
    AgentId,
    AgentMessage,
    CoordinatorConfig,
    FailureType,
    MessagePriority,
)

T = TypeVar("T")

#: Why a message is a dead letter.
PERMANENT, RETRIES, EXPIRED = "permanent", "retries", "expired"
#: What is noted as the error of a message that somebody held too long.
HELD_TOO_LONG = "visibility timeout"
FULL = "the mailbox is full: wait until it has room, or configure a larger queue_size"

#: The levels, the highest first.
LEVELS = tuple(sorted(MessagePriority, reverse=True))


def _spread(weights: Mapping[MessagePriority, int]) -> tuple[MessagePriority, ...]:
    """A round in which each level has as many turns as its weight, far from each other."""
    total = sum(weights.values())
    credit = dict.fromkeys(weights, 0)
    turns = []
    for _ in range(total):
        for level, weight in weights.items():
            credit[level] += weight
        richest = max(credit, key=lambda level: (credit[level], level))
        credit[richest] -= total
        turns.append(richest)
    return tuple(turns)


#: Whose turn it is in a weighted mailbox: 9, 5 and 1 of fifteen.
ROUND = _spread({level: level.value for level in LEVELS})


def backoff_seconds(config: CoordinatorConfig, attempts: int, chance: float) -> float:
    """How long a message waits after its so manieth attempt failed, the first being 1.

    `chance` is a random number from 0 to 1; it takes up to half away, so that what failed together
    does not come again together.
    """
    steps = (attempts - 1) * math.log(config.backoff_factor)
    # as logarithms, since the power may be larger than any number
    if math.log(config.backoff_base) + steps >= math.log(config.backoff_max):
        whole = config.backoff_max
    else:
        whole = config.backoff_base * math.exp(steps)
    return whole * (1 - chance / 2)


def verdict(attempts: int, retry_attempts: int, failure: FailureType | None) -> str | None:
    """Why a message is given up after so many attempts; None if it is not. No failure is: held too
    long."""
    if failure is FailureType.PERMANENT:
        return PERMANENT
    return RETRIES if attempts > retry_attempts else None


def deal(queues: Mapping[int, Collection[T]], fairness: str, turn: int) -> Iterator[T]:
    """The items of the levels in the order in which they are received, from this turn on.

    A level whose turn it is and that has nothing gives the turn to the highest that has.
    """
    left = {level: deque(queues[level]) for level in LEVELS if queues.get(level)}
    while left:
        first = ROUND[turn % len(ROUND)] if fairness == "weighted" else max(left)
        level = first if first in left else max(left)
        turn += 1
        yield left[level].popleft()
        if not left[level]:
            del left[level]


def check_addresses(sender: AgentId, recipient: AgentId, message: AgentMessage) -> None:
    """Refuses a message whose own addresses are others."""
    check_sender(sender, message)
    if str(recipient) != str(message.recipient):
        raise MessageRefused(
            f"the recipient {recipient} is not that of the message, {message.recipient}; "
            "send it to the one it is addressed to, or address a copy"
        )


def check_sender(sender: AgentId, message: AgentMessage) -> None:
    """Refuses a message of somebody else."""
    if str(sender) != str(message.sender):
        raise MessageRefused(
            f"the sender {sender} is not that of the message, {message.sender}; "
            "send a message whose sender you are"
        )


def changed(config: CoordinatorConfig, settings: Mapping[str, object]) -> CoordinatorConfig:
    """The settings with those that are not None changed, and the next version."""
    given = {name: value for name, value in settings.items() if value is not None}
    values = {**config.model_dump(), **given, "version": config.version + 1}
    try:
        new = CoordinatorConfig.model_validate(values)
    except ValidationError as error:
        wrong = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise MessageRefused(f"these settings are impossible: {wrong}") from error
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise MessageRefused(f"{name} must be a finite number, not {value}")
    return new


def wanted_types(subscriptions: Sequence[Collection[str]]) -> frozenset[str] | None:
    """What an agent with these subscriptions receives; None is everything."""
    return frozenset().union(*subscriptions) if subscriptions else None
