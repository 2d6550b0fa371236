"""The reads on a store in memory, which has nothing to spare them for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from afl.kernel.model import State, Task, TaskId, WorkerId
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.run_search import RunFilter
from afl.server.store_reads.port import FOR_NO_WORKER, Backlog, ListTotals

_PAGE = 1000
_NAMES = 20


class KernelReads:
    """See `port.StoreReads` for what each method promises, but for the cost."""

    def __init__(self, persistence: PersistenceAPI) -> None:
        self._persistence = persistence
        self._kernel = persistence.kernel

    def backlogs(self, cap: int) -> list[Backlog]:
        now = self._persistence.now()
        groups: dict[tuple[str, str], list[Task]] = defaultdict(list)
        for task in self._all(State.READY):
            if task.list not in FOR_NO_WORKER:
                groups[task.list, task.short_name].append(task)
        found = []
        for (list_, name), tasks in sorted(groups.items()):
            ready = sorted((task for task in tasks if task.run_at <= now), key=_age)
            found.append(
                Backlog(
                    list_,
                    name,
                    tuple(dict.fromkeys(task.name for task in ready[:_NAMES])),
                    min(len(ready), cap),
                    min(len(tasks) - len(ready), cap),
                    ready[0].run_at if ready else None,
                )
            )
        return found

    def totals(self, cap: int) -> list[ListTotals]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for state in (State.RUNNING, State.QUEUED):
            for task in self._all(state):
                counts[task.list][state.value] += 1
        for task in self._kernel.dead_letters(cap):
            counts[task.list]["dead"] += 1
        return [
            ListTotals(name, min(each["running"], cap), min(each["queued"], cap), each["dead"])
            for name, each in sorted(counts.items())
        ]

    def held(self, workers: Sequence[WorkerId], each: int) -> Mapping[WorkerId, list[Task]]:
        found: dict[WorkerId, list[Task]] = {worker: [] for worker in workers}
        for task in self._all(State.RUNNING):
            if task.worker in found and len(found[task.worker]) < each:
                found[task.worker].append(task)
        return found

    def oldest(self, list: str, short_name: str, limit: int) -> list[Task]:
        now = self._persistence.now()
        found = [
            task
            for task in self._all(State.READY)
            if (task.list, task.short_name) == (list, short_name) and task.run_at <= now
        ]
        return sorted(found, key=_age)[:limit]

    def in_state(self, state: State, after: TaskId | None, limit: int) -> list[Task]:
        return self._kernel.find_tasks(state=state, after=after, limit=limit)

    def runs_mark(self) -> str:
        given = RunFilter()
        newest = self._persistence.search_runs(given, limit=1)
        counts = self._persistence.count_runs(given, cap=1_000_000)
        return f"{newest[0].id if newest else ''} {sorted(counts.items())}"

    def logs_mark(self, run: str) -> str:
        # without a database no lines are kept but those of `sys.log`, which are the run's own
        return ""

    def _all(self, state: State) -> Iterator[Task]:
        page = self._kernel.find_tasks(state=state, limit=_PAGE)
        while page:
            yield from page
            page = self._kernel.find_tasks(state=state, after=page[-1].id, limit=_PAGE)


def _age(task: Task) -> tuple[object, str]:
    return (task.run_at, task.id)
