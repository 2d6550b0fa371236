"""The side of a peer in a measurement: what its program does when `kernel_peers` tells it to.

Runs in the peer's own environment, so it imports nothing but the standard library. The two talk in
lines: `produce SECONDS` is answered by how many jobs were made, `done MADE` by how many are done,
`clear` by nothing of interest. The end of the input ends the program.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol


class Side(Protocol):
    """A queue with a running worker, whose handler does nothing."""

    async def produce(self, seconds: float) -> int:
        """Makes jobs for so long, with all clients; answers how many."""
        ...

    async def done(self, made: int) -> int:
        """How many jobs the queue itself has on record as done, of so many that were made."""
        ...

    async def clear(self) -> None:
        """Removes every job and every record of one."""
        ...


async def serve(side: Side) -> None:
    """Does what the lines of the input say."""
    _say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["produce", seconds]:
                _say(str(await side.produce(float(seconds))))
            case ["done", made]:
                _say(str(await side.done(int(made))))
            case ["clear"]:
                await side.clear()
                _say("cleared")
            case words:
                raise SystemExit(f"what is {words}?")


def _say(text: str) -> None:
    print(text, flush=True)
