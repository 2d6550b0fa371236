"""Everything that a run is made of, in memory: for tests and for `afl run`.

The rows are in tables of the kernel's store, so they are part of its transactions. Tables of a run
bear its id in their names: what one run has is found, and removed, without a look at others. Values
in the tables are never changed, only replaced; what goes in or out is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, islice

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.base.system import SystemClock, SystemIds
from afl.kernel import memory
from afl.kernel.memory.tables import opened
from afl.kernel.memory.transaction import MemoryTransaction, Tables, TablesView
from afl.kernel.model import Json, State, TaskId
from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.memory_history import MemoryHistory
from afl.runtime.memory_people import MemoryPeople
from afl.runtime.memory_programs import MemoryPrograms
from afl.runtime.memory_rates import MemoryRates, forget_rates
from afl.runtime.memory_schedules import MemorySchedules, forget_firings
from afl.runtime.memory_signals import MemorySignals, await_event, forget_events, forget_waits
from afl.runtime.memory_superseded import forget_superseded
from afl.runtime.memory_tables import RUNS, Lists, MemoryTables, map_out, step_table
from afl.runtime.memory_windows import (
    MemoryRunSearch,
    forget_windows,
    note_step,
)
from afl.runtime.persistence import IterationChanges, Loaded, LogLine, Needed, StaleRuns
from afl.runtime.run_values import copy_run, map_in, run_in
from afl.runtime.states import RunState
from afl.runtime.step import StepDefinition, StepId, WorkflowId, is_below, split_step_id

_MEMOS = "memo"
#: Log lines in the order in which they were written, whatever the run.
_numbers = count()


class MemoryRuns(MemoryTables):
    """See `persistence.Runs` for what each method promises."""

    def write_run(self, transaction: Transaction, run: Run) -> None:
        now = opened(transaction).now
        runs = opened(transaction).tables[RUNS]
        if run.id not in runs:
            ended = now if RunState.is_terminal(run.state) else None
            runs[run.id] = replace(run_in(run), created_at=now, finished_at=ended)

    def start_run(self, transaction: Transaction, run: WorkflowId) -> None:
        runs = opened(transaction).tables[RUNS]
        found = runs.get(run)
        if found is not None and found.state == RunState.CREATED:
            runs[run] = replace(found, state=RunState.RUNNING)

    def finish_run(
        self,
        transaction: Transaction,
        run: WorkflowId,
        state: str,
        outputs: Mapping[str, Json] | None,
        error: Mapping[str, Json] | None,
    ) -> None:
        tables = opened(transaction).tables
        found = tables[RUNS].get(run)
        if found is None or RunState.is_terminal(found.state):
            return
        tables[RUNS][run] = replace(
            found,
            state=state,
            outputs=None if outputs is None else map_in(outputs, "the outputs"),
            error=None if error is None else map_in(error, "the error"),
            finished_at=opened(transaction).now,
        )
        forget_waits(tables, run)

    def set_pause(self, run: WorkflowId, pause: bool) -> bool:
        def work(transaction: MemoryTransaction) -> bool:
            runs = transaction.tables[RUNS]
            found = runs.get(run)
            if found is None or RunState.is_terminal(found.state):
                return False
            runs[run] = replace(found, pause_requested=pause)
            return True

        return self._write(work)

    def get_run(self, run: WorkflowId) -> Run | None:
        found = self._read(lambda tables: tables[RUNS].get(run))
        return None if found is None else copy_run(found, map_out)

    def get_runs(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, Run]:
        found = {run: self.get_run(run) for run in runs}
        return {id: run for id, run in found.items() if run is not None}

    def find_runs(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: WorkflowId | None = None,
        before: WorkflowId | None = None,
        limit: int = 100,
    ) -> list[Run]:
        def fits(run: Run) -> bool:
            return (
                (state is None or run.state == state)
                and (workflow is None or run.workflow == workflow)
                and (labels is None or labels.items() <= run.labels.items())
                and (parent is None or run.parent == parent)
                and (before is None or run.id < before)
            )

        def work(tables: TablesView) -> list[Run]:
            runs = tables[RUNS]
            newest_first = (runs[id_] for id_ in sorted(runs, reverse=True))
            return [copy_run(run, map_out) for run in islice(filter(fits, newest_first), limit)]

        return self._read(work)

    def ended_runs(self, since: datetime, limit: int = 100) -> list[Run]:
        def work(tables: TablesView) -> list[Run]:
            ended = [
                (run.finished_at, run.id)
                for run in tables[RUNS].values()
                if run.finished_at is not None and run.finished_at >= since
            ]
            first = sorted(ended)[:limit]
            return [copy_run(tables[RUNS][id_], map_out) for _, id_ in first]

        return self._read(work)

    def stale_runs(self, after: WorkflowId | None, limit: int) -> StaleRuns:
        def work(tables: TablesView) -> list[WorkflowId]:
            runs = tables[RUNS]
            later = (WorkflowId(id_) for id_ in sorted(runs) if id_ > (after or ""))
            return list(islice((id_ for id_ in later if runs[id_].finished_at is None), limit))

        seen = self._read(work)
        closed = [run for run in seen if self._is_closed(run)]
        return StaleRuns(closed, seen[-1] if len(seen) >= limit else None)

    def _is_closed(self, run: WorkflowId) -> bool:
        """Whether a run that has not ended has a task that has. Asked in this order, since the
        task is closed in the transaction that ends the run."""
        task = self._kernel.get_task(TaskId(run))
        if task is None or task.state is not State.CLOSED:
            return False
        found = self.get_run(run)
        return found is not None and found.finished_at is None


class MemorySteps(MemoryTables):
    """See `persistence.Runs` for what each method promises."""

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        _write_changes(opened(transaction), run, changes)

    def write_many(
        self, transaction: Transaction, changes: Iterable[tuple[WorkflowId, IterationChanges]]
    ) -> None:
        for run, each in changes:
            self.write_changes(transaction, run, each)

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        def work(tables: TablesView) -> Loaded:
            steps = tables[step_table(run)]
            yields, waits = _yields(run), _waits(run)
            return Loaded(
                {path: steps[path].clone() for path in needed.steps if path in steps},
                {
                    path: [steps[each].clone() for each in found]
                    for path in needed.yields
                    if (found := yields.read(tables, path))
                },
                {path: found for path in needed.waits if (found := waits.read(tables, path))},
            )

        return self._read(work)

    def get_step(self, step: StepId) -> StepDefinition | None:
        run, path = split_step_id(step)
        return self.load(run, Needed(steps=frozenset((path,)))).steps.get(path)

    def get_steps_by_workflow(
        self, run: WorkflowId, *, after: str | None = None, limit: int | None = None
    ) -> list[StepDefinition]:
        def work(tables: TablesView) -> list[StepDefinition]:
            steps = tables[step_table(run)]
            paths = sorted(path for path in steps if after is None or path > after)
            return [steps[path].clone() for path in paths[:limit]]

        return self._read(work)

    def get_steps_by_state(
        self, run: WorkflowId, state: str, limit: int = 100
    ) -> list[StepDefinition]:
        def work(tables: TablesView) -> list[StepDefinition]:
            steps = tables[step_table(run)]
            paths = sorted(path for path, step in steps.items() if step.state == state)
            return [steps[path].clone() for path in paths[:limit]]

        return self._read(work)

    def get_unended_steps(self, run: WorkflowId, below: str) -> list[StepDefinition]:
        def work(tables: TablesView) -> list[StepDefinition]:
            steps = tables[step_table(run)]
            return [
                steps[path].clone()
                for path in sorted(steps)
                if not steps[path].is_terminal and is_below(path, below)
            ]

        return self._read(work)

    def count_steps(self, run: WorkflowId) -> Mapping[str, int]:
        return self._read(
            lambda tables: Counter(each.state for each in tables[step_table(run)].values())
        )

    def get_logs(self, run: WorkflowId, limit: int = 1000) -> list[LogLine]:
        def work(tables: TablesView) -> list[LogLine]:
            lines = tables[_logs(run)]
            return [
                LogLine(lines[number].path, map_out(lines[number].values), lines[number].at)
                for number in sorted(lines)[:limit]
            ]

        return self._read(work)


def _logs(run: str) -> str:
    return f"log:{run}"


def _yields(run: str) -> Lists:
    """Paths of yields by the path that they yield to."""
    return Lists(f"yield:{run}")


def _waits(run: str) -> Lists:
    """Paths of blocks by the path that they wait for."""
    return Lists(f"wait:{run}")


def _write_changes(
    transaction: MemoryTransaction, run: WorkflowId, changes: IterationChanges
) -> None:
    tables = transaction.tables
    steps = tables[step_table(run)]
    for step in (*changes.created_steps, *changes.updated_steps):
        note_step(transaction, run, steps.get(step.path), step)
        steps[step.path] = step.clone()
        if step.yields_to is not None:
            _yields(run).add(tables, step.yields_to, step.path)
    for wait in changes.waits:
        _waits(run).add(tables, wait.on, wait.block)
    for line in changes.logs:
        kept = LogLine(line.path, dict(line.values), transaction.now)
        tables[_logs(run)][f"{next(_numbers):016}"] = kept
    for awaited in changes.awaits:
        await_event(tables, run, awaited)


class MemoryMemos(MemoryTables):
    """See `persistence.Memos` for what each method promises."""

    def get_memo(self, facet: str, key: str) -> Mapping[str, Json] | None:
        def work(transaction: MemoryTransaction) -> Mapping[str, Json] | None:
            found = transaction.tables[_MEMOS].get(_memo(facet, key))
            if found is None:
                return None
            returns, until = found
            if until is not None and until <= transaction.now:
                return None
            return map_out(returns)

        return self._write(work)

    def put_memo(
        self, facet: str, key: str, returns: Mapping[str, Json], ttl: timedelta | None
    ) -> None:
        kept = map_in(returns, "the returns")

        def work(transaction: MemoryTransaction) -> None:
            until = None if ttl is None else transaction.now + ttl
            transaction.tables[_MEMOS][_memo(facet, key)] = (kept, until)

        self._write(work)


def _memo(facet: str, key: str) -> str:
    return f"{facet}\0{key}"


class MemoryStore(
    MemoryPrograms,
    MemoryRuns,
    MemorySteps,
    MemorySignals,
    MemoryMemos,
    MemoryRates,
    MemoryPeople,
    MemorySchedules,
    MemoryRunSearch,
    MemoryHistory,
):
    """Everything that a run needs to be kept, in memory. Threads may share one."""

    def __init__(self, clock: Clock | None = None, ids: IdSource | None = None) -> None:
        self._clock = clock or SystemClock()
        super().__init__(memory.MemoryStore(self._clock, ids or SystemIds()))

    def now(self) -> datetime:
        return self._clock.now()

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs that ended that long ago, with their steps. Answers how many.

        A run stays as long as the run that called it, or a fork of it that has not ended, does.
        Events that were taken and memos that are no longer valid go at the same age.
        """

        def work(transaction: MemoryTransaction) -> int:
            before = transaction.now - older_than
            tables = transaction.tables
            gone = 0
            while gone < limit and (runs := _forgettable(tables, before)):
                for run in runs[: limit - gone]:
                    _forget(tables, run)
                gone += min(len(runs), limit - gone)
            forget_events(tables, before)
            forget_rates(tables, before)
            forget_firings(tables, before)
            for key, (_, until) in list(tables[_MEMOS].items()):
                if until is not None and until <= before:
                    del tables[_MEMOS][key]
            return gone

        return self._write(work)

    def close(self) -> None:
        """There is nothing to give back."""


def _forgettable(tables: Tables, before: datetime) -> list[str]:
    """The runs that ended before then, the first first, without those that others need."""
    runs: list[Run] = list(tables[RUNS].values())
    needed = {run.fork.run for run in runs if run.fork is not None and run.finished_at is None}
    old = sorted(
        (run.finished_at, run.id)
        for run in runs
        if run.finished_at is not None
        and run.finished_at <= before
        and run.id not in needed
        and (run.parent is None or run.parent not in tables[RUNS])
    )
    return [run for _, run in old]


def _forget(tables: Tables, run: str) -> None:
    del tables[RUNS][run]
    tables.drop(step_table(run))
    tables.drop(_logs(run))
    forget_superseded(tables, run)
    forget_windows(tables, run)
    _yields(run).drop(tables)
    _waits(run).drop(tables)
    forget_waits(tables, run)
