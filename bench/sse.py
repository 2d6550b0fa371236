"""What a server costs while many watch one run that changes: `python -m bench.sse`.

The server is a process of its own, on a database of its own. Clients hold a stream each, over
connections of their own; the run is paused and resumed every half second. What is counted is the
processor time of the server's process, as the system has it in /proc.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

from afl.app.client import Client
from afl.app.migrating import migrate
from afl.base.settings import Settings
from afl.runtime.operations import Operations
from afl.server.application import API, create_app
from afl.server.serving import open_backend, run_server
from bench.server import database, parser

FLOW = """
namespace bench {
  event facet Work() => (done: Boolean)
  workflow Watched() => (done: Boolean) andThen {
    it = Work()
    yield Watched(done = it.done)
  }
}
"""
_CHANGE_SECONDS = 0.5
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Result:
    clients: int
    seconds: float
    server_seconds: float
    changes: int
    #: how many events the client has heard that heard fewest
    fewest_events: int


class Watching:
    """A client that counts what it hears."""

    def __init__(self) -> None:
        self.events = 0
        self.has_begun = asyncio.Event()

    async def listen(self, url: str, topic: str) -> None:
        where = urlsplit(url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        request = f"GET {API}/stream?topic={topic} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n"
        writer.write(request.encode())
        try:
            while line := await reader.readline():
                if line.startswith(b"event: mark"):
                    self.events += 1
                    self.has_begun.set()
        finally:
            writer.close()


@asynccontextmanager
async def watching(url: str, topic: str, number: int) -> AsyncIterator[list[Watching]]:
    """Clients that have all heard the first mark."""
    clients = [Watching() for _ in range(number)]
    tasks = [asyncio.create_task(client.listen(url, topic)) for client in clients]
    try:
        for client in clients:
            await client.has_begun.wait()
        yield clients
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def server(url: str) -> Iterator[tuple[int, str]]:
    """The process and the address of a server on a database."""
    command = [sys.executable, "-m", "bench.sse", "--serve", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()


def serve(url: str) -> None:
    with open_backend(url, Settings(), auth=False) as backend:
        run_server(create_app(backend), "127.0.0.1", 0, on_started=lambda at: print(at, flush=True))


def processor_seconds(pid: int) -> float:
    """What a process has used, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


async def _measure(
    operations: Operations, run: str, pid: int, address: str, number: int, seconds: float
) -> Result:
    async with watching(address, f"run:{run}", number) as clients:
        before = [client.events for client in clients]
        used, begun, changes = processor_seconds(pid), time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            change = operations.resume if changes % 2 else operations.pause
            await asyncio.to_thread(change, run)
            changes += 1
            await asyncio.sleep(begun + changes * _CHANGE_SECONDS - time.monotonic())
        used, ended = processor_seconds(pid) - used, time.monotonic()
        heard = [client.events - first for client, first in zip(clients, before, strict=True)]
    return Result(number, ended - begun, used, changes, min(heard))


def measure(place: str, number: int, seconds: float) -> Result:
    with database(place) as conninfo:
        migrate(conninfo)
        parts = conninfo_to_dict(conninfo)
        url = f"postgresql://{parts['host']}/{parts['dbname']}"
        with Client(url) as client, server(url) as (pid, address):
            client.deploy(FLOW)
            run = client.submit("bench.Watched").id
            return asyncio.run(_measure(client.operations, run, pid, address, number, seconds))


def report(result: Result) -> str:
    """A table, and the figures as one JSON object in the last line."""
    share = result.server_seconds / result.seconds
    rows = [
        f"{'clients that watch one run':<44}{result.clients:>8}",
        f"{'seconds':<44}{result.seconds:>8.1f}",
        f"{'changes of the run':<44}{result.changes:>8}",
        f"{'events that each client has heard at least':<44}{result.fewest_events:>8}",
        f"{'share of a core, the server':<44}{share:>8.2%}",
    ]
    figures = {
        "cpu_share": round(share, 4),
        "clients": result.clients,
        "changes": result.changes,
        "fewest_events": result.fewest_events,
        "seconds": round(result.seconds, 1),
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--clients", type=int, default=200, help="how many (200)")
    options.add_argument("--seconds", type=float, default=10, help="how long (10)")
    options.add_argument("--serve", metavar="URL", help="be the server of a measurement")
    chosen = options.parse_args()
    if chosen.serve is not None:
        serve(chosen.serve)
    else:
        print(report(measure(chosen.server, chosen.clients, chosen.seconds)))


if __name__ == "__main__":
    main()
