"""Our side in the measurement of flows: the runtime on PostgreSQL, with workers as processes.

This process is the client: it starts runs through the evaluator and rings, and looks in the table
of runs for those that have ended. So what it counts is on record.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from afl.kernel.doorbell import Doorbell
from afl.kernel.model import Json
from afl.runtime.evaluator import Evaluator
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.states import RunState
from bench.flow_program import Place, deploy, workers
from bench.flow_side import FAN, MOST_CLIENTS, STEPS, Sample, drive
from bench.server import database

SLOTS = 32
#: Clients that start runs at the same time share these.
_CONNECTIONS = 8
_LOOK_SECONDS = 0.005
_LISTS = ("default",)
_ENDED = """
select id::text, state, outputs, error from afl.run
where id = any(%s::uuid[]) and state in ('completed', 'failed', 'canceled')
"""


Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class RunFailed(Exception):
    """A run that did not complete, with its error."""


class Client:
    """Starts runs and waits for their ends."""

    def __init__(
        self, evaluator: Evaluator, program: str, bell: Doorbell, connection: Connection
    ) -> None:
        self._evaluator = evaluator
        self._program = program
        self._bell = bell
        self._connection = connection
        self._waiting: dict[str, asyncio.Future[dict[str, Json]]] = {}
        self._started = asyncio.Event()

    async def flow(self, shape: str, client: int) -> int:
        if shape == FAN:
            items: list[Json] = list(range(STEPS[FAN]))
            outputs = await self.run("bench.Fan", {"items": items})
            return sum(outputs["n"])  # type: ignore[arg-type]
        outputs = await self.run("bench.Sequence", {})
        return int(outputs["n"])  # type: ignore[arg-type]

    async def run(self, workflow: str, inputs: dict[str, Json]) -> dict[str, Json]:
        """The outputs of a run."""
        run = await asyncio.to_thread(self._start, workflow, inputs)
        end = self._waiting[run] = asyncio.get_running_loop().create_future()
        self._started.set()
        outputs: dict[str, Json] = await end
        return outputs

    def _start(self, workflow: str, inputs: dict[str, Json]) -> str:
        run = self._evaluator.start(self._program, workflow, inputs)
        self._bell.ring(_LISTS)
        return run

    async def watch(self) -> None:
        """Looks for ends as long as anybody waits."""
        while True:
            await self._started.wait()
            found = await self._connection.execute(_ENDED, [list(self._waiting)], prepare=True)
            for run, state, outputs, error in await found.fetchall():
                end = self._waiting.pop(run)
                if state == RunState.COMPLETED:
                    end.set_result(outputs)
                else:
                    end.set_exception(RunFailed(f"{run} is {state}: {error}"))
            if not self._waiting:
                self._started.clear()
            await asyncio.sleep(_LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Ours:
    """The runtime with a number of worker processes."""

    name: str
    place: Place
    evaluator: Evaluator
    program: str
    bell: Doorbell
    version: str = "this repository"
    stores_every_step: bool = True

    def measure(self, shape: str, clients: int, seconds: float) -> Sample:
        return asyncio.run(self._measure(shape, clients, seconds))

    async def _measure(self, shape: str, clients: int, seconds: float) -> Sample:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(MOST_CLIENTS))
        connection = await Connection.connect(self.place.url, autocommit=True)
        async with connection:
            client = Client(self.evaluator, self.program, self.bell, connection)
            watch = asyncio.create_task(client.watch())
            driven = asyncio.create_task(drive(client, shape, clients, seconds))
            # a watch that fails would leave the clients waiting
            await asyncio.wait([watch, driven], return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                driven.cancel()
                watch.result()
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            return await driven


@contextmanager
def ours(name: str, server: str, nats: str, processes: int) -> Iterator[Ours]:
    """The runtime in a database of its own, with workers that are ready."""
    with ExitStack() as stack:
        url = stack.enter_context(database(server))
        migrate(url)
        place = Place(url, nats, f"afl.bench.{secrets.token_hex(6)}")
        persistence = PostgresPersistence.connect(url, max_size=_CONNECTIONS)
        stack.callback(persistence.kernel.close)
        evaluator = Evaluator(persistence)
        bell = stack.enter_context(closing(place.doorbell()))
        stack.enter_context(workers(place, processes, SLOTS))
        yield Ours(name, place, evaluator, deploy(evaluator), bell)
