"""From a commit to a claim elsewhere: `python -m bench.doorbell`.

A producer commits a task and rings; an idle worker in another process hears it, claims, and notes
when it had the answer. With NATS, with PostgreSQL's NOTIFY, and with every ring lost, so that only
polling is left. The worker waits as the product does (`afl.kernel.waiting`), but always for a whole
poll interval, so that no early look can pass for a ring.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

from afl.base.system import SystemClock
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.nats_doorbell import NatsDoorbell
from afl.kernel.postgres.doorbell import PostgresDoorbell
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.waiting import Lookout, PollPolicy
from bench.server import database, parser, quantile

NATS = "nats://127.0.0.1:4222"
_SPEC = TaskSpec("event", "billing.Pay", input={"n": 42, "path": "in/part-0001"})
_DONE = Close(Outcome.SUCCESS, {"ok": True})
_LISTENING_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
#: Time for the worker to be waiting again, which a loaded machine may need; more by chance, so that
#: its polls fall at any time after the commit.
_IDLE_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class Place:
    """Where producer and worker meet."""

    url: str
    nats: str
    prefix: str
    poll_seconds: float


def _nats(place: Place) -> Doorbell:
    bell = NatsDoorbell(place.nats, place.prefix)
    if not bell.wait_until_listening(_LISTENING_SECONDS):
        raise SystemExit(f"there is no NATS at {place.nats}")
    return bell


def _notify(place: Place) -> Doorbell:
    bell = PostgresDoorbell(place.url)
    if not bell.wait_until_listening(_LISTENING_SECONDS):
        raise SystemExit("PostgreSQL does not listen")
    return bell


def _lost(place: Place) -> Doorbell:
    """Rings do not leave the process."""
    return LocalDoorbell()


#: How rings get from one process to the other.
WAYS: Mapping[str, Callable[[Place], Doorbell]] = {
    "nats": _nats,
    "notify": _notify,
    "polling": _lost,
}


def work(way: str, place: Place, answers: Connection) -> None:
    """The worker: reports when it is ready, and then when it had each claim."""
    worker = WorkerId(f"w-{secrets.token_hex(6)}")
    request = ClaimRequest(worker, ("Pay",))
    policy = PollPolicy(min_seconds=place.poll_seconds, max_seconds=place.poll_seconds)
    bell = WAYS[way](place)
    with PostgresStore.connect(place.url, max_size=1) as store:
        store.register(WorkerSpec(worker, "bench", handlers=("Pay",), lease=timedelta(hours=1)))
        store.claim(request)  # connects and compiles
        lookout = Lookout(bell, request.lists, SystemClock(), policy)

        def look() -> list[tuple[Claim, float]]:
            return [(claim, time.monotonic()) for claim in store.claim(request)]

        answers.send(None)
        while True:
            for claim, at in lookout.find(look):
                store.commit([Commit(claim.fence, _DONE)])
                answers.send((claim.task.id, at))


@contextmanager
def idle_worker(way: str, place: Place) -> Iterator[Connection]:
    """A worker in a process of its own, from when it is ready."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=work, args=(way, place, there), daemon=True)
    process.start()
    try:
        _hear(here)
        yield here
    finally:
        process.kill()
        process.join()


def latencies(way: str, place: Place, samples: int) -> list[float]:
    """Milliseconds from the commit to the answered claim, one after the other."""
    chance = random.Random(way)
    taken: list[float] = []
    bell = WAYS[way](place)
    with PostgresStore.connect(place.url, max_size=1) as store, idle_worker(way, place) as answers:
        spread = place.poll_seconds if way == "polling" else _IDLE_SECONDS
        for _ in range(samples):
            time.sleep(_IDLE_SECONDS + chance.uniform(0, spread))
            (task,) = store.enqueue([_SPEC])
            committed = time.monotonic()
            bell.ring([task.list])
            claimed, at = _hear(answers)
            if claimed != task.id:
                raise SystemExit(f"the worker claimed {claimed} instead of {task.id}")
            taken.append((at - committed) * 1000)
    bell.close()
    return taken


def _hear(answers: Connection) -> tuple[str, float]:
    if not answers.poll(_PATIENCE_SECONDS):
        raise SystemExit("the worker does not answer")
    heard: tuple[str, float] = answers.recv()
    return heard


def measure(
    server: str, nats: str, poll_seconds: float, rings: int, polls: int
) -> dict[str, list[float]]:
    with database(server) as url:
        migrate(url)
        place = Place(url, nats, f"afl.bench.{secrets.token_hex(6)}", poll_seconds)
        return {way: latencies(way, place, polls if way == "polling" else rings) for way in WAYS}


def report(taken: dict[str, list[float]], poll_seconds: float) -> str:
    """A table, and the figures as one JSON object in the last line."""
    rows = [f"{'':<10}{'tasks':>7}{'p50 ms':>10}{'p99 ms':>10}{'longest':>10}"]
    rows += [
        f"{way:<10}{len(values):>7}{quantile(values, 0.5):>10.2f}{quantile(values, 0.99):>10.2f}"
        f"{max(values):>10.2f}"
        for way, values in taken.items()
    ]
    figures = {
        "nats_p50_ms": round(quantile(taken["nats"], 0.5), 2),
        "notify_p50_ms": round(quantile(taken["notify"], 0.5), 2),
        "polling_max_ms": round(max(taken["polling"]), 2),
        "poll_interval_ms": round(poll_seconds * 1000),
        "nats_p99_ms": round(quantile(taken["nats"], 0.99), 2),
        "notify_p99_ms": round(quantile(taken["notify"], 0.99), 2),
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> None:
    interval = PollPolicy().max_seconds
    options = parser(__doc__)
    options.add_argument("--nats", default=NATS, help=f"URL ({NATS})")
    options.add_argument("--rings", type=int, default=300, help="tasks for each doorbell (300)")
    options.add_argument("--polls", type=int, default=30, help="tasks without a doorbell (30)")
    options.add_argument(
        "--poll-seconds", type=float, default=interval, help=f"the poll interval ({interval:g})"
    )
    chosen = options.parse_args()
    words = chosen.server, chosen.nats, chosen.poll_seconds, chosen.rings, chosen.polls
    print(report(measure(*words), chosen.poll_seconds))


if __name__ == "__main__":
    main()
