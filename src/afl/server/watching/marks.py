"""The marks of topics. Each is a few reads by index, whatever there is besides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from afl.kernel.confining import confined
from afl.kernel.model import TaskId
from afl.runtime.step import WorkflowId
from afl.server.backend import Backend
from afl.server.dev_state import dev_mark
from afl.server.seeing import with_runs
from afl.server.store_reads import store_reads
from afl.server.system_views import worker_state
from afl.server.watching.topics import Topic

#: How many characters a mark has.
WIDTH = 12
_ASKED = 500
_LATELY = timedelta(hours=1)
_WORKERS = 500
#: A sign of life is no news; that there was none for a while is.
_SEEN_SECONDS = 5


class Marks:
    """Reads marks from a backend. Used by one thread at a time."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._persistence = backend.services.persistence
        self._reads = store_reads(self._persistence)
        #: what was read for several topics, while they are read together
        self._shared: dict[str, str] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Reads what the marks of several topics share once while this lasts."""
        self._shared = {}
        try:
            yield
        finally:
            self._shared = None

    def of(self, topic: Topic) -> str:
        """A short text that differs whenever what the page of the topic shows has changed."""
        # it tells nothing but that something is different, to the one and to the other who read it
        with confined(None):
            text = self._text(topic)
        return hashlib.blake2b(text.encode(), digest_size=WIDTH // 2).hexdigest()

    def _text(self, topic: Topic) -> str:
        match topic.kind:
            case "run":
                changed = self._persistence.change_mark(WorkflowId(topic.id))
                # a worker that comes or is lost changes what steps wait for, and no row of the run
                alive = self._once("alive", self._alive)
                return f"{changed} {self._reads.logs_mark(topic.id)} {alive}"
            case "turn":
                return self._turn(topic.id)
            case "runs":
                return self._once("runs", self._reads.runs_mark)
            case "inbox":
                return self._inbox(topic.tenant)
            case "workers":
                return self._once("workers", self._workers)
            case "home":
                runs = self._once("runs", self._reads.runs_mark)
                workers = self._once("workers", self._workers)
                return "\n".join((runs, self._inbox(topic.tenant), workers))
            case _:
                return dev_mark(self._backend.dev)

    def _once(self, what: str, read: Callable[[], str]) -> str:
        if self._shared is None:
            return read()
        if what not in self._shared:
            self._shared[what] = read()
        return self._shared[what]

    def _alive(self) -> str:
        return " ".join(each.id for each in self._persistence.kernel.live_workers())

    def _turn(self, turn: str) -> str:
        task = self._persistence.kernel.get_task(TaskId(turn))
        if task is None:
            return ""
        return f"{task.state} {task.outcome} {task.committed_fence} {task.commits} {task.seq}"

    def _inbox(self, tenant: str | None) -> str:
        tasks = self._persistence.human_tasks(limit=_ASKED)
        if tenant is not None:
            own = with_runs(self._backend, lambda each: each == tenant, tasks)
            tasks = [task for task, _ in own]
        return " ".join(task.id for task in tasks)

    def _workers(self) -> str:
        now = self._persistence.now()
        workers = self._persistence.kernel.workers_seen(_LATELY, _WORKERS)
        held = self._reads.held([worker.id for worker in workers], 1)
        return " ".join(
            f"{worker.id} {worker_state(worker, now, is_busy=bool(held[worker.id]))} "
            f"{int(worker.seen_at.timestamp()) // _SEEN_SECONDS}"
            for worker in sorted(workers, key=lambda each: each.id)
        )
