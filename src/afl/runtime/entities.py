"""What is stored beside steps: runs and programs, and the seeds' view of tasks, servers and locks.

The kernel's rows are the truth about tasks and workers. `TaskDefinition` and `ServerDefinition` are
those rows in the words of the agent specification; they are made on reading and stored nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from afl.kernel.model import Json, Outcome, State, Task, Worker, WorkerState
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId, step_id


class TaskState:
    """Where a task is."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    IGNORED = "ignored"
    CANCELED = "canceled"


class ServerState:
    """Where a server is."""

    STARTUP = "startup"
    RUNNING = "running"
    SHUTDOWN = "shutdown"
    ERROR = "error"


@dataclass
class TaskDefinition:
    """A claimable piece of work."""

    uuid: str
    name: str
    runner_id: str
    workflow_id: str
    flow_id: str
    step_id: str
    state: str = TaskState.PENDING
    created: int = 0
    updated: int = 0
    error: dict[str, Any] | None = None
    task_list_name: str = "default"
    data_type: str = ""
    data: dict[str, Any] | None = None


@dataclass
class HandledCount:
    """How often a server has served a facet."""

    handler: str
    handled: int = 0
    not_handled: int = 0


@dataclass
class ServerDefinition:
    """A process that serves tasks."""

    uuid: str
    server_group: str
    service_name: str
    server_name: str
    server_ips: list[str] = field(default_factory=list)
    start_time: int = 0
    ping_time: int = 0
    topics: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    handled: list[HandledCount] = field(default_factory=list)
    state: str = ServerState.STARTUP
    manager: str = ""
    error: dict[str, Any] | None = None


@dataclass
class LockMetaData:
    """What a lock is held for."""

    topic: str = ""
    handler: str = ""
    step_name: str = ""
    step_id: str = ""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a run takes finished work from: another run, and the steps that it does again.

    A step is taken over if it has the same arguments, has succeeded there, and no path of `redo` is
    its own or stands above it. `overrides` are arguments to use instead, by path.
    """

    run: WorkflowId
    redo: tuple[str, ...] = ()
    overrides: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a workflow. Its id is the id of its flow task."""

    id: WorkflowId
    #: the hash of the program that it is pinned to
    program: str
    workflow: str
    inputs: Mapping[str, Json]
    state: str = RunState.CREATED
    outputs: Mapping[str, Json] | None = None
    error: Mapping[str, Json] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: the idempotency key of the submit
    key: str | None = None
    priority: int = 0
    tenant: str = "default"
    #: for a workflow called as a step: the run and the path of that step
    parent: WorkflowId | None = None
    parent_path: str | None = None
    fork: Fork | None = None
    pause_requested: bool = False
    created_at: datetime | None = None
    finished_at: datetime | None = None


_TASK_STATES = {
    State.QUEUED: TaskState.PENDING,
    State.READY: TaskState.PENDING,
    State.RUNNING: TaskState.RUNNING,
    State.WAITING: TaskState.RUNNING,
}
_OUTCOMES = {
    Outcome.SUCCESS: TaskState.COMPLETED,
    Outcome.PARTIAL: TaskState.COMPLETED,
    Outcome.FAILED: TaskState.FAILED,
    Outcome.TIMEOUT: TaskState.FAILED,
    Outcome.CANCELED: TaskState.CANCELED,
}
_SERVER_STATES = {
    WorkerState.STARTUP: ServerState.STARTUP,
    WorkerState.RUNNING: ServerState.RUNNING,
    WorkerState.SHUTDOWN: ServerState.SHUTDOWN,
    WorkerState.ERROR: ServerState.ERROR,
}


def task_definition(task: Task) -> TaskDefinition:
    """A task of the kernel in the seeds' words."""
    given = task.input if isinstance(task.input, dict) else {}
    state = _OUTCOMES[task.outcome] if task.outcome is not None else _TASK_STATES[task.state]
    run, step = given.get("run"), given.get("step")
    params = given.get("params")
    return TaskDefinition(
        uuid=task.id,
        name=task.name,
        runner_id=task.worker or "",
        workflow_id=str(run) if run is not None else str(task.run),
        flow_id=str(given.get("program", "")),
        step_id=step_id(str(run), str(step)) if step is not None else "",
        state=state,
        created=milliseconds(task.created_at),
        updated=milliseconds(task.closed_at or task.created_at),
        error=task.error if isinstance(task.error, dict) else None,
        task_list_name=task.list,
        data_type=task.kind,
        data=dict(params) if isinstance(params, dict) else None,
    )


def server_definition(worker: Worker) -> ServerDefinition:
    """A worker of the kernel in the seeds' words."""
    return ServerDefinition(
        uuid=worker.id,
        server_group=worker.group,
        service_name=worker.service,
        server_name=worker.name,
        start_time=milliseconds(worker.started_at),
        ping_time=milliseconds(worker.seen_at),
        topics=list(worker.lists),
        handlers=list(worker.handlers),
        state=_SERVER_STATES[worker.state],
    )


def milliseconds(time: datetime) -> int:
    """A time as the seeds write it: milliseconds since 1970."""
    return round(time.timestamp() * 1000)
