"""The short ways, for what most tasks are: made like others, and ended without anybody waiting.

What is plain is decided here; whether it still is, by the server, under its locks. Whatever is not
goes the long way, which does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from afl.base.ids import IdSource
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Outcome,
    ReasonCode,
    State,
    Task,
    TaskSpec,
)
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import element, interval, json_text
from afl.kernel.postgres.rows import COLUMN, json_of, task_of, utc
from afl.kernel.postgres.statements import Parameters, encoded
from afl.kernel.requests import check_spec
from afl.kernel.rules import closed_event, reason_ready, root_deadline

#: What two specs must have in common to be made together: all but the input and the id.
_SHAPE = tuple(each.name for each in fields(TaskSpec) if each.name not in ("input", "id"))
_shape: Callable[[TaskSpec], tuple[Any, ...]] = attrgetter(*_SHAPE)
_MANY = 10_000


# Making tasks


@dataclass(frozen=True, slots=True)
class Shape:
    """What tasks that differ in nothing but their input have in common."""

    spec: TaskSpec
    #: of the statements that make such tasks, as they are sent
    parameters: Parameters
    #: of the new tasks, whenever they are made
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Alike:
    """New tasks that differ in nothing but their input."""

    shape: Shape
    ids: list[str]
    inputs: list[str | None]

    def parameters_of_one(self) -> Parameters:
        """Those of the statement `enqueue_one`, if there is only one."""
        return {**self.shape.parameters, "id": self.ids[0], "input": self.inputs[0]}

    def parameters(self) -> Parameters:
        """Those of the statement `enqueue_plain`."""
        ids = ",".join(self.ids)
        inputs = ",".join(map(element, self.inputs))
        return {**self.shape.parameters, "ids": f"{{{ids}}}", "inputs": f"{{{inputs}}}"}

    def tasks(self, created_at: datetime) -> list[Task]:
        """The tasks as they were made at this time."""
        spec, now = self.shape.spec, utc(created_at)
        run_at = now + spec.delay
        common = {
            **self.shape.fields,
            "run_at": run_at,
            "deadline": root_deadline(spec, now),
            "reason": reason_ready(run_at, False, now),
            "created_at": now,
        }
        return [
            _task(common, id=id_, run=spec.run or id_, input=json_of(text))
            for id_, text in zip(self.ids, self.inputs, strict=True)
        ]


def alike(specs: Sequence[TaskSpec], ids: IdSource) -> Alike | None:
    """The tasks to be made, if they are alike, without a lane and without an idem. Raises
    `BadRequest` if they could never be done."""
    first = specs[0]
    if first.lane is not None or first.idem is not None:
        return None
    of_first = _shape(first)
    inputs: list[str | None] = []
    for spec in specs:
        if spec is first and inputs:
            inputs.append(inputs[0])
        elif spec is first or _shape(spec) == of_first:
            inputs.append(json_text(spec.input, "the input"))
        else:
            return None
    return Alike(_shape_of(of_first), [spec.id or ids.new_id() for spec in specs], inputs)


@lru_cache(maxsize=1024)
def _shape_of(values: tuple[Any, ...]) -> Shape:
    spec = TaskSpec(**dict(zip(_SHAPE, values, strict=True)))
    check_spec(spec)
    return Shape(spec, _parameters(spec), _fields(spec))


def _parameters(spec: TaskSpec) -> Parameters:
    retry = spec.retry
    return encoded(
        {
            "tenant": spec.tenant,
            "run": spec.run,
            "kind": spec.kind,
            "name": spec.name,
            "list": spec.list,
            "hold": spec.hold,
            "priority": spec.priority,
            "delay": interval(spec.delay),
            "until": interval(spec.delay) if spec.delay else None,
            "reason": (ReasonCode.DELAYED if spec.delay else ReasonCode.CLAIMABLE).value,
            "timeout": None if spec.timeout is None else interval(spec.timeout),
            "wake": spec.wake.value,
            "max_failures": retry.max_failures,
            "retry_delay": interval(retry.delay),
            "retry_backoff": repr(retry.backoff),
            "retry_max_delay": interval(retry.max_delay),
            "retry_jitter": retry.jitter,
            "max_crashes": spec.max_crashes,
            "trace": spec.trace,
        }
    )


def _fields(spec: TaskSpec) -> Mapping[str, object]:
    same = ("tenant", "kind", "name", "list", "lane", "hold", "priority", "wake", "retry")
    return {
        **dict.fromkeys(Task.__dataclass_fields__),
        **{name: getattr(spec, name) for name in (*same, "max_crashes", "idem", "trace")},
        "depth": 0,
        "state": State.READY,
        "commits": 0,
        "crashes": 0,
        "failures": 0,
        "stop_requested": False,
        "seq": 0,
        "dead": False,
    }


def _task(common: Mapping[str, object], **own: object) -> Task:
    task = object.__new__(Task)
    # what the constructor does, in a fraction of its time
    task.__dict__.update(common, **own)
    return task


# Ending tasks


class Hands:
    """Rows of tasks that were claimed here and can end plainly, until they do: what was read once
    need not be read again. Those that never end here are forgotten in the end."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}

    def take(self, row: Row) -> None:
        """Remembers the row of a claimed task, if nobody waits for it."""
        if row[_PARENT_CALL] is None and row[_LANE] is None and row[_COMMITTED_FENCE] is None:
            self._rows[row[_FENCE]] = row
            if len(self._rows) > _MANY:
                self._rows.pop(next(iter(self._rows)), None)

    def endings(self, commits: Sequence[Commit]) -> list[Ending] | None:
        """The commits in the order of locks, if each plainly ends another task."""
        found: dict[int, Ending] = {}
        last = result = error = None
        for at, commit in enumerate(commits):
            close, row = commit.then, self._rows.get(commit.fence)
            if (
                row is None
                or not isinstance(close, Close)
                or close.outcome is Outcome.FAILED
                or commit.number
                or commit.cards
                or commit.applied
                or commit.calls
            ):
                return None
            if close is not last:
                last, result, error = close, json_text(close.result), json_text(close.error)
            found[commit.fence] = Ending(at, row, close.outcome.value, result, error)
        if len(found) < len(commits):
            return None
        return sorted(found.values(), key=_id)

    def let_go(self, endings: Sequence[Ending]) -> None:
        for ending in endings:
            self._rows.pop(ending.row[_FENCE], None)


_ID, _LANE, _PARENT_CALL = COLUMN["id"], COLUMN["lane"], COLUMN["parent_call"]
_KIND, _NAME = COLUMN["kind"], COLUMN["name"]
_FENCE, _COMMITTED_FENCE = COLUMN["fence"], COLUMN["committed_fence"]


@dataclass(frozen=True, slots=True)
class Ending:
    """A task that ends, and where in the request its commit stands."""

    at: int
    row: Row
    outcome: str
    result: str | None
    error: str | None

    def task(self, closed_at: datetime, deadline: str | None) -> Task:
        """The task as it was closed."""
        row = list(self.row)
        changes = {
            "state": State.CLOSED.value,
            "outcome": self.outcome,
            "fence": None,
            "worker": None,
            "claim_token": None,
            "committed_fence": row[_FENCE],
            "commits": 1,
            "crashes": 0,
            "deadline": None if deadline is None else datetime.fromisoformat(deadline),
            "result": self.result,
            "error": self.error,
            "closed_at": closed_at,
        }
        for name, value in changes.items():
            row[COLUMN[name]] = value
        return task_of(row)


def _id(ending: Ending) -> str:
    return str(ending.row[_ID])


def pack_endings(endings: Sequence[Ending], request: Parameters) -> Parameters:
    """The parameters of the statement `finish`, with those of the claim that follows."""
    return {
        **request,
        "fences": _array([str(each.row[_FENCE]) for each in endings]),
        "outcomes": _array([each.outcome for each in endings]),
        "results": _array([element(each.result) for each in endings]),
        "errors": _array([element(each.error) for each in endings]),
        "events": _array(
            [element(_event(each.outcome, *each.row[_KIND : _NAME + 1])) for each in endings]
        ),
    }


def is_for_one(request: ClaimRequest) -> bool:
    """Whether a claim takes one task at most, of one name from one list."""
    return request.n == 1 and len(request.names) == 1 and len(request.lists) == 1


def pack_ending(ending: Ending, request: ClaimRequest) -> Parameters:
    """The parameters of the statement `finish_one`."""
    row = ending.row
    return {
        **_pack_request_of_one(request),
        "fence": row[_FENCE],
        "outcome": ending.outcome,
        "result": ending.result,
        "error": ending.error,
        "event": _event(ending.outcome, row[_KIND], row[_NAME]),
    }


@lru_cache(maxsize=1024)
def _pack_request_of_one(request: ClaimRequest) -> Parameters:
    (name,), (list_,) = request.names, request.lists
    return encoded(
        {
            "worker": request.worker,
            "name": name,
            "short": name.rpartition(".")[2],
            "list": list_,
            "token": request.token,
        }
    )


def _array(elements: list[str]) -> str:
    return "{" + ",".join(elements) + "}"


@lru_cache(maxsize=4096)
def _event(outcome: str, kind: str, name: str) -> str | None:
    task = _task({}, outcome=Outcome(outcome), kind=kind, name=name, parent_call=None, dead=False)
    return json_text(closed_event(task))


class Ended(Committed):
    """What an ending came to. The task is put together when somebody looks at it."""

    __slots__ = ("_made", "_make")
    _make: Callable[[], Task]
    _made: Task | None

    def __init__(self, make: Callable[[], Task]) -> None:
        put = object.__setattr__
        put(self, "calls", {})
        put(self, "eager", ())
        put(self, "_made", None)
        put(self, "_make", make)

    @property
    def task(self) -> Task:
        if self._made is None:
            object.__setattr__(self, "_made", self._make())
            assert self._made is not None
        return self._made

    @task.setter
    def task(self, task: Task | None) -> None:
        object.__setattr__(self, "_made", task)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Committed):
            return NotImplemented
        return (self.task, self.calls, self.eager) == (other.task, other.calls, other.eager)

    __hash__ = Committed.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return Committed, (self.task, self.calls, self.eager)
