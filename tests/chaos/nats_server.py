"""A NATS of one's own: on a free port, with its streams in a folder. It can be killed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.chaos.server import free_port

_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 30.0


def nats_is_installed() -> bool:
    return shutil.which("nats-server") is not None


class PrivateNats:
    """A server that runs when it is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"nats://{_HOST}:{self._port}"

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ["-a", _HOST, "-p", str(self._port), "-js", "-sd", str(self._folder)]
        self._process = subprocess.Popen(
            ["nats-server", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                socket.create_connection((_HOST, self._port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < end, "the NATS server does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def lose_disk(self) -> None:
        """All that it kept is gone. Kill it before."""
        shutil.rmtree(self._folder)

    def close(self) -> None:
        self.kill()
