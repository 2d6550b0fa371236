"""The program of our side in the measurement of flows, and a worker that serves it.

The worker is the product's own, in a process of its own, with a handler that does next to nothing.
Rings come through NATS where there is one, else through PostgreSQL.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from afl.kernel.doorbell import Doorbell
from afl.kernel.nats_doorbell import NatsDoorbell
from afl.kernel.postgres.doorbell import PostgresDoorbell
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation, Result
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.worker import Worker, WorkerConfig
from bench.flow_side import SEQUENCE, STEPS

_TEXT = """
namespace bench {
  event facet Step(n: Int) => (n: Int) with Effect(kind = idempotent)

  workflow Sequence() => (n: Int) andThen {
    s0 = Step(n = 0)
%s
    yield Sequence(n = s%d.n)
  }

  workflow Fan(items: [Int]) => (n: [Int]) andThen foreach item in $.items {
    stepped = Step(n = $.item)
    yield Fan(n = [stepped.n])
  }

  workflow Bounded(items: [Int]) => (n: [Int]) andThen foreach item in $.items limit 100 {
    stepped = Step(n = $.item)
    yield Bounded(n = [stepped.n])
  }
}
"""
_LISTENING_SECONDS = 10.0
_DRAIN_SECONDS = 10.0
_STARTING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where those who start runs and those who advance them meet."""

    url: str
    nats: str
    prefix: str

    def doorbell(self) -> Doorbell:
        """A doorbell that hears the others."""
        where = urlsplit(self.nats)
        bell: NatsDoorbell | PostgresDoorbell
        try:
            socket.create_connection((where.hostname, where.port or 4222), timeout=1).close()
        except OSError:
            bell = PostgresDoorbell(self.url)
        else:
            bell = NatsDoorbell(self.nats, self.prefix)
        if not bell.wait_until_listening(_LISTENING_SECONDS):
            raise SystemExit("the doorbell does not listen")
        return bell


def deploy(evaluator: Evaluator) -> str:
    """Compiles and stores the program; answers its hash."""
    last = STEPS[SEQUENCE] - 1
    steps = "\n".join(f"    s{n} = Step(n = s{n - 1}.n)" for n in range(1, last + 1))
    compiled = compile_sources([("bench.afl", _TEXT % (steps, last))])
    if compiled.program is None:
        raise SystemExit([each.message for each in compiled.diagnostics])
    return evaluator.plans.add(compiled.program)


class WorkerProcess:
    """A worker in a process of its own, which tells the processor time it has used."""

    def __init__(self, place: Place, slots: int, connections: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._here, there = spawn.Pipe()
        arguments = (place, slots, connections, there)
        self._process = spawn.Process(target=serve, args=arguments, daemon=True)
        self._process.start()

    def cpu_seconds(self) -> float:
        """The processor time of its process so far. The first answer means that it is ready."""
        self._here.send(None)
        if not self._here.poll(_STARTING_SECONDS):
            raise SystemExit("the worker does not answer")
        used: float = self._here.recv()
        return used

    def close(self) -> None:
        self._here.close()
        self._process.join(_DRAIN_SECONDS + 5)
        self._process.kill()
        self._process.join()


def serve(place: Place, slots: int, connections: int, asked: Connection) -> None:
    """Works until whoever asks has gone."""
    with ExitStack() as stack:
        bell = stack.enter_context(closing(place.doorbell()))
        persistence = PostgresPersistence.connect(place.url, max_size=connections)
        stack.callback(persistence.kernel.close)
        table = HandlerTable()
        table.register("bench.Step", step)
        worker = Worker(
            Evaluator(persistence), table, WorkerConfig(slots=slots, name="bench"), doorbell=bell
        )
        worker.start()
        stack.callback(worker.drain, _DRAIN_SECONDS)
        while True:
            try:
                asked.recv()
            except EOFError:
                return
            asked.send(time.process_time())


def step(invocation: Invocation) -> Result:
    n = invocation.params["n"]
    assert isinstance(n, int)
    return {"n": n + 1}


@contextmanager
def workers(
    place: Place, processes: int, slots: int, connections: int = 4
) -> Iterator[list[WorkerProcess]]:
    """So many workers, from when all of them are ready."""
    with ExitStack() as stack:
        made = []
        for _ in range(processes):
            made.append(WorkerProcess(place, slots, connections))
            stack.callback(made[-1].close)
        for worker in made:
            worker.cpu_seconds()
        yield made
