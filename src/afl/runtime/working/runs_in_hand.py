"""A run whose flow task is in a worker's hands."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from afl.kernel.model import CallId, CallSpec, Fence, Task
from afl.kernel.working.hands import Held
from afl.runtime.context import STEPS_PER_ITERATION
from afl.runtime.evaluator import Turn
from afl.runtime.replies import Reply

#: How long a flow stays in hand for callees that run, and how long in all before others may see it.
STAY_SECONDS = 0.2
STAY_IN_ALL_SECONDS = 2.0
#: How long work may have begun before the rows say so.
UNSEEN_SECONDS = 0.01


@dataclass(slots=True, eq=False)
class RunInHand:
    """What a worker knows of a run between two turns."""

    held: Held
    #: the last turn that was committed
    turn: Turn | None = None
    #: the first turn, if its work at hand has begun and it is not committed yet
    begun: Turn | None = None
    #: callees in this worker's hands, by fence: the key and the id of the call, which work at hand
    #: does not have
    callees: dict[Fence, tuple[str, CallId | None]] = field(default_factory=dict)
    #: work at hand, and that which begins when the turn that asks for it is committed
    at_hand: dict[Fence, Held] = field(default_factory=dict)
    to_begin: list[CallSpec] = field(default_factory=list)
    #: work at hand that is left to whoever claims the run next, since this worker has had it for
    #: long enough
    put_off: list[CallSpec] = field(default_factory=list)
    #: answers that this worker has seen given, and the next turn takes in
    replies: list[tuple[CallId | None, Reply]] = field(default_factory=list)
    since: float = field(default_factory=monotonic)
    until: float = 0.0
    #: it has stayed long enough, and is suspended with its next turn
    leaving: bool = False
    #: where its work is done: see the policy `Placement`
    placement: str = "spread"

    @property
    def task(self) -> Task:
        return self.held.claim.task

    @property
    def number(self) -> int:
        """The number of the next commit under this fence."""
        return 0 if self.turn is None else self.turn.commit.number + 1

    @property
    def is_placed(self) -> bool:
        """Whether all its work is best done here, however long it takes."""
        return self.placement != "spread"

    @property
    def is_over_time(self) -> bool:
        """Whether it was in these hands for so long that it is the turn of others. What its first
        turn asks for is begun, however long that took: else it might never get on."""
        if self.is_placed:
            return False
        return self.turn is not None and monotonic() >= self.since + STAY_IN_ALL_SECONDS

    @property
    def has_enough(self) -> bool:
        """Whether it starts no more iterations for now: first comes the work at hand that it has,
        or somebody else's."""
        return self.is_over_time or len(self.at_hand) >= STEPS_PER_ITERATION

    def begin(self, turn: Turn) -> None:
        """The work of a turn has begun before its commit, which waits a moment for the results."""
        self.begun = turn
        self.until = monotonic() + UNSEEN_SECONDS

    def stay(self) -> None:
        """Waits for the callees a little longer."""
        self.until = monotonic() + STAY_SECONDS
        if not self.is_placed:
            self.until = min(self.until, self.since + STAY_IN_ALL_SECONDS)
