"""A worker on a host whose link is cut: it does what cannot be taken back, and notes when it began.

    python -m tests.chaos.link_worker URL EFFECTS LEASE_SECONDS

Lines of EFFECTS: the item, and the time of day at which its effect began.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from afl.kernel.model import Json
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.worker import Worker, WorkerConfig

SERVICE = "far"
FLOW = """
namespace far {
  event facet Wire(item: String) => (done: Boolean) with Effect(kind = irreversible)

  workflow All(items: [String]) => (done: [Boolean]) andThen foreach item in $.items limit 4 {
    w = Wire(item = $.item)
    yield All(done = [w.done])
  }
}
"""
_WORK_SECONDS = 0.02


def main(url: str, effects: Path, lease_seconds: float) -> None:
    def wire(given: Invocation) -> dict[str, Json]:
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{given.params['item']} {time.time()!r}\n")
        time.sleep(_WORK_SECONDS)
        return {"done": True}

    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    table = HandlerTable()
    table.register("far.Wire", wire)
    config = WorkerConfig(
        slots=4, lease_seconds=lease_seconds, renew_seconds=lease_seconds / 4, service=SERVICE
    )
    worker = Worker(Evaluator(PostgresPersistence.connect(url)), table, config)
    worker.start()
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
