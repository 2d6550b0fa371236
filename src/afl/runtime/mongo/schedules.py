"""Schedules, and what became of their fire times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import DeleteMany, DeleteOne, InsertOne, UpdateMany, UpdateOne

from afl.kernel.errors import Fenced
from afl.kernel.mongo.refusals import LostRace
from afl.kernel.mongo.transaction import Document, MongoTransaction, opened
from afl.kernel.mongo.values import to_micros, to_time
from afl.kernel.port import Transaction
from afl.runtime.mongo.core import MongoCore, changed_to, without_nulls
from afl.runtime.mongo.schedule_documents import (
    firing_document,
    firing_of,
    schedule_document,
    schedule_of,
)
from afl.runtime.schedule import Due, Firing, Schedule

#: How many of its runs may still be going on, for all that is known of a schedule.
_MOST_OPEN = 100
_BY_NAME = [("_id", 1)]
_LAST_FIRST = [("number", -1)]


class MongoSchedules(MongoCore):
    """See `persistence.Schedules` for what each method promises."""

    def write_schedule(self, transaction: Transaction, schedule: Schedule) -> None:
        mongo = opened(transaction)
        by_name = {"_id": schedule.name}
        found = mongo.find_one("schedule", by_name, fields={"version": 1})
        if (0 if found is None else found["version"]) != schedule.version:
            raise Fenced(f"the schedule {schedule.name} was changed meanwhile")
        kept = schedule_document(self._values, schedule)
        if found is not None:
            changed = {**kept, "version": schedule.version + 1}
            mongo.write("schedule", UpdateOne(by_name, changed_to(changed)))
            return
        now = to_micros(mongo.now)
        # one that is made anew under an old name has no version that the old one had
        made = {**by_name, **without_nulls(kept), "version": now, "created_at": now}
        mongo.write("schedule", InsertOne(made))

    def write_firings(self, transaction: Transaction, firings: Sequence[Firing]) -> None:
        if not firings:
            return
        mongo = opened(transaction)
        now = to_micros(mongo.now)
        first = self._database.take_numbers("schedule_firing", len(firings))
        for number, firing in enumerate(firings, first):
            made = without_nulls(firing_document(firing, number, now))
            # that of a run has one place only
            place = f"{number:016}" if firing.run is None else f"run {made['fire_at']}"
            by_id = {"_id": f"{firing.schedule}\0{place}"}
            mongo.write("schedule_firing", UpdateOne(by_id, {"$setOnInsert": made}, upsert=True))

    def get_schedule(self, name: str) -> Schedule | None:
        found = self._database.find_one("schedule", {"_id": name})
        return None if found is None else schedule_of(self._values, found)

    def find_schedules(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Schedule]:
        wanted: dict[str, Any] = {} if owner is None else {"owner": owner}
        if after is not None:
            wanted["_id"] = {"$gt": after}
        found = self._database.find("schedule", wanted, sort=_BY_NAME, limit=limit)
        return [schedule_of(self._values, each) for each in found]

    def delete_schedule(self, name: str) -> bool:
        firings = DeleteMany({"schedule": name})

        def work(transaction: MongoTransaction) -> bool:
            transaction.write("schedule_firing", firings)
            return transaction.update("schedule", DeleteOne({"_id": name})) > 0

        # most of them before: there may be too many for a transaction
        self._database.write("schedule_firing", [firings])
        return self._write(work)

    def take_due(self, hold: timedelta, limit: int) -> Due:
        now = self._database.now()
        by_look = [("look_at", 1), ("_id", 1)]
        due, later = ({"look_at": {each: to_micros(now)}} for each in ("$lte", "$gt"))
        found = self._database.find("schedule", due, sort=by_look, limit=limit)
        rest = self._database.find("schedule", later, fields={"look_at": 1}, sort=by_look, limit=1)
        until = to_micros(now + hold)
        try:
            taken = self._take(found, until) if found else []
        except LostRace:
            # others have some of them in hand: those are left out
            taken = [each for some in found for each in self._take_if_free(some, until)]
        schedules = [schedule_of(self._values, {**each, "look_at": until}) for each in taken]
        return Due(now, schedules, to_time(rest[0]["look_at"]) if rest else None)

    def _take(self, found: Sequence[Document], until: int) -> list[Document]:
        """Takes those of the schedules that are as they were found, all at once."""

        def work(transaction: MongoTransaction) -> list[Document]:
            # with the version: what is written there meanwhile must not be taken for this
            same = [
                {"_id": e["_id"], "version": e["version"], "look_at": e["look_at"]} for e in found
            ]
            free = transaction.find("schedule", {"$or": same}, fields={"_id": 1})
            names = [each["_id"] for each in free]
            held = {"$set": {"look_at": until}}
            transaction.write("schedule", UpdateMany({"_id": {"$in": names}}, held))
            return [each for each in found if each["_id"] in names]

        return self._database.transact(work, tries=1)

    def _take_if_free(self, found: Document, until: int) -> list[Document]:
        try:
            return self._take([found], until)
        except LostRace:
            return []

    def get_firings(
        self, schedule: str, *, started: bool = False, limit: int = 100
    ) -> list[Firing]:
        wanted: Document = {"schedule": schedule}
        if started:
            wanted["has_run"] = True
        found = self._database.find("schedule_firing", wanted, sort=_LAST_FIRST, limit=limit)
        return [firing_of(each) for each in found]

    def started_between(self, schedule: str, start: datetime, end: datetime) -> set[datetime]:
        stretch = {"$gte": to_micros(start), "$lte": to_micros(end)}
        wanted = {"schedule": schedule, "has_run": True, "fire_at": stretch}
        found = self._database.find("schedule_firing", wanted, fields={"fire_at": 1})
        return {to_time(each["fire_at"]) for each in found}

    def open_runs(self, schedule: str) -> list[str]:
        firings = self.get_firings(schedule, started=True, limit=_MOST_OPEN)
        runs = [firing.run for firing in firings if firing.run is not None]
        alive = {"_id": {"$in": runs}, "alive": True}
        open_yet = {each["_id"] for each in self._database.find("task", alive, fields={"_id": 1})}
        return [run for run in runs if run in open_yet]

    def forget_firings(self, older_than: timedelta) -> None:
        """Removes what became of fire times that long ago."""
        before = to_micros(self._database.now() - older_than)
        self._database.write("schedule_firing", [DeleteMany({"noted_at": {"$lte": before}})])
