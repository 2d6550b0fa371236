"""A store under watch: every transaction is checked against the ledger while it happens."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from afl.kernel.errors import Fenced
from afl.kernel.model import (
    CallId,
    CallStatus,
    Card,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    Json,
    Outcome,
    Renewal,
    State,
    Stopped,
    Suspend,
    Swept,
    Task,
    TaskId,
    TaskSpec,
    Worker,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store, Writes
from afl.kernel.rules import same_answer
from afl.testing.simulation.ledger import Ledger, TaskEntry, Violation
from afl.testing.simulation.scenario import Scenario, verdict
from afl.testing.simulation.world import World

_PAGE = 1000

#: One request with commits, given the writes that go with them.
_Send = Callable[[Writes], tuple[list[Committed], list[Claim]]]


@dataclass(slots=True)
class Counts:
    """What shows that a run was a test at all."""

    transactions: int = 0
    tasks: int = 0
    stale_writes_refused: int = 0
    repeats_ignored: int = 0
    late_answers_refused: int = 0
    tasks_recovered: int = 0
    tasks_given_up: int = 0
    strays_told: int = 0
    deadlines_moved: int = 0
    redrives: int = 0
    timeouts: int = 0
    effects_repeated: int = 0


class WatchedStore:
    """What actors get instead of the store. Broken promises raise `Violation` at once."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self._world = world
        self._store: Store = world.store
        self._scenario = scenario
        self._last_entry = 0
        self.ledger = Ledger()
        self.counts = Counts()

    # Clients

    def enqueue(self, specs: Sequence[TaskSpec]) -> list[Task]:
        now = self._begin()
        tasks = self._store.enqueue(specs)
        for spec, task in zip(specs, tasks, strict=True):
            assert spec.idem is not None
            known = self.ledger.idems.setdefault(spec.idem, task.id)
            if known != task.id:
                raise Violation("one submit, one task", f"{spec.idem} is {known} and {task.id}")
            if task.id not in self.ledger.tasks:
                self.counts.tasks += 1
                self.ledger.add_root(task.id, spec, now)
        self._read_events({}, None)
        return tasks

    def stop(self, task: TaskId, *, force: bool) -> Stopped:
        self._begin()
        self.ledger.tasks[task].stop_asked = True
        stopped = self._store.stop(task, force=force)
        self._read_events({}, task)
        return stopped

    def reply(self, call: CallId, status: CallStatus, body: Json) -> bool:
        self._begin()
        before = self._store.get_call(call)
        taken = self._store.reply(call, status, body)
        after = self._store.get_call(call)
        assert before is not None
        assert after is not None
        if before.status is CallStatus.OPEN:
            if not taken or not same_answer(after, status, body):
                raise Violation("acknowledged is kept", f"the answer to call {call} is missing")
        else:
            self.counts.late_answers_refused += 1
            if after != before or taken != same_answer(before, status, body):
                raise Violation("the first answer wins", f"call {call} was answered twice")
        self._read_events({}, None)
        return taken

    def is_answered(self, call: CallId) -> bool:
        row = self._store.get_call(call)
        return row is not None and row.status is not CallStatus.OPEN

    def redrive(self, dead: TaskId) -> Task:
        now = self._begin()
        fresh = self._store.redrive(dead)
        known = self.ledger.redriven.get(fresh.id)
        if known is None:
            self.counts.redrives += 1
            self.ledger.redriven[fresh.id] = dead
            spec = replace(self.ledger.tasks[dead].spec, idem=None)
            self.ledger.add_root(fresh.id, replace(spec, timeout=_whole_time(fresh)), now)
        if dead in (one for task, one in self.ledger.redriven.items() if task != fresh.id):
            raise Violation("one repetition of a dead letter", f"{fresh.input} has several")
        return fresh

    def dead_letters(self) -> list[Task]:
        return self._store.dead_letters()

    # Workers

    def register(self, spec: WorkerSpec) -> Worker:
        now = self._begin()
        self.ledger.register(spec.id, spec.lease, now)
        return self._store.register(spec)

    def renew(self, worker: WorkerId, held: Sequence[Fence]) -> Renewal:
        now = self._begin()
        renewal = self._store.renew(worker, held)
        for fence in renewal.lost:
            task = self.ledger.tasks[self.ledger.fences[fence]]
            if task.fence == fence and not task.closed and not self.ledger.is_lost(task, now):
                raise Violation("a live worker keeps its tasks", f"fence {fence} of {task.path}")
        for fence in renewal.stop:
            task = self.ledger.tasks[self.ledger.fences[fence]]
            if not self.ledger.may_cancel(task, now):
                raise Violation("canceled for a reason", f"{task.path} was asked to stop")
        self._check_strays(worker, set(held), renewal, now)
        self.ledger.leases[worker].renew(now)
        return renewal

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        now = self._begin()
        entry = self.ledger.tasks[self.ledger.fences[fence]]
        caller = None if entry.caller is None else self._store.get_task(entry.caller)
        before = self._store.get_task(entry.id)
        deadline = self._store.extend(fence, by)
        until = now + by
        if caller is not None and caller.deadline is not None:
            until = min(until, caller.deadline)
        assert before is not None
        if deadline != (None if before.deadline is None else max(before.deadline, until)):
            raise Violation("a deadline moves as far as it may", f"{entry.path} to {deadline}")
        self.counts.deadlines_moved += 1
        self.ledger.extend(entry, until, now)
        return deadline

    def claim(self, request: ClaimRequest) -> list[Claim]:
        now = self._begin()
        claims = self._store.claim(request)
        self._take_all(claims, request, now)
        return claims

    def commit(
        self, commits: Sequence[Commit], *, eager: ClaimRequest | None = None
    ) -> list[Committed]:
        def send(mark: Writes) -> tuple[list[Committed], list[Claim]]:
            done = self._store.commit(commits, writes=mark, eager=eager)
            return done, [claim for committed in done for claim in committed.eager]

        return self._commit(commits, eager, send)[0]

    def commit_and_claim(
        self, commits: Sequence[Commit], request: ClaimRequest
    ) -> tuple[list[Committed], list[Claim]]:
        def send(mark: Writes) -> tuple[list[Committed], list[Claim]]:
            return self._store.commit_and_claim(commits, request, writes=mark)

        done, claims = self._commit(commits, request, send)
        eager = [claim for committed in done for claim in committed.eager]
        if any(claim not in claims for claim in eager):
            raise Violation("the claims are all that it got", f"{eager} of {claims}")
        return done, claims

    def _commit(
        self, commits: Sequence[Commit], request: ClaimRequest | None, send: _Send
    ) -> tuple[list[Committed], list[Claim]]:
        now = self._begin()
        entries = [self.ledger.tasks[self.ledger.fences[commit.fence]] for commit in commits]
        before = [self._store.get_task(entry.id) for entry in entries]
        mark = self._world.mark(" ".join(f"{c.fence}/{c.number}" for c in commits))
        try:
            done, claims = send(mark)
        except Fenced:
            self._refused(commits, entries, before, now)
            raise
        taken = {claim.task.id for claim in claims}
        for commit, entry, row, committed in zip(commits, entries, before, done, strict=True):
            self._accepted(commit, entry, row, committed, now, taken)
        self._read_events({e.id: c for c, e in zip(commits, entries, strict=True)}, None)
        if request is not None:
            self._take_all(claims, request, now)
        return done, claims

    def read_box(self, box: TaskId) -> list[Card]:
        return self._store.read_box(box)

    def effect(self, path: str, task: TaskId) -> None:
        """Something is done outside, under an idempotency key: the same key does nothing twice."""
        key, keys = self.ledger.first_of(task), self.ledger.effects[path]
        self.counts.effects_repeated += key in keys
        keys.add(key)
        if len(keys) > 1:
            raise Violation("one effect for each piece", f"{path} was done for {sorted(keys)}")

    # Others

    def sweep(self, limit: int) -> Swept:
        self._begin()
        swept = self._store.sweep(limit)
        self.counts.tasks_recovered += swept.tasks_recovered
        self.counts.timeouts += swept.calls_timed_out
        self._read_events({}, None, sweeping=True)
        return swept

    # The checks

    def _begin(self) -> datetime:
        self.counts.transactions += 1
        return self._world.now()

    def _take_all(self, claims: Sequence[Claim], request: ClaimRequest, now: datetime) -> None:
        if len(claims) > request.n:
            raise Violation("no more than asked for", f"{len(claims)} for {request}")
        held = self.ledger.held_by(request.worker).items()
        known = {f for f, e in held if e.token == request.token and not self.ledger.is_lost(e, now)}
        for claim in claims:
            if known and claim.fence not in self.ledger.fences:
                raise Violation("no task is taken twice", f"{claim.task.input} besides {known}")
            self._take(claim, request, now)

    def _take(self, claim: Claim, request: ClaimRequest, now: datetime) -> None:
        ledger, fence = self.ledger, claim.fence
        task = ledger.tasks.get(claim.task.id)
        if task is None:
            raise Violation("nothing lost, nothing added", f"{claim.task.input} was never accepted")
        if fence in ledger.fences:
            if ledger.fences[fence] != task.id or task.worker != request.worker:
                raise Violation("one holder for each task", f"fence {fence} was given twice")
            return
        if fence <= ledger.last_fence:
            raise Violation("fences increase", f"{fence} came after {ledger.last_fence}")
        if task.closed is not None:
            raise Violation("closed is final", f"{task.path} was claimed after its end")
        if task.fence is not None and not ledger.is_lost(task, now):
            raise Violation("one holder for each task", f"{task.path} is held by {task.worker}")
        if claim.task.run_at > now:
            raise Violation("not before its time", f"{task.path} was to wait")
        if task.claims_since_commit > task.spec.max_crashes:
            raise Violation("a poison task is given up", f"{task.path} was claimed once more")
        self._check_lane(task)
        self._check_replies(claim, now)
        ledger.take(task, fence, request, now)

    def _check_strays(
        self, worker: WorkerId, held: set[Fence], renewal: Renewal, now: datetime
    ) -> None:
        """The strays are what the worker was given and did not name; what it has lost may go."""
        given = self.ledger.held_by(worker)
        self.counts.strays_told += len(renewal.stray)
        for fence in renewal.stray:
            if fence in held or fence not in given:
                raise Violation("strays are held", f"{worker} does not have fence {fence}")
        for fence, entry in given.items():
            if fence not in held | set(renewal.stray) and not self.ledger.is_lost(entry, now):
                raise Violation("strays are told", f"{worker} has {entry.path} unknowingly")

    def _check_lane(self, task: TaskEntry) -> None:
        lane = task.spec.lane
        active = None if lane is None else self.ledger.lanes.get(lane)
        if active is not None and active != task.id:
            other = self.ledger.tasks[active].path
            raise Violation("one active task in a lane", f"{task.path} and {other} in {lane}")

    def _check_replies(self, claim: Claim, now: datetime) -> None:
        for call in claim.replies:
            entry = self.ledger.calls[call.id]
            if call.status is CallStatus.OPEN:
                raise Violation("replies are answers", f"call {call.key} is open")
            if call.status is CallStatus.TIMEOUT and now < entry.deadline:
                callee = self.ledger.tasks[entry.callee].closed
                if callee is None or callee.outcome is not Outcome.TIMEOUT:
                    raise Violation("not before its deadline", f"call {call.key} timed out")

    def _refused(
        self,
        commits: Sequence[Commit],
        entries: Sequence[TaskEntry],
        before: Sequence[Task | None],
        now: datetime,
    ) -> None:
        stale = 0
        for commit, entry, row in zip(commits, entries, before, strict=True):
            held = entry.fence == commit.fence and entry.closed is None
            stale += not held or self.ledger.is_lost(entry, now)
            if self._store.get_task(entry.id) != row:
                raise Violation("refused leaves no trace", f"{entry.path} was written")
        for row in self._store.find_tasks(state=State.RUNNING, limit=_PAGE):
            if row.fence not in self.ledger.fences:
                raise Violation("refused leaves no trace", f"{row.input} was taken")
        if all(self._is_repeat(c, row) for c, row in zip(commits, before, strict=True)):
            raise Violation("a repeat is recognised", f"commit of {entries[0].path} was refused")
        if not stale:
            paths = ", ".join(entry.path for entry in entries)
            raise Violation("a live worker keeps its tasks", f"the commit of {paths} was refused")
        self.counts.stale_writes_refused += 1

    def _is_repeat(self, commit: Commit, row: Task | None) -> bool:
        """Whether the commit was taken, and nothing has been committed under a later fence."""
        taken = (commit.fence, commit.number) in self.ledger.committed
        return taken and row is not None and row.committed_fence == commit.fence

    def _accepted(
        self,
        commit: Commit,
        task: TaskEntry,
        before: Task | None,
        committed: Committed,
        now: datetime,
        taken: Container[TaskId],
    ) -> None:
        ledger, after = self.ledger, self._store.get_task(task.id)
        number = (commit.fence, commit.number)
        if number in ledger.committed:
            self.counts.repeats_ignored += 1
            if task.id in taken:
                # the claim that came with the repeat brought the task; the repeat itself changed
                # nothing else
                after = _before_its_claim(after, before)
            if before != after:
                raise Violation("a repeat changes nothing", f"{task.path}, commit {number}")
            return
        if task.fence != commit.fence or task.closed or not before or before.fence != task.fence:
            raise Violation("no stale write", f"{task.path} took a commit of fence {commit.fence}")
        if (
            after is None
            or after.committed_fence != commit.fence
            or after.commits != commit.number + 1
        ):
            raise Violation("acknowledged is kept", f"the commit of {task.path} is missing")
        ledger.committed.add(number)
        task.claims_since_commit = 0
        task.cards += len(commit.cards)
        self._note_calls(commit, task, committed, now)
        if isinstance(commit.then, Suspend):
            ledger.hand_back(task)
            if after.state is State.WAITING and not task.spec.hold:
                ledger.leave_lane(task)
        elif isinstance(commit.then, Close):
            ledger.hand_back(task)
            self._check_end(commit.then, task)

    def _note_calls(
        self, commit: Commit, task: TaskEntry, committed: Committed, now: datetime
    ) -> None:
        for spec in commit.calls:
            call = committed.calls[spec.key]
            known = self.ledger.calls_of[task.id].get(spec.key)
            if known is None:
                row = self._store.get_call(call)
                if row is None or row.callee is None or row.caller != task.id:
                    raise Violation("acknowledged is kept", f"call {spec.key} is missing")
                self.counts.tasks += 1
                self.ledger.add_call(call, row.callee, spec, task, now)
            elif known != call:
                raise Violation("one call for each key", f"{spec.key} is {known} and {call}")

    def _check_end(self, close: Close, task: TaskEntry) -> None:
        """The work must come to what the answers in the rows come to."""
        piece = self._scenario.pieces[task.path]
        if close.outcome is Outcome.CANCELED or (piece.fails and not close.permanent):
            return
        calls = self._store.calls_of(task.id)
        value = verdict(piece, {call.key: (call.status, call.reply) for call in calls})
        if value not in ((close.outcome, close.result), (close.outcome, close.error)):
            raise Violation("answers stay", f"{task.path} ends with {close}, rows say {value}")
        done = self.ledger.first_of(task.id) in self.ledger.effects[task.path]
        if close.outcome is Outcome.SUCCESS and not done:
            raise Violation("the effect comes before its end", task.path)

    # Closed events

    def _read_events(
        self, commits: dict[TaskId, Commit], stopped: TaskId | None, *, sweeping: bool = False
    ) -> None:
        while entries := self._store.read_outbox(self._last_entry, _PAGE):
            for entry in entries:
                self._last_entry = entry.id
                if entry.topic == "closed":
                    self._closed(entry.task, commits.get(entry.task), stopped, sweeping=sweeping)

    def _closed(
        self, id: TaskId, commit: Commit | None, stopped: TaskId | None, *, sweeping: bool
    ) -> None:
        task, row = self.ledger.tasks[id], self._store.get_task(id)
        if task.closed is not None:
            raise Violation("one closed event for each task", task.path)
        if row is None or row.state is not State.CLOSED:
            raise Violation("one closed event for each task", f"{task.path} is not closed")
        if not self._is_justified(task, row, commit, stopped == id, sweeping=sweeping):
            raise Violation(
                "an end has a reason", f"{task.path} ended as {row.outcome} with {row.error}"
            )
        task.closed = row
        self.counts.timeouts += row.outcome is Outcome.TIMEOUT
        self.ledger.open.discard(id)
        self.ledger.leave_lane(task)
        if task.call is not None:
            call = self._store.get_call(task.call)
            if call is None or call.status is CallStatus.OPEN:
                raise Violation("closing answers the call", f"{task.path} left it open")

    def _is_justified(
        self, task: TaskEntry, row: Task, commit: Commit | None, stopped: bool, *, sweeping: bool
    ) -> bool:
        now = self._world.now()
        if row.outcome is Outcome.CANCELED:
            by_commit = commit is not None and row.outcome in _outcomes(commit)
            return (by_commit or stopped or sweeping) and self.ledger.may_cancel(task, now)
        if commit is not None:
            return row.outcome in _outcomes(commit)
        if not sweeping:
            return False
        if row.outcome is Outcome.TIMEOUT:
            return task.deadline is not None and now >= task.deadline
        self.counts.tasks_given_up += 1
        return (
            row.outcome is Outcome.FAILED
            and row.dead
            and task.claims_since_commit == task.spec.max_crashes + 1
        )


def _outcomes(commit: Commit) -> tuple[Outcome, ...]:
    """How a task can end by this commit."""
    if isinstance(commit.then, Close):
        return (commit.then.outcome,)
    return (Outcome.CANCELED,)


def _whole_time(task: Task) -> timedelta | None:
    return None if task.deadline is None else task.deadline - task.created_at


def _before_its_claim(after: Task | None, before: Task | None) -> Task | None:
    """A task with what a claim changes of it taken back."""
    if after is None or before is None:
        return after
    return replace(
        after,
        state=before.state,
        fence=before.fence,
        worker=before.worker,
        claim_token=before.claim_token,
        reason=before.reason,
    )
