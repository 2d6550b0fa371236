"""The lanes that one transaction asks for. Whoever asks for a lane and changes who is in it writes
its document, so that of two who do at once one has to try again. # I2, I7"""

from __future__ import annotations

from dataclasses import dataclass

from pymongo import DeleteOne, InsertOne, UpdateOne

from afl.kernel.model import State, Task, TaskId
from afl.kernel.mongo.rows import lane_id
from afl.kernel.mongo.transaction import MongoTransaction

_Key = tuple[str, str]


@dataclass(slots=True)
class Lane:
    """Who holds a lane, and how many queue for it."""

    holder: TaskId | None
    queued: int
    is_stored: bool

    @property
    def is_wanted(self) -> bool:
        return self.holder is not None or self.queued > 0


class Lanes:
    """Lanes as this transaction has them, and what it changes."""

    def __init__(self, transaction: MongoTransaction) -> None:
        self._transaction = transaction
        self._lanes: dict[_Key, Lane] = {}
        self._changed: dict[_Key, None] = {}

    def get(self, tenant: str, name: str) -> Lane:
        found = self._lanes.get((tenant, name))
        if found is None:
            row = self._transaction.find_one("lane", {"_id": lane_id(tenant, name)})
            found = (
                Lane(None, 0, False) if row is None else Lane(row["holder"], row["queued"], True)
            )
            self._lanes[tenant, name] = found
        return found

    def move(self, old: Task | None, new: Task) -> None:
        """Follows a task into its lane or out of it."""
        if new.lane is None:
            return
        was_active, is_active = old is not None and old.is_active, new.is_active
        was_queued = old is not None and old.state is State.QUEUED
        is_queued = new.state is State.QUEUED
        if (was_active, was_queued) == (is_active, is_queued):
            return
        lane = self.get(new.tenant, new.lane)
        if was_active != is_active:
            assert was_active or lane.holder is None  # I2
            lane.holder = new.id if is_active else None
        lane.queued += is_queued - was_queued
        self._changed[new.tenant, new.lane] = None

    def send(self) -> None:
        """Has everything written that has changed. A lane that nobody wants goes."""
        for tenant, name in self._changed:
            lane, key = self._lanes[tenant, name], {"_id": lane_id(tenant, name)}
            row = {"holder": lane.holder, "queued": lane.queued}
            if not lane.is_wanted:
                if lane.is_stored:
                    self._transaction.write("lane", DeleteOne(key))
            elif lane.is_stored:
                self._transaction.write("lane", UpdateOne(key, {"$set": row}))
            else:
                self._transaction.write("lane", InsertOne({**key, **row}))
            lane.is_stored = lane.is_wanted
        self._changed.clear()
