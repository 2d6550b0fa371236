"""Cuts the link between a worker's host and the database's, and judges when it stopped to act.

python -m tests.chaos.link --rounds 20

The worker does what cannot be taken back, without a pause. After a cut it cannot know whether
somebody else has its work: so nothing may begin there once the store takes it for lost, and nothing
at all twice.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from afl.kernel.model import Json
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.worker import Worker, WorkerConfig
from tests.chaos.command import carry_out
from tests.chaos.hosts import Host, can_make_hosts
from tests.chaos.link_worker import FLOW, SERVICE
from tests.chaos.server import PrivatePostgres

_REPOSITORY = Path(__file__).parents[2]
_PATIENCE_SECONDS = 60.0
_ITEMS = 2000
#: so many effects are there before the link is cut
_WARM = 20


@dataclass(frozen=True, slots=True)
class Options:
    rounds: int = 20
    lease: float = 2.0


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """How often the worker stopped in time."""

    rounds: int
    in_time: int
    effects: int
    doubled: int
    #: the shortest time between the last effect and the end of the lease
    least_margin_ms: float

    @property
    def problems(self) -> tuple[str, ...]:
        found = []
        if self.in_time < self.rounds:
            found.append(f"{self.rounds - self.in_time} times something began after the lease")
        if self.doubled:
            found.append(f"{self.doubled} effects were there twice")
        return tuple(found)

    @property
    def doubts(self) -> list[str]:
        return [] if self.effects >= _WARM * self.rounds else ["there were hardly any effects"]

    @property
    def ok(self) -> bool:
        return not self.problems and not self.doubts


class Stage:
    """Two hosts: the database and a worker that can only sweep here, the far worker there."""

    def __init__(self, stack: ExitStack, binaries: Path, lease_seconds: float) -> None:
        folder = Path(tempfile.mkdtemp(prefix="afl-chaos-"))
        stack.callback(shutil.rmtree, folder)
        # the account of the server has to get through
        folder.chmod(0o755)
        self.host = stack.enter_context(closing(Host()))
        self.server = stack.enter_context(
            closing(PrivatePostgres(binaries, folder / "postgres", self.host.here))
        )
        migrate(self.server.url)
        self._effects = folder / "effects"
        self._effects.touch()
        persistence = stack.enter_context(closing(PostgresPersistence.connect(self.server.url)))
        self.evaluator = Evaluator(persistence)
        program = compile_sources([("far.afl", FLOW)]).program
        assert program is not None
        self._program = self.evaluator.plans.add(program)
        near = Worker(self.evaluator, HandlerTable(), WorkerConfig(service="near"))
        near.start()
        stack.callback(near.drain, 10)
        words = [sys.executable, "-m", "tests.chaos.link_worker"]
        words += [self.server.url_at(self.host.here), str(self._effects), str(lease_seconds)]
        self._process = subprocess.Popen(
            self.host.command(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_REPOSITORY,
            text=True,
        )
        stack.callback(self._process.communicate)
        stack.callback(self._process.kill)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def submit(self, number: int) -> None:
        items: list[Json] = [f"{number}-{item}" for item in range(_ITEMS)]
        self.evaluator.start(self._program, "far.All", {"items": items})

    def effects(self) -> list[tuple[str, float]]:
        lines = self._effects.read_text(encoding="utf-8").splitlines()
        return [(item, float(at)) for item, at in (line.split() for line in lines)]

    def lease_end(self) -> float:
        with psycopg.connect(self.server.url) as connection:
            row = connection.execute(
                "select extract(epoch from expires_at) from afl.worker where service = %s",
                [SERVICE],
            ).fetchone()
        assert row is not None
        return float(row[0])


def run(options: Options, binaries: Path) -> LinkVerdict:
    """Cut the link so many times."""
    in_time, margins = 0, []
    with ExitStack() as stack:
        stage = Stage(stack, binaries, options.lease)
        for number in range(options.rounds):
            stage.submit(number)
            before = len(stage.effects())
            _until(lambda before=before: len(stage.effects()) >= before + _WARM)  # type: ignore[misc]
            stage.host.cut()
            # what was asked for before the cut may still be answered
            time.sleep(options.lease / 4)
            end = stage.lease_end()
            _until(lambda end=end: time.time() > end + options.lease)  # type: ignore[misc]
            assert stage.lease_end() == end, "the link was not cut"
            last = stage.effects()[-1][1]
            in_time += last < end
            margins.append((end - last) * 1000)
            stage.host.mend()
        found = stage.effects()
    doubled = sum(times > 1 for times in Counter(item for item, _ in found).values())
    return LinkVerdict(options.rounds, in_time, len(found), doubled, round(min(margins), 1))


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("it has not come about")
        time.sleep(0.02)


def main(arguments: list[str]) -> int:
    if not can_make_hosts():
        print("This machine cannot make network namespaces: that takes root and `ip`.")
        return 2
    return carry_out("link", __doc__, Options(), run, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
