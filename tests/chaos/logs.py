"""Kills what log lines travel through, then a worker, and judges what a reader is shown.

python -m tests.chaos.logs --lines 1000000 --nats-every 10 --postgres-away 60
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from afl.app.migrating import migrate
from afl.logs.postgres_store import PostgresLogStore
from afl.logs.reading import Reader
from tests.chaos.command import carry_out
from tests.chaos.logs_judge import LogVerdict, Tally
from tests.chaos.logs_worker import PATIENCE_SECONDS, TOLD_EVERY, run_of
from tests.chaos.nats_server import PrivateNats
from tests.chaos.server import PrivatePostgres

_REPOSITORY = Path(__file__).parents[2]
_TICK_SECONDS = 0.05
_NATS_AWAY_SECONDS = 0.5
_SINK_KILLED_EVERY_NATS_KILLS = 2
_STREAMS = 4
_DOOMED = 1000


@dataclass(frozen=True, slots=True)
class Options:
    lines: int = 1_000_000
    producers: int = 8
    nats_every: float = 10.0
    nats_kills: int = 1000
    postgres_away: float = 60.0
    #: over how many seconds the lines are written, or longer
    spread: float = 30.0
    #: how many lines the worker that is killed has written at least
    doomed_lines: int = 2000


class Stage:
    """The servers and processes of a storm."""

    def __init__(self, stack: ExitStack, binaries: Path) -> None:
        folder = Path(tempfile.mkdtemp(prefix="afl-chaos-"))
        stack.callback(shutil.rmtree, folder)
        # the account of the server has to get through
        folder.chmod(0o755)
        self.root = folder / "spools"
        self.postgres = stack.enter_context(closing(PrivatePostgres(binaries, folder / "postgres")))
        migrate(self.postgres.url)
        self.nats = stack.enter_context(closing(PrivateNats(folder / "nats")))
        self._log = stack.enter_context((folder / "processes.log").open("wb"))
        self.processes: list[subprocess.Popen[bytes]] = []
        stack.callback(self._end)
        self.sink = self.start("sink")
        self.nats_kills = self.nats_disks_lost = self.sink_kills = 0
        self.postgres_away = 0.0

    def start(self, verb: str, *arguments: str) -> subprocess.Popen[bytes]:
        where = [] if verb == "sink" else [str(self.root)]
        command = [*where, self.postgres.url, self.nats.url, *arguments]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.logs_worker", verb, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_REPOSITORY,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def kill_nats(self) -> None:
        """Every second time with the sink; the second time with its disk."""
        self.nats.kill()
        self.nats_kills += 1
        if self.nats_kills % _SINK_KILLED_EVERY_NATS_KILLS == 0:
            self.kill(self.sink)
            self.sink_kills += 1
            self.sink = self.start("sink")
        if self.nats_kills == 2:
            self.nats.lose_disk()
            self.nats_disks_lost += 1
        time.sleep(_NATS_AWAY_SECONDS)
        self.nats.start()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()
        self.processes.remove(process)

    def said(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")[-4000:]

    def _end(self) -> None:
        for process in list(self.processes):
            self.kill(process)


def run(options: Options, binaries: Path) -> LogVerdict:
    """One run, from an empty folder to the verdict. Leaves nothing behind."""
    with ExitStack() as stack:
        stage = Stage(stack, binaries)
        each = options.lines // options.producers
        problems, seconds = _storm(stage, options, each)
        written = _death(stage, options)
        tally, dead = Tally(), Tally()
        store = stack.enter_context(PostgresLogStore.connect(stage.postgres.url))
        for number in range(options.producers):
            counts = [len(range(stream, each, _STREAMS)) for stream in range(_STREAMS)]
            tally.read(number, counts, Reader(store, run_of(number)).news())
        dead.read(_DOOMED, [written] * _STREAMS, Reader(store, run_of(_DOOMED)).news())
        if dead.gaps != _STREAMS:
            problems.append(f"{_STREAMS} streams were cut off, and {dead.gaps} have a gap")
        if problems:
            print(stage.said())
        return LogVerdict(
            lines=each * options.producers,
            stored=tally.stored,
            lost=tally.lost + dead.lost,
            doubled=tally.doubled + dead.doubled,
            gaps=tally.gaps + dead.gaps,
            unexplained_gaps=tally.gaps,
            written_by_dead=written * _STREAMS,
            stored_of_dead=dead.stored,
            nats_kills=stage.nats_kills,
            nats_disks_lost=stage.nats_disks_lost,
            sink_kills=stage.sink_kills,
            postgres_away_s=stage.postgres_away,
            seconds=round(seconds, 1),
            lines_per_s=int(each * options.producers / seconds),
            problems=(*problems, *tally.problems, *dead.problems),
        )


def _storm(stage: Stage, options: Options, each: int) -> tuple[list[str], float]:
    """Producers write and ship while everything around them goes and comes back.

    Answers what was wrong, and how long it took until all was stored.
    """
    size = f"{each}/{_STREAMS}/{options.spread}"
    producers = [stage.start("produce", str(number), size) for number in range(options.producers)]
    for process in producers:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", stage.said()
    for process in producers:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    start = time.monotonic()
    next_kill = start + options.nats_every
    away_at: float | None = start + options.nats_every / 2
    back_at: float | None = None
    while back_at is not None or any(process.poll() is None for process in producers):
        now = time.monotonic()
        if now > start + PATIENCE_SECONDS:
            break
        if away_at is not None and now >= away_at:
            stage.postgres.stop()
            away_at, back_at = None, now + options.postgres_away
        if back_at is not None and now >= back_at:
            stage.postgres.start()
            stage.postgres_away, back_at = options.postgres_away, None
        if now >= next_kill and stage.nats_kills < options.nats_kills:
            stage.kill_nats()
            next_kill = now + options.nats_every
        time.sleep(_TICK_SECONDS)
    codes = [process.poll() for process in producers]
    problems = [f"producers ended with {codes}"] if any(codes) else []
    return problems, time.monotonic() - start


def _death(stage: Stage, options: Options) -> int:
    """A worker is killed while it writes. Another ships what it has left; how many lines it had
    written to each stream at least."""
    doomed = stage.start("doomed", str(_DOOMED), f"0/{_STREAMS}/0")
    assert doomed.stdout is not None
    written = 0
    while written * _STREAMS < options.doomed_lines:
        written = int(doomed.stdout.readline())
    doomed.kill()
    # what it said before it died
    told = doomed.communicate()[0].split()
    written = max([written, *(int(word) for word in told if int(word) % TOLD_EVERY == 0)])
    stage.processes.remove(doomed)
    left = list(stage.root.iterdir())
    heir = stage.start("heir")
    end = time.monotonic() + PATIENCE_SECONDS
    while any(path.exists() for path in left):
        assert time.monotonic() < end, "the spool of the dead worker is not shipped"
        time.sleep(_TICK_SECONDS)
    heir.communicate()
    stage.processes.remove(heir)
    return written


if __name__ == "__main__":
    sys.exit(carry_out("logs", __doc__, Options(), run, sys.argv[1:]))
