"""The transactions of `port.TaskQueue`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.machine import transitions
from afl.kernel.machine.claims import check_live, claim_one
from afl.kernel.machine.commits import Step, apply, extend, hand_on, hand_out
from afl.kernel.machine.copies import task_out
from afl.kernel.memory.claims import claim, claim_ready
from afl.kernel.memory.core import Core
from afl.kernel.memory.sweeps import KINDS
from afl.kernel.model import (
    CallId,
    CallStatus,
    Claim,
    ClaimRequest,
    Commit,
    Committed,
    Fence,
    Json,
    Renewal,
    Stopped,
    Swept,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerState,
)
from afl.kernel.port import Writes
from afl.kernel.requests import MAX_DURATION, check_reply, check_spec, json_copy


class MemoryTaskQueue(Core):
    """See `port.TaskQueue` for what each method promises."""

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        with self._transaction as rows:
            tasks: list[Task] = []
            is_new = False
            for spec in specs:
                check_spec(spec)
                known = None if spec.idem is None else rows.idems.get((spec.tenant, spec.idem))
                if known is None:
                    is_new = True
                    tasks.append(transitions.make_root(rows, self._ids, spec))
                else:
                    tasks.append(rows.tasks[known])
            if is_new or not specs:
                self._run_writes(writes)
            return [task_out(task) for task in tasks]

    def claim(self, request: ClaimRequest) -> list[Claim]:
        with self._transaction as rows:
            return claim(rows, request)

    def take(self, worker: WorkerId, task: TaskId) -> Claim | None:
        with self._transaction as rows:
            check_live(rows, worker)
            return claim_one(rows, worker, task)

    def renew(self, worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        with self._transaction as rows:
            row = rows.workers.get(worker)
            if row is None:
                raise NotFound(f"there is no worker {worker}; register it first")
            state = WorkerState.RUNNING if row.state is WorkerState.ERROR else row.state
            expires_at = rows.now + row.lease
            rows.put_worker(replace(row, state=state, seen_at=rows.now, expires_at=expires_at))
            lost: list[Fence] = []
            stop: list[Fence] = []
            for fence in map(Fence, held):
                task = rows.tasks.get(rows.by_fence.get(fence, TaskId("")))
                if task is None or task.worker != worker:
                    lost.append(fence)
                elif task.stop_requested:
                    stop.append(fence)
            mine = (rows.tasks[task].fence for task in rows.held.get(worker, ()))
            stray = sorted({fence for fence in mine if fence is not None}.difference(held))
            return Renewal(expires_at, tuple(lost), tuple(stop), tuple(map(Fence, stray)))

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        with self._transaction as rows:
            steps = [apply(rows, self._ids, commit) for commit in commits]
            answers = hand_out(rows, steps, eager)
            self._run_writes_once(steps, writes)
            return answers

    def commit_and_claim(
        self,
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        with self._transaction as rows:
            steps = [apply(rows, self._ids, commit) for commit in commits]
            answers, claims, left = hand_on(rows, steps, request)
            if left > 0:
                claims += claim_ready(rows, request, left)
            self._run_writes_once(steps, writes)
            return answers, claims

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        if not timedelta(0) < by <= MAX_DURATION:
            raise BadRequest(f"an extension by {by} is not possible; use more than zero")
        with self._transaction as rows:
            return extend(rows, fence, by)

    def reply(self, call: CallId, status: CallStatus, body: Json = None) -> bool:
        check_reply(status)
        with self._transaction as rows:
            row = rows.calls.get(call)
            if row is None:
                raise NotFound(f"there is no call {call}")
            return transitions.answer(rows, row, status, json_copy(body, "the answer"))

    def stop(self, task: TaskId, *, force: bool = False, error: Json = None) -> Stopped:
        with self._transaction as rows:
            return transitions.stop(
                rows, self._task(task), json_copy(error, "the error"), force=force
            )

    def sweep(self, limit: int = 100) -> Swept:
        counts: Counter[str] = Counter()
        for kind in KINDS:
            with self._transaction as rows:
                items = kind.find(rows, limit)
            for item in items:
                with self._transaction as rows:
                    mended = kind.mend(rows, item)
                if mended is not None:
                    counts[mended] += 1
        return Swept(**counts)

    def _run_writes_once(self, steps: list[Step], writes: Writes | None) -> None:
        """The caller's own writes, unless they were made when the same commits were."""
        if not steps or not all(step.repeated for step in steps):
            self._run_writes(writes)
