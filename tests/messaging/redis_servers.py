"""Redis servers that a test starts for itself: one that may be stopped, or three in a cluster."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 30.0

needs_redis_server = pytest.mark.skipif(
    shutil.which("redis-server") is None or shutil.which("redis-cli") is None,
    reason="there is no redis-server to start",
)


class Server:
    """A server of one's own, without a memory of its past."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = _free_port()
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{_HOST}:{self.port}"

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ["--port", str(self.port), "--bind", _HOST, "--dir", str(self._folder)]
        options += ["--save", "", "--appendonly", "no", *self._options]
        self._process = subprocess.Popen(
            ["redis-server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _PATIENCE_SECONDS
        with redis.Redis(_HOST, self.port) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.exceptions.ConnectionError:
                    assert time.monotonic() < end, "the server does not start"
                    time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """One that runs."""
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def cluster(folder: Path) -> Iterator[int]:
    """Three primaries with all slots; the port of one of them."""
    with ExitStack() as stack:
        servers = []
        for number in range(3):
            bus = str(_free_port())
            made = Server(folder / str(number), "--cluster-enabled", "yes", "--cluster-port", bus)
            stack.callback(made.stop)
            made.start()
            servers.append(made)
        addresses = [f"{_HOST}:{each.port}" for each in servers]
        create = ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        for each in servers:
            _wait_until_well(each.port)
        yield servers[0].port


def _wait_until_well(port: int) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    with redis.Redis(_HOST, port, decode_responses=True) as client:
        while "cluster_state:ok" not in str(client.execute_command("CLUSTER", "INFO")):
            assert time.monotonic() < end, "the cluster does not come up"
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
