"""A turn worker as a process of its own, for tests that kill it:
`worker_process KIND URL FOLDER NAME`.

Its model answers request n of a turn when the file `n.go` is in the folder; that it was asked, and
by whom, is told by a file `n.asked.NAME`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from afl.kernel.waiting import PollPolicy
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.model import ModelRequest, Reply
from afl.turns.models.scripted import Answer, Call, ScriptedModel, thoughts
from afl.turns.ports import Listener
from afl.turns.prices import PriceBook
from afl.turns.worker import TurnWorker, TurnWorkerConfig
from tests.turns.driving import FacetTools, FixedBriefs, OneModel, brief, tool
from tests.turns.lasting_stores import lasting_store

LEASE_SECONDS = 1.5
SCRIPT = [
    Answer(calls=(Call("no_such_tool", {"n": 1}),), delay_seconds=0.1),
    Answer(calls=(Call("no_such_tool", {"n": 2}),), delay_seconds=0.1),
    Answer("All is tidy.", delay_seconds=0.1),
]


class Gated(ScriptedModel):
    """Waits for a file before each answer."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(SCRIPT)
        self._folder = folder
        self._name = name

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        number = thoughts(request)
        (self._folder / f"{number}.asked.{self._name}").touch()
        while not (self._folder / f"{number}.go").exists():
            await asyncio.sleep(0.01)
        return await super().ask(request, listener)


def main(kind: str, url: str, folder: str, name: str) -> None:
    with lasting_store(kind, url, max_size=4) as store:
        loop = TurnLoop(
            store,
            OneModel(Gated(Path(folder), name)),
            PriceBook(),
            FixedBriefs(brief(tool("sweep"))),
            FacetTools(),
            SilentFeed(),
        )
        config = TurnWorkerConfig(
            lease_seconds=LEASE_SECONDS,
            renew_seconds=0.3,
            poll=PollPolicy(0.02, 0.1),
            store_threads=2,
        )
        TurnWorker(loop, config).start()
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
