"""From a submit to the start of a handler: `python -m bench.latency`.

One process submits a run and rings through NATS; an idle worker in another process hears it,
advances the run to its first step and starts the handler, which notes when. Nothing else goes on.
The time runs from the call of `submit`; since that returns only when it has read the run again, the
handler may have started by then.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.connection import Connection

from afl.kernel.nats_doorbell import NatsDoorbell
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation, Result
from afl.runtime.operations import Operations
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.worker import Worker, WorkerConfig
from bench.doorbell import NATS
from bench.server import database, parser, quantile

_TEXT = """
namespace bench {
  event facet Greet(name: String) => (text: String) with Effect(kind = idempotent)

  workflow Hello(name: String) => (text: String) andThen {
    greeted = Greet(name = $.name)
    yield Hello(text = greeted.text)
  }
}
"""
_PROGRAM = "bench"
_LISTENING_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
#: Time for the worker to have nothing to do again; more by chance, so that no poll of it falls
#: always at the same time.
_IDLE_SECONDS = 0.15
_WARM_UPS = 5


def listening(nats: str, prefix: str) -> NatsDoorbell:
    bell = NatsDoorbell(nats, prefix)
    if not bell.wait_until_listening(_LISTENING_SECONDS):
        raise SystemExit(f"there is no NATS at {nats}")
    return bell


def work(url: str, nats: str, prefix: str, answers: Connection) -> None:
    """The worker: reports when it is ready, and then when each handler has started."""

    def greet(invocation: Invocation) -> Result:
        answers.send((str(invocation.params["name"]), time.monotonic()))
        return {"text": "hello"}

    with ExitStack() as stack:
        persistence = PostgresPersistence.connect(url, max_size=4)
        stack.callback(persistence.kernel.close)
        table = HandlerTable()
        table.register("bench.Greet", greet)
        bell = stack.enter_context(closing(listening(nats, prefix)))
        worker = Worker(Evaluator(persistence), table, WorkerConfig(name="bench"), doorbell=bell)
        worker.start()
        stack.callback(worker.drain, 5.0)
        answers.send(("", time.monotonic()))
        # whoever measures closes the other end
        answers.poll(None)


@contextmanager
def idle_worker(url: str, nats: str, prefix: str) -> Iterator[Connection]:
    """A worker in a process of its own, from when it is ready."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=work, args=(url, nats, prefix, there), daemon=True)
    process.start()
    there.close()
    try:
        _hear(here)
        yield here
    finally:
        here.close()
        process.join(10)
        process.kill()
        process.join()


def measure(server: str, nats: str, submits: int) -> list[float]:
    """Milliseconds from submit to start, one run after the other."""
    prefix = f"afl.bench.{secrets.token_hex(6)}"
    chance = random.Random(1)
    taken: list[float] = []
    with ExitStack() as stack:
        url = stack.enter_context(database(server))
        migrate(url)
        persistence = PostgresPersistence.connect(url, max_size=1)
        stack.callback(persistence.kernel.close)
        bell = stack.enter_context(closing(listening(nats, prefix)))
        operations = Operations(persistence, doorbell=bell)
        program = compile_sources([("bench.afl", _TEXT)]).program
        assert program is not None
        persistence.deploy(_PROGRAM, operations.evaluator.plans.add(program))
        answers = stack.enter_context(idle_worker(url, nats, prefix))
        for number in range(_WARM_UPS + submits):
            time.sleep(_IDLE_SECONDS + chance.uniform(0, _IDLE_SECONDS))
            begun = time.monotonic()
            operations.submit("bench.Hello", {"name": str(number)}, program=_PROGRAM)
            name, at = _hear(answers)
            if name != str(number):
                raise SystemExit(f"the handler of run {name} has started instead of {number}")
            if number >= _WARM_UPS:
                taken.append((at - begun) * 1000)
    return taken


def _hear(answers: Connection) -> tuple[str, float]:
    if not answers.poll(_PATIENCE_SECONDS):
        raise SystemExit("the worker does not answer")
    heard: tuple[str, float] = answers.recv()
    return heard


def report(taken: list[float]) -> str:
    """A table, and the figures as one JSON object in the last line."""
    p50, p99 = quantile(taken, 0.5), quantile(taken, 0.99)
    head = f"{'runs':>7}{'p50 ms':>10}{'p99 ms':>10}{'longest':>10}"
    row = f"{len(taken):>7}{p50:>10.2f}{p99:>10.2f}{max(taken):>10.2f}"
    figures = {
        "submit_to_start_p50_ms": round(p50, 2),
        "submit_to_start_p99_ms": round(p99, 2),
        "submits": len(taken),
    }
    return "\n".join([head, row, json.dumps(figures)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nats", default=NATS, help=f"URL ({NATS})")
    options.add_argument("--submits", type=int, default=100, help="runs to submit (100)")
    chosen = options.parse_args()
    print(report(measure(chosen.server, chosen.nats, chosen.submits)))


if __name__ == "__main__":
    main()
