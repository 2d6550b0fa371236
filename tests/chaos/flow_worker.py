"""The product's worker as a process, with handlers that have effects, made to be killed.

    python -m tests.chaos.flow_worker URL NAME SINK_PORT LOG LEASE_SECONDS SLOTS

Handlers are keyed: they hand the sink the key of their step, which stays the same however often the
step is tried. What is committed is in the log, each line written before the next step is taken.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from afl.kernel.errors import Fenced
from afl.kernel.model import Claim, ClaimRequest, Commit, Committed, Renewal, WorkerId
from afl.kernel.port import Store, Writes
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation, Result
from afl.runtime.mongo_store import MongoStore
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.step import step_id
from afl.runtime.worker import Worker, WorkerConfig
from tests.chaos.flow_workload import Broken, breaks, stumbles
from tests.chaos.sink import SinkClient
from tests.chaos.worker import Log

T = TypeVar("T")
_MAX_WORK_SECONDS = 0.02
#: some take so much longer that a fault is sure to find them at it
_LONG_WORK_SECONDS = 0.5
_LONG_SHARE = 0.15
#: renewals are held up on their way, so that a worker often commits what it has lost unknowingly
_MAX_RENEWAL_SECONDS = 0.2
_CONNECTIONS = 4
_WATCH_SECONDS = 0.5


def note_commits(store: Store, log: Log) -> None:
    """Has a store note what it is told to commit, and what becomes of it; and renew slowly."""
    renew, commit, commit_and_claim = store.renew, store.commit, store.commit_and_claim

    def renew_slowly(worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        time.sleep(random.uniform(0, _MAX_RENEWAL_SECONDS))
        return renew(worker, held)

    def noted_commit(
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        return _noted(log, commits, lambda: commit(commits, writes=writes, eager=eager))

    def noted_commit_and_claim(
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        return _noted(log, commits, lambda: commit_and_claim(commits, request, writes=writes))

    vars(store).update(
        renew=renew_slowly, commit=noted_commit, commit_and_claim=noted_commit_and_claim
    )


def _noted(log: Log, commits: Sequence[Commit], act: Callable[[], T]) -> T:
    for commit in commits:
        log.write("send", commit.fence, commit.number)
    try:
        answer = act()
    except Fenced:
        # of several, nobody knows which; the worker sends each again by itself
        if len(commits) == 1:
            log.write("fenced", commits[0].fence, commits[0].number)
        raise
    for commit in commits:
        log.write("ok", commit.fence, commit.number)
    return answer


def connect(url: str) -> PersistenceAPI:
    if url.startswith("mongodb"):
        return MongoStore.connect(url, max_size=_CONNECTIONS)
    return PostgresPersistence.connect(url, max_size=_CONNECTIONS)


class Handlers:
    """What the steps do: they tell the sink, take their time, and some of them fail."""

    def __init__(self, name: str, sink_port: int) -> None:
        self._name = name
        self._sink_port = sink_port
        self._random = random.Random()
        self._of_thread = threading.local()

    def table(self) -> HandlerTable:
        table = HandlerTable()
        table.register("chaos.Do", self.do)
        table.register("chaos.Stumble", self.stumble)
        table.register("chaos.Risk", self.risk)
        return table

    def do(self, invocation: Invocation) -> Result:
        return {"n": self._effect(invocation)}

    def stumble(self, invocation: Invocation) -> Result:
        n = self._effect(invocation)
        if invocation.attempt <= stumbles(n):
            raise Broken(f"attempt {invocation.attempt} at {n} fails")
        return {"n": n}

    def risk(self, invocation: Invocation) -> Result:
        n = self._effect(invocation)
        if breaks(n):
            raise Broken(f"{n} fails")
        return {"n": n}

    def _effect(self, invocation: Invocation) -> int:
        given, n = invocation.task.input, invocation.params["n"]
        assert isinstance(given, dict)
        assert isinstance(n, int)
        key = step_id(str(given["run"]), str(given["step"]))
        value = self._sink().effect(key, n, self._name, invocation.task.fence or 0)
        is_long = self._random.random() < _LONG_SHARE
        time.sleep(self._random.uniform(0, _LONG_WORK_SECONDS if is_long else _MAX_WORK_SECONDS))
        return value

    def _sink(self) -> SinkClient:
        sink: SinkClient | None = getattr(self._of_thread, "sink", None)
        if sink is None:
            sink = self._of_thread.sink = SinkClient(self._sink_port)
        return sink


def main(url: str, name: str, port: str, log: str, lease: str, slots: str) -> None:
    # that tasks are lost to others is what this is about
    logging.disable(logging.CRITICAL)
    parent = os.getppid()
    persistence = connect(url)
    note_commits(persistence.kernel, Log(Path(log)))
    config = WorkerConfig(
        slots=int(slots), lease_seconds=float(lease), renew_seconds=float(lease) / 4, name=name
    )
    with closing(persistence):
        evaluator = Evaluator(persistence)
        table = Handlers(name, int(port)).table()
        worker = Worker(evaluator, table, config, id=WorkerId(name))
        worker.start()
        while worker.is_running and os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
