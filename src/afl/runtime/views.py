"""Runs as people look at them: a tree of steps, page by page, and everything about a run in one
JSON value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum

from afl.kernel.model import Call, CallStatus, Json, RunId, State, Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.persistence import Needed, PersistenceAPI
from afl.runtime.run_search import state_word as state_word
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, parent_of

_PAGE = 1000

#: A state as people read it, by where a step is; anything else is under way.
_WORDS = {
    StepState.STATEMENT_COMPLETE: "done",
    StepState.STATEMENT_ERROR: "failed",
    StepState.STATEMENT_SKIPPED: "skipped",
}
_TASK_WORDS = {
    State.QUEUED: "queued",
    State.READY: "queued",
    State.RUNNING: "running",
    State.WAITING: "waiting",
    State.CLOSED: "running",
}


@dataclass(slots=True)
class Node:
    """A step in a tree."""

    path: str
    name: str
    kind: str
    facet: str
    #: queued, running, waiting, done, failed or skipped
    state: str
    error: Mapping[str, Json] | None = None
    skipped_because: str | None = None
    #: where the result was taken from: a run, or `cache`
    reused: str | None = None
    children: list[Node] = field(default_factory=list)

    def as_json(self) -> dict[str, Json]:
        return {
            "path": self.path,
            "name": self.name,
            "kind": self.kind,
            "facet": self.facet,
            "state": self.state,
            "error": None if self.error is None else dict(self.error),
            "skipped_because": self.skipped_because,
            "reused": self.reused,
            "children": [child.as_json() for child in self.children],
        }


@dataclass(frozen=True, slots=True)
class Tree:
    """A page of the steps of a run, in the order of their paths, below what they stand in."""

    run: str
    root: Node | None
    #: where the next page starts: `after` of the next call; None if this was the last one
    next: str | None


def tree(
    persistence: PersistenceAPI, run: WorkflowId, *, after: str | None = None, limit: int = 200
) -> Tree:
    """The steps of a run as a tree. A page has `limit` steps, and what they stand in."""
    rows = persistence.get_steps_by_workflow(run, after=after, limit=limit + 1)
    more = len(rows) > limit
    rows = rows[:limit]
    known = {row.path: row for row in rows}
    above = {path for row in rows for path in _above(row.path)} - known.keys()
    if above:
        known.update(persistence.load(run, Needed(steps=frozenset(above))).steps)
    nodes = {path: _node(persistence, row) for path, row in known.items()}
    for path in sorted(nodes, key=_in_order):
        parent = nodes.get(parent_of(path)) if path != ROOT else None
        if parent is not None:
            parent.children.append(nodes[path])
    return Tree(run, nodes.get(ROOT), rows[-1].path if more else None)


def _node(persistence: PersistenceAPI, row: StepDefinition) -> Node:
    reused = row.frame.get("reused")
    return Node(
        path=row.path,
        name=row.name,
        kind=row.object_type,
        facet=row.facet_name,
        state=_WORDS.get(row.state) or _word(persistence, row),
        error=row.error,
        skipped_because=row.skipped_because,
        reused=reused if isinstance(reused, str) else None,
    )


def _word(persistence: PersistenceAPI, row: StepDefinition) -> str:
    if row.state != StepState.EVENT_TRANSMIT:
        return "running"
    call = persistence.kernel.find_call(TaskId(row.workflow_id), row.path)
    if call is None or call.callee is None or call.status is not CallStatus.OPEN:
        return "running"
    task = persistence.kernel.get_task(call.callee)
    if task is None:
        return "running"
    waits = task.kind in ("timer", "signal", "human") and task.state is not State.RUNNING
    return "waiting" if waits else _TASK_WORDS[task.state]


def _above(path: str) -> Iterator[str]:
    while path != ROOT:
        path = parent_of(path)
        yield path


def _in_order(path: str) -> list[tuple[int, str]]:
    """Iterations by number, everything else by name."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.split("/")]


def export(persistence: PersistenceAPI, run: Run) -> dict[str, Json]:
    """Everything that is known of a run: itself, its steps, tasks, calls and log lines."""
    steps = list(_steps(persistence, run.id))
    calls = persistence.kernel.calls_of(TaskId(run.id))
    return {
        "format": "afl-run",
        "version": 1,
        "run": run_json(run),
        "steps": [_plain(asdict(step)) for step in steps],
        "tasks": [_plain(_fields(task)) for task in _tasks(persistence, run)],
        "calls": [_plain(_fields(call)) for call in calls],
        "logs": [
            {"step": line.path, "values": dict(line.values)}
            for line in persistence.get_logs(run.id, limit=100_000)
        ],
    }


def run_json(run: Run) -> dict[str, Json]:
    """A run as JSON."""
    plain = _plain(asdict(run))
    assert isinstance(plain, dict)
    return {**plain, "state": state_word(run)}


def task_json(task: Task) -> dict[str, Json]:
    """A task as JSON."""
    plain = _plain(_fields(task))
    assert isinstance(plain, dict)
    return plain


def _steps(persistence: PersistenceAPI, run: WorkflowId) -> Iterator[StepDefinition]:
    page = persistence.get_steps_by_workflow(run, limit=_PAGE)
    while page:
        yield from page
        page = persistence.get_steps_by_workflow(run, after=page[-1].path, limit=_PAGE)


def _tasks(persistence: PersistenceAPI, run: Run) -> Iterator[Task]:
    """The flow task of a run, and the tasks that its calls were given to."""
    flow = persistence.kernel.get_task(TaskId(run.id))
    if flow is None:
        return
    page = persistence.kernel.find_tasks(run=RunId(flow.run), limit=_PAGE)
    while page:
        for task in page:
            given = task.input if isinstance(task.input, dict) else {}
            if task.id == flow.id or given.get("run") == run.id:
                yield task
        page = persistence.kernel.find_tasks(run=flow.run, after=page[-1].id, limit=_PAGE)


def _fields(row: Task | Call) -> dict[str, object]:
    return asdict(row)


def _plain(value: object) -> Json:
    """A value of a row as JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat()
        case Enum():
            return _plain(value.value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return str(value)
