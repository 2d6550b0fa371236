"""pgqueuer on the cycle of `bench.kernel`: URL install, or URL CLIENTS BATCH.

Runs in an environment of its own (see `kernel_peers`). Its fast settings: uvloop, asyncpg,
asynchronous handlers, a worker that takes jobs and writes their ends in batches as large as those
of the cycle, and no statistics on the way. Each client has a connection, and so has the
worker. Done is what its log has as `successful`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from datetime import timedelta

import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.models import Job  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from bench.peer_side import serve

#: How many jobs of each client may wait: enough to keep the worker busy, few enough to stay quick.
BACKLOG = 4
PAYLOAD = b'{"n": 42, "path": "in/part-0001"}'
#: The default, and the better one where jobs come one by one; else the batch of the cycle is.
WORKER_BATCH = 10
_CLEAR = "truncate pgqueuer, pgqueuer_log, pgqueuer_statistics"
_DONE = "select count(*) from pgqueuer_log where status = 'successful'"


class Pgqueuer:
    """Producers, and the count of what the worker in this process has run."""

    def __init__(self, url: str, clients: int, batch: int) -> None:
        self._url = url
        self._clients = clients
        self._batch = batch
        self._connections: list[asyncpg.Connection] = []
        self._made = 0
        self.run = 0

    async def open(self) -> None:
        self._connections = [await asyncpg.connect(self._url) for _ in range(self._clients)]

    async def produce(self, seconds: float) -> int:
        before = self._made
        end = time.monotonic() + seconds
        await asyncio.gather(*[self._client(each, end) for each in self._connections])
        return self._made - before

    async def done(self, made: int) -> int:
        return int(await self._connections[0].fetchval(_DONE))

    async def clear(self) -> None:
        await self._connections[0].execute(_CLEAR)

    async def _client(self, connection: asyncpg.Connection, end: float) -> None:
        queries = Queries(AsyncpgDriver(connection))
        while time.monotonic() < end:
            if self._made - self.run > BACKLOG * self._clients * self._batch:
                await asyncio.sleep(0.001)
                continue
            self._made += self._batch
            if self._batch == 1:
                await queries.enqueue("noop", PAYLOAD)
            else:
                many = self._batch
                await queries.enqueue(["noop"] * many, [PAYLOAD] * many, [0] * many)


async def install(url: str) -> None:
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def measure(url: str, clients: int, batch: int) -> None:
    side = Pgqueuer(url, clients, batch)
    await side.open()
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @queuer.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(job: Job) -> None:
        side.run += 1

    worker = asyncio.create_task(
        queuer.run(batch_size=max(batch, WORKER_BATCH), log_aggregation_interval=timedelta(0))
    )
    await serve(side)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, *arguments = sys.argv[1:]
    if arguments == ["install"]:
        uvloop.run(install(url))
    else:
        uvloop.run(measure(url, *map(int, arguments)))


if __name__ == "__main__":
    main()
