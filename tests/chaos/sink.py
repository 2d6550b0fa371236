"""The judge outside: a process that records effects in a file of its own, knows no database, and
answers only when what it says is on the disk.

    python -m tests.chaos.sink FILE

It prints its port. A request is one line of JSON with a key and a value; the answer is the value
that came first under this key. A later one is recorded as an attempt, not as an effect.

Whoever started it may have it catch somebody in the middle of a step: after the line `catch`, it
prints `caught` and the name of the next worker that asks, and answers that one only after the line
`release`. When another comes with the same key, it prints `taken` and the name of the first: what
that one still has to say about its step comes too late.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the sink's file."""

    key: str
    value: int
    worker: str
    fence: int
    effect: bool


def read_records(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Record(**json.loads(line))


class Sink:
    """The sink as a process."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.sink", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self._heard: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, args=[self._process.stdout])
        self._listener.start()

    def catch(self) -> None:
        """Keep the next one that asks waiting, until `release`."""
        self._say(b"catch\n")

    def heard(self) -> Iterator[tuple[str, str]]:
        """What it has said since: who was caught, and whose step was taken by another."""
        while not self._heard.empty():
            yield self._heard.get()

    def _listen(self, lines: IO[bytes]) -> None:
        for line in lines:
            event, name = line.decode().split()
            self._heard.put((event, name))

    def release(self) -> None:
        self._say(b"release\n")

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._listener.join()
        self._process.communicate()


class SinkClient:
    """A worker's connection to the sink."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def effect(self, key: str, value: int, worker: str, fence: int) -> int:
        """Have the effect, unless it was had before. Answers the value that counts."""
        request = {"key": key, "value": value, "worker": worker, "fence": fence}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return int(self._lines.readline())

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server:
    def __init__(self, file: int) -> None:
        self._file = file
        self._values: dict[str, int] = {}
        self._lines: list[bytes] = []
        self._written: asyncio.Future[None] | None = None
        self._catches = False
        self._released = asyncio.Event()
        #: who was caught with which key
        self._caught: dict[str, str] = {}

    def obey(self, line: str) -> None:
        if line == "catch":
            self._catches = True
            self._released.clear()
        else:
            self._released.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                key = request["key"]
                effect = key not in self._values
                self._values.setdefault(key, request["value"])
                self._lines.append(json.dumps({**request, "effect": effect}).encode() + b"\n")
                await self._flushed()
                if key in self._caught:
                    print("taken", self._caught.pop(key), flush=True)
                if self._catches:
                    self._catches = False
                    self._caught[key] = request["worker"]
                    print("caught", request["worker"], flush=True)
                    await self._released.wait()
                writer.write(b"%d\n" % self._values[key])
        except ConnectionError:
            pass  # its worker was killed; what it asked for is recorded
        finally:
            writer.close()

    async def _flushed(self) -> None:
        """One write to the disk for all that came while the last one went on."""
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(self._flush, self._written)
        await self._written

    def _flush(self, written: asyncio.Future[None]) -> None:
        lines, self._lines, self._written = self._lines, [], None
        os.write(self._file, b"".join(lines))
        os.fsync(self._file)
        written.set_result(None)


async def _main(path: str) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    sink = _Server(file)
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    # whoever started this holds the other end; when they are gone, so is this
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sink.obey(line.strip())
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
