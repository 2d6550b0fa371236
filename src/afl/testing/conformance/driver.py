"""Short words for what tests of a store do all the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from afl.kernel.model import (
    Call,
    CallId,
    CallSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    Json,
    OutboxEntry,
    Outcome,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
    Then,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store
from afl.testing.conformance.harness import Harness

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
#: How far the clock of a real store may run on between two steps of a test.
SLACK = timedelta(seconds=10)

#: Well-formed ids of nothing.
NOBODY = TaskId("ffffffff-ffff-7fff-bfff-ffffffffffff")
NO_CALL = CallId(NOBODY)

DONE = Close(Outcome.SUCCESS)
FAILED = Close(Outcome.FAILED, error={"message": "no"})


@dataclass(slots=True)
class Driver:
    """A store in a test's hands. Nothing here goes beyond the port and the harness."""

    harness: Harness
    #: set by a test that removes outbox entries, since their absence then proves nothing
    trimmed: bool = False

    @property
    def store(self) -> Store:
        return self.harness.store

    def register(self, worker: str = "w", *names: str, lease: timedelta = DAY) -> WorkerId:
        """A live worker. It serves `work` if nothing else is said."""
        spec = WorkerSpec(WorkerId(worker), worker, handlers=names or ("work",), lease=lease)
        return self.store.register(spec).id

    def enqueue(self, name: str = "work", **fields: Any) -> Task:  # noqa: ANN401 - of TaskSpec
        (task,) = self.store.enqueue([TaskSpec("test", name, **fields)])
        return task

    def claim(
        self, name: str = "work", *, worker: str = "w", n: int = 1, token: str | None = None
    ) -> list[Claim]:
        return self.store.claim(ClaimRequest(WorkerId(worker), (name,), n=n, token=token))

    def take(self, name: str = "work", *, worker: str = "w") -> Claim:
        """The one claim that must be there."""
        claims = self.claim(name, worker=worker)
        assert len(claims) == 1, f"nothing to claim under the name {name}"
        return claims[0]

    def commit(
        self,
        fence: Fence,
        then: Then = DONE,
        *,
        number: int = 0,
        calls: tuple[CallSpec, ...] = (),
        applied: tuple[CallId, ...] = (),
        eager: ClaimRequest | None = None,
    ) -> Committed:
        commit = Commit(fence, then, number=number, calls=calls, applied=applied)
        (committed,) = self.store.commit([commit], eager=eager)
        return committed

    def caller(self, *names: str, name: str = "caller", **fields: Any) -> Committed:  # noqa: ANN401
        """A task that has called others under keys that are their names, and now waits."""
        self.enqueue(name, **fields)
        claim = self.take(name)
        return self.commit(claim.fence, Suspend(), calls=tuple(call(each) for each in names))

    def task(self, task: TaskId) -> Task:
        found = self.store.get_task(task)
        assert found is not None
        return found

    def call(self, call_id: CallId) -> Call:
        found = self.store.get_call(call_id)
        assert found is not None
        return found

    def callee(self, call_id: CallId) -> Task:
        callee = self.call(call_id).callee
        assert callee is not None
        return self.task(callee)

    def events(self, topic: str, task: TaskId | None = None) -> list[OutboxEntry]:
        entries = self.store.read_outbox(limit=10_000)
        return [e for e in entries if e.topic == topic and task in (None, e.task)]

    def sweep_all(self) -> int:
        """Sweeps until there is nothing left to put right; answers how much there was."""
        total = 0
        while swept := self.store.sweep().total:
            total += swept
        return total


def call(
    key: str,
    name: str | None = None,
    *,
    timeout: timedelta = HOUR,
    task_timeout: timedelta | None = None,
    **fields: Any,  # noqa: ANN401 - of TaskSpec
) -> CallSpec:
    """A call to the task of a name, which is also its key unless another is given."""
    task = TaskSpec("test", name or key, timeout=task_timeout, **fields)
    return CallSpec(key, task, timeout)


def body_of(entry: OutboxEntry) -> dict[str, Json]:
    assert isinstance(entry.body, dict)
    return entry.body
