"""A worker that says when its handler has begun, and ends it when it is told to.

python -m tests.runtime.away_worker URL SPOOL LEASE_SECONDS
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from afl.kernel.model import Json
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.worker import Worker, WorkerConfig
from tests.runtime.kept import connect


def main(url: str, spool: Path, lease_seconds: float) -> None:
    goes_on = threading.Event()

    def add(given: Invocation) -> dict[str, Json]:
        x = given.params["x"]
        assert isinstance(x, int)
        print("begun", flush=True)
        goes_on.wait()
        return {"x": x + 1}

    table = HandlerTable()
    table.register("placed.Add", add)
    config = WorkerConfig(
        lease_seconds=lease_seconds, renew_seconds=lease_seconds / 4, spool=spool, service="far"
    )
    Worker(Evaluator(connect(url)), table, config).start()
    sys.stdin.readline()
    goes_on.set()
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
