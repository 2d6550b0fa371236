"""Lists of runs and windows on their steps, in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from afl.kernel.memory.transaction import MemoryTransaction, Tables, TablesView
from afl.kernel.model import RunId, State, Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.memory_tables import RUNS, MemoryTables, map_out, step_table
from afl.runtime.run_search import RunFilter, state_word
from afl.runtime.run_values import copy_run
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, is_below, parent_of
from afl.runtime.step_windows import StepMatch, StepTimes, below
from afl.runtime.tallies import Kind, Tally, kind_of

_PAGE = 1000


class MemoryRunSearch(MemoryTables):
    """See `persistence.RunSearch` for what each method promises, but for the cost."""

    def search_runs(
        self, filter: RunFilter, *, before: WorkflowId | None = None, limit: int = 100
    ) -> list[Run]:
        def work(tables: TablesView) -> list[Run]:
            runs = tables[RUNS]
            wanted = (
                runs[id_]
                for id_ in sorted(runs, reverse=True)
                if (before is None or id_ < before) and filter.fits(runs[id_])
            )
            return [copy_run(run, map_out) for run in islice(wanted, limit)]

        return self._read(work)

    def count_runs(self, filter: RunFilter, cap: int = 10_000) -> Mapping[str, int]:
        counts = self._read(
            lambda tables: Counter(
                state_word(run) for run in tables[RUNS].values() if filter.fits(run)
            )
        )
        return {state: min(count, cap) for state, count in counts.items()}


class MemoryStepWindows(MemoryTables):
    """See `persistence.StepWindows` for what each method promises, but for the cost."""

    def tally(self, run: WorkflowId) -> list[Tally]:
        return self._read(lambda tables: _read_tally(tables, run))

    def tallies(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, list[Tally]]:
        return self._read(
            lambda tables: {run: found for run in runs if (found := _read_tally(tables, run))}
        )

    def child_steps(
        self, run: WorkflowId, parent: str, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        def work(tables: TablesView) -> list[StepDefinition]:
            steps = tables[step_table(run)]
            paths = sorted(path for path in steps if path != ROOT and parent_of(path) == parent)
            later = (path for path in paths if after is None or path > after)
            return [steps[path].clone() for path in islice(later, limit)]

        return self._read(work)

    def have_children(self, run: WorkflowId, paths: Sequence[str]) -> set[str]:
        def work(tables: TablesView) -> set[str]:
            known = sorted(tables[step_table(run)])
            return {path for path in paths if _has_below(known, path)}

        return self._read(work)

    def problem_steps(
        self, run: WorkflowId, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        def work(tables: TablesView) -> list[StepDefinition]:
            steps = tables[step_table(run)]
            failed = (steps[path] for path in _later(steps, after) if steps[path].error is not None)
            return [step.clone() for step in islice(failed, limit)]

        return self._read(work)

    def scan_steps(
        self,
        run: WorkflowId,
        match: StepMatch,
        *,
        after: str | None = None,
        limit: int = 200,
        most: int = 20_000,
    ) -> tuple[list[StepDefinition], str | None]:
        def work(tables: TablesView) -> tuple[list[StepDefinition], str | None]:
            steps = tables[step_table(run)]
            looked = _later(steps, after)[:most]
            fitting = (steps[path] for path in looked if match.fits(steps[path]))
            found = [step.clone() for step in islice(fitting, limit)]
            if len(found) == limit:
                return found, found[-1].path
            return found, looked[-1] if len(looked) == most else None

        return self._read(work)

    def step_times(self, run: WorkflowId, paths: Sequence[str]) -> Mapping[str, StepTimes]:
        def work(tables: TablesView) -> Mapping[str, StepTimes]:
            times = tables[_times(run)]
            return {path: times[path] for path in paths if path in times}

        return self._read(work)

    def change_mark(self, run: WorkflowId) -> str:
        found = self._read(lambda tables: tables[RUNS].get(run))
        flow = self._kernel.get_task(TaskId(run))
        parts: list[object] = []
        if found is not None:
            parts += [found.state, found.pause_requested, found.finished_at]
        if flow is not None:
            parts += [*_moves(flow), flow.commits, flow.committed_fence, flow.seq]
            for task in self._open_tasks(flow.run):
                parts += _moves(task)
        return f"{hash(tuple(parts)):x}"

    def _open_tasks(self, root: RunId) -> list[Task]:
        found: list[Task] = []
        after: TaskId | None = None
        while page := self._kernel.find_tasks(run=root, after=after, limit=_PAGE):
            found += [task for task in page if task.state is not State.CLOSED]
            after = page[-1].id
        return found


def note_step(
    transaction: MemoryTransaction, run: str, old: StepDefinition | None, new: StepDefinition
) -> None:
    """A step is about to be written in the place of another one, or of none."""
    tables, now = transaction.tables, transaction.now
    was, is_now = None if old is None else kind_of(old), kind_of(new)
    if was != is_now:
        if was is not None:
            _count(tables, run, was, -1)
        _count(tables, run, is_now, 1)
    times = tables[_times(run)]
    known: StepTimes | None = times.get(new.path)
    ended = None
    if new.is_terminal:
        ended = now if known is None or known.ended_at is None else known.ended_at
    times[new.path] = StepTimes(now if known is None else known.created_at, now, ended)


def forget_windows(tables: Tables, run: str) -> None:
    """With its run."""
    tables.drop(_tally(run))
    tables.drop(_times(run))


def _count(tables: Tables, run: str, kind: Kind, change: int) -> None:
    rows = tables[_tally(run)]
    key = "\0".join(kind)
    known: Tally | None = rows.get(key)
    steps = change if known is None else known.steps + change
    if steps:
        rows[key] = Tally(*kind, steps)
    else:
        del rows[key]


def _read_tally(tables: TablesView, run: str) -> list[Tally]:
    return sorted(tables[_tally(run)].values())


def _has_below(paths: Sequence[str], path: str) -> bool:
    first = bisect_left(paths, below(path)[0])
    return first < len(paths) and is_below(paths[first], path)


def _later(steps: Mapping[str, StepDefinition], after: str | None) -> list[str]:
    return sorted(path for path in steps if after is None or path > after)


def _moves(task: Task) -> tuple[object, ...]:
    """What changes of a task when somebody takes it, gives it back or is asked to stop."""
    return task.id, task.state, task.fence, task.failures, task.crashes, task.stop_requested


def _tally(run: str) -> str:
    return f"tally:{run}"


def _times(run: str) -> str:
    return f"times:{run}"
