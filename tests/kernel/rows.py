"""Rows for tests of pure functions."""

from __future__ import annotations

from datetime import timedelta

from afl.kernel.memory import MemoryStore
from afl.kernel.model import Call, CallStatus, Task, TaskSpec
from afl.kernel.model import CallId as Id
from afl.testing import SequentialIds, VirtualClock
from afl.testing.clock import START


def make_task(**spec: object) -> Task:
    """A task as a store makes it, at the start of virtual time."""
    store = MemoryStore(VirtualClock(), SequentialIds())
    (task,) = store.enqueue([TaskSpec("test", "work", **spec)])  # type: ignore[arg-type]
    return task


def make_call(caller: Task) -> Call:
    return Call(
        id=Id("call"),
        run=caller.run,
        caller=caller.id,
        key="key",
        callee=None,
        status=CallStatus.OPEN,
        deadline=START + timedelta(hours=1),
        reply=None,
        replied_at=None,
        applied=False,
    )
