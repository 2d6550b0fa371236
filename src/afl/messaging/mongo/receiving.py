"""Messages out of mailboxes: each is taken by changing its document, if nobody was faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from pymongo import UpdateMany, UpdateOne

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.transaction import Document
from afl.messaging.models import CoordinatorConfig
from afl.messaging.mongo.boxes import BOXES, CONFIG, Box, box_of, config_of
from afl.messaging.mongo.sending import MAIL
from afl.messaging.rules import LEVELS, deal

ORDER = [("priority", -1), ("ready_at", 1), ("_id", 1)]
_LEVELS = [level.value for level in LEVELS]
#: How far the search spreads when others are always faster.
_MAX_SPREAD = 64


class Receiver:
    """Takes letters out of the mailboxes of a database."""

    def __init__(self, database: Database, random: Random) -> None:
        self._database = database
        self._random = random

    def look(self, agent: str, now: int) -> tuple[CoordinatorConfig, Box, bool]:
        """The settings, the mailbox without its counts, and whether something in it is late: held
        too long, or waiting too long to be received at all."""
        found = self._database.aggregate(
            BOXES,
            [
                {"$match": {"_id": {"$in": [CONFIG, agent]}}},
                _first_of(held_of(agent, {"$lte": now}), "deadline"),
                _first_of(expired_of(agent, now), "expires_at"),
            ],
        )
        known = [each for each in found if "_id" in each]
        return config_of(known), box_of(agent, known), len(known) < len(found)

    def late(self, agent: str, now: int, limit: int) -> list[str]:
        """The ids of letters that are held too long, or were not received in time: some of each,
        the oldest first."""
        found = []
        for where, sort in (
            (held_of(agent, {"$lte": now}), [("deadline", 1), ("place", 1)]),
            (expired_of(agent, now), [("expires_at", 1), ("_id", 1)]),
        ):
            found += self._database.find(MAIL, where, fields={"_id": 1}, sort=sort, limit=limit)
        return [each["_id"] for each in found]

    def due(self, agent: str, now: int) -> int | None:
        """When time may make something ready; None if there is nothing."""
        waiting = {**waiting_of(agent), "priority": {"$in": _LEVELS}, "ready_at": {"$gt": now}}
        pipeline: Sequence[Mapping[str, Any]] = [
            {"$match": held_of(agent, {"$gt": 0})},
            {"$sort": {"deadline": 1}},
            {"$limit": 1},
            {"$project": {"_id": 0, "at": "$deadline"}},
            _first_of(waiting, "ready_at"),
        ]
        found = self._database.aggregate(MAIL, pipeline)
        return min((each["at"] for each in found), default=None)

    def take(
        self,
        box: Box,
        config: CoordinatorConfig,
        receipt: str,
        limit: int,
        now: int,
        deadline: int,
    ) -> list[Document]:
        """The next letters, now in the hands of this receipt."""
        hold = {"held": True, "receipt": receipt, "deadline": deadline}
        if limit == 1 and config.fairness == "strict":
            change = {"$set": {**hold, "place": 0}, "$inc": {"attempts": 1}}
            where = _ready(box, now, is_for_good=True)
            found = self._database.change_one(MAIL, where, change, sort=ORDER)
            return [] if found is None else [found]
        spread = 1
        while letters := self._next(box, config, limit, now, spread):
            # whoever else has received it since has changed the attempts, even if it is back
            taking = [
                UpdateOne(
                    {"_id": each["_id"], "held": False, "attempts": each["attempts"]},
                    {"$set": {**hold, "place": place}, "$inc": {"attempts": 1}},
                )
                for place, each in enumerate(letters)
            ]
            taken = self._database.write(MAIL, taking, ordered=False).matched_count
            if taken == len(letters):
                return [{**each, **hold, "attempts": each["attempts"] + 1} for each in letters]
            if taken:
                return self.held_by(box.agent, receipt, now)
            spread = min(2 * spread, _MAX_SPREAD)
        return []

    def held_by(self, agent: str, receipt: str, now: int) -> list[Document]:
        """What this receipt has in its hands."""
        where = {**held_of(agent, {"$gt": now}), "receipt": receipt}
        return self._database.find(MAIL, where, sort=[("place", 1)])

    def give_back(self, agent: str, receipt: str, now: int) -> None:
        """Undoes a receipt."""
        where = {**held_of(agent, {"$gt": now}), "receipt": receipt}
        self._database.write(MAIL, [UpdateMany(where, {**FREED, "$inc": {"attempts": -1}})])

    def peek(
        self,
        box: Box,
        config: CoordinatorConfig,
        limit: int,
        now: int,
        *,
        is_for_good: bool = False,
    ) -> list[Document]:
        """What would be taken. For good: without what nobody has received in time, which somebody
        may be about to bury."""
        if limit <= 0:
            return []
        if config.fairness == "strict":
            return self._waiting(box, limit, now, is_for_good=is_for_good)
        levels = {
            level: self._waiting(box, limit, now, level, is_for_good=is_for_good)
            for level in _LEVELS
        }
        return list(deal(levels, config.fairness, box.turn))[:limit]

    def _next(
        self, box: Box, config: CoordinatorConfig, limit: int, now: int, spread: int
    ) -> list[Document]:
        """The next letters, or, where others were faster, some of the next: those that others want
        too may be had by nobody."""
        if limit <= 0:
            return []
        if config.fairness == "weighted":
            return self._in_turn(box, limit, now)
        found = self._waiting(box, limit * spread, now, is_for_good=True)
        if len(found) <= limit:
            return found
        chosen = sorted(self._random.sample(range(len(found)), limit))
        return [found[number] for number in chosen]

    def _in_turn(self, box: Box, limit: int, now: int) -> list[Document]:
        """The next letters of a weighted mailbox. Each turn is somebody's."""
        weighted = CoordinatorConfig(fairness="weighted")
        while True:
            found = self.peek(box, weighted, limit, now, is_for_good=True)
            if not found:
                return []
            taken = UpdateOne({"_id": box.agent, "turn": box.turn}, {"$inc": {"turn": len(found)}})
            if self._database.write(BOXES, [taken]).matched_count:
                return found
            first = {"recipient": box.agent, "subscriptions": [], "turn": 0}
            begun = UpdateOne({"_id": box.agent}, {"$setOnInsert": first}, upsert=True)
            self._database.write(BOXES, [begun])
            box = box_of(box.agent, self._database.find(BOXES, {"_id": box.agent}))

    def _waiting(
        self, box: Box, limit: int, now: int, level: int | None = None, *, is_for_good: bool
    ) -> list[Document]:
        where = _ready(box, now, level, is_for_good=is_for_good)
        return self._database.find(MAIL, where, sort=ORDER, limit=limit)


#: Out of somebody's hands.
FREED: Mapping[str, Mapping[str, Any]] = {
    "$set": {"held": False},
    "$unset": {"receipt": "", "place": "", "deadline": ""},
}


def waiting_of(agent: str) -> dict[str, Any]:
    return {"recipient": agent, "held": False}


def held_of(agent: str, deadline: Mapping[str, int]) -> dict[str, Any]:
    return {"recipient": agent, "held": True, "deadline": deadline}


def expired_of(agent: str, now: int) -> dict[str, Any]:
    """What nobody came for in time. Whatever was received once waits as long as it takes."""
    return {"recipient": agent, "attempts": 0, "expires_at": {"$gt": 0, "$lte": now}}


def _ready(box: Box, now: int, level: int | None = None, *, is_for_good: bool) -> dict[str, Any]:
    """What somebody could have now, of one priority or of all."""
    where = {
        **waiting_of(box.agent),
        "priority": {"$in": _LEVELS} if level is None else level,
        "ready_at": {"$lte": now},
    }
    if is_for_good:
        where["$nor"] = [{"attempts": 0, "expires_at": {"$gt": 0, "$lte": now}}]
    if box.wanted is not None:
        where["type"] = {"$in": sorted(box.wanted)}
    return where


def _first_of(where: Mapping[str, Any], time: str) -> dict[str, Any]:
    """The earliest of letters, after what was found before."""
    pipeline: Sequence[Mapping[str, Any]] = [
        {"$match": where},
        {"$sort": {time: 1}},
        {"$limit": 1},
        {"$project": {"_id": 0, "at": f"${time}"}},
    ]
    return {"$unionWith": {"coll": MAIL, "pipeline": pipeline}}
