"""What the kernel takes in: refuses with `BadRequest` what contradicts itself, and copies values.

The copy keeps a caller's lists and maps apart from the store's, and takes nothing that a store
could not give back as it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

from afl.kernel.errors import BadRequest
from afl.kernel.model import (
    Announcement,
    CallStatus,
    Card,
    Close,
    Commit,
    Json,
    Retry,
    TaskSpec,
    WorkerSpec,
)
from afl.kernel.rules import card_hash

MAX_JSON_DEPTH = 200
#: Entries of the outbox that only the kernel writes.
KERNEL_TOPICS = frozenset(("closed", "late"))
#: Longer is a mistake of units, and would lead beyond the calendar.
MAX_DURATION = timedelta(days=36_500)
MAX_BACKOFF = 1000.0
_ZERO = timedelta(0)
#: The exact types: a subclass, such as an enum, would not come back as what it was.
_KINDS = frozenset((bool, int, float, str, list, dict))


def json_copy(value: object, where: str = "the value", depth: int = 0) -> Json:
    """A copy of a value that shares no list and no map with it."""
    if value is None:
        return None
    if type(value) not in _KINDS:
        raise BadRequest(
            f"{where} has a {type(value).__name__}; use null, booleans, numbers, text, lists, maps"
        )
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRequest(f"{where} has the number {value}, which JSON cannot express")
        return value
    if depth >= MAX_JSON_DEPTH:
        raise BadRequest(f"{where} nests more than {MAX_JSON_DEPTH} levels deep")
    if isinstance(value, dict):
        return {_key(key, where): json_copy(item, where, depth + 1) for key, item in value.items()}
    assert isinstance(value, list)
    return [json_copy(item, where, depth + 1) for item in value]


def check_announcement(entry: Announcement) -> Json:
    """The body of an entry, as it can be stored."""
    if entry.topic in KERNEL_TOPICS or not entry.topic:
        raise BadRequest(f"the topic `{entry.topic}` is not for callers; choose another")
    return json_copy(entry.body, "the body")


def check_spec(spec: TaskSpec) -> None:
    """Refuses a task that could never be done as it is described."""
    _named("kind", spec.kind)
    _named("name", spec.name)
    _named("tenant", spec.tenant)
    _named("list", spec.list)
    for what, value in (
        ("run", spec.run),
        ("lane", spec.lane),
        ("idem", spec.idem),
        ("trace", spec.trace),
    ):
        if value is not None:
            _named(what, value)
    if not _ZERO <= spec.delay <= MAX_DURATION:
        raise BadRequest(f"a delay of {spec.delay} is not possible; use zero or more")
    if spec.timeout is not None:
        _positive("timeout", spec.timeout)
    if spec.max_crashes < 0:
        raise BadRequest("max_crashes is below 0; 0 gives a task up at its first crash")
    _check_retry(spec.retry)


def check_commit(commit: Commit) -> None:
    if commit.number < 0:
        raise BadRequest("commits under one fence are numbered from 0")
    if commit.calls and isinstance(commit.then, Close):
        raise BadRequest(
            "a commit that closes the task opens calls, whose answers nobody would take; suspend, "
            "or enqueue the work without a call"
        )
    if len({call.key for call in commit.calls}) != len(commit.calls):
        raise BadRequest("two calls of one commit have the same key; a key names one call")
    for call in commit.calls:
        _named("call key", call.key)
        _positive("call timeout", call.timeout)
        check_spec(call.task)
        if call.task.idem is not None:
            raise BadRequest(
                f"the callee of call '{call.key}' has an idem; the key makes a call happen once: "
                "leave the idem out"
            )
    for card in commit.cards:
        _named("card kind", card.kind)


def check_reply(status: CallStatus) -> None:
    if status is CallStatus.OPEN:
        raise BadRequest("an answer cannot be 'open'; use ok, error, timeout or canceled")


def check_worker(spec: WorkerSpec) -> None:
    _named("worker id", spec.id)
    _named("worker name", spec.name)
    _positive("lease", spec.lease)
    if spec.slots < 0:
        raise BadRequest("a worker cannot have fewer than 0 slots")


def check_cards(cards: Sequence[Card]) -> None:
    for card in cards:
        _named("card kind", card.kind)
        content = json_copy(card.content, "a card")
        if card.hash != card_hash(card.kind, content):
            raise BadRequest(
                f"the card {card.hash} does not have this content; name cards by rules.card_hash"
            )


def check_lock(key: str, token: str, duration: timedelta) -> None:
    _named("lock key", key)
    _named("lock token", token)
    _positive("lock duration", duration)


def _check_retry(retry: Retry) -> None:
    if retry.max_failures < 0:
        raise BadRequest("max_failures is below 0; 0 makes the first failure final")
    if not 1 <= retry.backoff <= MAX_BACKOFF:
        raise BadRequest(f"a backoff of {retry.backoff} is not between 1 and {MAX_BACKOFF:g}")
    for what, wait in (("delay", retry.delay), ("max_delay", retry.max_delay)):
        if not _ZERO <= wait <= MAX_DURATION:
            raise BadRequest(f"the retry's {what} of {wait} is not possible; use zero or more")


def _named(what: str, value: str) -> None:
    if not value:
        raise BadRequest(f"the {what} is empty; give it a name or leave it out")
    _text(value, f"the {what}")


def _positive(what: str, value: timedelta) -> None:
    if not _ZERO < value <= MAX_DURATION:
        raise BadRequest(
            f"a {what} of {value} is not possible; use more than zero and at most "
            f"{MAX_DURATION.days} days"
        )


def _key(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{where} has a map with the key {value!r}; keys are text")
    return _text(value, where)


def _text(value: str, where: str) -> str:
    if "\0" in value:
        raise BadRequest(f"{where} has text with a zero character, which cannot be stored")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise BadRequest(f"{where} has half of a surrogate pair, which is no text")
    return value
