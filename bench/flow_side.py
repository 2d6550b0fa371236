"""The side of one system in the measurement of flows: what its program does when it is told to.

Runs in the environment of a peer, so it imports nothing but the standard library. It talks in
lines: `run SHAPE CLIENTS SECONDS` is answered by a line of JSON with how long it took and how long
each flow took. So many clients start a flow, wait for its end and start the next until the time is
up; what is under way then is waited for, and is in the time. The end of the input ends the program.

Every step is handed a number and answers with the next one. So the result tells whether every step
was done.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

SEQUENCE, FAN = "sequence", "fan"
#: How many steps a flow has: one after the other, or all at once.
STEPS: Mapping[str, int] = {SEQUENCE: 10, FAN: 100}
#: What comes out: ten steps on from 0; the sum of one on from each of 0 to 99.
RESULTS: Mapping[str, int] = {SEQUENCE: 10, FAN: sum(range(1, 101))}
MOST_CLIENTS = 64
#: What is still under way when the time is up has so long to end.
_PATIENCE_SECONDS = 120.0


class WrongResult(Exception):
    """A flow that did not come to what its steps come to."""


class Side(Protocol):
    """A system that is ready to run flows."""

    async def flow(self, shape: str, client: int) -> int:
        """Runs one flow to its durable end; answers with its result. Clients are 0, 1, 2 ..."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: how long it took in all, and every flow."""

    seconds: float
    taken: list[float]

    def steps_per_second(self, shape: str) -> float:
        return len(self.taken) * STEPS[shape] / self.seconds


async def drive(side: Side, shape: str, clients: int, seconds: float) -> Sample:
    """Lets clients run flows, one after the other each, for so long, and at least one."""
    taken: list[float] = []
    begun = time.monotonic()

    async def client(number: int) -> None:
        while True:
            start = time.monotonic()
            result = await side.flow(shape, number)
            now = time.monotonic()
            if result != RESULTS[shape]:
                raise WrongResult(f"a flow came to {result} instead of {RESULTS[shape]}")
            taken.append(now - start)
            if now >= begun + seconds:
                return

    async with asyncio.timeout(seconds + _PATIENCE_SECONDS):
        await asyncio.gather(*map(client, range(clients)))
    return Sample(time.monotonic() - begun, taken)


async def serve(side: Side, version: str) -> None:
    """Says which version it is, and then does what the lines of the input say."""
    # one more, for the thread that reads the lines
    threads = ThreadPoolExecutor(MOST_CLIENTS + 1)
    asyncio.get_running_loop().set_default_executor(threads)
    _say(version)
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["run", shape, clients, seconds]:
                sample = await drive(side, shape, int(clients), float(seconds))
                _say(json.dumps([sample.seconds, sample.taken]))
            case words:
                raise SystemExit(f"what is {words}?")


def _say(text: str) -> None:
    print(text, flush=True)
