"""procrastinate on the cycle of `bench.kernel`: URL install, or URL CLIENTS BATCH WARM_UP SECONDS.

Runs in an environment of its own (see `kernel_peers`). Prints how many jobs ended in the time.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import procrastinate  # type: ignore[import-not-found]

BACKLOG = 4


async def install(app: procrastinate.App) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def measure(
    app: procrastinate.App, clients: int, batch: int, warm_up: int, seconds: int
) -> int:
    ended: list[float] = []
    made = 0

    @app.task(name="noop", queue="bench")
    async def noop(n: int, path: str) -> None:
        ended.append(time.monotonic())

    async def produce(end: float) -> None:
        nonlocal made
        job = {"n": 42, "path": "in/part-0001"}
        while time.monotonic() < end:
            if made - len(ended) > BACKLOG * clients * batch:
                await asyncio.sleep(0.001)
                continue
            made += batch
            if batch == 1:
                await noop.defer_async(**job)
            else:
                await noop.batch_defer_async(*[job] * batch)

    async with app.open_async():
        start = time.monotonic() + warm_up
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=["bench"],
                concurrency=clients * min(batch, 10),
                install_signal_handlers=False,
                fetch_job_polling_interval=0.05,
            )
        )
        await asyncio.gather(*[produce(start + seconds) for _ in range(clients)])
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    return sum(start <= at < start + seconds for at in ended)


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, *arguments = sys.argv[1:]
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=2, max_size=16)
    app = procrastinate.App(connector=connector)
    if arguments == ["install"]:
        asyncio.run(install(app))
    else:
        print(asyncio.run(measure(app, *map(int, arguments))))


if __name__ == "__main__":
    main()
