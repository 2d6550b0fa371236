"""Celery on the cycle of `bench.kernel`: URL install, URL CLIENTS BATCH, or URL worker CLIENTS.

Runs in an environment of its own (see `kernel_peers`). The URL is of a Redis, and its fragment a
prefix for every key, so that a queue of our own is left when everything under it is removed. Its
fast settings for short tasks: hiredis, threads (on few cores, so many processes are slower), no
results, many messages prefetched, no gossip, mingling, heartbeats, events or remote control.
Messages are acknowledged late, after the task, since a queue that may lose tasks is no peer. Celery
has no batches: a batch is so many messages, one by one. Redis does not wait for the disk. Done is
what is neither in the queue nor unacknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urldefrag

import redis  # type: ignore[import-not-found]
from celery import Celery  # type: ignore[import-not-found]

from bench.peer_side import serve

JOB = {"n": 42, "path": "in/part-0001"}
QUEUE = "bench"
#: The manual says 64 or 128 for short tasks.
PREFETCH = 128


class CeleryOnRedis:
    """Producers, each a thread; the worker is a process of its own."""

    def __init__(self, url: str, clients: int, batch: int) -> None:
        self._batch = batch
        self._clients = clients
        self._task = make_app(url).tasks["noop"]
        self._redis, self._prefix = connect(url)
        self._threads = ThreadPoolExecutor(clients)

    async def produce(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        return sum(await asyncio.to_thread(self._clients_until, end))

    async def done(self, made: int) -> int:
        pipe = self._redis.pipeline(transaction=True)
        pipe.llen(f"{self._prefix}{QUEUE}")
        pipe.hlen(f"{self._prefix}unacked")
        return made - int(sum(pipe.execute()))

    async def clear(self) -> None:
        # not the bindings, which the worker has made and needs
        self._redis.delete(*[f"{self._prefix}{key}" for key in (QUEUE, "unacked", "unacked_index")])

    def remove(self) -> None:
        """Leaves nothing behind in Redis."""
        for key in list(self._redis.scan_iter(match=f"{self._prefix}*", count=1000)):
            self._redis.delete(key)

    def _clients_until(self, end: float) -> list[int]:
        return list(self._threads.map(self._client, [end] * self._clients))

    def _client(self, end: float) -> int:
        made = 0
        with self._task.app.producer_or_acquire() as producer:
            while time.monotonic() < end:
                for _ in range(self._batch):
                    self._task.apply_async(kwargs=JOB, producer=producer)
                made += self._batch
        return made


def connect(url: str) -> tuple[redis.Redis, str]:
    address, prefix = urldefrag(url)
    return redis.Redis.from_url(address), prefix


def make_app(url: str) -> Celery:
    address, prefix = urldefrag(url)
    app = Celery("bench", broker=address)
    app.conf.update(
        broker_transport_options={"global_keyprefix": prefix},
        broker_connection_retry_on_startup=True,
        broker_pool_limit=None,
        task_default_queue=QUEUE,
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
    )

    @app.task(name="noop", ignore_result=True)  # type: ignore[untyped-decorator]
    def noop(n: int, path: str) -> None: ...

    return app


def work(url: str, clients: str) -> None:
    options = "--loglevel=CRITICAL --without-gossip --without-mingle --without-heartbeat"
    pool = ["--pool=threads", f"--concurrency={clients}"]
    make_app(url).worker_main(["worker", *pool, *options.split()])


async def measure(url: str, clients: int, batch: int) -> None:
    side = CeleryOnRedis(url, clients, batch)
    program = ["-W", "ignore", "-m", "bench.kernel_peer_celery"]
    command = [sys.executable, *program, url, "worker", str(clients)]
    # what the worker says would be taken for an answer
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        await serve(side)
    finally:
        worker.terminate()
        worker.wait()
        side.remove()


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, *arguments = sys.argv[1:]
    match arguments:
        case ["install"]:
            connect(url)[0].ping()
        case ["worker", clients]:
            work(url, clients)
        case [clients, batch]:
            asyncio.run(measure(url, int(clients), int(batch)))


if __name__ == "__main__":
    main()
