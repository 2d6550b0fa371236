"""Kills workers while they take turns on PostgreSQL, and judges the outcome.

python -m tests.chaos.turns --turns 500 --seconds 90 --turn-workers 2 --tool-workers 2 --seed 1
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from afl.app.migrating import migrate
from afl.kernel.model import TaskId
from afl.kernel.port import Store
from afl.kernel.postgres.store import PostgresStore
from tests.chaos.command import carry_out
from tests.chaos.evidence import install_audit
from tests.chaos.server import PrivatePostgres
from tests.chaos.sink import Sink
from tests.chaos.turns_fleet import TurnFleet, TurnInjector
from tests.chaos.turns_judge import FULL_TURNS, TurnCase, TurnVerdict, judge_turns
from tests.chaos.turns_workload import Work

_TICK_SECONDS = 0.05
#: what is left of the time is for the work to end
_FAULT_SHARE = 0.8
#: a slow machine may take longer, but when nothing more is committed for so long, it is lost
_STUCK_SECONDS = 30.0
_BATCH = 50
_PROGRESS = """
select (select count(*) from afl.task where kind = 'turn' and state = 'closed'),
       (select sum(seq) from afl.task where kind = 'turn')
"""


@dataclass(frozen=True, slots=True)
class Options:
    turns: int = FULL_TURNS
    seconds: float = 90.0
    turn_workers: int = 2
    tool_workers: int = 2
    seed: int = 1


def run(options: Options, binaries: Path) -> TurnVerdict:
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
        store = stack.enter_context(PostgresStore.connect(server.url, max_size=2))
        works = [Work(number) for number in range(options.turns)]
        errors: list[str] = []
        turns = enqueue(store, works, errors)
        roles = {"turn": options.turn_workers, "tool": options.tool_workers}
        fleet = TurnFleet(roles, server.url, sink.port, logs)
        injector = TurnInjector(fleet, options.seed)
        with closing(fleet):
            _storm(options, server.url, fleet, injector)
        case = TurnCase(
            url=server.url,
            works=works,
            sink_file=folder / "sink.jsonl",
            kills=injector.kills,
            seen=(*errors, *fleet.surprises),
            seconds=time.monotonic() - started,
        )
        return judge_turns(case, store, turns)


def enqueue(store: Store, works: Sequence[Work], errors: list[str]) -> dict[int, TaskId]:
    """All turns at once; every third batch twice, as by somebody who lost the answer."""
    turns: dict[int, TaskId] = {}
    for first in range(0, len(works), _BATCH):
        batch = works[first : first + _BATCH]
        for _ in range(1 + (first // _BATCH % 3 == 0)):
            tasks = store.enqueue([work.spec for work in batch])
            for work, task in zip(batch, tasks, strict=True):
                if turns.setdefault(work.number, task.id) != task.id:
                    errors.append(f"turn {work.number} has become two")
    return turns


def _storm(options: Options, url: str, fleet: TurnFleet, injector: TurnInjector) -> None:
    """Faults, then calm until all is done or nothing moves. Work that ends sooner ends the storm:
    there would be nothing left to break."""
    start = time.monotonic()
    calm, end = start + options.seconds * _FAULT_SHARE, start + options.seconds
    before: tuple[object, ...] = ()
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < end:
            fleet.tend()
            if time.monotonic() < calm:
                injector.tick()
            now = connection.execute(_PROGRESS).fetchone()
            assert now is not None
            if now != before:
                before, end = now, max(end, time.monotonic() + _STUCK_SECONDS)
            if now[0] >= options.turns:
                break
            time.sleep(_TICK_SECONDS)


if __name__ == "__main__":
    sys.exit(carry_out("turns", __doc__, Options(), run, sys.argv[1:]))
