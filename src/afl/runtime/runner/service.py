"""`RunnerService`: a `Worker` that serves all runs, with signals, a status page and a drain."""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import monotonic

from afl.base.system import SystemIds
from afl.kernel.doorbell import Doorbell
from afl.kernel.model import Json, WorkerId
from afl.kernel.waiting import PollPolicy
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.entities import ServerState
from afl.runtime.evaluator import Evaluator
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.runner.registry import ToolRegistry
from afl.runtime.runner.status_server import (
    Answer,
    StatusServer,
    json_answer,
    metrics_answer,
)
from afl.runtime.worker import Worker, WorkerConfig
from afl.runtime.working.programs import WorkflowAst, make_ready

_log = logging.getLogger("afl.runner")
_FIRST_POLL_SECONDS = 0.1


@dataclass
class RunnerConfig:
    """How a runner works, and under which names it is known.

    The claim is the lock: `lock_duration_ms` is the lease of what is claimed. One renewal is both
    the heartbeat and the extension of all locks, as often as the shorter of the two says.
    """

    server_group: str = "default"
    service_name: str = "afl-runner"
    server_name: str = ""
    topics: list[str] = field(default_factory=list)
    task_list: str = "default"
    poll_interval_ms: int = 2000
    heartbeat_interval_ms: int = 10000
    lock_duration_ms: int = 60000
    lock_extend_interval_ms: int = 20000
    max_concurrent: int = 5
    shutdown_timeout_ms: int = 30000
    http_port: int = 8080
    http_max_port_attempts: int = 20

    def __post_init__(self) -> None:
        self.server_name = self.server_name or socket.gethostname()


class RunnerService:
    """Advances runs and serves facets until it is stopped."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        evaluator: Evaluator,
        config: RunnerConfig | None = None,
        tool_registry: ToolRegistry | None = None,
        *,
        doorbell: Doorbell | None = None,
    ) -> None:
        self._persistence = persistence
        self._evaluator = evaluator
        self._config = config or RunnerConfig()
        self._registry = tool_registry or ToolRegistry()
        self._doorbell = doorbell
        self._server_id = WorkerId(SystemIds().new_id())
        self._asked = Asked()
        self._ready = threading.Event()
        self._worker: Worker | None = None
        self._status: StatusServer | None = None
        self._started = 0.0

    @property
    def server_id(self) -> str:
        """Unique identifier for this runner."""
        return self._server_id

    @property
    def is_running(self) -> bool:
        return self._worker is not None and self._worker.is_running

    @property
    def http_port(self) -> int | None:
        """Where the status is served; None as long as it is not."""
        return None if self._status is None else self._status.port

    def wait_until_ready(self, timeout_seconds: float) -> bool:
        """Whether it serves by then."""
        return self._ready.wait(timeout_seconds)

    def cache_workflow_ast(self, workflow_id: str, ast: WorkflowAst) -> None:
        """Makes the program of a run ready, so that the run goes on without a lookup."""
        make_ready(self._evaluator, workflow_id, ast)

    # Its life

    def start(self) -> None:
        """Serves until `stop` is called, or SIGTERM or SIGINT comes; then drains."""
        config = self._config
        self._worker = worker = self._make_worker()
        pages = {
            "/health": self._health,
            "/status": self._status_page,
            "/metrics": lambda: metrics_answer(worker),
        }
        self._status = StatusServer(pages, config.http_port, config.http_max_port_attempts)
        self._started = monotonic()
        with self._signals():
            worker.start()
            self._status.start()
            self._ready.set()
            _log.info("status at http://127.0.0.1:%d/status", self._status.port)
            try:
                self._asked.get()
            finally:
                self._ready.clear()
                worker.drain(config.shutdown_timeout_ms / 1000)
                self._status.stop()

    def stop(self) -> None:
        """Has `start` drain and return. Any thread may call it."""
        self._asked.put(0)

    def _make_worker(self) -> Worker:
        config = self._config
        poll_seconds = config.poll_interval_ms / 1000
        renew_ms = min(config.lock_extend_interval_ms, config.heartbeat_interval_ms)
        names = [name for name in config.topics if self._registry.has_handler(name)]
        return Worker(
            self._evaluator,
            self._registry.table(),
            WorkerConfig(
                slots=config.max_concurrent,
                lists=(config.task_list,),
                names=tuple(names) if config.topics else None,
                lease_seconds=config.lock_duration_ms / 1000,
                renew_seconds=renew_ms / 1000,
                poll=PollPolicy(min(_FIRST_POLL_SECONDS, poll_seconds), poll_seconds),
                name=config.server_name,
                group=config.server_group,
                service=config.service_name,
            ),
            doorbell=self._doorbell,
            id=self._server_id,
        )

    def _signals(self) -> AbstractContextManager[None]:
        """SIGTERM and SIGINT stop the service, if it runs in the main thread."""
        if threading.current_thread() is threading.main_thread():
            return asked_by_signals(self._asked)
        return nullcontext()

    # What it tells

    def _health(self) -> Answer:
        state = self._state()
        return json_answer({"status": state}, 200 if state == ServerState.RUNNING else 503)

    def _state(self) -> str:
        worker = self._worker
        if worker is None or not worker.is_running or worker.is_draining:
            return ServerState.SHUTDOWN
        return ServerState.RUNNING

    def _status_page(self) -> Answer:
        worker = self._worker
        assert worker is not None
        counters = worker.counters
        handled: list[Json] = [
            {"facet": facet, "outcome": outcome, "count": number}
            for (facet, outcome), number in sorted(counters.by_facet().items())
        ]
        loops: list[Json] = [
            {
                "name": loop.name,
                "errors": loop.errors,
                "last_error": loop.last_error,
                "last_success_age_seconds": loop.age_seconds(),
            }
            for loop in worker.health()
        ]
        return json_answer(
            {
                "server_id": self._server_id,
                "server_name": self._config.server_name,
                "state": self._state(),
                "uptime_seconds": round(monotonic() - self._started, 3),
                "in_flight": counters.in_flight,
                "handled": handled,
                "loops": loops,
            }
        )
