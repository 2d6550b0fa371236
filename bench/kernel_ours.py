"""The same cycle through the kernel's port: enqueue, claim, and a commit that closes.

It is driven as a worker is meant to drive it: only the first tasks are claimed on their own; from
then on `commit_and_claim` closes what was done and takes the next in one call. So a cycle is two
calls here, and three in the bare cycles, which have no such call.

A client is a worker of its own, and takes whatever task is next, whoever made it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import psycopg

from afl.kernel.model import ClaimRequest, Close, Commit, Outcome, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import migrate as migrate_mongo
from afl.kernel.mongo.store import MongoStore
from afl.kernel.port import Store
from afl.kernel.postgres.migrate import migrate as migrate_postgres
from afl.kernel.postgres.store import PostgresStore
from bench.kernel_clients import Clients, Load

_SPEC = TaskSpec("event", "billing.Pay", input={"n": 42, "path": "in/part-0001"})
_DONE = Close(Outcome.SUCCESS, {"ok": True})
_TABLES = "afl.task, afl.outbox, afl.worker"


class Ours:
    """The store in the database at this URL, used by clients in processes."""

    def __init__(self, url: str, clients: Clients) -> None:
        self._url = url
        self._clients = clients
        self._is_mongo = url.startswith("mongodb")
        if self._is_mongo:
            _on_mongo(url, migrate_mongo)
        else:
            migrate_postgres(url)

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement on an empty queue."""
        if self._is_mongo:
            _on_mongo(self._url, _empty)
        else:
            with psycopg.connect(self._url, autocommit=True) as connection:
                connection.execute(f"truncate {_TABLES}".encode())
        return self._clients.tasks_per_second(drive, self._url, clients, batch, warm_up, seconds)


def drive(load: Load) -> int:
    """Runs the clients of one process; answers how many tasks they closed in the time."""
    with _connect(load) as store:
        return load.share(lambda: _client(store, load))


def _connect(load: Load) -> AbstractContextManager[Store]:
    if load.url.startswith("mongodb"):
        return MongoStore.connect(load.url, max_size=load.clients)
    return PostgresStore.connect(load.url, max_size=load.clients)


def _client(store: Store, load: Load) -> int:
    worker = WorkerId(f"w-{secrets.token_hex(6)}")
    store.register(WorkerSpec(worker, "bench", handlers=("Pay",), lease=timedelta(hours=1)))
    request = ClaimRequest(worker, ("Pay",), n=load.batch)
    specs = [_SPEC] * load.batch
    store.enqueue(specs)
    claims = store.claim(request)

    def step() -> int:
        nonlocal claims
        store.enqueue(specs)
        commits = [Commit(claim.fence, _DONE) for claim in claims]
        done, claims = store.commit_and_claim(commits, request)
        return len(done)

    return load.count(step)


def _on_mongo(url: str, work: Callable[[Database], object]) -> None:
    database = Database(url)
    work(database)
    database.close()


def _empty(database: Database) -> None:
    for name in ("task", "outbox", "worker"):
        database.delete(name, {})
