"""Runs: the part of `persistence.Runs` that is not about steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import UpdateOne

from afl.kernel.model import Json
from afl.kernel.mongo.transaction import Document, opened
from afl.kernel.mongo.values import to_micros
from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.mongo.core import MongoCore, changed_to, without_nulls
from afl.runtime.mongo.documents import error_fields, label, run_document, run_of
from afl.runtime.persistence import StaleRuns
from afl.runtime.run_values import map_in, run_in
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

NEWEST_FIRST = [("_id", -1)]
#: So many runs with a label are few.
_FEW = 1000
_RUNNING = {
    "state": RunState.RUNNING,
    "word": {"$cond": ["$pause_requested", RunState.PAUSED, RunState.RUNNING]},
}


class MongoRuns(MongoCore):
    """See `persistence.Runs` for what each method promises."""

    def write_run(self, transaction: Transaction, run: Run) -> None:
        made = without_nulls(run_document(self._values, run_in(run), opened(transaction).now))
        opened(transaction).write(
            "run", UpdateOne({"_id": made.pop("_id")}, {"$setOnInsert": made}, upsert=True)
        )
        if run.fork is not None:
            # whoever forgets that run meanwhile must see its fork, or have been first
            touched = UpdateOne({"_id": run.fork.run}, {"$inc": {"touched": 1}})
            opened(transaction).write("run", touched)

    def start_run(self, transaction: Transaction, run: WorkflowId) -> None:
        created = {"_id": run, "state": RunState.CREATED}
        opened(transaction).write("run", UpdateOne(created, [{"$set": _RUNNING}]))

    def finish_run(
        self,
        transaction: Transaction,
        run: WorkflowId,
        state: str,
        outputs: Mapping[str, Json] | None,
        error: Mapping[str, Json] | None,
    ) -> None:
        # what it waits for is left to whoever looks for waits: few runs have any
        kept = None if error is None else map_in(error, "the error")
        ended = {
            "state": state,
            "word": state,
            "is_open": None,
            "outputs": None if outputs is None else self._pack(map_in(outputs, "the outputs")),
            **error_fields(self._values, kept),
            "finished_at": to_micros(opened(transaction).now),
        }
        still_open = {"_id": run, "is_open": True}
        opened(transaction).write("run", UpdateOne(still_open, changed_to(ended)))

    def set_pause(self, run: WorkflowId, pause: bool) -> bool:
        word = RunState.PAUSED if pause else "$state"
        asked = [{"$set": {"pause_requested": pause, "word": word}}]
        paused = UpdateOne({"_id": run, "is_open": True}, asked)
        return self._write(lambda transaction: transaction.update("run", paused) > 0)

    def get_run(self, run: WorkflowId) -> Run | None:
        found = self._database.find_one("run", {"_id": run})
        return None if found is None else run_of(self._values, found)

    def get_runs(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, Run]:
        return {run.id: run for run in self._runs({"_id": {"$in": list(runs)}})}

    def find_runs(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: WorkflowId | None = None,
        before: WorkflowId | None = None,
        limit: int = 100,
    ) -> list[Run]:
        wanted: dict[str, Any] = {}
        if state is not None:
            wanted |= in_state(state)
        if workflow is not None:
            wanted["workflow"] = workflow
        if labels:
            wanted["labels"] = {"$all": self._rarest_first(labels)}
        if parent is not None:
            wanted["parent"] = parent
        if before is not None:
            wanted["_id"] = {"$lt": before}
        return self._runs(wanted, NEWEST_FIRST, limit)

    def ended_runs(self, since: datetime, limit: int = 100) -> list[Run]:
        ended = {"finished_at": {"$gte": to_micros(since)}}
        return self._runs(ended, [("finished_at", 1), ("_id", 1)], limit)

    def stale_runs(self, after: WorkflowId | None, limit: int) -> StaleRuns:
        still_open: Document = {"is_open": True, "_id": {"$gt": after or ""}}
        seen = self._ids(still_open, [("_id", 1)], limit)
        closed = self._database.find(
            "task", {"_id": {"$in": seen}, "state": "closed"}, fields={"_id": 1}
        )
        # asked in this order: the task is closed in the transaction that ends the run
        open_yet = {"_id": {"$in": [each["_id"] for each in closed]}, "is_open": True}
        stale = self._ids(open_yet, [("_id", 1)]) if closed else []
        return StaleRuns(stale, seen[-1] if len(seen) >= limit else None)

    def _rarest_first(self, labels: Mapping[str, str]) -> list[str]:
        """Labels as documents have them. The server looks the first one up and compares the rest,
        so it should be one that few runs have."""
        texts = [label(*each) for each in labels.items()]
        if len(texts) < 2:
            return texts
        return sorted(texts, key=self._count_few)

    def _count_few(self, label: str) -> int:
        """How many runs have a label, up to a limit."""
        pipeline: list[Document] = [
            {"$match": {"labels": label}},
            {"$limit": _FEW},
            {"$count": "runs"},
        ]
        return sum(each["runs"] for each in self._database.aggregate("run", pipeline))

    def _runs(
        self,
        where: Mapping[str, Any],
        sort: Sequence[tuple[str, int]] | None = None,
        limit: int = 0,
    ) -> list[Run]:
        found = self._database.find("run", where, sort=sort, limit=limit)
        return [run_of(self._values, each) for each in found]

    def _ids(
        self, where: Mapping[str, Any], sort: Sequence[tuple[str, int]], limit: int = 0
    ) -> list[WorkflowId]:
        found = self._database.find("run", where, fields={"_id": 1}, sort=sort, limit=limit)
        return [WorkflowId(each["_id"]) for each in found]


def in_state(state: str) -> dict[str, Any]:
    """Runs with this state, by the index of state words: a paused run has another one beside."""
    if RunState.is_terminal(state):
        return {"word": state}
    return {"word": {"$in": [state, RunState.PAUSED]}, "state": state}
