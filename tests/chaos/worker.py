"""A worker as a process, made to be killed: it claims, has effects, commits, and never listens.

    python -m tests.chaos.worker URL NAME SINK_PORT LOG LEASE_SECONDS SLOTS

When it learns that a task was taken from it, it goes on and commits all the same; the fence has to
stop it. What it does is in its log, each line written before the next step is taken.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from afl.kernel.errors import Fenced, NotFound, StoreUnavailable
from afl.kernel.model import (
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Fence,
    Outcome,
    Suspend,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction, Writes
from afl.kernel.postgres.database import Database, PostgresTransaction
from afl.kernel.postgres.store import PostgresStore
from tests.chaos.sink import SinkClient
from tests.chaos.workload import LEAF, NAMES, ROOT, call_specs

T = TypeVar("T")
_IDLE_SECONDS = 0.05
_AWAY_SECONDS = 0.1
_MAX_WORK_SECONDS = 0.006
_MAX_VALUE = 1_000_000
_MAX_LINGER_SECONDS = 1.0
_BATCH = 3
#: how often a claim reaches the store once more, when its answer has long been used
_LATE_COPIES = 0.05


class Log:
    """One line for each event; a line is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def write(self, event: str, *more: object) -> None:
        os.write(self._file, json.dumps([event, *more]).encode() + b"\n")


class ChaosWorker:
    """One thread works, another renews."""

    def __init__(self, store: PostgresStore, spec: WorkerSpec, sink: SinkClient, log: Log) -> None:
        self._store = store
        self._spec = spec
        self._sink = sink
        self._log = log
        self._random = random.Random()
        self._pause = threading.Event()
        self._parent = os.getppid()
        self._held: deque[Claim] = deque()
        #: leaves that are done and not closed yet
        self._closing: deque[Commit] = deque()
        #: fences of all answers to claims, and those that the store says it has besides
        self._known: set[Fence] = set()
        self._strays: deque[Fence] = deque()
        #: the last request for tasks; each has a token of its own
        self._request = ClaimRequest(worker=spec.id, names=NAMES, token=str(uuid4()))

    def run(self) -> None:
        self._again(lambda: self._store.register(self._spec))
        threading.Thread(target=self._renew, daemon=True).start()
        while os.getppid() == self._parent:
            if not self._held:
                self._give_back()
                last = self._request
                self._go_on()
                self._send_late_copy(last)
            if self._held:
                self._work(self._held[0])
                self._held.popleft()
            elif self._random.random() < 0.2:
                self._again(lambda: self._store.sweep(limit=20))
            else:
                self._pause.wait(_IDLE_SECONDS)

    def _renew(self) -> None:
        beat = self._spec.lease.total_seconds() / 4
        told: set[Fence] = set()
        while not self._pause.wait(beat):
            held = [claim.fence for claim in self._held.copy()]
            held += [commit.fence for commit in self._closing.copy()]
            try:
                renewal = self._store.renew(self._spec.id, held)
            except StoreUnavailable:
                self._log.write("away", "renew")
                continue
            for fence in set(renewal.lost) - told:
                told.add(fence)
                self._log.write("told", fence)
            self._strays.extend(renewal.stray)

    def _give_back(self) -> None:
        """Returns what it was given without knowing. No claim is under way, so what no answer has
        brought will not come."""
        while self._strays:
            fence = self._strays.popleft()
            if fence not in self._known:
                self._known.add(fence)
                self._log.write("stray", fence)
                with suppress(Fenced):
                    self._commit(Commit(fence, Suspend()))

    def _go_on(self) -> None:
        """Closes what is done and claims the next, in one transaction if it can be."""
        if self._closing:
            self._close_leaves(self._next_request(self._spec.slots))
        else:
            self._claim()

    def _send_late_copy(self, request: ClaimRequest) -> None:
        """A copy of a claim that was held up on its way. Nobody waits for its answer."""
        if self._random.random() < _LATE_COPIES:
            with suppress(NotFound, StoreUnavailable):
                self._store.claim(request)

    def _next_request(self, n: int) -> ClaimRequest:
        self._request = replace(self._request, n=n, token=str(uuid4()))
        return self._request

    def _claim(self) -> None:
        request = self._next_request(self._spec.slots)
        try:
            claims = self._again(lambda: self._store.claim(request))
        except NotFound:
            return  # given up while it was stopped; the next renewal brings it back
        self._take(claims)

    def _take(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._log.write("claim", claim.task.id, claim.fence)
            self._known.add(claim.fence)
            self._held.append(claim)

    def _work(self, claim: Claim) -> None:
        if claim.task.crashes and self._random.random() < 0.5:
            # whoever had it before may wake up: let some of them find it in other hands
            self._pause.wait(self._random.uniform(0, _MAX_LINGER_SECONDS))
        try:
            if claim.task.name == LEAF:
                self._leaf(claim)
            else:
                self._caller(claim)
        except Fenced:
            pass  # logged; the task is somebody else's now

    def _leaf(self, claim: Claim) -> None:
        key, fence = str(claim.task.input), claim.fence
        self._commit(Commit(fence, Continue(), 0, (CardSpec("begun", fence),)))
        value = self._sink.effect(
            key, self._random.randrange(_MAX_VALUE), str(self._spec.id), fence
        )
        self._pause.wait(self._random.uniform(0, _MAX_WORK_SECONDS))
        close = Close(Outcome.SUCCESS, value)
        self._closing.append(Commit(fence, close, 1, (CardSpec("value", value),)))
        if len(self._closing) == _BATCH:
            self._close_leaves()

    def _close_leaves(self, request: ClaimRequest | None = None) -> None:
        """All in one transaction; if one of them is lost, each by itself."""
        commits = tuple(self._closing)

        def send() -> list[Claim]:
            for commit in commits:
                self._log.write("send", commit.fence, commit.number)
            if request is not None:
                return self._store.commit_and_claim(commits, request)[1]
            self._store.commit(commits)
            return []

        try:
            self._take(self._again(send))
        except Fenced:
            for commit in commits:
                with suppress(Fenced):
                    self._commit(commit)
        else:
            for commit in commits:
                self._log.write("ok", commit.fence, commit.number)
        self._closing.clear()

    def _caller(self, claim: Claim) -> None:
        task, fence = claim.task, claim.fence
        if not task.seq:
            calls = call_specs(task.name, str(task.input))
            called = CardSpec("called", [call.key for call in calls])
            self._commit(Commit(fence, Suspend(), 0, (called,), calls))
            return
        cards = tuple(
            CardSpec("answer", {"key": reply.key, "value": reply.reply}) for reply in claim.replies
        )
        journal = self._again(lambda: self._store.read_box(task.id))
        taken = [card.content for card in journal if card.kind == "answer"]
        answers = {
            str(answer["key"]): answer["value"]
            for answer in (*taken, *(card.content for card in cards))
            if isinstance(answer, dict)
        }
        applied = tuple(reply.id for reply in claim.replies)
        if len(answers) < 2:
            self._commit(Commit(fence, Suspend(), 0, cards, applied=applied))
            return
        total = sum(value for value in answers.values() if isinstance(value, int))
        close = Close(Outcome.SUCCESS, total)
        self._commit(
            Commit(fence, close, 0, cards, applied=applied),
            _note_done(str(task.input), fence) if task.name == ROOT else None,
        )

    def _commit(self, commit: Commit, writes: Writes | None = None) -> None:
        free = self._spec.slots - len(self._held) - len(self._closing)
        then_claim = free > 0 and not isinstance(commit.then, Continue)
        request = self._next_request(free) if then_claim else None

        def send() -> list[Claim]:
            self._log.write("send", commit.fence, commit.number)
            if request is not None:
                return self._store.commit_and_claim([commit], request, writes=writes)[1]
            self._store.commit([commit], writes=writes)
            return []

        try:
            claims = self._again(send)
        except Fenced:
            self._log.write("fenced", commit.fence, commit.number)
            raise
        self._log.write("ok", commit.fence, commit.number)
        self._take(claims)

    def _again(self, act: Callable[[], T]) -> T:
        """The same again for as long as the store is away."""
        while True:
            try:
                return act()
            except StoreUnavailable as error:
                self._log.write("away", str(error))
                self._pause.wait(_AWAY_SECONDS)


def _note_done(root: str, fence: Fence) -> Writes:
    """A write of our own in the transaction of the commit."""

    def write(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        transaction.cursor.execute("insert into chaos.done values (%s, %s)", [root, fence])

    return write


def main(url: str, name: str, port: str, log: str, lease: str, slots: str) -> None:
    spec = WorkerSpec(
        id=WorkerId(name),
        name=name,
        handlers=NAMES,
        slots=int(slots),
        lease=timedelta(seconds=float(lease)),
    )
    store = PostgresStore(Database(url, min_size=2, max_size=2))
    with store, SinkClient(int(port)) as sink:
        ChaosWorker(store, spec, sink, Log(Path(log))).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
