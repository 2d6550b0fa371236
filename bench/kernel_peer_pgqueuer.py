"""pgqueuer on the cycle of `bench.kernel`: URL install, or URL CLIENTS BATCH WARM_UP SECONDS.

Runs in an environment of its own (see `kernel_peers`). Prints how many jobs ended in the time.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import asyncpg  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.models import Job  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

BACKLOG = 4
PAYLOAD = b'{"n": 42, "path": "in/part-0001"}'


async def install(words: dict[str, str]) -> None:
    connection = await asyncpg.connect(**words)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def measure(
    words: dict[str, str], clients: int, batch: int, warm_up: int, seconds: int
) -> int:
    ended: list[float] = []
    made = 0

    async def produce(end: float) -> None:
        nonlocal made
        connection = await asyncpg.connect(**words)
        queries = Queries(AsyncpgDriver(connection))
        while time.monotonic() < end:
            if made - len(ended) > BACKLOG * clients * batch:
                await asyncio.sleep(0.001)
                continue
            made += batch
            await queries.enqueue(["noop"] * batch, [PAYLOAD] * batch, [0] * batch)
        await connection.close()

    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(**words)))

    @queuer.entrypoint("noop")
    async def noop(job: Job) -> None:
        ended.append(time.monotonic())

    start = time.monotonic() + warm_up
    worker = asyncio.create_task(queuer.run(batch_size=max(batch, 10)))
    await asyncio.gather(*[produce(start + seconds) for _ in range(clients)])
    queuer.shutdown.set()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    return sum(start <= at < start + seconds for at in ended)


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, *arguments = sys.argv[1:]
    words = dict(word.split("=", 1) for word in url.split())
    words["database"] = words.pop("dbname")
    if arguments == ["install"]:
        asyncio.run(install(words))
    else:
        print(asyncio.run(measure(words, *map(int, arguments))))


if __name__ == "__main__":
    main()
