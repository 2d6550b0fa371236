"""A store that is too simple to be wrong: plain lists, searched from end to end for everything.

It shares no code with the stores, not even the rules. Tasks, calls and fences are numbers that
count up, time is seconds since the start, and each step makes it a little later.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal

TICK = 1e-6
LIVE = ("startup", "running")
STATUS = {
    "success": "ok",
    "partial": "ok",
    "failed": "error",
    "timeout": "timeout",
    "canceled": "canceled",
}
#: Stands for a message that the kernel writes itself.
KERNEL = "kernel"

Value = str | None
Refusal = Literal["fenced", "refused", "not_found"]


class RefusedError(Exception):
    """The reference refuses a request, for the reason in `why`."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Work:
    """What a task is asked to be."""

    name: str = "a"
    lane: str | None = None
    hold: bool = True
    priority: int = 0
    delay: float = 0
    timeout: float | None = None
    wake_any: bool = False
    max_failures: int = 0
    retry_delay: float = 5
    max_crashes: int = 5
    idem: str | None = None


@dataclass
class RTask:
    label: int
    work: Work
    created_at: float
    state: str
    run_at: float
    deadline: float | None
    reason: str | None
    parent: int | None = None
    depth: int = 0
    root: int = 0
    outcome: str | None = None
    fence: int | None = None
    worker: str | None = None
    token: str | None = None
    committed_fence: int | None = None
    commits: int = 0
    crashes: int = 0
    failures: int = 0
    stop_requested: bool = False
    result: Value = None
    error: Value = None
    seq: int = 0
    dead: bool = False
    redrives: int | None = None


@dataclass
class RCall:
    label: int
    caller: int
    key: str
    callee: int
    deadline: float
    status: str = "open"
    reply: Value = None
    replied_at: float = 0
    applied: bool = False


@dataclass
class RWorker:
    name: str
    handlers: tuple[str, ...]
    lease: float
    expires_at: float
    state: str = "startup"


@dataclass(frozen=True)
class RCallSpec:
    key: str
    work: Work
    timeout: float


@dataclass(frozen=True)
class RCommit:
    fence: int
    number: int
    then: str  # "suspend", "continue", or an outcome
    value: Value = None
    permanent: bool = False
    cards: int = 0
    calls: tuple[RCallSpec, ...] = ()
    applied: tuple[int, ...] = ()


@dataclass(frozen=True)
class RClaim:
    task: int
    fence: int
    replies: tuple[int, ...]


@dataclass(frozen=True)
class RRequest:
    worker: str
    name: str
    n: int
    token: str | None


@dataclass
class RCommitted:
    task: int
    repeated: bool
    calls: dict[str, int] = field(default_factory=dict)
    new: list[int] = field(default_factory=list)
    eager: list[RClaim] = field(default_factory=list)


class Reference:
    def __init__(self) -> None:
        self.now = 0.0
        self.fences = 0
        self.tasks: list[RTask] = []
        self.calls: list[RCall] = []
        self.workers: dict[str, RWorker] = {}
        self.outbox: list[tuple[str, int, str]] = []

    # The transactions

    def enqueue(self, works: list[Work]) -> list[int]:
        self.now += TICK
        labels = []
        for work in works:
            known = [t.label for t in self.tasks if work.idem and t.work.idem == work.idem]
            labels.append(known[0] if known else self._make(work).label)
        return labels

    def claim(self, request: RRequest) -> list[RClaim]:
        self.now += TICK
        worker = self.workers.get(request.worker)
        if worker is None or not self._is_live(worker):
            raise RefusedError("not_found")
        if again := self._held_by_token(request):
            return [self._claim_of(task) for task in again]
        fitting = [t for t in self.tasks if self._fits(t, request)]
        return self._take(fitting, request)

    def commit(self, commits: list[RCommit], eager: RRequest | None) -> list[RCommitted]:
        answers = self._commit_all(commits)
        if eager is not None:
            self._hand_out_again(answers, eager)
            self._hand_out(answers, eager)
        return answers

    def commit_and_claim(
        self, commits: list[RCommit], request: RRequest
    ) -> tuple[list[RCommitted], list[RClaim]]:
        answers = self._commit_all(commits)
        if claims := self._hand_out_again(answers, request):
            return answers, claims
        claims = self._hand_out(answers, request)
        worker = self.workers.get(request.worker)
        if worker is not None and self._is_live(worker):
            left = replace(request, n=request.n - len(claims))
            claims += self._take([t for t in self.tasks if self._fits(t, request)], left)
        return answers, claims

    def extend(self, fence: int, by: float) -> float | None:
        self.now += TICK
        for task in self.tasks:
            if task.fence == fence:
                break
        else:
            raise RefusedError("fenced")
        until = self.now + by
        if task.parent is not None:
            call = self.calls[task.parent]
            until = min(until, self.tasks[call.caller].deadline or until)
            call.deadline = max(call.deadline, until)
        if task.deadline is not None:
            task.deadline = max(task.deadline, until)
        return task.deadline  # a callee always has one, and its call's is no earlier

    def reply(self, label: int, status: str, body: Value) -> bool:
        self.now += TICK
        return self._answer(self.calls[label], status, body)

    def stop(self, label: int, force: bool) -> str:
        self.now += TICK
        return self._stop(self.tasks[label], "stop", force=force)

    def redrive(self, label: int) -> int:
        self.now += TICK
        task = self.tasks[label]
        if not task.dead:
            raise RefusedError("refused")
        for other in self.tasks:
            if other.redrives == label:
                return other.label
        work = Work(**{**task.work.__dict__, "delay": 0, "idem": None, "timeout": None})
        fresh = self._make(work, root=task.root)
        if task.deadline is not None:
            fresh.deadline = self.now + task.deadline - task.created_at
        fresh.redrives = label
        return fresh.label

    def register(self, name: str, handlers: tuple[str, ...], lease: float) -> None:
        self.now += TICK
        self.workers[name] = RWorker(name, handlers, lease, self.now + lease)

    def shut_down(self, name: str) -> None:
        self.now += TICK
        self.workers[name].state = "shutdown"

    def renew(self, name: str, held: list[int]) -> tuple[list[int], list[int], list[int]]:
        self.now += TICK
        worker = self.workers[name]
        worker.expires_at = self.now + worker.lease
        worker.state = "running" if worker.state == "error" else worker.state
        mine = {t.fence: t for t in self.tasks if t.fence is not None and t.worker == name}
        lost = [fence for fence in held if fence not in mine]
        stop = [f for f in held if f in mine and mine[f].stop_requested]
        return lost, stop, sorted(mine.keys() - set(held))

    def sweep(self) -> Counter[str]:
        """Until there is nothing left to put right."""
        total: Counter[str] = Counter()
        while swept := self._sweep_once():
            total += swept
        return total

    # What can be seen

    def live_workers(self) -> list[str]:
        return sorted(w.name for w in self.workers.values() if self._is_live(w))

    def dead_letters(self) -> list[int]:
        driven = {task.redrives for task in self.tasks}
        return [task.label for task in self.tasks if task.dead and task.label not in driven]

    def why(self, task: RTask) -> str | None:
        if task.state == "ready" and task.run_at <= self.now:
            if not any(
                self._is_live(w) and _serves(w.handlers, task.work.name)
                for w in self.workers.values()
            ):
                return "no_worker"
            return "claimable" if task.reason == "delayed" else task.reason
        return task.reason

    def holder(self, lane: str | None) -> RTask | None:
        active = [
            t
            for t in self.tasks
            if t.work.lane == lane
            and (t.state in ("ready", "running") or (t.state == "waiting" and t.work.hold))
        ]
        assert lane is None or len(active) <= 1
        return active[0] if lane is not None and active else None

    def untaken(self, task: int) -> list[RCall]:
        calls = [c for c in self.calls if c.caller == task and c.status != "open" and not c.applied]
        return sorted(calls, key=lambda c: (c.replied_at, c.label))

    # How it works

    def _make(self, work: Work, root: int | None = None) -> RTask:
        label = len(self.tasks)
        task = RTask(
            label,
            work,
            created_at=self.now,
            state="ready",
            run_at=self.now + work.delay,
            deadline=None if work.timeout is None else self.now + work.timeout,
            reason="delayed" if work.delay else "claimable",
            root=label if root is None else root,
        )
        if self.holder(work.lane) is not None:
            task.state, task.reason = "queued", "lane_held"
        self.tasks.append(task)
        return task

    def _is_live(self, worker: RWorker) -> bool:
        return worker.expires_at > self.now and worker.state in LIVE

    def _fits(self, task: RTask, request: RRequest) -> bool:
        due = task.state == "ready" and task.run_at <= self.now
        return due and _serves((request.name,), task.work.name)

    def _take(self, tasks: list[RTask], request: RRequest) -> list[RClaim]:
        tasks.sort(key=lambda t: (-t.work.priority, t.run_at, t.label))
        claims = []
        for task in tasks[: request.n]:
            self.fences += 1
            task.state, task.fence, task.reason = "running", self.fences, None
            task.worker, task.token = request.worker, request.token
            claims.append(self._claim_of(task))
        return claims

    def _claim_of(self, task: RTask) -> RClaim:
        assert task.fence is not None
        return RClaim(task.label, task.fence, tuple(c.label for c in self.untaken(task.label)))

    def _held_by_token(self, request: RRequest) -> list[RTask]:
        held = [
            t
            for t in self.tasks
            if request.token is not None
            and t.state == "running"
            and (t.worker, t.token) == (request.worker, request.token)
        ]
        return sorted(held, key=lambda t: t.fence or 0)

    def _commit_all(self, commits: list[RCommit]) -> list[RCommitted]:
        self.now += TICK
        before = deepcopy(self.__dict__)
        try:
            return [self._commit_one(commit) for commit in commits]
        except RefusedError:
            self.__dict__.update(before)
            raise

    def _commit_one(self, commit: RCommit) -> RCommitted:
        task = self._task_of(commit)
        known = {c.key: c.label for c in self.calls if c.caller == task.label}
        if task.committed_fence == commit.fence and commit.number < task.commits:
            keys = [spec.key for spec in commit.calls]
            return RCommitted(task.label, True, {k: known[k] for k in keys if k in known})
        if commit.number != (task.commits if task.committed_fence == commit.fence else 0):
            raise RefusedError("refused")
        answer = RCommitted(task.label, False)
        for label in commit.applied:
            call = self.calls[label]
            if call.caller != task.label or call.status == "open":
                raise RefusedError("refused")
            call.applied = True
        for spec in commit.calls:
            if spec.key in known:
                answer.calls[spec.key] = known[spec.key]
            else:
                call = self._open_call(task, spec)
                answer.calls[spec.key] = call.label
                answer.new.append(call.callee)
        task.committed_fence, task.commits = commit.fence, commit.number + 1
        task.crashes = 0
        task.seq += commit.cards
        self._then(task, commit)
        return answer

    def _task_of(self, commit: RCommit) -> RTask:
        for task in self.tasks:
            if task.fence == commit.fence:
                return task
            if task.committed_fence == commit.fence and commit.number < task.commits:
                return task
        raise RefusedError("fenced")

    def _open_call(self, task: RTask, spec: RCallSpec) -> RCall:
        if task.depth + 1 >= 20:
            raise RefusedError("refused")
        above: RTask | None = task
        while above is not None and spec.work.lane is not None:
            if above.work.lane == spec.work.lane and above.work.hold and above.state != "closed":
                raise RefusedError("refused")
            above = None if above.parent is None else self.tasks[self.calls[above.parent].caller]
        deadline = self.now + spec.timeout
        if task.deadline is not None:
            deadline = min(deadline, task.deadline)
        callee = self._make(spec.work, root=task.root)
        callee.deadline = min(deadline, callee.deadline or deadline)
        callee.depth = task.depth + 1
        callee.parent = len(self.calls)
        self.calls.append(RCall(callee.parent, task.label, spec.key, callee.label, deadline))
        return self.calls[-1]

    def _then(self, task: RTask, commit: RCommit) -> None:
        if commit.then == "suspend":
            self._suspend(task)
        elif commit.then == "failed":
            task.failures += 1
            wants = task.work.max_failures > 0 and not task.stop_requested
            if wants and task.failures <= task.work.max_failures and not commit.permanent:
                wait = task.work.retry_delay * 3 ** (task.failures - 1)
                self._ready(task, "retry", self.now + wait)
                task.error = commit.value
            else:
                task.dead = wants
                self._close(task, "failed", commit.value, commit.value)
        elif commit.then != "continue":
            self._close(task, commit.then, commit.value, commit.value)

    def _suspend(self, task: RTask) -> None:
        still_open = [c for c in self.calls if c.caller == task.label and c.status == "open"]
        answered = self.untaken(task.label)
        if task.stop_requested:
            self._close(task, "canceled", None, task.error)
        elif not still_open or (task.work.wake_any and answered):
            self._ready(task, "answered" if answered else "claimable", self.now)
        else:
            task.state, task.reason = "waiting", "calls_open"
            task.fence = task.worker = task.token = None
            self._promote(task.work.lane)

    def _ready(self, task: RTask, reason: str, run_at: float) -> None:
        task.state, task.reason, task.run_at = "ready", reason, run_at
        task.fence = task.worker = task.token = None

    def _close(self, task: RTask, outcome: str, result: Value, error: Value) -> None:
        task.state, task.outcome = "closed", outcome
        task.result, task.error, task.reason = result, error, None
        task.fence = task.worker = task.token = None
        self.outbox.append(("closed", task.label, outcome))
        if task.parent is not None:
            status = STATUS[outcome]
            self._answer(self.calls[task.parent], status, result if status == "ok" else error)
        self._promote(task.work.lane)

    def _answer(self, call: RCall, status: str, body: Value) -> bool:
        if call.status != "open":
            if (call.status, call.reply) == (status, body) and body != KERNEL:
                return True
            self.outbox.append(("late", call.caller, status))
            return False
        call.status, call.reply, call.replied_at = status, body, self.now
        caller = self.tasks[call.caller]
        others = [c for c in self.calls if c.caller == caller.label and c.status == "open"]
        if caller.state == "waiting" and (caller.work.wake_any or not others):
            self._ready(caller, "answered", self.now)
            if caller.work.lane is not None and not caller.work.hold:
                caller.state, caller.reason = "queued", "lane_held"
                self._promote(caller.work.lane)
        return True

    def _promote(self, lane: str | None) -> None:
        queue = [t for t in self.tasks if t.work.lane == lane and t.state == "queued"]
        if lane is None or not queue or self.holder(lane) is not None:
            return
        first = min(queue, key=lambda t: (-t.work.priority, t.label))
        run_at = max(first.run_at, self.now)
        reason = "answered" if self.untaken(first.label) else "claimable"
        self._ready(first, "delayed" if run_at > self.now else reason, run_at)

    def _stop(self, task: RTask, error: Value, *, force: bool = False) -> str:
        if task.state == "closed":
            return "already_closed"
        if task.state != "running" or force:
            self._close(task, "canceled", None, error)
            return "closed"
        if not task.stop_requested:
            task.stop_requested, task.reason, task.error = True, "stopping", error
        return "requested"

    def _hand_out_again(self, answers: list[RCommitted], eager: RRequest) -> list[RClaim]:
        held = self._held_by_token(eager)
        for task in held:
            for answer in answers:
                if answer.repeated and task.parent in answer.calls.values():
                    answer.eager.append(self._claim_of(task))
        return [self._claim_of(task) for task in held]

    def _hand_out(self, answers: list[RCommitted], eager: RRequest) -> list[RClaim]:
        worker = self.workers.get(eager.worker)
        if worker is None or not self._is_live(worker):
            return []
        new = {t: a for a in answers if self.tasks[a.task].state != "closed" for t in a.new}
        fitting = [self.tasks[t] for t in new if self._fits(self.tasks[t], eager)]
        claims = self._take(fitting, eager)
        for claim in claims:
            new[claim.task].eager.append(claim)
        return claims

    def _sweep_once(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        self.now += TICK
        expired = [w for w in self.workers.values() if w.expires_at <= self.now]
        expired.sort(key=lambda w: (w.expires_at, w.name))
        for worker in expired:
            if worker.state in LIVE:
                worker.state = "error"
                counts["workers_expired"] += 1
        for worker in expired:
            for task in [t for t in self.tasks if t.worker == worker.name]:
                self.now += TICK
                counts[self._recover(task)] += 1
        late_calls = [c for c in self.calls if c.status == "open" and c.deadline <= self.now]
        for call in sorted(late_calls, key=lambda c: (c.deadline, c.label)):
            if call.status == "open":
                self.now += TICK
                self._answer(call, "timeout", KERNEL)
                self._stop(self.tasks[call.callee], KERNEL)
                counts["calls_timed_out"] += 1
        late = [
            (t.deadline, t.label, t)
            for t in self.tasks
            if t.state != "closed" and t.deadline is not None and t.deadline <= self.now
        ]
        for _, _, task in sorted(late, key=lambda item: item[:2]):
            self.now += TICK
            self._close(task, "timeout", None, KERNEL)
            counts["tasks_timed_out"] += 1
        for task in [t for t in self.tasks if self._is_orphan(t)]:
            self.now += TICK
            self._stop(task, KERNEL)
            counts["orphans_stopped"] += 1
        return counts

    def _recover(self, task: RTask) -> str:
        if task.stop_requested:
            self._close(task, "canceled", None, task.error)
            return "tasks_recovered"
        task.crashes += 1
        if task.crashes > task.work.max_crashes:
            task.dead = True
            self._close(task, "failed", None, KERNEL)
            return "tasks_given_up"
        self._ready(task, "crashed", self.now)
        return "tasks_recovered"

    def _is_orphan(self, task: RTask) -> bool:
        if task.parent is None or task.state == "closed" or task.stop_requested:
            return False
        return self.tasks[self.calls[task.parent].caller].state == "closed"


def _serves(names: tuple[str, ...], name: str) -> bool:
    return name in names or name.split(".")[-1] in names
