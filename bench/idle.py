"""What workers cost the database while there is nothing to do: `python -m bench.idle`.

Each worker is as a process would have it: a store with connections of its own, a doorbell through
NATS, a thread that looks for work with the default poll policy, and one that renews three times per
lease. One more thread sweeps for all of them, since sweeping costs several times a look. What is
counted is the processor time of PostgreSQL's processes, as the system has it in /proc, so the
server has to be on this machine.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from afl.base.system import SystemClock
from afl.kernel.doorbell import Doorbell
from afl.kernel.model import Claim, ClaimRequest, WorkerId, WorkerSpec
from afl.kernel.nats_doorbell import NatsDoorbell
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.waiting import Lookout
from bench.doorbell import NATS
from bench.server import database, parser

_LISTENING_SECONDS = 10.0
_RENEWALS_PER_LEASE = 3
#: A dead worker's tasks are to run elsewhere within its lease and five seconds.
_SWEEP_SECONDS = 5.0
#: By then every worker has looked and renewed on its connections, and the waits have grown.
_SETTLING_SECONDS = 12.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class IdleWorker:
    """A worker without work, in threads of its own."""

    def __init__(self, url: str, doorbell: Doorbell) -> None:
        self._spec = WorkerSpec(
            WorkerId(f"w-{secrets.token_hex(6)}"), "bench", handlers=("Pay", "Refund")
        )
        self._store = PostgresStore.connect(url, max_size=2)
        self._doorbell = doorbell
        self._lookout = Lookout(doorbell, self._spec.lists, SystemClock())
        self._stopped = threading.Event()
        self._looks = 0
        self._threads = [
            threading.Thread(target=self._look),
            threading.Thread(target=self._keep_renewing),
        ]

    @property
    def looks(self) -> int:
        return self._looks

    def start(self) -> None:
        self._store.register(self._spec)
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._lookout.stop()
        self._doorbell.close()
        for thread in self._threads:
            thread.join()
        self._store.close()

    def _look(self) -> None:
        request = ClaimRequest(self._spec.id, self._spec.handlers, self._spec.lists)

        def look() -> list[Claim]:
            self._looks += 1
            return self._store.claim(request)

        if self._lookout.find(look):
            raise AssertionError("somebody has work for this worker")

    def _keep_renewing(self) -> None:
        beat = self._spec.lease.total_seconds() / _RENEWALS_PER_LEASE
        # not all at once, as those that were started together would
        wait = random.uniform(0, beat)
        while not self._stopped.wait(wait):
            self._store.renew(self._spec.id)
            wait = beat


class Sweeper:
    """Sweeps for the whole fleet."""

    def __init__(self, url: str) -> None:
        self._store = PostgresStore.connect(url, max_size=1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._store.close()

    def _run(self) -> None:
        while not self._stopped.wait(_SWEEP_SECONDS):
            self._store.sweep()


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds so far: of the whole server, and of the backends of one database."""

    server: float
    backends: dict[int, float]


def usage(url: str) -> Usage:
    """What PostgreSQL has used; children that have ended are counted by their parent."""
    with psycopg.connect(url, autocommit=True) as connection:
        mine = connection.info.backend_pid
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and pid <> %s",
            [mine],
        )
        ours = {row[0] for row in rows}
        postmaster = _stat(mine).parent
        processes = {pid: _stat(pid) for pid in _processes() if pid not in (mine, postmaster)}
    # last: a child that ends meanwhile is then counted twice, rather than not at all
    parent = _stat(postmaster)
    used = sum(each.own for each in processes.values() if each.parent == postmaster)
    backends = {pid: processes[pid].own for pid in ours if pid in processes}
    return Usage(parent.own + parent.children + used, backends)


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its parent, and the processor seconds of itself and of its ended children."""

    parent: int
    own: float
    children: float


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _stat(pid: int) -> Process:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return Process(0, 0.0, 0.0)  # it has ended since
    # the name in the second field may have any characters, but the last parenthesis ends it
    fields = text.rpartition(")")[2].split()
    own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return Process(int(fields[1]), own / _TICKS_PER_SECOND, children / _TICKS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Result:
    """How long it was watched, and what it used in the time."""

    workers: int
    seconds: float
    looks: int
    server_seconds: float
    own_seconds: float


@contextmanager
def idle_fleet(url: str, nats: str, number: int) -> Iterator[list[IdleWorker]]:
    """Workers and a sweeper, from when all of them have begun."""
    prefix = f"afl.bench.{secrets.token_hex(6)}"
    with ExitStack() as stack:
        sweeper = Sweeper(url)
        sweeper.start()
        stack.callback(sweeper.close)
        workers = []
        for _ in range(number):
            bell = NatsDoorbell(nats, prefix)
            if not bell.wait_until_listening(_LISTENING_SECONDS):
                raise SystemExit(f"there is no NATS at {nats}")
            workers.append(IdleWorker(url, bell))
            workers[-1].start()
            stack.callback(workers[-1].close)
        yield workers


def measure(server: str, nats: str, number: int, seconds: float, settling_seconds: float) -> Result:
    with database(server) as url:
        migrate(url)
        with idle_fleet(url, nats, number) as workers:
            time.sleep(settling_seconds)
            looks = sum(worker.looks for worker in workers)
            before, begun = usage(url), time.monotonic()
            time.sleep(seconds)
            after, ended = usage(url), time.monotonic()
            looks = sum(worker.looks for worker in workers) - looks
    own = sum(used - before.backends.get(pid, 0.0) for pid, used in after.backends.items())
    return Result(number, ended - begun, looks, after.server - before.server, own)


def report(result: Result) -> str:
    """A table, and the figures as one JSON object in the last line."""
    share = result.server_seconds / result.seconds
    own = result.own_seconds / result.seconds
    rows = [
        f"{'idle workers':<44}{result.workers:>8}",
        f"{'seconds':<44}{result.seconds:>8.1f}",
        f"{'looks for work a second':<44}{result.looks / result.seconds:>8.1f}",
        f"{'share of a core, all of PostgreSQL':<44}{share:>8.2%}",
        f"{'share of a core, backends of these workers':<44}{own:>8.2%}",
    ]
    figures = {
        "idle_core_share": round(share, 4),
        "workers": result.workers,
        "own_core_share": round(own, 4),
        "looks_per_second": round(result.looks / result.seconds, 1),
        "seconds": round(result.seconds, 1),
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nats", default=NATS, help=f"URL ({NATS})")
    options.add_argument("--workers", type=int, default=20, help="how many (20)")
    options.add_argument("--seconds", type=float, default=30, help="how long (30)")
    chosen = options.parse_args()
    words = chosen.server, chosen.nats, chosen.workers, chosen.seconds
    print(report(measure(*words, _SETTLING_SECONDS)))


if __name__ == "__main__":
    main()
