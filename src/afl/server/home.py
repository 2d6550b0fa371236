"""What somebody who opens the dashboard has to know first.

Everything here is read up to a cap and by index: it costs the same with a million runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from afl.app.costs import Costs
from afl.kernel.model import Task, Worker, WorkerState
from afl.kernel.rules import is_live
from afl.runtime.calls import BREAKER, BUDGETS, TIMERS
from afl.runtime.entities import Run
from afl.runtime.run_search import RunFilter
from afl.runtime.states import RunState
from afl.server.access import EVERY_TENANT, Caller
from afl.server.backend import Backend
from afl.server.models.runs import RunLine
from afl.server.models.system import Home, Spend
from afl.server.run_views.lines import run_lines
from afl.server.seeing import with_runs
from afl.server.store_reads import store_reads
from afl.server.store_reads.port import Backlog, StoreReads
from afl.server.system_views import worker_state
from afl.server.watching.marks import Marks
from afl.server.watching.topics import Topic

#: How far things are counted.
COUNTED = 10_000
#: A run that waits so long for a worker is stuck, even if one serves what it waits for.
WAITED = timedelta(minutes=10)
_SHOWN = 10
_LOOKED_AT = 100
_ASKED = 1000
_LATELY = timedelta(hours=1)
_WORKERS = 500
_BUDGET = "afl:budget"
_DAYS = 7


def home_view(backend: Backend, caller: Caller) -> Home:
    """What the first page shows to a caller."""
    return _Looking(backend, caller).home()


@dataclass(frozen=True, slots=True)
class _Queue:
    """What waits for workers, and who they are."""

    backlogs: Sequence[Backlog]
    workers: Sequence[Worker]
    now: datetime

    @property
    def live(self) -> list[Worker]:
        return [worker for worker in self.workers if is_live(worker, self.now)]

    @property
    def stale(self) -> list[Worker]:
        """Those that were lost and have not said that they end."""
        words = ("stale", "failed")
        return [
            worker
            for worker in self.workers
            if worker_state(worker, self.now, is_busy=False) in words
            and worker.state is not WorkerState.SHUTDOWN
        ]


class _Looking:
    """One look, for one caller."""

    def __init__(self, backend: Backend, caller: Caller) -> None:
        self._backend = backend
        self._persistence = backend.services.persistence
        self._reads: StoreReads = store_reads(self._persistence)
        self._caller = caller
        #: None for callers who see everything
        self._tenant = None if caller.tenant == EVERY_TENANT else caller.tenant

    def home(self) -> Home:
        queue = _Queue(
            self._reads.backlogs(COUNTED),
            self._persistence.kernel.workers_seen(_LATELY, _WORKERS),
            self._persistence.now(),
        )
        # before what it stands for is read: who compares it later reads rather once too often
        mark = Marks(self._backend).of(Topic("home", tenant=self._tenant))
        counts = self._persistence.count_runs(RunFilter(tenant=self._tenant), COUNTED)
        tasks = with_runs(self._backend, self._caller.sees, list(self._stuck_tasks(queue)))
        recent, failing, stuck = self._lines(
            self._runs(), self._runs(RunState.FAILED), _stuck_runs(tasks)
        )
        seen = self._tenant is None
        oldest = [each.oldest_ready_at for each in queue.backlogs if each.oldest_ready_at]
        return Home(
            counts=dict(counts),
            failing=failing,
            stuck=stuck,
            needs_you=self._needs_you(),
            oldest_ready_at=min(oldest, default=None) if seen else None,
            queue_depth=sum(each.ready for each in queue.backlogs) if seen else 0,
            dead_letters=sum(each.dead for each in self._reads.totals(COUNTED)) if seen else 0,
            workers_live=len(queue.live),
            workers_stale=len(queue.stale),
            unserved=self._unserved(queue, tasks),
            spend=self._spend(queue.now),
            recent=recent,
            is_new=not recent and not self._persistence.deployments(),
            mark=mark,
        )

    def _runs(self, state: str | None = None) -> list[Run]:
        wanted = RunFilter(state=state, tenant=self._tenant)
        return self._persistence.search_runs(wanted, limit=_SHOWN)

    def _lines(self, *lists: Sequence[Run]) -> list[list[RunLine]]:
        """Several lists of runs, for the reads of one."""
        runs = {run.id: run for each in lists for run in each}
        lines = {line.id: line for line in run_lines(self._backend, list(runs.values()))}
        return [[lines[run.id] for run in each] for each in lists]

    def _stuck_tasks(self, queue: _Queue) -> Iterator[Task]:
        """Tasks that keep their runs from going on, a few of each cause: nobody serves them, or
        nobody has taken them for long; their worker is lost; a breaker is open; a budget is
        spent."""
        live = queue.live
        for backlog in queue.backlogs:
            missing = backlog.unserved(live)
            oldest = backlog.oldest_ready_at
            if oldest is None or (not missing and queue.now - oldest <= WAITED):
                continue
            for task in self._oldest(backlog.list, backlog.short_name):
                if task.name in missing or queue.now - task.run_at > WAITED:
                    yield task
        lost = [worker.id for worker in queue.stale]
        for tasks in self._reads.held(lost, _LOOKED_AT).values():
            yield from tasks
        yield from self._oldest(TIMERS, BREAKER)
        yield from self._oldest(BUDGETS, _BUDGET)

    def _oldest(self, list_: str, name: str) -> list[Task]:
        return self._reads.oldest(list_, name, _LOOKED_AT)

    def _unserved(self, queue: _Queue, tasks: Sequence[tuple[Task, Run]]) -> list[str]:
        """The facets that work waits for and no live worker serves; of a tenant's own work."""
        live = queue.live
        missing = {name for each in queue.backlogs for name in each.unserved(live)}
        if self._tenant is not None:
            missing &= {task.name for task, _ in tasks}
        return sorted(missing)

    def _needs_you(self) -> int:
        asked = self._persistence.human_tasks(limit=_ASKED)
        if self._tenant is None:
            return len(asked)
        return len(with_runs(self._backend, self._caller.sees, asked))

    def _spend(self, now: datetime) -> Spend:
        """What models have cost by the days of UTC: today, and today with the six days before."""
        first = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        costs = Costs(self._backend.services, self._caller.tenant)
        days = costs.usage(
            "day",
            since=first - timedelta(days=_DAYS - 1),
            limit=_DAYS,
            every_tenant=self._tenant is None,
        )
        today = first.date().isoformat()
        return Spend(
            today_usd=sum(float(each.usd) for each in days if each.key == today),
            week_usd=sum(float(each.usd) for each in days),
            unpriced=sum(each.unpriced for each in days),
        )


def _stuck_runs(tasks: Sequence[tuple[Task, Run]]) -> list[Run]:
    """The runs of these tasks that would go on."""
    runs = {
        run.id: run
        for _, run in tasks
        if not RunState.is_terminal(run.state) and not run.pause_requested
    }
    return list(runs.values())[:_SHOWN]
