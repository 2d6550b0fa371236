"""The settings, and what is counted of each mailbox: the documents of `mailbox`.

The settings are one document, `config`. A mailbox has one with its subscriptions and whose turn it
is, and several with counts, whose sum counts: transactions that change the same one begin again, so
each takes any. What comes and what goes are counted apart. Whoever fills a mailbox to the brim has
to know all that comes, and therefore changes all the counts of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from pymongo import UpdateOne

from afl.kernel.mongo.transaction import Document
from afl.messaging.models import CoordinatorConfig
from afl.messaging.rules import wanted_types

BOXES = "mailbox"
CONFIG = "config"
_SLOTS = 16
#: With so much room nobody waits for anybody: what others have under way is far less.
_FAR = 500
_COUNTS = ("sent", "acked", "purged", "living")


class Reader(Protocol):
    """A database, or a transaction in it."""

    def find(self, collection: str, where: Mapping[str, Any]) -> list[Document]: ...


@dataclass(frozen=True, slots=True)
class Box:
    """What is known of a mailbox."""

    agent: str
    #: the types that its agent wants; None is everything
    wanted: frozenset[str] | None = None
    turn: int = 0
    sent: int = 0
    acked: int = 0
    purged: int = 0
    living: int = 0

    def room(self, config: CoordinatorConfig) -> int:
        """How many more messages it takes."""
        return config.queue_size - self.living


def config_of(documents: Iterable[Document]) -> CoordinatorConfig:
    """The settings among these documents; those of a new database if there are none."""
    found = next((each for each in documents if each["_id"] == CONFIG), {})
    return CoordinatorConfig(**{k: v for k, v in found.items() if k not in ("_id", "recipient")})


def box_of(agent: str, documents: Iterable[Document]) -> Box:
    """What these documents say of a mailbox."""
    own = [each for each in documents if each["recipient"] == agent]
    head: Document = next((each for each in own if each["_id"] == agent), {})
    sums = {name: sum(each.get(name, 0) for each in own) for name in _COUNTS}
    wanted = wanted_types([each["types"] for each in head.get("subscriptions", ())])
    return Box(agent, wanted, head.get("turn", 0), **sums)


def read_boxes(
    reader: Reader, agents: Iterable[str]
) -> tuple[CoordinatorConfig, Mapping[str, Box]]:
    """The settings, and all that is known of these mailboxes."""
    names = list(dict.fromkeys(agents))
    found = reader.find(BOXES, {"recipient": {"$in": ["", *names]}})
    by_recipient: dict[str, list[Document]] = {}
    for each in found:
        by_recipient.setdefault(each["recipient"], []).append(each)
    boxes = {name: box_of(name, by_recipient.get(name, ())) for name in names}
    return config_of(by_recipient.get("", ())), boxes


def read_heads(reader: Reader, agent: str) -> tuple[CoordinatorConfig, Box]:
    """The settings, the subscriptions and the turn of a mailbox, without its counts."""
    found = reader.find(BOXES, {"_id": {"$in": [CONFIG, agent]}})
    return config_of(found), box_of(agent, found)


def arrived(
    random: Random, box: Box, config: CoordinatorConfig, *, sent: int = 0, living: int
) -> Sequence[UpdateOne]:
    """Counts what came into a mailbox. If it may become full, only one at a time can do this."""
    taken = random.randrange(_SLOTS)
    if box.room(config) - living > _FAR:
        return [_count(box.agent, f"+{taken}", sent=sent, living=living)]
    return [
        _count(box.agent, f"+{slot}", sent=sent, living=living)
        if slot == taken
        else _count(box.agent, f"+{slot}")
        for slot in range(_SLOTS)
    ]


def left(
    random: Random, agent: str, *, acked: int = 0, purged: int = 0, living: int = 0
) -> UpdateOne:
    """Counts what went out of a mailbox; `living` is how many of them were no dead letters."""
    slot = f"-{random.randrange(_SLOTS)}"
    return _count(agent, slot, acked=acked, purged=purged, living=-living)


def _count(agent: str, slot: str, **changes: int) -> UpdateOne:
    # the version changes in any case: nothing else tells others that somebody has looked
    counts = {**dict.fromkeys(_COUNTS, 0), **changes, "version": 1}
    return UpdateOne(
        {"_id": f"{agent} {slot}"},
        {"$setOnInsert": {"recipient": agent}, "$inc": counts},
        upsert=True,
    )
