"""`AgentPoller`: a service that serves facets with callbacks, and nothing else.

`start` is a `Worker`; `poll_once` is one cycle of the same work in the caller's own thread.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from afl.base.system import SystemIds
from afl.kernel.doorbell import Doorbell
from afl.kernel.errors import Fenced
from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Commit,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.waiting import PollPolicy
from afl.runtime.errors import UnknownRun
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import HandlerTable, Invocation, on_params
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.step import WorkflowId
from afl.runtime.worker import Worker, WorkerConfig
from afl.runtime.working.outcomes import close_of_error, close_of_result, run_of
from afl.runtime.working.programs import WorkflowAst, make_ready

#: How long a task that `poll_once` has claimed is left to it: it has nobody who renews.
POLL_LEASE = timedelta(hours=1)
#: A lease is this many heartbeats long, so that two may be lost.
HEARTBEATS_PER_LEASE = 3
_FIRST_POLL_SECONDS = 0.1
_STOP_SECONDS = 30.0


@dataclass
class AgentPollerConfig:
    """How an agent polls, and under which names it is known."""

    service_name: str = "afl-agent"
    server_group: str = "default"
    server_name: str = ""
    task_list: str = "default"
    poll_interval_ms: int = 2000
    max_concurrent: int = 5
    heartbeat_interval_ms: int = 10000

    def __post_init__(self) -> None:
        self.server_name = self.server_name or socket.gethostname()


class AgentPoller:
    """Serves event facets with callbacks, and advances the runs whose steps it has served."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        evaluator: Evaluator,
        config: AgentPollerConfig | None = None,
        *,
        doorbell: Doorbell | None = None,
    ) -> None:
        self._persistence = persistence
        self._evaluator = evaluator
        self._config = config or AgentPollerConfig()
        self._doorbell = doorbell
        self._table = HandlerTable()
        self._server_id = WorkerId(SystemIds().new_id())
        self._registered = False
        self._stop = threading.Event()
        self._running = threading.Event()

    @property
    def server_id(self) -> str:
        """Unique identifier for this agent instance."""
        return self._server_id

    @property
    def is_running(self) -> bool:
        """Whether the poll loop is currently active."""
        return self._running.is_set()

    def register(
        self, facet_name: str, callback: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        """Serves a facet, by its qualified name or its short one."""
        self._table.register(facet_name, on_params(callback))

    def registered_names(self) -> list[str]:
        """All registered facet names."""
        return self._table.names()

    def cache_workflow_ast(self, workflow_id: str, ast: WorkflowAst) -> None:
        """Makes the program of a run ready, so that the run goes on without a lookup."""
        make_ready(self._evaluator, workflow_id, ast)

    # The loop

    def start(self) -> None:
        """Serves until `stop` is called."""
        config = self._config
        heartbeat_seconds = config.heartbeat_interval_ms / 1000
        poll_seconds = config.poll_interval_ms / 1000
        worker = Worker(
            self._evaluator,
            self._table,
            WorkerConfig(
                slots=config.max_concurrent,
                lists=(config.task_list,),
                all_flows=False,
                lease_seconds=heartbeat_seconds * HEARTBEATS_PER_LEASE,
                renew_seconds=heartbeat_seconds,
                poll=PollPolicy(min(_FIRST_POLL_SECONDS, poll_seconds), poll_seconds),
                name=config.server_name,
                group=config.server_group,
                service=config.service_name,
            ),
            doorbell=self._doorbell,
            id=self._server_id,
        )
        worker.start()
        self._running.set()
        try:
            self._stop.wait()
        finally:
            worker.drain(_STOP_SECONDS)
            self._running.clear()
            self._stop.clear()

    def stop(self) -> None:
        """Signals the poll loop to exit gracefully. An agent without one says that it ends."""
        self._stop.set()
        if not self.is_running and self._registered:
            self._registered = False
            self._persistence.kernel.set_worker_state(self._server_id, WorkerState.SHUTDOWN)

    # One cycle

    def poll_once(self) -> int:
        """One synchronous poll cycle, without threads. Answers how many tasks were dispatched."""
        kernel = self._persistence.kernel
        config = self._config
        names = tuple(self._table.names())
        if not names:
            return 0
        if self._registered:
            kernel.renew(self._server_id)
        else:
            self._make_known(names)
        request = ClaimRequest(self._server_id, names, (config.task_list,), config.max_concurrent)
        claims = kernel.claim(request)
        for claim in claims:
            self._dispatch(claim)
        return len(claims)

    def _make_known(self, names: tuple[str, ...]) -> None:
        config, kernel = self._config, self._persistence.kernel
        kernel.register(
            WorkerSpec(
                self._server_id,
                config.server_name,
                group=config.server_group,
                service=config.service_name,
                lists=(config.task_list,),
                handlers=names,
                slots=config.max_concurrent,
                lease=POLL_LEASE,
            )
        )
        kernel.set_worker_state(self._server_id, WorkerState.RUNNING)
        self._registered = True

    def _dispatch(self, claim: Claim) -> None:
        """Serves one task and advances its run, which a failure may end."""
        try:
            self._persistence.kernel.commit([Commit(claim.fence, self._attempt(claim))])
        except Fenced:
            return  # somebody else has answered meanwhile; that is what counts
        run = run_of(claim.task)
        if run is not None:
            with suppress(UnknownRun):
                self._evaluator.resume(WorkflowId(run))

    def _attempt(self, claim: Claim) -> Close:
        kernel, task = self._persistence.kernel, claim.task
        handler = self._table.find(task.name)
        assert handler is not None
        invocation = Invocation.of(
            task, threading.Event(), lambda by: kernel.extend(claim.fence, by)
        )
        try:
            answer: Any = handler.function(invocation)
            if inspect.iscoroutine(answer):
                answer = asyncio.run(answer)
            return close_of_result(handler.name, answer)
        except Exception as error:  # noqa: BLE001 - whatever a callback raises is its outcome
            return close_of_error(task, error)
