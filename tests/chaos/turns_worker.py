"""The product's turn worker as a process, made to be killed: one that thinks, or one that serves
tools which have effects.

    python -m tests.chaos.turns_worker URL NAME SINK_PORT LEASE_SECONDS

A name that begins with `turn` thinks; all others serve tools. Tools hand the sink the key of their
call, which stays the same however often they are tried.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from afl.kernel.model import Claim, Close, Outcome, WorkerId
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.waiting import PollPolicy
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.model import ModelRequest, Reply
from afl.turns.models.scripted import ScriptedModel
from afl.turns.ports import Listener
from afl.turns.postgres_store import PostgresTurnStore
from afl.turns.prices import PriceBook
from afl.turns.worker import TurnWorker, TurnWorkerConfig
from tests.chaos.sink import SinkClient
from tests.chaos.turns_workload import BRIEF, LIST, TOOLS, answer
from tests.turns.driving import FacetTools, FixedBriefs, OneModel

#: together, two workers have all turns of a full run in hand at once
_TURN_SLOTS, _TOOL_SLOTS = 250, 20
_MODEL_SECONDS, _TOOL_SECONDS = 0.2, 0.03
#: some tools take so much longer that a fault is sure to find them at it
_LONG_TOOL_SECONDS, _LONG_SHARE = 0.5, 0.1
_CONNECTIONS = 4
_WATCH_SECONDS = 0.5


class SlowModel(ScriptedModel):
    """Takes its time, so that a fault finds many turns in the middle of a request."""

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        await asyncio.sleep(random.uniform(0, _MODEL_SECONDS))
        return await super().ask(request, listener)


class EffectTools:
    """Serves the tools: each tells the sink, and answers with what the sink has."""

    def __init__(self, name: str, sink_port: int) -> None:
        self._name = name
        self._sink = SinkClient(sink_port)
        self._thread = ThreadPoolExecutor(1)

    def names(self) -> tuple[str, ...]:
        return TOOLS

    async def serve(self, claim: Claim) -> Close:
        given, key = claim.task.input, claim.task.parent_call
        assert isinstance(given, dict)
        assert key is not None
        n = given["n"]
        assert isinstance(n, int)
        loop = asyncio.get_running_loop()
        done = await loop.run_in_executor(
            self._thread, self._sink.effect, key, n, self._name, claim.fence
        )
        is_long = random.random() < _LONG_SHARE
        await asyncio.sleep(random.uniform(0, _LONG_TOOL_SECONDS if is_long else _TOOL_SECONDS))
        return Close(Outcome.SUCCESS, result=done)


def main(url: str, name: str, sink_port: str, lease: str) -> None:
    # that tasks are lost to others is what this is about
    logging.disable(logging.CRITICAL)
    parent = os.getppid()
    thinks = name.startswith("turn")
    with PostgresStore.connect(url, max_size=_CONNECTIONS) as kernel:
        loop = TurnLoop(
            PostgresTurnStore(kernel),
            OneModel(SlowModel(answer)),
            PriceBook(),
            FixedBriefs(BRIEF),
            FacetTools(),
            SilentFeed(),
        )
        config = TurnWorkerConfig(
            slots=_TURN_SLOTS if thinks else _TOOL_SLOTS,
            lists=("default",) if thinks else (LIST,),
            store_threads=_CONNECTIONS,
            lease_seconds=float(lease),
            renew_seconds=float(lease) / 4,
            poll=PollPolicy(0.02, 0.2),
            name=name,
        )
        servers = () if thinks else (EffectTools(name, int(sink_port)),)
        worker = TurnWorker(loop, config, servers=servers, id=WorkerId(name))
        worker.start()
        while worker.is_running and os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
