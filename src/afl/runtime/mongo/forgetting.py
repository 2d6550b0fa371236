"""How runs go: first the run, with a note of what is left of it, then that, and then the note.

So a transaction stays small whatever a run has, and whoever comes after a crash goes on.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from pymongo import DeleteMany, InsertOne

from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.runtime.mongo.core import MongoCore, of_run

#: What belongs to a run by its id, the run itself left out.
_PARTS = ("step", "step_tally", "step_wait", "step_log", "signal_wait", "superseded_result")
#: So many runs go in one transaction.
_BATCH = 100
_FIRST_FIRST = [("finished_at", 1), ("_id", 1)]


class MongoForgetting(MongoCore):
    """See `forget_runs`."""

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs that ended that long ago, with their steps. Answers how many.

        A run stays as long as the run that called it, or a fork of it that has not ended, does.
        Events that were taken and memos that are no longer valid go at the same age.
        """
        before = to_micros(self._database.now() - older_than)
        gone = 0
        while gone < limit and (count := self._forget_some(before, limit - gone)):
            gone += count
        self._forget_rest()
        self._database.write("signal", [DeleteMany({"settled_at": {"$lte": before}})])
        self._database.write("memo", [DeleteMany({"expires_at": {"$lte": before}})])
        return gone

    def _forget_some(self, before: int, limit: int) -> int:
        """One way through the runs that are old enough, the first first."""
        gone = 0
        after: tuple[int, str] = (0, "")
        while gone < limit:
            page = self._old_runs(before, after)
            if not page:
                break
            after = page[-1]["finished_at"], page[-1]["_id"]
            runs = [each["_id"] for each in page]
            most = limit - gone
            gone += self._write(
                lambda transaction, runs=runs, most=most: _forget(transaction, runs, most)  # type: ignore[misc]
            )
        return gone

    def _old_runs(self, before: int, after: tuple[int, str]) -> list[Document]:
        at, run = after
        later = [{"finished_at": {"$gt": at}}, {"finished_at": at, "_id": {"$gt": run}}]
        old = {"finished_at": {"$gte": at, "$lte": before}, "$or": later}
        fields = {"finished_at": 1}
        return self._database.find("run", old, fields=fields, sort=_FIRST_FIRST, limit=_BATCH)

    def _forget_rest(self) -> None:
        """Removes what is left of runs that are gone."""
        for note in self._database.find("forgotten_run", {}):
            for part in _PARTS:
                self._database.write(part, [DeleteMany({"_id": of_run(note["_id"])})])
            self._database.write("forgotten_run", [DeleteMany({"_id": note["_id"]})])


def _forget(transaction: MongoTransaction, runs: list[str], most: int) -> int:
    """Removes those of the runs that nobody needs, so many at most. Answers how many."""
    found = transaction.find("run", {"_id": {"$in": runs}}, fields={"parent": 1})
    parents = [each["parent"] for each in found if "parent" in each]
    callers = transaction.find("run", {"_id": {"$in": parents}}, fields={"_id": 1})
    live_forks = {"fork_run": {"$in": runs}, "is_open": True}
    forks = transaction.find("run", live_forks, fields={"fork_run": 1})
    there, needed = {each["_id"] for each in callers}, {each["fork_run"] for each in forks}
    by_id = {each["_id"]: each.get("parent") for each in found}
    free = (run for run in runs if run in by_id and by_id[run] not in there and run not in needed)
    gone = list(islice(free, most))
    if gone:
        transaction.write("run", DeleteMany({"_id": {"$in": gone}}))
        transaction.write("forgotten_run", *(InsertOne({"_id": run}) for run in gone))
    return len(gone)
