"""What a Prometheus server asks of an installation. Everything is read when it is asked, up to a
cap and by index; what stands in the database is told by every server alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from afl import __version__
from afl.kernel.model import WorkerState
from afl.kernel.rules import is_live
from afl.runtime.run_search import RunFilter
from afl.server.backend import Backend
from afl.server.store_reads import store_reads
from afl.server.system_views import has_gone, worker_state

#: How far things are counted.
COUNTED = 10_000
_LATELY = timedelta(hours=1)
_WORKERS = 500
_ASKED = 1000


def exposition(backend: Backend) -> bytes:
    """The metrics in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Installation(backend))
    return generate_latest(registry)


class _Installation(Collector):
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._persistence = backend.services.persistence
        self._reads = store_reads(self._persistence)

    def describe(self) -> Iterator[Metric]:
        """Nothing: whoever registers this must not wait for the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        about = GaugeMetricFamily("afl_server_info", "Which server this is.", labels=["version"])
        about.add_metric([__version__], 1)
        yield about
        yield from self._queues()
        yield from self._workers()
        yield from self._runs()

    def _queues(self) -> Iterator[Metric]:
        now = self._persistence.now()
        ready = GaugeMetricFamily(
            "afl_tasks_ready", "Tasks that a worker could claim, up to a cap.", labels=["list"]
        )
        oldest = GaugeMetricFamily(
            "afl_oldest_ready_seconds", "How long the oldest of them waits.", labels=["list"]
        )
        counts: Counter[str] = Counter()
        ages: dict[str, float] = {}
        for each in self._reads.backlogs(COUNTED):
            counts[each.list] += each.ready
            if each.oldest_ready_at is not None:
                age = max(0.0, (now - each.oldest_ready_at).total_seconds())
                ages[each.list] = max(age, ages.get(each.list, 0.0))
        for name, count in sorted(counts.items()):
            ready.add_metric([name], count)
            oldest.add_metric([name], ages.get(name, 0.0))
        running = GaugeMetricFamily(
            "afl_tasks_running", "Tasks that workers have in hand, up to a cap.", labels=["list"]
        )
        dead = GaugeMetricFamily(
            "afl_dead_letters", "Tasks that were given up, up to a cap.", labels=["list"]
        )
        for total in self._reads.totals(COUNTED):
            running.add_metric([total.list], total.running)
            dead.add_metric([total.list], total.dead)
        yield from (ready, oldest, running, dead)

    def _workers(self) -> Iterator[Metric]:
        now = self._persistence.now()
        seen = self._persistence.kernel.workers_seen(_LATELY, _WORKERS)
        held = self._reads.held([worker.id for worker in seen], 1)
        states: Counter[str] = Counter(starting=0, idle=0, busy=0, draining=0, stale=0, failed=0)
        for worker in seen:
            if not has_gone(worker, now):
                states[worker_state(worker, now, is_busy=bool(held.get(worker.id)))] += 1
        workers = GaugeMetricFamily(
            "afl_workers", "Workers of the last hour, by their states.", labels=["state"]
        )
        for state, count in sorted(states.items()):
            workers.add_metric([state], count)
        live = [each for each in seen if is_live(each, now) and each.state is not WorkerState.ERROR]
        missing = {name for each in self._reads.backlogs(COUNTED) for name in each.unserved(live)}
        alone = GaugeMetricFamily(
            "afl_unserved_facets", "Facets that work waits for and no live worker serves."
        )
        alone.add_metric([], len(missing))
        yield from (workers, alone)

    def _runs(self) -> Iterator[Metric]:
        runs = GaugeMetricFamily("afl_runs", "Runs by state, up to a cap.", labels=["state"])
        for state, count in sorted(self._persistence.count_runs(RunFilter(), COUNTED).items()):
            runs.add_metric([state], count)
        asked = GaugeMetricFamily("afl_inbox_open", "What waits for people, up to a cap.")
        asked.add_metric([], len(self._persistence.human_tasks(limit=_ASKED)))
        yield from (runs, asked)
