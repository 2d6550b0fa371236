"""Which work is done at hand, and what its handler is handed.

A task costs rows and a claim, which is much for work that takes a moment. So work that this worker
serves, and that has been quick here before, is done without one: see `afl.runtime.at_hand`. What
must not be done twice unseen, or has a say in when it is tried again or who else is at it, gets its
task.
"""

from __future__ import annotations

from itertools import count
from threading import Lock

from afl.kernel.model import NO_RETRY, CallSpec, Claim, Fence, State, Task, TaskId
from afl.runtime.working.hands import Held
from afl.runtime.working.outcomes import is_irreversible_input

#: Work that takes longer is slow: others shall see that it is under way.
QUICK_SECONDS = 0.02
#: After slow work, so many quick ones by task show that it was an exception.
_QUICK_AGAIN = 20

#: Fences of work at hand are below zero: the store never gives one like that.
_fences = count(-1, -1)


class Pace:
    """How quick the handlers of this worker are, by facet. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._missing: dict[str, int] = {}

    def note(self, facet: str, seconds: float) -> None:
        """A handler has ended after so long."""
        with self._lock:
            if seconds > QUICK_SECONDS:
                self._missing[facet] = _QUICK_AGAIN
            else:
                self._missing[facet] = max(0, self._missing.get(facet, 1) - 1)

    def is_quick(self, facet: str) -> bool:
        """Whether a facet has been quick so far. What was never done may take any time."""
        return self._missing.get(facet, 1) == 0


def may_be_at_hand(call: CallSpec) -> bool:
    """Whether a call needs nothing that only a task has."""
    task = call.task
    return (
        task.kind == "event"
        and task.lane is None
        and not task.delay
        and task.retry == NO_RETRY
        and not is_irreversible_input(task.input)
    )


def held_at_hand(flow: Task, call: CallSpec) -> Held:
    """Work at hand, in the form in which workers hold tasks."""
    fence = Fence(next(_fences))
    spec = call.task
    task = Task(
        id=TaskId(f"{flow.id}:{call.key}"),
        tenant=flow.tenant,
        run=flow.run,
        kind=spec.kind,
        name=spec.name,
        list=spec.list,
        lane=None,
        hold=spec.hold,
        parent_call=None,
        depth=flow.depth + 1,
        state=State.RUNNING,
        outcome=None,
        priority=spec.priority,
        run_at=flow.run_at,
        wake=spec.wake,
        fence=fence,
        worker=flow.worker,
        claim_token=None,
        committed_fence=None,
        commits=0,
        retry=spec.retry,
        crashes=0,
        max_crashes=spec.max_crashes,
        failures=0,
        deadline=None,
        stop_requested=False,
        input=spec.input,
        result=None,
        error=None,
        reason=None,
        idem=None,
        trace=spec.trace,
        seq=0,
        dead=False,
        redrives=None,
        created_at=flow.run_at,
        closed_at=None,
    )
    return Held(Claim(task, fence, ()))


def is_at_hand(held: Held) -> bool:
    """Whether this is work at hand, of which the store has no task."""
    return held.fence < 0
