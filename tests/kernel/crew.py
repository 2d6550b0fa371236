"""Many workers on real connections, some of which die or come back too late: every task is closed
exactly once, every effect that shares a transaction with its task happens exactly once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import timedelta

from afl.kernel.errors import Fenced, NotFound
from afl.kernel.model import (
    CallSpec,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    State,
    Suspend,
    TaskId,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store, Transaction, Writes
from afl.testing.conformance.invariants import check

CALLS = 3
THREADS = 8
LEASE = timedelta(seconds=2)
CALL = timedelta(minutes=10)
NAMES = ("flow", "tool")

#: Notes, in the transaction, that these tasks are closed.
Mark = Callable[[Transaction, Sequence[TaskId]], None]


@dataclass(slots=True)
class Crew:
    """Workers in threads, and what happened to them."""

    store: Store
    mark: Mark
    is_unfinished: Callable[[], bool]
    stop: threading.Event = field(default_factory=threading.Event)
    seen: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str) -> None:
        with self.lock:
            self.seen[what] += 1

    def work(self, number: int) -> None:
        chance = random.Random(number)
        life = 0
        while not self.stop.is_set():
            life += 1
            worker = WorkerId(f"w{number}.{life}")
            self.store.register(WorkerSpec(worker, "crew", handlers=NAMES, lease=LEASE))
            self._live(worker, chance)

    def _live(self, worker: WorkerId, chance: random.Random) -> None:
        """Until the worker dies with all that it holds, or learns that it has lost something."""
        while not self.stop.is_set():
            try:
                self.store.renew(worker)
                names = NAMES if chance.random() < 0.5 else ("tool",)
                held = self.store.claim(ClaimRequest(worker, names, n=chance.randint(1, 6)))
            except NotFound:
                return  # expired between the two
            if not held:
                self._look_around()
                continue
            if chance.random() < 0.01:
                self.note("died")
                return
            if chance.random() < 0.01:
                self.store.stop(held[0].task.id, force=True)
            try:
                while held:
                    held = self._take_steps(worker, held, chance)
            except Fenced:
                self.note("fenced")
                return

    def _look_around(self) -> None:
        """Nothing to do: because of something that time has made wrong, or because all is done."""
        if not self.store.sweep().total and not self.is_unfinished():
            self.stop.set()

    def _take_steps(
        self, worker: WorkerId, held: Sequence[Claim], chance: random.Random
    ) -> list[Claim]:
        """One commit for all; answers what it brought. At times again, as after a lost answer."""
        commits = [_step(claim, chance) for claim in held]
        eager = ClaimRequest(worker, NAMES, n=3, token=f"{worker}/{held[0].fence}")
        effects = self._effects(held, commits)
        done = self.store.commit(commits, writes=effects, eager=eager)
        if chance.random() < 0.05:
            self.note("repeated")
            again = self.store.commit(commits, writes=effects, eager=eager)
            assert [each.calls for each in again] == [each.calls for each in done]
        return [claim for each in done for claim in each.eager]

    def _effects(self, held: Sequence[Claim], commits: Sequence[Commit]) -> Writes:
        """Counts, in the transaction itself, which tasks were closed."""
        closing = [
            claim.task.id
            for claim, commit in zip(held, commits, strict=True)
            if isinstance(commit.then, Close)
        ]
        return lambda transaction: self.mark(transaction, closing)


def _step(claim: Claim, chance: random.Random) -> Commit:
    task = claim.task
    if task.name == "tool":
        return Commit(claim.fence, Close(Outcome.SUCCESS, result=task.input))
    applied = tuple(call.id for call in claim.replies)
    total = task.seq + len(applied)  # each answer leaves a card, so cards count answers
    cards = tuple(_card(call.key) for call in claim.replies)
    if total == CALLS:
        return Commit(claim.fence, Close(Outcome.SUCCESS), applied=applied, cards=cards)
    calls = () if task.seq or applied else tuple(_call(n, chance) for n in range(CALLS))
    return Commit(claim.fence, Suspend(), applied=applied, cards=cards, calls=calls)


def _card(key: str) -> CardSpec:
    return CardSpec("answer", key)


def _call(number: int, chance: random.Random) -> CallSpec:
    lane = f"lane{chance.randrange(4)}" if chance.random() < 0.3 else None
    return CallSpec(f"k{number}", TaskSpec("tool", "tool", lane=lane, input=number), CALL)


def work_off(crew: Crew, flows: int) -> None:
    """Makes so many flows and has the crew do them all, with all that happens to a crew."""
    spec = TaskSpec("flow", "flow", wake=Wake.ANY, max_crashes=1000)
    for _ in range(10):
        crew.store.enqueue([spec] * (flows // 10))
    with ThreadPoolExecutor(THREADS) as pool:
        workers = [pool.submit(crew.work, number) for number in range(THREADS)]
        for worker in as_completed(workers):
            crew.stop.set()  # all is done, or one has failed and the others need not go on
            worker.result()
    assert _all_closed(crew.store) >= flows * (1 + CALLS) * 0.9  # stopped flows call nobody
    assert check(crew.store) == []
    assert crew.seen["died"] > 0, "this run has shown nothing about crashes"
    assert crew.seen["fenced"] > 0
    assert crew.seen["repeated"] > 0


def _all_closed(store: Store) -> int:
    """How many tasks there are, every one of them closed with one event."""
    tasks, last = 0, None
    while page := store.find_tasks(after=last, limit=1000):
        assert {task.state for task in page} == {State.CLOSED}
        tasks, last = tasks + len(page), page[-1].id
    events = Counter(e.task for e in store.read_outbox(limit=100_000) if e.topic == "closed")
    assert set(events.values()) == {1}
    assert len(events) == tasks
    return tasks
