"""Lists of runs: by index, however many runs there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_time
from afl.runtime.entities import Run
from afl.runtime.mongo.run_conditions import (
    begins_with,
    both,
    can_be_kept,
    has_text,
    wanted_runs,
)
from afl.runtime.mongo.runs import NEWEST_FIRST, MongoRuns
from afl.runtime.run_ids import ID_SKEW, first_id, last_id, tells_time
from afl.runtime.run_search import STATE_WORDS, RunFilter
from afl.runtime.step import WorkflowId

#: A text is looked for in the keys and errors of so many of the newest runs that fit otherwise.
_AMONG = 5_000
#: Where a text is looked for: what says that a run has such a field, and the field.
_LOOKED_AT = (("has_key", "small_key"), ("has_error", "message"))


class MongoRunSearch(MongoRuns):
    """See `persistence.RunSearch` for what each method promises."""

    def search_runs(
        self, filter: RunFilter, *, before: WorkflowId | None = None, limit: int = 100
    ) -> list[Run]:
        if not can_be_kept(filter.text or "") or limit < 1:
            return []
        bounds = self._stretch(filter)
        if before is not None:
            bounds["$lt"] = before
        wanted = wanted_runs(filter, bounds, self._rarest_first(filter.labels))
        if not filter.text:
            return self._runs(wanted, NEWEST_FIRST, limit)
        text = filter.text.lower()
        found = self._named(wanted, text, limit) | self._looked_for(wanted, text, limit)
        newest = sorted(found, reverse=True)[:limit]
        return self._runs({"_id": {"$in": newest}}, NEWEST_FIRST)

    def count_runs(self, filter: RunFilter, cap: int = 10_000) -> Mapping[str, int]:
        if not can_be_kept(filter.text or ""):
            return {}
        bounds, labels = self._stretch(filter), self._rarest_first(filter.labels)
        named: Document = {}
        if filter.text:
            text = filter.text.lower()
            # once for all states: this is what costs
            found = self._looked_for(wanted_runs(filter, bounds, labels), text, 2 * _AMONG)
            places = [begins_with(text), {"workflow": {"$in": self._workflows(text)}}]
            named = {"$or": [*places, {"_id": {"$in": sorted(found)}}]}
        wanted = both(wanted_runs(filter, bounds, labels), named)
        counts: dict[str, int] = {}
        if wanted:
            # all states at once, which does if few fit
            counts = self._count(wanted, cap)
            if filter.state is not None or sum(counts.values()) < cap:
                return counts
        for word in STATE_WORDS:
            of_state = wanted_runs(replace(filter, state=word), bounds, labels)
            counts |= self._count(both(of_state, named), cap)
        return counts

    def _count(self, wanted: Document, cap: int) -> dict[str, int]:
        """How many runs there are by state word, all of them together up to a limit."""
        pipeline: list[Document] = [
            {"$match": wanted},
            {"$limit": cap},
            {"$group": {"_id": "$word", "runs": {"$sum": 1}}},
        ]
        return {each["_id"]: each["runs"] for each in self._database.aggregate("run", pipeline)}

    def _named(self, wanted: Document, text: str, limit: int) -> set[WorkflowId]:
        """The newest runs with a text in their id or workflow."""
        found = set(self._ids(both(wanted, begins_with(text)), NEWEST_FIRST, limit))
        if workflows := self._workflows(text):
            in_name = both(wanted, {"workflow": {"$in": workflows}})
            found |= set(self._ids(in_name, NEWEST_FIRST, limit))
        return found

    def _workflows(self, text: str) -> list[str]:
        """The workflows with a text in their name. There are few, each found by one look."""
        return [
            name for name in self._database.distinct("run", "workflow", {}) if text in name.lower()
        ]

    def _looked_for(self, wanted: Document, text: str, limit: int) -> set[WorkflowId]:
        """Runs with a text as their key, and those of the newest that have it in their key or
        error."""
        by_key = both(wanted, {"small_key": text, "has_key": True})
        found = set(self._ids(by_key, NEWEST_FIRST, limit))
        for mark, field in _LOOKED_AT:
            pipeline: list[Document] = [
                {"$match": both(wanted, {mark: True})},
                {"$sort": {"_id": -1}},
                {"$limit": _AMONG},
                {"$match": {field: has_text(text)}},
                {"$limit": limit},
                {"$project": {"_id": 1}},
            ]
            found |= {each["_id"] for each in self._database.aggregate("run", pipeline)}
        return found

    def _stretch(self, filter: RunFilter) -> Document:
        """The ids that runs of a stretch of time can have, if ids tell the time here: the first and
        the last would show that they do not."""
        since, until = filter.since, filter.until
        if since is until is None:
            return {}
        ends = [
            end
            for order in (1, -1)
            for end in self._database.find(
                "run", {}, fields={"created_at": 1}, sort=[("_id", order)], limit=1
            )
        ]
        if not all(tells_time(end["_id"], to_time(end["created_at"])) for end in ends):
            return {}
        bounds: Document = {}
        if since is not None:
            bounds["$gte"] = first_id(since - ID_SKEW)
        if until is not None:
            bounds["$lte"] = last_id(until + ID_SKEW)
        return bounds
