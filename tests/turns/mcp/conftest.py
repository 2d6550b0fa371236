from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from afl.turns.mcp.config import McpServer

SCRIPT = str(Path(__file__).with_name("mcp_server.py"))


class Pinned:
    """Pins that are kept in memory."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[str, str], str] = {}

    def get_pin(self, server: str, tool: str) -> str | None:
        return self.hashes.get((server, tool))

    def set_pin(self, server: str, tool: str, hash: str) -> None:
        self.hashes[server, tool] = hash


class HttpProcess:
    """The server of the tests on a port of its own; it can be killed and started again."""

    def __init__(self, kind: str = "http") -> None:
        self._kind = kind
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, SCRIPT, self._kind, str(self._port)], stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if b"running on" in line:
                return self
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()


def program(**settings: object) -> McpServer:
    """The server of the tests as a program."""
    return McpServer("t", command=sys.executable, args=(SCRIPT, "stdio"), **settings)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def http() -> Iterator[HttpProcess]:
    with HttpProcess() as process:
        yield process.start()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> McpServer:
    """The server of the tests, both ways."""
    if request.param == "stdio":
        return program()
    process: HttpProcess = request.getfixturevalue("http")
    return McpServer("t", url=process.url)


@pytest.fixture(autouse=True)
def nothing_is_left_behind(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No stream, task or process is left to the garbage collector, which would warn of it, and
    nothing complains in the log of the loop."""
    yield
    gc.collect()
    complaints = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name == "asyncio" and record.levelname in ("WARNING", "ERROR")
    ]
    assert complaints == []
