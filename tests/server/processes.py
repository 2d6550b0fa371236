"""Servers in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerProcess:
    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def server_process(database: str) -> Iterator[ServerProcess]:
    """A server without tokens on a database, at a free port; killed afterwards."""
    command = [sys.executable, "-m", "tests.server.server_process", database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), "the server did not start"
            yield ServerProcess(url, process)
        finally:
            process.kill()
