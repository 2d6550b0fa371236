"""Queues that others have built, doing the same cycle on the same machine in the same run.

Each lives in a virtual environment that is made for it on demand, outside of the project's own
locks; the programs inside are `bench/kernel_peer_*.py`. There is a process for each core, with its
share of the clients, who make jobs, and a worker with a handler that does nothing. The time runs
from the first job until the queue itself has every job on record as done. Their tables are not
analyzed beforehand: what an empty queue tells the planner makes some of them several times slower.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from bench.server import database

_ROOT = Path(__file__).parents[1]
_DRAIN_SECONDS = 120.0
_LOOK_SECONDS = 0.01


class PeerFailed(Exception):
    """A peer that could not be measured, and why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a peer needs to be installed; the newest that fits is taken. And what it runs on."""

    requirements: tuple[str, ...]
    on_redis: bool = False


PEERS: Mapping[str, Kind] = {
    "procrastinate": Kind(("procrastinate>=3", "psycopg[binary,pool]")),
    "pgqueuer": Kind(("pgqueuer[asyncpg]>=0.25", "uvloop")),
    "celery": Kind(("celery[redis]>=5.4", "hiredis"), on_redis=True),
}


class Process:
    """One program of a peer; a question is a line, and so is an answer."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def ask(self, question: str) -> None:
        self._questions.write(f"{question}\n")
        self._questions.flush()

    def answer(self) -> str:
        line = self._answers.readline()
        if not line:
            raise PeerFailed(f"its program ended with {self._process.wait()}")
        return line.strip()

    def close(self) -> None:
        self._questions.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer in an environment of its own, on the server at this URL."""

    name: str
    python: Path
    #: a module that talks as `peer_side` does
    program: str
    url: str

    def install(self) -> None:
        """Makes its tables."""
        try:
            subprocess.run(self._command("install"), cwd=_ROOT, check=True)
        except subprocess.CalledProcessError as error:
            raise PeerFailed(f"it cannot use {self.url}") from error

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement on an empty queue; raises `PeerFailed` if a job was not done."""
        processes = min(clients, os.cpu_count() or 1)
        with ExitStack() as stack:
            sides = []
            for number in range(processes):
                share = clients // processes + (number < clients % processes)
                sides.append(Process(self._command(str(share), str(batch))))
                stack.callback(sides[-1].close)
            for side in sides:
                side.answer()
            sides[0].ask("clear")
            sides[0].answer()
            # at least a little, so that connections and plans are there
            before, _ = self._run(sides, max(warm_up, 0.5), 0)
            made, taken = self._run(sides, seconds, before)
            return made / taken

    def _run(self, sides: list[Process], seconds: float, before: int) -> tuple[int, float]:
        """Lets them make jobs for a while; how many, and after how long all of them were done."""
        begun = time.monotonic()
        for side in sides:
            side.ask(f"produce {seconds}")
        made = sum(int(side.answer()) for side in sides)
        while True:
            sides[0].ask(f"done {before + made}")
            done = int(sides[0].answer())
            taken = time.monotonic() - begun
            if done >= before + made:
                break
            if taken > seconds + _DRAIN_SECONDS:
                raise PeerFailed(f"of {before + made} jobs only {done} were done in {taken:.0f} s")
            time.sleep(_LOOK_SECONDS)
        if done > before + made:
            raise PeerFailed(f"of {before + made} jobs {done} were done")
        return made, taken

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", self.program, self.url, *arguments]


def environment(name: str, folder: Path) -> Path:
    """The Python of a peer's virtual environment, which is made unless it is there already."""
    if folder.exists() and folder.stat().st_uid != os.getuid():
        raise PeerFailed(f"{folder} belongs to somebody else; give another --peer-folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    python = folder / name / "bin" / "python"
    wanted = "\n".join(PEERS[name].requirements)
    mark = folder / name / "installed.txt"
    if mark.is_file() and mark.read_text() == wanted:
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / name)], check=True)
        subprocess.run([*pip, *PEERS[name].requirements], check=True)
    except subprocess.CalledProcessError as error:
        raise PeerFailed("it could not be installed") from error
    mark.write_text(wanted)
    return python


def default_folder() -> Path:
    return Path(tempfile.gettempdir(), f"afl-bench-peers-{os.getuid()}")


@contextmanager
def peer(name: str, folder: Path, server: str, redis: str) -> Iterator[Peer]:
    """A peer that is ready to be measured, on a database or under a prefix of its own."""
    python = environment(name, folder)
    with ExitStack() as stack:
        if PEERS[name].on_redis:
            url = f"{redis}#afl-bench-{secrets.token_hex(6)}."
        else:
            url = _address(stack.enter_context(database(server)))
        made = Peer(name, python, f"bench.kernel_peer_{name}", url)
        made.install()
        yield made


def _address(conninfo: str) -> str:
    """The same database in words that every driver knows."""
    with psycopg.connect(conninfo) as connection:
        info = connection.info
        words = {"host": info.host, "port": str(info.port), "user": info.user}
        if info.password:
            words["password"] = info.password
        return f"postgresql:///{quote(info.dbname)}?{urlencode(words)}"
