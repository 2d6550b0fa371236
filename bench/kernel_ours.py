"""The same cycle through the kernel's port: enqueue, claim, and a commit that closes.

It is driven as a worker is meant to drive it: only the first tasks are claimed on their own; from
then on `commit_and_claim` closes what was done and takes the next in one transaction. So a cycle is
two round trips here, and three in `kernel_bare`, which has no such transaction.

Clients are threads, spread over processes that stay for the whole run, each with one store. A
client is a worker of its own, and takes whatever task is next, whoever made it.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Self

import psycopg

from afl.kernel.model import ClaimRequest, Close, Commit, Outcome, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore

_SPEC = TaskSpec("event", "billing.Pay", input={"n": 42, "path": "in/part-0001"})
_DONE = Close(Outcome.SUCCESS, {"ok": True})
_TABLES = "afl.task, afl.outbox, afl.worker"
#: Time to connect and to compile functions, which each connection does for itself.
_CONNECTING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """What one process has to do: so many clients, from one time to another."""

    url: str
    clients: int
    batch: int
    start: float
    end: float


class Ours:
    """The store in the database at this URL, and processes that use it."""

    def __init__(self, url: str) -> None:
        migrate(url)
        self._url = url
        # more processes than cores: while one waits for the database, another has work for it
        self._processes = 2 * (os.cpu_count() or 1)
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, mp_context=spawn)

    def __enter__(self) -> Self:
        # so that the first measurement does not wait for Python to start
        list(self._pool.map(time.sleep, [0.2] * self._processes))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement on an empty queue, after a warm-up of at least some connections."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"truncate {_TABLES}".encode())
        start = time.time() + warm_up + _CONNECTING_SECONDS
        loads = [
            Load(self._url, share, batch, start, start + seconds)
            for share in _shares(clients, self._processes)
        ]
        return sum(self._pool.map(drive, loads)) / seconds


def drive(load: Load) -> int:
    """Runs the clients of one process; answers how many tasks they closed in the time."""
    with (
        PostgresStore.connect(load.url, max_size=load.clients) as store,
        ThreadPoolExecutor(load.clients) as threads,
    ):
        return sum(threads.map(lambda _: _client(store, load), range(load.clients)))


def _client(store: PostgresStore, load: Load) -> int:
    worker = WorkerId(f"w-{secrets.token_hex(6)}")
    store.register(WorkerSpec(worker, "bench", handlers=("Pay",), lease=timedelta(hours=1)))
    request = ClaimRequest(worker, ("Pay",), n=load.batch)
    specs = [_SPEC] * load.batch
    closed = 0
    store.enqueue(specs)
    claims = store.claim(request)
    while True:
        store.enqueue(specs)
        done, claims = store.commit_and_claim(
            [Commit(claim.fence, _DONE) for claim in claims], request
        )
        now = time.time()
        if now >= load.end:
            return closed
        if now >= load.start:
            closed += len(done)


def _shares(clients: int, processes: int) -> list[int]:
    """The clients, spread evenly over at most so many processes."""
    used = min(clients, processes)
    return [clients // used + (number < clients % used) for number in range(used)]
