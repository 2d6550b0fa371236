"""Stores and workers that are wrong on purpose. The simulation must find out every one of them.

Each mutant takes away one thing that the kernel does. If one survives, either that thing is not
needed or the simulation cannot see that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.kernel import rules
from afl.kernel.errors import Fenced, NotFound
from afl.kernel.machine import mending, transitions
from afl.kernel.machine.claims import claim_out
from afl.kernel.machine.copies import changed
from afl.kernel.memory import MemoryStore, sweeps
from afl.kernel.memory.rows import Lane, LaneKey, Rows
from afl.kernel.memory.transaction import Journal
from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    Json,
    Outcome,
    State,
    Swept,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
)
from afl.kernel.port import Writes
from afl.testing.clock import SequentialIds, VirtualClock
from afl.testing.simulation.run import Result, run_schedule
from afl.testing.simulation.scenario import Piece
from afl.testing.simulation.scheduler import Actor, Plan, Simulation
from afl.testing.simulation.steps import Ask, Steps
from afl.testing.simulation.worker import Worker
from afl.testing.simulation.world import MemoryWorld, World


class InTwoSteps(MemoryStore):
    """Commits, and then claims, so that what is wrong with either is wrong with both together."""

    def commit_and_claim(
        self, commits: Sequence[Commit], request: ClaimRequest, *, writes: Writes | None = None
    ) -> tuple[list[Committed], list[Claim]]:
        done = self.commit(commits, writes=writes, eager=request)
        claims = [claim for committed in done for claim in committed.eager]
        if not claims:
            with suppress(NotFound):
                claims = self.claim(request)
        return done, claims


class _Remembering(InTwoSteps):
    """Knows whose every fence was, even when it is not held any more."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        super().__init__(clock, ids)
        self._given: dict[Fence, TaskId] = {}

    def claim(self, request: ClaimRequest) -> list[Claim]:
        claims = super().claim(request)
        self._given.update((claim.fence, claim.task.id) for claim in claims)
        return claims

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        done = super().commit(commits, writes=writes, eager=eager)
        self._given.update((c.fence, c.task.id) for each in done for c in each.eager)
        return done


class NoFenceCheck(_Remembering):
    """Whoever commits to a running task counts as its holder."""

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        commits = [self._as_holder(commit) for commit in commits]
        return super().commit(commits, writes=writes, eager=eager)

    def _as_holder(self, commit: Commit) -> Commit:
        task = self._rows.tasks[self._given[commit.fence]]
        if task.fence is None or task.fence == commit.fence:
            return commit
        number = task.commits if task.committed_fence == task.fence else 0
        return replace(commit, fence=task.fence, number=number)


class BlindWrite(_Remembering):
    """A commit that misses is written anyhow, whatever has become of the task."""

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        try:
            return super().commit(commits, writes=writes, eager=eager)
        except Fenced:
            for commit in commits:
                self._force(self._given[commit.fence], commit)
            return [Committed(self._rows.tasks[self._given[c.fence]]) for c in commits]

    def _force(self, id: TaskId, commit: Commit) -> None:
        with self._transaction as rows:
            task = rows.tasks[id]
            if isinstance(commit.then, Close) and task.state is not State.CLOSED:
                transitions.close(rows, task, commit.then.outcome, result=commit.then.result)


class TerminalOverwrite(BlindWrite):
    """A late end takes the place of the end that a task has."""

    def _force(self, id: TaskId, commit: Commit) -> None:
        task = self._rows.tasks[id]
        if task.state is not State.CLOSED or not isinstance(commit.then, Close):
            raise Fenced("not closed")
        self._rows.tasks[id] = replace(task, outcome=commit.then.outcome)


class AnswerAfterCommit(InTwoSteps):
    """Closing and answering the caller are two writes; the second comes with the worker's next."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        super().__init__(clock, ids)
        self._owed: list[tuple[WorkerId | None, CallId, CallStatus, Json]] = []

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        holder = self._rows.tasks.get(self._rows.by_fence.get(commits[0].fence, TaskId("")))
        worker = None if holder is None else holder.worker

        def later(rows: Rows, call: Call, status: CallStatus, body: Json) -> bool:
            self._owed.append((worker, call.id, status, body))
            return True

        with patch.object(transitions, "answer", later):
            return super().commit(commits, writes=writes, eager=eager)

    def claim(self, request: ClaimRequest) -> list[Claim]:
        owed = [debt for debt in self._owed if debt[0] == request.worker]
        self._owed = [debt for debt in self._owed if debt[0] != request.worker]
        for _, call, status, body in owed:
            self.reply(call, status, body)
        return super().claim(request)


class AckBeforeCommit(MemoryStore):
    """Says that a close was committed, and commits it when somebody claims next."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        super().__init__(clock, ids)
        self._later: list[tuple[Sequence[Commit], Writes | None]] = []

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        held = [self._rows.by_fence.get(commit.fence) for commit in commits]
        if None in held or not all(isinstance(commit.then, Close) for commit in commits):
            return super().commit(commits, writes=writes, eager=eager)
        self._later.append((commits, writes))
        return [Committed(self._rows.tasks[task]) for task in held if task is not None]

    def commit_and_claim(
        self, commits: Sequence[Commit], request: ClaimRequest, *, writes: Writes | None = None
    ) -> tuple[list[Committed], list[Claim]]:
        claims: list[Claim] = []
        with suppress(NotFound):
            claims = self.claim(request)
        return self.commit(commits, writes=writes), claims

    def claim(self, request: ClaimRequest) -> list[Claim]:
        later, self._later = self._later, []
        for commits, writes in later:
            try:
                super().commit(commits, writes=writes)
            except Fenced:
                continue
        return super().claim(request)


class NoSweep(MemoryStore):
    """Waits for a doorbell that never rings: what time makes wrong stays wrong."""

    def sweep(self, limit: int = 100) -> Swept:
        return Swept()


class UncheckedPop(InTwoSteps):
    """Finds a task, and takes it without looking whether somebody else was faster."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        super().__init__(clock, ids)
        self._seen: TaskId | None = None

    def claim(self, request: ClaimRequest) -> list[Claim]:
        claims = super().claim(request)
        if claims:
            self._seen = claims[0].task.id
            return claims
        task = None if self._seen is None else self._rows.tasks[self._seen]
        if task is None or task.state is not State.RUNNING:
            return claims
        with self._transaction as rows:
            taken = transitions.take(rows, task, request.worker, request.token)
            return [claim_out(rows, taken)]


class WatchdogWithoutCondition(MemoryStore):
    """Finds the tasks of lost workers, and recovers them later without looking again."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        super().__init__(clock, ids)
        self._found: list[TaskId] = []

    def sweep(self, limit: int = 100) -> Swept:
        found, self._found = self._found, sweeps._find_lost_tasks(self._rows, limit)
        for id in found:
            with self._transaction as rows:
                if rows.tasks[id].state is State.RUNNING:
                    transitions.recover(rows, rows.tasks[id])
        return super().sweep(limit)


class ExtendWithoutOwner(MemoryStore):
    """Whoever knows the name of a lock can extend it."""

    def extend_lock(self, key: str, token: str, duration: timedelta) -> bool:
        lock = self.get_lock(key)
        return lock is not None and super().extend_lock(key, lock.token, duration)


class SecondReplyOverwrites(MemoryStore):
    """The last answer wins."""

    def reply(self, call: CallId, status: CallStatus, body: Json = None) -> bool:
        with self._transaction as rows:
            row = rows.calls[call]
            if row.status is not CallStatus.OPEN:
                rows.put_call(changed(row, status=status, reply=body))
                return True
        return super().reply(call, status, body)


class ForgottenIdem(MemoryStore):
    """A submit that is repeated makes another task."""

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        return super().enqueue([replace(spec, idem=None) for spec in specs], writes)


class ForgottenToken(InTwoSteps):
    """A claim that is repeated takes other tasks, and nobody knows about the first ones."""

    def claim(self, request: ClaimRequest) -> list[Claim]:
        return super().claim(replace(request, token=None))


class ClaimWhenFenced(MemoryStore):
    """What comes with a commit is taken even if the commit is refused."""

    def commit_and_claim(
        self, commits: Sequence[Commit], request: ClaimRequest, *, writes: Writes | None = None
    ) -> tuple[list[Committed], list[Claim]]:
        try:
            return super().commit_and_claim(commits, request, writes=writes)
        except Fenced:
            with suppress(NotFound):
                self.claim(request)
            raise


class HandoverForgotten(MemoryStore):
    """A worker that asks again what it got with its commit is told of the callees alone."""

    def commit_and_claim(
        self, commits: Sequence[Commit], request: ClaimRequest, *, writes: Writes | None = None
    ) -> tuple[list[Committed], list[Claim]]:
        done, claims = super().commit_and_claim(commits, request, writes=writes)
        return done, [claim for claim in claims if claim.task.parent_call is not None]


class ExtendPastCaller(MemoryStore):
    """A sign of life moves deadlines as far as it likes."""

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        deadline = super().extend(fence, by)
        with self._transaction as rows:
            task = rows.tasks[rows.by_fence[fence]]
            if deadline is None or deadline >= rows.now + by:
                return deadline
            return rows.put_task(changed(task, deadline=rows.now + by)).deadline


class RedriveTwice(MemoryStore):
    """A dead letter that is driven again a second time makes another task."""

    def redrive(self, task: TaskId) -> Task:
        with self._transaction as rows:
            spec = rules.redrive_spec(rows.tasks[task])
            return transitions.make_root(rows, self._ids, spec, redrives=task)


class RotateUnfinished(MemoryStore):
    """Finished tasks go one by one, whatever has become of the rest of their run."""

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        with self._transaction as rows:
            closed = [task for task in rows.tasks.values() if task.state is State.CLOSED]
            for task in closed[:limit]:
                rows.drop_task(task)
            return len(closed[:limit])


# Functions in the place of the store's own


def _place_anyhow(rows: Rows, task: Task) -> Task:
    return rows.put_task(task)


def _enter_lane_anyhow(self: Rows, key: LaneKey, task: Task) -> None:
    lane = self.lanes.setdefault(key, Lane())
    if task.is_active:
        lane.holder = task.id
    elif task.state is State.QUEUED:
        lane.queue.add(task.id, (-task.priority, task.id))


def _leave_lane_anyhow(self: Rows, key: LaneKey, task: Task) -> None:
    lane = self.lanes[key]
    lane.queue.discard(task.id)
    if lane.holder == task.id:
        lane.holder = None


def _promote_anyhow(rows: Rows, task: Task) -> None:
    lane = None if task.lane is None else rows.lanes.get((task.tenant, task.lane))
    if lane is not None and lane.holder is None and lane.queue:
        _PROMOTE(rows, task)


_PROMOTE = transitions.promote


def _recover_uncounted(rows: Rows, task: Task) -> None:
    if task.stop_requested:
        transitions.close(rows, task, Outcome.CANCELED, error=task.error)
    else:
        transitions._make_ready(rows, task, rows.now, rules.reason_crashed(rows.now), {})


def _wait_for_open_calls(wake: object, open_calls: int, untaken: int) -> State:
    return State.WAITING if open_calls else State.READY


def _keep_everything(self: Journal, *, keep: bool) -> None:
    _END(self, keep=True)


_END = Journal.end


def _never(*_: object) -> bool:
    return False


def _nothing(*_: object) -> None:
    return None


# Wrong workers and wrong clocks


class CloseBeforeEffect(Worker):
    """Says that it is done, and then does it."""

    def _deliver(self, piece: Piece, claim: Claim, commit: Commit) -> Steps[None]:
        yield from self._end(commit)
        self._store.effect(piece.path, claim.task.id)


class StraysKept(Worker):
    """Does not give back what it did not know it has."""

    def _give_back(self, fence: Fence) -> Steps[None]:
        yield 0.0


class _CallersClock(VirtualClock):
    """Tells the time as the caller believes it is."""

    offset = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.offset


class _CallersWorld(MemoryWorld):
    def __init__(self) -> None:
        super().__init__()
        self.clock: _CallersClock = _CallersClock()
        self._store = MemoryStore(self.clock, SequentialIds())

    def now(self) -> datetime:
        return self.clock.now() - self.clock.offset


class LocalClock(Simulation):
    """Leases and deadlines are judged by the clock of whoever asks."""

    def make_world(self) -> World:
        return _CallersWorld()

    def perform(self, actor: Actor, request: Ask) -> object:
        assert isinstance(self.world, _CallersWorld)
        self.world.clock.offset = timedelta(seconds=actor.offset)
        try:
            return super().perform(actor, request)
        finally:
            self.world.clock.offset = timedelta(0)


# The list

Patch = tuple[Any, str, Callable[..., object]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is wrong, and how. `patches` replace functions of the memory store."""

    name: str
    store: type[MemoryStore] = MemoryStore
    patches: tuple[Patch, ...] = ()
    worker: type[Worker] = Worker
    base: type[Simulation] = Simulation

    @contextmanager
    def simulation(self) -> Iterator[type[Simulation]]:
        """The simulation of this mutant, as long as the context lasts."""
        mutant = self

        class Mutated(self.base):  # type: ignore[name-defined,misc]  # a base chosen at run time
            def make_world(self) -> World:
                return super().make_world() if mutant.base is LocalClock else _world(mutant)

            def make_worker(self, id: str, actor: Actor) -> Worker:
                clock = lambda: actor.offset + self.now * actor.speed  # noqa: E731
                return mutant.worker(id, self.store, self.scenario, actor.rng, clock)

        with _patched(self.patches):
            yield Mutated


def _world(mutant: Mutant) -> World:
    return MemoryWorld(mutant.store)


@contextmanager
def _patched(patches: tuple[Patch, ...]) -> Iterator[None]:
    if not patches:
        yield
        return
    (owner, name, replacement), *others = patches
    with patch.object(owner, name, replacement), _patched(tuple(others)):
        yield


MUTANTS = (
    Mutant("no fence check", NoFenceCheck),
    Mutant("blind write on a miss", BlindWrite),
    Mutant("terminal overwrite", TerminalOverwrite),
    Mutant("answer after commit", AnswerAfterCommit),
    Mutant("ack before commit", AckBeforeCommit),
    Mutant("close before effect", worker=CloseBeforeEffect),
    Mutant("no sweep", NoSweep),
    Mutant("local clock", base=LocalClock),
    Mutant("unchecked pop", UncheckedPop),
    Mutant(
        "dropped lane index",
        patches=(
            (transitions, "_place", _place_anyhow),
            (transitions, "promote", _promote_anyhow),
            (Rows, "_enter_lane", _enter_lane_anyhow),
            (Rows, "_leave_lane", _leave_lane_anyhow),
        ),
    ),
    Mutant("watchdog without condition", WatchdogWithoutCondition),
    Mutant("crash not counted", patches=((mending, "recover", _recover_uncounted),)),
    Mutant("extend without owner", ExtendWithoutOwner),
    Mutant("second reply overwrites", SecondReplyOverwrites),
    Mutant("repeat not recognised", patches=((rules, "is_repeat", _never),)),
    Mutant("submit forgotten", ForgottenIdem),
    Mutant("claim token forgotten", ForgottenToken),
    Mutant(
        "answer during work forgotten",
        patches=((rules, "state_after_suspend", _wait_for_open_calls),),
    ),
    Mutant("no rollback", patches=((Journal, "end", _keep_everything),)),
    Mutant("lane not passed on", patches=((transitions, "promote", _nothing),)),
    Mutant("strays are not given back", worker=StraysKept),
    Mutant("claims when fenced", ClaimWhenFenced),
    Mutant("handover forgotten", HandoverForgotten),
    Mutant("extend past the caller", ExtendPastCaller),
    Mutant("redrive twice", RedriveTwice),
    Mutant("rotate unfinished", RotateUnfinished),
)


def first_kill(mutant: Mutant, schedules: int) -> Result | None:
    """The first schedule that finds the mutant out, from seed 0 on."""
    with mutant.simulation() as simulation:
        for seed in range(schedules):
            result = run_schedule(Plan(seed), simulation)
            if result.rule is not None:
                return result
    return None
