"""Whether a step of a large run costs as much as one of a small run.

One run at a time: a foreach over a list, with and without a limit, in lists of 100 to 100,000. The
cost of a step is the processor time of the worker and of the backends that serve this database, and
the time that passes. Small runs are repeated until there is enough to measure.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass

import psycopg

from afl.kernel.doorbell import Doorbell
from afl.kernel.model import Json
from afl.runtime.evaluator import Evaluator
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from bench.flow_ours import SLOTS, Client
from bench.flow_program import Place, WorkerProcess, deploy, workers
from bench.idle import usage
from bench.server import database

SIZES = (100, 1_000, 10_000, 100_000)
WORKFLOWS = {"unbounded": "bench.Fan", "limit 100": "bench.Bounded"}
#: Runs are repeated until they have had so many steps.
_LEAST_STEPS = 2_000
_MOST_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What one step costs in a run of so many, in milliseconds."""

    bound: str
    steps: int
    worker_ms: float
    server_ms: float
    wall_ms: float

    @property
    def cpu_ms(self) -> float:
        return self.worker_ms + self.server_ms


@dataclass(frozen=True, slots=True)
class Flatness:
    """The cost of a step in the largest run by that in the smallest."""

    cpu: float
    wall: float


def flatness(costs: Sequence[Cost], bound: str) -> Flatness:
    mine = sorted((each for each in costs if each.bound == bound), key=lambda each: each.steps)
    small, large = mine[0], mine[-1]
    return Flatness(large.cpu_ms / small.cpu_ms, large.wall_ms / small.wall_ms)


def measure(server: str, nats: str, sizes: Sequence[int]) -> list[Cost]:
    """The cost of every size, with and without a limit, after a warm-up."""
    with ExitStack() as stack:
        url = stack.enter_context(database(server))
        migrate(url)
        place = Place(url, nats, f"afl.bench.{secrets.token_hex(6)}")
        persistence = PostgresPersistence.connect(url, max_size=1)
        stack.callback(persistence.kernel.close)
        evaluator = Evaluator(persistence)
        bell = stack.enter_context(closing(place.doorbell()))
        (worker,) = stack.enter_context(workers(place, 1, SLOTS))
        return asyncio.run(_measure(place, worker, evaluator, sizes, bell))


async def _measure(
    place: Place, worker: WorkerProcess, evaluator: Evaluator, sizes: Sequence[int], bell: Doorbell
) -> list[Cost]:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
    async with connection:
        client = Client(evaluator, deploy(evaluator), bell, connection)
        watch = asyncio.create_task(client.watch())
        costs = []
        for bound, workflow in WORKFLOWS.items():
            await _run(client, workflow, sizes[0])
            for size in sizes:
                costs.append(await _cost(place.url, worker, client, bound, size))
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        return costs


async def _cost(url: str, worker: WorkerProcess, client: Client, bound: str, size: int) -> Cost:
    times = max(1, _LEAST_STEPS // size)
    before, worker_before, begun = usage(url), worker.cpu_seconds(), time.monotonic()
    for _ in range(times):
        await _run(client, WORKFLOWS[bound], size)
    wall = time.monotonic() - begun
    after, worker_after = usage(url), worker.cpu_seconds()
    server = sum(used - before.backends.get(pid, 0.0) for pid, used in after.backends.items())
    step_ms = 1000 / (times * size)
    return Cost(
        bound, size, (worker_after - worker_before) * step_ms, server * step_ms, wall * step_ms
    )


async def _run(client: Client, workflow: str, size: int) -> None:
    items: list[Json] = list(range(size))
    async with asyncio.timeout(_MOST_SECONDS):
        outputs = await client.run(workflow, {"items": items})
    if outputs["n"] != list(range(1, size + 1)):
        raise SystemExit(f"a run of {size} steps has come to something else")
