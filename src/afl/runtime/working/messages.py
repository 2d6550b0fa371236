"""What the dispatcher is told, and what it serves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from afl.kernel import rules
from afl.kernel.model import ClaimRequest, Close, Fence, Suspend, WorkerId
from afl.runtime.calls import EXECUTE
from afl.runtime.guarding import GoAhead, NotNow

#: How many flows are claimed at once while no handler has a slot.
FLOWS_PER_CLAIM = 16


@dataclass(frozen=True, slots=True)
class Finished:
    """An attempt has ended."""

    fence: Fence
    then: Close | Suspend
    #: how long the handler itself took
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """There may be something to do: new tasks, or news about those in hand."""


@dataclass(frozen=True, slots=True)
class Strays:
    """Fences that the store thinks this worker holds, and it does not."""

    fences: tuple[Fence, ...]


@dataclass(frozen=True, slots=True)
class Passed:
    """The guard has answered whether an attempt may be made."""

    fence: Fence
    breaker: str
    answer: GoAhead | NotNow


Message = Finished | Look | Strays | Passed


@dataclass(frozen=True, slots=True)
class Served:
    """What a worker serves."""

    worker: WorkerId
    names: tuple[str, ...]
    lists: tuple[str, ...]
    slots: int
    #: advance every run that can go on, not only those whose tasks were done here
    all_flows: bool
    #: names of which no more than so many run at once
    bounded: frozenset[str] = frozenset()
    bound: int = 0

    def serves(self, name: str, task_list: str) -> bool:
        return task_list in self.lists and rules.serves(self.names, name)

    def request(
        self, free_slots: int, token: str, *, is_stuck: bool, running: Iterable[str] = ()
    ) -> ClaimRequest | None:
        """What to claim with so many free slots; None if there is nothing to ask for.

        `is_stuck`: the handlers that have all slots have had them for a while. `running`: the names
        of what they do.
        """
        flows = (EXECUTE,) if self.all_flows else ()
        own, n = self.names, free_slots
        if self.bounded:
            room = self.bound - sum(name in self.bounded for name in running)
            if room > 0:
                # all that comes may be of the bounded ones; what more there is comes next time
                n = min(n, room)
            else:
                own = tuple(name for name in own if name not in self.bounded)
        names = (*own, *flows)
        if not free_slots:
            # advancing runs needs no slot, and what is done may be what others wait for; but a run
            # that finds no slot for its next step costs more than one that waits a moment
            names, n = flows if is_stuck else (), FLOWS_PER_CLAIM
        return ClaimRequest(self.worker, names, self.lists, n, token) if names else None
