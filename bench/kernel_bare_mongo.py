"""The least that MongoDB can do for a task through pymongo: insert, claim, complete.

Three writes a cycle, each by majority and to the journal, one collection with one index. Each is
one document at a time or one operation for a batch, without a transaction: what remains is the
database and its driver. Clients are threads in processes, as in `kernel_ours`.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from pymongo import MongoClient, ReturnDocument, WriteConcern
from pymongo.collection import Collection

from bench.kernel_clients import Clients, Load

_INPUT = {"n": 42, "path": "in/part-0001"}
_IN_ORDER = [("priority", -1), ("run_at", 1), ("_id", 1)]
_Tasks = Collection[dict[str, Any]]


class BareMongo:
    """A queue of the simplest kind in the database at this URL."""

    def __init__(self, url: str, clients: Clients) -> None:
        self._url = url
        self._clients = clients
        with _client(url, 1) as client:
            _tasks(client).create_index([("state", 1), *_IN_ORDER])
            _tasks(client).create_index([("claim", 1)])

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement on an empty queue."""
        with _client(self._url, 1) as client:
            _tasks(client).delete_many({})
        return self._clients.tasks_per_second(drive, self._url, clients, batch, warm_up, seconds)


def drive(load: Load) -> int:
    """Runs the clients of one process; answers how many tasks they closed in the time."""
    with _client(load.url, load.clients) as client:
        tasks = _tasks(client)
        if load.batch == 1:
            return load.share(lambda: load.count(lambda: _single(tasks)))
        return load.share(lambda: load.count(lambda: _batch(tasks, load.batch)))


def _single(tasks: _Tasks) -> int:
    now = datetime.now(UTC)
    tasks.insert_one(_task(now))
    taken = tasks.find_one_and_update(
        {"state": "ready"},
        {"$set": {"state": "running", "worker": "w"}, "$inc": {"attempt": 1}},
        sort=_IN_ORDER,
        return_document=ReturnDocument.AFTER,
    )
    if taken is None:
        return 0
    done = tasks.update_one(
        {"_id": taken["_id"], "state": "running"},
        {"$set": {"state": "closed", "result": {"ok": True}}},
    )
    return done.modified_count


def _batch(tasks: _Tasks, batch: int) -> int:
    now = datetime.now(UTC)
    tasks.insert_many([_task(now) for _ in range(batch)])
    found = tasks.find({"state": "ready"}, {"_id": 1}, sort=_IN_ORDER, limit=batch)
    ids, claim = [row["_id"] for row in found], secrets.token_hex(8)
    taken = {"$set": {"state": "running", "claim": claim}, "$inc": {"attempt": 1}}
    tasks.update_many({"_id": {"$in": ids}, "state": "ready"}, taken)
    mine = [row["_id"] for row in tasks.find({"claim": claim, "state": "running"})]
    ended = {"$set": {"state": "closed", "result": {"ok": True}}}
    return tasks.update_many({"_id": {"$in": mine}, "state": "running"}, ended).modified_count


def _task(now: datetime) -> dict[str, Any]:
    return {"state": "ready", "priority": 0, "run_at": now, "attempt": 0, "input": _INPUT}


def _client(url: str, size: int) -> MongoClient[dict[str, Any]]:
    return MongoClient(url, maxPoolSize=size)


def _tasks(client: MongoClient[dict[str, Any]]) -> _Tasks:
    database = client.get_default_database()
    return database.get_collection("bare", write_concern=WriteConcern(w="majority", j=True))
