"""Results that came too late."""

from __future__ import annotations

from collections.abc import Sequence

from pymongo import InsertOne, UpdateOne

from afl.kernel.model import CallStatus
from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.mongo.values import to_micros, to_time
from afl.kernel.requests import json_copy
from afl.runtime.mongo.core import MongoCore, of_run
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded


class MongoSuperseded(MongoCore):
    """See `persistence.LateResults` for what each method promises."""

    def note_superseded(self, results: Sequence[Superseded]) -> None:
        if not results:
            return
        bodies = [self._pack(json_copy(each.body, "the result")) for each in results]
        first = self._database.take_numbers("superseded_result", len(results))

        def work(transaction: MongoTransaction) -> None:
            known = {run for run in {each.run for each in results} if _touch(transaction, run)}
            for number, each, body in zip(
                range(first, first + len(results)), results, bodies, strict=True
            ):
                if each.run in known:
                    noted = {
                        "_id": f"{each.run}:{number:016}",
                        "run": each.run,
                        "path": each.path,
                        "worker": each.worker,
                        "status": each.status.value,
                        "body": body,
                        "noted_at": to_micros(transaction.now),
                    }
                    transaction.write("superseded_result", InsertOne(noted))

        self._write(work)

    def get_superseded(self, run: WorkflowId, limit: int = 100) -> list[Superseded]:
        found = self._database.find(
            "superseded_result", {"_id": of_run(run)}, sort=[("_id", 1)], limit=limit
        )
        return [
            Superseded(
                run,
                each["path"],
                each["worker"],
                CallStatus(each["status"]),
                self._values.unpack(each["body"]),
                to_time(each["noted_at"]),
            )
            for each in found
        ]


def _touch(transaction: MongoTransaction, run: WorkflowId) -> bool:
    """Whether a run is known; whoever forgets it meanwhile has to begin anew."""
    return transaction.update("run", UpdateOne({"_id": run}, {"$inc": {"touched": 1}})) > 0
