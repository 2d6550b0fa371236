"""How claims fare in a database with a past: `python -m bench.bloat`.

The same load, at a fixed rate, in three places: a fresh database; one with millions of finished
tasks; and that one with a snapshot held open by somebody, so that nothing which the load leaves
behind can be cleaned up. The latter two take turns with the first, and each round is compared with
its neighbour in time. Workers enqueue, claim and complete through the kernel's port, and note how
long each claim took.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from afl.kernel.model import ClaimRequest, Close, Commit, Outcome, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore
from bench.finished import finish, settle
from bench.server import database, parser, quantile

_SPEC = TaskSpec("event", "billing.Pay", input={"n": 42, "path": "in/part-0001"})
_DONE = Close(Outcome.SUCCESS, {"ok": True})
#: Cycles that are not counted, since a connection plans and compiles in the first of them.
_WARM_UP_CYCLES = 20


@dataclass(frozen=True, slots=True)
class Plan:
    finished: int
    pinned_seconds: float
    seconds: float
    rounds: int
    #: cycles a second, of all workers together
    rate: float
    workers: int


@dataclass(frozen=True, slots=True)
class Load:
    """What one worker does, and for how long."""

    url: str
    seconds: float
    rate: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Claims of one measurement, in milliseconds."""

    p50: float
    p99: float
    claims: int


@dataclass(frozen=True, slots=True)
class Series:
    """The rounds on a database with a past, and for each the fresh one just before or after."""

    name: str
    fresh: list[Latency]
    burdened: list[Latency]

    @property
    def median_ratio(self) -> float:
        pairs = zip(self.fresh, self.burdened, strict=True)
        return statistics.median(burdened.p50 / fresh.p50 for fresh, burdened in pairs)

    @property
    def p99_ratio(self) -> float:
        pairs = zip(self.fresh, self.burdened, strict=True)
        return statistics.median(burdened.p99 / fresh.p99 for fresh, burdened in pairs)

    def last_half(self) -> Series:
        """With a snapshot open things get worse with time: what counts is what they came to."""
        half = len(self.fresh) // 2
        return Series(self.name, self.fresh[half:], self.burdened[half:])


def work(load: Load) -> list[float]:
    """The cycles of one worker: how long each claim took, in seconds."""
    worker = WorkerId(f"w-{secrets.token_hex(6)}")
    request = ClaimRequest(worker, ("Pay",))
    taken: list[float] = []
    with PostgresStore.connect(load.url, max_size=1) as store:
        store.register(WorkerSpec(worker, "bench", handlers=("Pay",), lease=timedelta(hours=1)))
        for _ in range(_WARM_UP_CYCLES):
            _cycle(store, request)
        begun = time.monotonic()
        due = begun
        while (now := time.monotonic()) < begun + load.seconds:
            # a worker that cannot keep up goes on at its own pace and does not try to catch up
            due = max(due + 1 / load.rate, now)
            taken.append(_cycle(store, request))
            time.sleep(max(0.0, due - time.monotonic()))
    return taken


def _cycle(store: PostgresStore, request: ClaimRequest) -> float:
    store.enqueue([_SPEC])
    before = time.monotonic()
    claims = store.claim(request)
    after = time.monotonic()
    store.commit([Commit(claim.fence, _DONE) for claim in claims])
    return after - before


class Workers:
    """Processes that put a load on a database."""

    def __init__(self, pool: ProcessPoolExecutor, plan: Plan) -> None:
        self._pool = pool
        self._plan = plan

    def measure(self, url: str, seconds: float) -> Latency:
        load = Load(url, seconds, self._plan.rate / self._plan.workers)
        claims = [
            claim * 1000
            for each in self._pool.map(work, [load] * self._plan.workers)
            for claim in each
        ]
        return Latency(quantile(claims, 0.5), quantile(claims, 0.99), len(claims))

    def compare(self, name: str, young: str, old: str, seconds: float) -> Series:
        """Rounds in turns on a fresh database and on another; which is first alternates."""
        series = Series(name, [], [])
        for number in range(self._plan.rounds):
            sides = [(young, self._plan.seconds, series.fresh), (old, seconds, series.burdened)]
            for url, duration, latencies in sides if number % 2 else reversed(sides):
                latencies.append(self.measure(url, duration))
                settle(url)
        return series


@contextmanager
def snapshot(url: str) -> Iterator[None]:
    """Somebody's report that never ends: what it could still see must not be cleaned up."""
    with psycopg.connect(url) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute("select count(*) from afl.worker")
        yield
        connection.rollback()


def measure(server: str, plan: Plan) -> tuple[Series, Series]:
    """With finished tasks, and with a snapshot held open on top of them."""
    spawn = multiprocessing.get_context("spawn")
    with (
        database(server) as young,
        database(server) as old,
        ProcessPoolExecutor(plan.workers, mp_context=spawn) as pool,
    ):
        workers = Workers(pool, plan)
        migrate(young)
        migrate(old)
        finish(old, plan.finished)
        name = f"{plan.finished:,} finished"
        finished = workers.compare(name, young, old, plan.seconds)
        with snapshot(old):
            name = f"{plan.pinned_seconds:g} s pinned"
            pinned = workers.compare(name, young, old, plan.pinned_seconds / plan.rounds)
    return finished, pinned.last_half()


def report(finished: Series, pinned: Series, plan: Plan) -> str:
    """A table, and the figures as one JSON object in the last line."""
    columns = "".join(f"{name + ' ms':>9}{'fresh':>9}{'ratio':>8}" for name in ("p50", "p99"))
    rows = [f"{'':<20}{'claims':>8}{columns}"]
    for series in (finished, pinned):
        row = f"{series.name:<20}{sum(each.claims for each in series.burdened):>8}"
        for of, ratio in ((_p50, series.median_ratio), (_p99, series.p99_ratio)):
            row += f"{of(series.burdened):>9.2f}{of(series.fresh):>9.2f}{ratio:>8.2f}"
        rows.append(row)
    figures = {
        "finished_ratio": round(finished.p99_ratio, 3),
        "pinned_ratio": round(pinned.p99_ratio, 3),
        "finished": plan.finished,
        "pinned_seconds": plan.pinned_seconds,
        "finished_median_ratio": round(finished.median_ratio, 3),
        "pinned_median_ratio": round(pinned.median_ratio, 3),
        "rate": plan.rate,
        "rounds": plan.rounds,
        "load": round(os.getloadavg()[0], 1),
    }
    return "\n".join([*rows, json.dumps(figures)])


def _p50(latencies: list[Latency]) -> float:
    return statistics.median(each.p50 for each in latencies)


def _p99(latencies: list[Latency]) -> float:
    return statistics.median(each.p99 for each in latencies)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--finished", type=int, default=5_000_000, help="finished tasks (5000000)")
    options.add_argument(
        "--pinned-seconds", type=float, default=120, help="of load on a snapshot (120)"
    )
    options.add_argument("--seconds", type=float, default=10, help="of each round (10)")
    options.add_argument("--rounds", type=int, default=6, help="turns with the fresh one (6)")
    options.add_argument("--rate", type=float, default=200, help="cycles a second (200)")
    options.add_argument("--workers", type=int, default=4, help="processes of the load (4)")
    chosen = options.parse_args()
    plan = Plan(
        chosen.finished,
        chosen.pinned_seconds,
        chosen.seconds,
        chosen.rounds,
        chosen.rate,
        chosen.workers,
    )
    print(report(*measure(chosen.server, plan), plan))


if __name__ == "__main__":
    main()
