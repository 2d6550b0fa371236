"""Which work is done at hand, and what its handler is handed.

A task costs rows and a claim, which is much for work that takes a moment. So work that this worker
serves, and that has been quick here before, is done without one: see `afl.runtime.at_hand`. What
must not be done twice unseen, or has a say in when it is tried again or who else is at it, gets its
task.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from math import inf
from threading import Lock
from time import monotonic

from afl.kernel.model import NO_RETRY, CallSpec, Claim, Continue, Fence, State, Task, TaskId
from afl.kernel.working.hands import Held
from afl.runtime.evaluator import Turn
from afl.runtime.working.outcomes import needs_task

#: Work that takes longer is slow: others shall see that it is under way.
QUICK_SECONDS = 0.02
#: How much the latest counts in how long work takes, and the longest that is counted, so that what
#: was slow once is forgotten some day.
_NEWS = 0.05
_LONGEST_SECONDS = 1.0

#: What all work at hand has in common.
_NEW: Mapping[str, object] = {
    **dict.fromkeys(Task.__dataclass_fields__),
    "state": State.RUNNING,
    "commits": 0,
    "crashes": 0,
    "failures": 0,
    "stop_requested": False,
    "seq": 0,
    "dead": False,
}

#: Fences of work at hand are below zero: the store never gives one like that.
_fences = count(-1, -1)


class Pace:
    """How quick the handlers of this worker are, by facet. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seconds: dict[str, float] = {}
        #: when the last slow one that counted has ended
        self._slow_ended: dict[str, float] = {}

    def note(self, facet: str, seconds: float) -> None:
        """A handler has ended after so long."""
        latest = min(seconds, _LONGEST_SECONDS)
        with self._lock:
            if seconds > QUICK_SECONDS:
                now = monotonic()
                if now - seconds < self._slow_ended.get(facet, -inf):
                    # a stall of the machine hits all that is under way, and counts once
                    return
                self._slow_ended[facet] = now
            mean = self._seconds.get(facet, latest)
            self._seconds[facet] = mean + (latest - mean) * _NEWS

    def is_quick(self, facet: str) -> bool:
        """Whether a facet has been quick of late. What was never done may take any time."""
        return self.seconds(facet) <= QUICK_SECONDS

    def seconds(self, facet: str) -> float:
        """How long a facet takes, about; without end if it was never done."""
        return self._seconds.get(facet, inf)


def may_be_at_hand(call: CallSpec) -> bool:
    """Whether a call needs nothing that only a task has."""
    task = call.task
    return (
        task.kind == "event"
        and task.lane is None
        and not task.delay
        and task.retry == NO_RETRY
        and not needs_task(task.input)
    )


def may_begin_unseen(turn: Turn) -> bool:
    """Whether the work at hand of a turn may begin before the turn is committed.

    Only what is on record may lead to it, so that whoever takes the run over asks for the same. A
    result that is not committed is not, so it is the first turn in these hands or none.
    """
    return turn.commit.number == 0 and _needs_no_store(turn)


def asks_nothing(turn: Turn) -> bool:
    """Whether a run can go on from a turn as if it were committed: nothing has to come from the
    store, and nobody else hears of it."""
    commit = turn.commit
    return isinstance(commit.then, Continue) and not commit.calls and _needs_no_store(turn)


def _needs_no_store(turn: Turn) -> bool:
    changes = turn.changes
    return not (changes.rates or changes.cancels or changes.awaits)


def held_at_hand(flow: Task, call: CallSpec) -> Held:
    """Work at hand, in the form in which workers hold tasks."""
    fence = Fence(next(_fences))
    spec = call.task
    task = object.__new__(Task)
    # what the constructor does, in a fraction of its time
    task.__dict__.update(
        _NEW,
        id=TaskId(f"{flow.id}:{call.key}"),
        tenant=flow.tenant,
        run=flow.run,
        kind=spec.kind,
        name=spec.name,
        list=spec.list,
        hold=spec.hold,
        depth=flow.depth + 1,
        priority=spec.priority,
        run_at=flow.run_at,
        wake=spec.wake,
        fence=fence,
        worker=flow.worker,
        retry=spec.retry,
        max_crashes=spec.max_crashes,
        input=spec.input,
        trace=spec.trace,
        created_at=flow.run_at,
    )
    return Held(Claim(task, fence, ()))


def is_at_hand(held: Held) -> bool:
    """Whether this is work at hand, of which the store has no task."""
    return held.fence < 0
