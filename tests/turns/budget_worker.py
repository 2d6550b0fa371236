"""A turn worker as a process of its own, whose model costs seven cents a request.

    python -m tests.turns.budget_worker KIND URL NAME

It tells on its output that it is there, begins when it is told to, and ends with its input.
"""

from __future__ import annotations

import sys
from decimal import Decimal

from afl.kernel.model import WorkerId
from afl.kernel.waiting import PollPolicy
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.models.scripted import Answer, Call, ScriptedModel
from afl.turns.prices import PriceBook, Rate
from afl.turns.worker import TurnWorker, TurnWorkerConfig
from tests.turns.driving import SCRIPTED, FacetTools, FixedBriefs, OneModel, brief, tool
from tests.turns.lasting_stores import lasting_store

CALL_USD = Decimal("0.07")
#: The first answer is handed back, so that a turn asks twice.
SCRIPT = [
    Answer(calls=(Call("no_such_tool", {"n": 1}),), delay_seconds=0.01),
    Answer("Done.", delay_seconds=0.01),
]


def main(kind: str, url: str, name: str) -> None:
    with lasting_store(kind, url, max_size=3) as store:
        loop = TurnLoop(
            store,
            OneModel(ScriptedModel(SCRIPT)),
            PriceBook({SCRIPTED: Rate(request=CALL_USD)}.get),
            FixedBriefs(brief(tool("sweep"))),
            FacetTools(),
            SilentFeed(),
        )
        config = TurnWorkerConfig(slots=4, poll=PollPolicy(0.02, 0.1), store_threads=3, name=name)
        worker = TurnWorker(loop, config, id=WorkerId(name))
        print("there", flush=True)
        sys.stdin.readline()
        worker.start()
        sys.stdin.read()
        worker.drain(5.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
