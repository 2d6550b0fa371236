"""Restate on the flows of `bench.flow`: FOLDER SERVER_BINARY.

Runs in an environment of its own (see `flow_peers`). One node of the server with its defaults, its
data in the folder; the service, whose steps are `run`s of its context, in a process of its own with
Hypercorn, as its documentation has it. Flows are started through its HTTP ingress.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import httpx  # type: ignore[import-not-found]

from bench.flow_side import MOST_CLIENTS, serve

_STARTING_SECONDS = 60
_SERVICE = "bench.flow_peer_restate_service:app"


class Restate:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def flow(self, shape: str, client: int) -> int:
        answer = await self._client.post(f"/bench/{shape}", json=0)
        answer.raise_for_status()
        return int(answer.json())


@contextmanager
def program(command: list[str], settings: dict[str, str]) -> Iterator[None]:
    """A process that ends with this."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},  # noqa: TID251 - for a program that is not ours
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def settings(folder: Path, node: int, ingress: int, admin: int) -> dict[str, str]:
    return {
        "RESTATE_BASE_DIR": str(folder),
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_LOG_FILTER": "error",
        "DO_NOT_TRACK": "1",
    }


async def deploy(admin: int, service: int) -> None:
    """Tells the server of the service, as soon as both are there."""
    async with asyncio.timeout(_STARTING_SECONDS), httpx.AsyncClient(timeout=30) as client:
        while True:
            try:
                answer = await client.post(
                    f"http://127.0.0.1:{admin}/deployments",
                    json={"uri": f"http://127.0.0.1:{service}", "force": True},
                )
            except httpx.TransportError:
                pass
            else:
                if answer.is_success:
                    return
            await asyncio.sleep(0.1)


def free_ports(number: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


async def main(folder: Path, binary: str) -> None:
    node, ingress, admin, service = free_ports(4)
    hypercorn = [sys.executable, "-m", "hypercorn", "--log-level", "error"]
    limits = httpx.Limits(max_connections=MOST_CLIENTS, max_keepalive_connections=MOST_CLIENTS)
    with (
        program([binary, "--no-logo"], settings(folder, node, ingress, admin)),
        program([*hypercorn, "--bind", f"127.0.0.1:{service}", _SERVICE], {}),
    ):
        await deploy(admin, service)
        url = f"http://127.0.0.1:{ingress}"
        async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
            await serve(Restate(client), f"restate-sdk {version('restate-sdk')}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
