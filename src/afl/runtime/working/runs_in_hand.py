"""A run whose flow task is in a worker's hands."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from afl.kernel.model import CallId, CallSpec, Fence, Task
from afl.runtime.evaluator import Turn
from afl.runtime.replies import Reply
from afl.runtime.working.hands import Held

#: How long a flow stays in hand for callees that run, and how long in all before others may see it.
STAY_SECONDS = 0.2
STAY_IN_ALL_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class RunInHand:
    """What a worker knows of a run between two turns."""

    held: Held
    #: the last turn that was committed
    turn: Turn | None = None
    #: callees in this worker's hands, by fence: the key and the id of the call, which work at hand
    #: does not have
    callees: dict[Fence, tuple[str, CallId | None]] = field(default_factory=dict)
    #: work at hand, and that which begins when the turn that asks for it is committed
    at_hand: dict[Fence, Held] = field(default_factory=dict)
    to_begin: list[CallSpec] = field(default_factory=list)
    #: answers that this worker has seen given, and the next turn takes in
    replies: list[tuple[CallId | None, Reply]] = field(default_factory=list)
    since: float = field(default_factory=monotonic)
    until: float = 0.0
    #: it has stayed long enough, and is suspended with its next turn
    leaving: bool = False

    @property
    def task(self) -> Task:
        return self.held.claim.task

    @property
    def number(self) -> int:
        """The number of the next commit under this fence."""
        return 0 if self.turn is None else self.turn.commit.number + 1

    @property
    def may_stay(self) -> bool:
        return not self.leaving and monotonic() < self.since + STAY_IN_ALL_SECONDS

    def stay(self) -> None:
        """Waits for the callees a little longer."""
        self.until = min(monotonic() + STAY_SECONDS, self.since + STAY_IN_ALL_SECONDS)
