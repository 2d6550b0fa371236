"""What happened in runs, and where their open work is, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from heapq import nlargest

from afl.kernel.memory.transaction import TablesView
from afl.kernel.model import CallStatus, State, Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.history import WORK, Happening, Moment, OpenWork
from afl.runtime.memory_superseded import MemorySuperseded
from afl.runtime.memory_tables import RUNS, map_out, step_table
from afl.runtime.memory_windows import MemoryStepWindows
from afl.runtime.run_values import copy_run
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId

#: How many results that came too late are told of.
_LATE = 1000
_ENDS = {
    StepState.STATEMENT_COMPLETE: "done",
    StepState.STATEMENT_ERROR: "failed",
    StepState.STATEMENT_SKIPPED: "skipped",
}


class MemoryHistory(MemoryStepWindows, MemorySuperseded):
    """See `history.History` for what each method promises, but for the cost."""

    def open_work(self, run: WorkflowId, limit: int = 2000) -> list[OpenWork]:
        steps = self._read(lambda tables: dict(tables[step_table(run)]))
        now = self._write(lambda transaction: transaction.now)
        counts: Counter[OpenWork] = Counter()
        for call in self._kernel.calls_of(TaskId(run)):
            task = None if call.callee is None else self._kernel.get_task(call.callee)
            step = steps.get(call.key.partition("#")[0])
            if step is None or task is None or task.state is State.CLOSED:
                continue
            if call.status is CallStatus.OPEN and counts.total() < limit:
                counts[self._open(step, task, now)] += 1
        return [replace(work, steps=count) for work, count in counts.items()]

    def _open(self, step: StepDefinition, task: Task, now: datetime) -> OpenWork:
        worker = None if task.worker is None else self._kernel.get_worker(task.worker)
        return OpenWork(
            step.statement_id,
            step.facet_name,
            step.object_type,
            step.state,
            task.kind,
            task.state,
            task.run_at <= now,
            worker is not None and worker.expires_at <= now,
            1,
        )

    def dead_work(self, run: WorkflowId, limit: int = 2000) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for step in self.problem_steps(run, limit=limit):
            call = self._kernel.find_call(TaskId(run), step.path)
            task = (
                None if call is None or call.callee is None else self._kernel.get_task(call.callee)
            )
            if step.state == StepState.STATEMENT_ERROR and task is not None and task.dead:
                counts[step.statement_id] += 1
        return counts

    def history(
        self,
        run: WorkflowId,
        *,
        before: Moment | None = None,
        problems_only: bool = False,
        limit: int = 100,
    ) -> list[Happening]:
        fitting = (
            each
            for each in self._happenings(run, problems_only)
            if before is None or each.moment < before
        )
        return nlargest(limit, fitting, key=lambda each: each.moment)

    def _happenings(self, run: WorkflowId, problems_only: bool) -> Iterator[Happening]:
        steps = self._read(lambda tables: dict(tables[step_table(run)]))
        times = self.step_times(run, list(steps))
        for path, step in steps.items():
            if step.object_type not in WORK or (problems_only and step.error is None):
                continue
            facet, at = step.facet_name, times[path]
            if step.skipped_because is None:
                yield Happening(Moment(at.created_at, path, "started"), facet)
            if at.ended_at is not None:
                reused = step.frame.get("reused")
                yield Happening(
                    Moment(at.ended_at, path, _ENDS[step.state]),
                    facet,
                    error=None if step.error is None else map_out(step.error),
                    skipped_because=step.skipped_because,
                    reused=reused if isinstance(reused, str) else None,
                )
        for late in self.get_superseded(run, limit=_LATE):
            assert late.noted_at is not None
            facet = steps[late.path].facet_name if late.path in steps else ""
            yield Happening(Moment(late.noted_at, late.path, "superseded"), facet, late.worker)
        called = {
            call.callee: call.key.partition("#")[0]
            for call in self._kernel.calls_of(TaskId(run))
            if call.callee is not None
        }
        paths = {TaskId(run): ROOT, **called}
        for loss in self._kernel.losses_of(list(paths)):
            path = paths[loss.task]
            facet = steps[path].facet_name if path in steps else ""
            yield Happening(Moment(loss.at, path, "lost"), facet, loss.worker, loss.task)

    def forks_of(self, run: WorkflowId, limit: int = 100) -> list[Run]:
        def work(tables: TablesView) -> list[Run]:
            runs: list[Run] = [
                each
                for each in tables[RUNS].values()
                if each.fork is not None and each.fork.run == run
            ]
            newest = nlargest(limit, runs, key=lambda each: each.id)
            return [copy_run(each, map_out) for each in newest]

        return self._read(work)
