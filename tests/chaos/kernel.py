"""Breaks everything around the kernel's store on PostgreSQL while it works, and judges the outcome.

python -m tests.chaos.kernel --roots 2000 --seconds 100 --workers 10 --seed 1
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from afl.kernel.postgres.database import Database
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore
from afl.testing.conformance.invariants import Watch
from tests.chaos.clients import Clients
from tests.chaos.command import carry_out
from tests.chaos.evidence import install_audit
from tests.chaos.fleet import Fleet, Injector
from tests.chaos.judge import FULL_ROOTS, Case, Invariants, Verdict, judge
from tests.chaos.server import PrivatePostgres
from tests.chaos.sink import Sink

_TICK_SECONDS = 0.05
#: shares of the time: work arrives, faults happen; what is left is for the work to end
_SUBMIT_SHARE = 0.5
_FAULT_SHARE = 0.65
#: a slow machine may take longer, but when nothing more is closed for so long, it is lost
_STUCK_SECONDS = 15.0
_LOOK_SECONDS = 18.0


@dataclass(frozen=True, slots=True)
class Options:
    roots: int = FULL_ROOTS
    seconds: float = 100.0
    workers: int = 10
    seed: int = 1


def run(options: Options, binaries: Path) -> Verdict:
    """One run, from an empty folder to the verdict. Leaves nothing behind."""
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="afl-chaos-"))
        stack.callback(shutil.rmtree, folder)
        # the account of the server has to get through
        folder.chmod(0o755)
        logs = folder / "logs"
        logs.mkdir()
        server = stack.enter_context(closing(PrivatePostgres(binaries, folder / "postgres")))
        migrate(server.url)
        install_audit(server.url)
        sink = stack.enter_context(closing(Sink(folder / "sink.jsonl")))
        store = stack.enter_context(PostgresStore(Database(server.url, max_size=6)))
        watch = Watch(store)
        fleet = Fleet(options.workers, server.url, sink.port, logs)
        with closing(fleet):
            injector = Injector(fleet, server.crash, options.seed, options.seconds)
            with Clients(store, options.roots, options.seconds * _SUBMIT_SHARE) as clients:
                looks, seen = _storm(options, server.url, fleet, injector, clients, watch)
        case = Case(
            url=server.url,
            roots=options.roots,
            folder=logs,
            sink_file=folder / "sink.jsonl",
            clients=clients,
            faults=injector.done,
            looks=looks,
            deadlocks=server.log.count("deadlock detected"),
            seen=(*seen, *fleet.surprises),
            started=started,
        )
        return judge(case, watch)


def _storm(
    options: Options, url: str, fleet: Fleet, injector: Injector, clients: Clients, watch: Watch
) -> tuple[int, list[str]]:
    """Faults, then calm until all is done or nothing moves. Looks at the rows on the way."""
    start = time.monotonic()
    calm, end = start + options.seconds * _FAULT_SHARE, start + options.seconds
    closed = 0
    next_look = start + min(_LOOK_SECONDS, options.seconds / 4)
    looks, seen = 0, list[str]()
    while time.monotonic() < end and not clients.finished and not clients.errors:
        fleet.tend()
        if time.monotonic() < calm:
            injector.tick()
        else:
            fleet.wake_all()
        if clients.closed_roots > closed:
            closed, end = clients.closed_roots, max(end, time.monotonic() + _STUCK_SECONDS)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + _LOOK_SECONDS
            with psycopg.connect(url, autocommit=True) as connection:
                seen += Invariants(connection, watch).look()[1]
            looks += 1
        time.sleep(_TICK_SECONDS)
    fleet.wake_all()
    return looks, seen


if __name__ == "__main__":
    sys.exit(carry_out("kernel", __doc__, Options(), run, sys.argv[1:]))
