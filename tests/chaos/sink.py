"""The judge outside: a process that records effects in a file of its own, knows no database, and
answers only when what it says is on the disk.

    python -m tests.chaos.sink FILE

It prints its port. A request is one line of JSON with a key and a value; the answer is the value
that came first under this key. A later one is recorded as an attempt, not as an effect.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

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

    def close(self) -> None:
        self._process.kill()
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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                key = request["key"]
                effect = key not in self._values
                self._values.setdefault(key, request["value"])
                self._lines.append(json.dumps({**request, "effect": effect}).encode() + b"\n")
                await self._flushed()
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
    server = await asyncio.start_server(_Server(file).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # whoever started this holds the other end; when they are gone, so is this
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
