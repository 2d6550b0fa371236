"""procrastinate on the cycle of `bench.kernel`: URL install, or URL CLIENTS BATCH.

Runs in an environment of its own (see `kernel_peers`). Its fast settings: the C build of psycopg,
jobs deferred in batches where the cycle has batches, asynchronous handlers, as many at once as
there are clients, a pool with a connection for each client and each handler. Its worker fetches and
finishes jobs one by one whatever the settings; there is no batch to be asked for. Done is what
stands as `succeeded` in its table.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import procrastinate  # type: ignore[import-not-found]

from bench.peer_side import serve

#: A client makes more only while fewer jobs than this wait, for each client: each fetch of the
#: worker takes longer the more there are, and this is enough to keep it busy.
BACKLOG = 4
JOB = {"n": 42, "path": "in/part-0001"}
_CLEAR = "truncate procrastinate_jobs restart identity cascade"
_DONE = "select count(*) as count from procrastinate_jobs where status = 'succeeded'"


class Procrastinate:
    """Producers, and the count of what the worker in this process has run."""

    def __init__(self, app: procrastinate.App, clients: int, batch: int) -> None:
        self._app = app
        self._clients = clients
        self._batch = batch
        self._made = 0
        self._run = 0

        @app.task(name="noop", queue="bench")  # type: ignore[untyped-decorator]
        async def noop(n: int, path: str) -> None:
            self._run += 1

        self._noop = noop

    async def produce(self, seconds: float) -> int:
        before = self._made
        end = time.monotonic() + seconds
        await asyncio.gather(*[self._client(end) for _ in range(self._clients)])
        return self._made - before

    async def done(self, made: int) -> int:
        row = await self._app.connector.execute_query_one_async(_DONE)
        return int(row["count"])

    async def clear(self) -> None:
        await self._app.connector.execute_query_async(_CLEAR)

    async def _client(self, end: float) -> None:
        while time.monotonic() < end:
            if self._made - self._run > BACKLOG * self._clients:
                await asyncio.sleep(0.001)
                continue
            self._made += self._batch
            if self._batch == 1:
                await self._noop.defer_async(**JOB)
            else:
                await self._noop.batch_defer_async(*[JOB] * self._batch)


async def install(app: procrastinate.App) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def measure(app: procrastinate.App, clients: int, batch: int) -> None:
    side = Procrastinate(app, clients, batch)
    async with app.open_async():
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=["bench"],
                concurrency=clients,
                install_signal_handlers=False,
                # it is notified of new jobs; this is only for notices that it missed
                fetch_job_polling_interval=0.05,
            )
        )
        await serve(side)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, *arguments = sys.argv[1:]
    size = 2 if arguments == ["install"] else 2 * int(arguments[0]) + 2
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=2, max_size=size)
    app = procrastinate.App(connector=connector)
    if arguments == ["install"]:
        asyncio.run(install(app))
    else:
        asyncio.run(measure(app, *map(int, arguments)))


if __name__ == "__main__":
    main()
