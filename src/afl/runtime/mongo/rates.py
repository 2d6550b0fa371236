"""Slots in time, for `RateLimit`: those that may still matter are in one document for each key.

The document is changed by itself, by whoever knows its version: a process that dies leaves nothing
open that the others, who all want the same document, would have to wait for.
"""

from __future__ import annotations

import random
import time
from datetime import timedelta

from pymongo import DeleteMany, InsertOne
from pymongo.errors import BulkWriteError

from afl.kernel.mongo.refusals import LostRace, is_duplicate
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_micros
from afl.runtime.mongo.core import MongoCore
from afl.runtime.persistence import RateWish

_MICROSECOND = timedelta(microseconds=1)
#: One of those who try at the same time always gets through.
_TRIES = 500
_MAX_WAIT_SECONDS = 0.02


class MongoRates(MongoCore):
    """See `persistence.Rates` for what each method promises."""

    def reserve_slots(self, wish: RateWish, count: int = 1) -> list[timedelta]:
        if not count:
            return []
        # no name has this letter
        name = f"{wish.facet}\0{wish.key}"
        for _ in range(_TRIES):
            now = to_micros(self._database.now())
            found = self._database.find_one("rate", {"_id": name})
            slots: list[int] = [] if found is None else found["slots"]
            first = len(slots)
            rate = _with_slots(found, slots, wish, count, now)
            # one that is made anew has no version that the old one had
            version = now if found is None else found["version"] + 1
            if self._put(name, found, {**rate, "version": version}):
                return [(start - now) * _MICROSECOND for start in slots[first:]]
            time.sleep(random.uniform(0, _MAX_WAIT_SECONDS))
        raise LostRace(f"the slots of {wish.facet} are taken by others all the time")

    def _put(self, name: str, found: Document | None, rate: Document) -> bool:
        """Puts a rate in the place of the one that was found; false if somebody was quicker."""
        if found is not None:
            same = {"_id": name, "version": found["version"]}
            return self._database.change_one("rate", same, [{"$set": rate}]) is not None
        try:
            self._database.write("rate", [InsertOne({"_id": name, **rate})])
        except BulkWriteError as error:
            if not is_duplicate(error):
                raise
            return False
        return True

    def forget_rates(self, older_than: timedelta) -> None:
        """Removes slots that have been without effect for that long."""
        before = to_micros(self._database.now() - older_than)
        self._database.write("rate", [DeleteMany({"ends_at": {"$lte": before}})])


def _with_slots(
    found: Document | None, slots: list[int], wish: RateWish, count: int, now: int
) -> Document:
    """The rate with so many slots more, which are appended to the list."""
    per = wish.per // _MICROSECOND
    most = max(0 if found is None else found["most"], wish.max)
    for number in range(len(slots), len(slots) + count):
        # the list has as many as may matter
        before = slots[number - wish.max] + per if number >= wish.max else now
        slots.append(max(now, before))
    ends_at = slots[-1] + per
    if found is not None:
        ends_at = max(ends_at, found["ends_at"])
    return {"slots": slots[-most:], "most": most, "ends_at": ends_at}
