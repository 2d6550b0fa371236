"""`persistence.Queue` on any kernel store: tasks, calls, workers and locks in the seeds' words."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Generic, TypeVar

from afl.kernel.errors import NotFound
from afl.kernel.model import (
    Call,
    CallStatus,
    ClaimRequest,
    Json,
    RunId,
    State,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store
from afl.runtime.entities import (
    LockMetaData,
    ServerDefinition,
    TaskDefinition,
    server_definition,
    task_definition,
)
from afl.runtime.persistence import EventDefinition, EventId
from afl.runtime.states import EventState
from afl.runtime.step import StepId, WorkflowId, split_step_id

#: How long a task that was claimed by `claim_task` is left alone.
CLAIM_LEASE = timedelta(hours=1)
_PAGE = 500
_NOT_CLAIMED = (State.QUEUED, State.READY)


K = TypeVar("K", bound=Store)


class KernelQueue(Generic[K]):
    """See `persistence.Queue` for what each method promises.

    `claim_task` claims as a worker of its own, one per object, which is made known by the first
    claim. What it has taken comes back `CLAIM_LEASE` after its last claim.
    """

    def __init__(self, kernel: K) -> None:
        self._kernel = kernel
        token = secrets.token_hex(8)
        self._owner = f"afl-{token}"
        self._claimer = WorkerId(f"seed-claimer-{token}")

    @property
    def kernel(self) -> K:
        return self._kernel

    def claim_task(
        self, task_names: list[str], task_list: str = "default"
    ) -> TaskDefinition | None:
        try:
            self._kernel.renew(self._claimer)
        except NotFound:
            self._kernel.register(
                WorkerSpec(self._claimer, socket.gethostname(), lists=(), lease=CLAIM_LEASE)
            )
        request = ClaimRequest(self._claimer, tuple(task_names), (task_list,))
        for claim in self._kernel.claim(request):
            return task_definition(claim.task)
        return None

    def get_task(self, task: str) -> TaskDefinition | None:
        found = self._kernel.get_task(TaskId(task))
        return None if found is None else task_definition(found)

    def get_tasks_by_workflow(self, run: WorkflowId) -> list[TaskDefinition]:
        flow = self._kernel.get_task(TaskId(run))
        root = RunId(run) if flow is None else flow.run
        return [task_definition(task) for task in self._tasks_of(root) if _run_of(task) == run]

    def _tasks_of(self, root: RunId) -> Iterator[Task]:
        page = self._kernel.find_tasks(run=root, limit=_PAGE)
        while page:
            yield from page
            page = self._kernel.find_tasks(run=root, after=page[-1].id, limit=_PAGE)

    def get_event(self, event: EventId) -> EventDefinition | None:
        run, path = split_step_id(event)
        call = self._kernel.find_call(TaskId(run), path)
        if call is None:
            return None
        callee = None if call.callee is None else self._kernel.get_task(call.callee)
        return EventDefinition(
            id=event,
            step_id=StepId(event),
            workflow_id=run,
            state=_event_state(call, callee),
            event_type="" if callee is None else callee.name,
            payload=_payload(call, callee),
        )

    def get_server(self, server: str) -> ServerDefinition | None:
        found = self._kernel.get_worker(WorkerId(server))
        return None if found is None else server_definition(found)

    def get_servers(self) -> list[ServerDefinition]:
        return [server_definition(worker) for worker in self._kernel.live_workers()]

    def acquire_lock(
        self, key: str, duration_ms: int, meta: LockMetaData | None = None, owner: str | None = None
    ) -> bool:
        held = self._kernel.acquire_lock(
            key,
            self._token(owner),
            timedelta(milliseconds=duration_ms),
            None if meta is None else asdict(meta),
        )
        return held is not None

    def extend_lock(self, key: str, duration_ms: int, owner: str | None = None) -> bool:
        duration = timedelta(milliseconds=duration_ms)
        return self._kernel.extend_lock(key, self._token(owner), duration)

    def release_lock(self, key: str, owner: str | None = None) -> bool:
        return self._kernel.release_lock(key, self._token(owner))

    def _token(self, owner: str | None) -> str:
        return self._owner if owner is None else owner


def _given(task: Task | None) -> dict[str, Json]:
    return task.input if task is not None and isinstance(task.input, dict) else {}


def _run_of(task: Task) -> Json:
    return _given(task).get("run")


def _event_state(call: Call, callee: Task | None) -> str:
    if call.status is CallStatus.OK:
        return EventState.COMPLETED
    if call.status is not CallStatus.OPEN:
        return EventState.ERROR
    if callee is None or callee.state in _NOT_CLAIMED:
        return EventState.CREATED
    return EventState.PROCESSING


def _payload(call: Call, callee: Task | None) -> dict[str, Json]:
    params = _given(callee).get("params")
    payload = dict(params) if isinstance(params, dict) else {}
    if call.status is CallStatus.OK:
        payload["result"] = call.reply
    elif call.status is not CallStatus.OPEN:
        payload["error"] = call.reply
    return payload
