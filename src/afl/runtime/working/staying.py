"""Whether a run stays in hand for the work that it asks for, and how that work is done.

A run stays if all that it waits for is done here, at once. Work that is known to be quick then
needs no task: see `at_hand`. What is not is born as a task in these hands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from afl.kernel.model import CallSpec, Close
from afl.runtime.calls import EXECUTE
from afl.runtime.context import count
from afl.runtime.evaluator import Turn
from afl.runtime.step import ROOT
from afl.runtime.working.at_hand import Pace, may_be_at_hand
from afl.runtime.working.messages import Served
from afl.runtime.working.runs_in_hand import STAY_SECONDS, RunInHand


class Stay(Enum):
    """What becomes of a run after a turn."""

    NO = auto()  # it goes on as the turn says
    BY_TASKS = auto()  # it stays for callees that are born in these hands
    AT_HAND = auto()  # it stays for work that needs no tasks
    PUT_OFF = auto()  # it leaves, and its work needs no tasks wherever it goes on


class Staying:
    """Decides about one cycle after the other. Used by the dispatcher's thread alone."""

    def __init__(self, served: Served, pace: Pace, is_plain: Callable[[str], bool]) -> None:
        """`is_plain` tells whether a facet is served by plain functions, which can be called one
        after the other."""
        self._served = served
        self._pace = pace
        self._is_plain = is_plain
        #: new callees that the parts of this cycle may still have at once
        self._room = 0
        #: how much work is at hand
        self.at_hand = 0
        #: slots that this cycle gives to work at hand
        self.taken_at_hand = 0
        self.is_allowed = True

    def offer(self, slots: int) -> None:
        """A cycle begins with so many free slots."""
        self._room, self.taken_at_hand = slots, 0

    def winds_up(self, run: RunInHand, last: Turn, answered: int) -> bool:
        """Whether a run starts no iterations now: it has enough to do, or has been in hand for long
        enough and leaves when its work at hand is done. So many answers are about to be taken
        in."""
        outstanding = count(last.context.row(ROOT), "open")
        return (
            run.has_enough
            and self.is_allowed
            and not (run.task.crashes or last.run.pause_requested)
            and len(run.callees) == len(run.at_hand)
            and outstanding == len(run.callees) + len(run.put_off) + answered
        )

    def decide(self, run: RunInHand, turn: Turn) -> Stay:
        """What becomes of a run after this turn. The slots for it are taken."""
        calls = turn.commit.calls
        if not self._has_all(run, turn):
            return Stay.NO
        if run.is_over_time:
            return Stay.PUT_OFF if self._can_be_put_off(run, turn) else Stay.NO
        if run.leaving:
            return Stay.NO
        at_hand = bool(calls) and self._fits_at_hand(run, calls)
        if not at_hand and (turn.goes_on or len(calls) > self._room):
            return Stay.NO
        taken = min(len(calls), self._room)
        self._room -= taken
        if at_hand:
            self.taken_at_hand += taken
            return Stay.AT_HAND
        return Stay.BY_TASKS

    def _has_all(self, run: RunInHand, turn: Turn) -> bool:
        """Whether all that the run waits for is done here, or can be."""
        calls = turn.commit.calls
        outstanding = count(turn.context.row(ROOT), "open")
        return (
            self.is_allowed
            and not isinstance(turn.commit.then, Close)
            and not turn.run.pause_requested
            and outstanding == len(calls) + len(run.callees) + len(run.put_off)
            and all(
                call.task.lane is None
                and call.task.name != EXECUTE
                and self._served.serves(call.task.name, call.task.list)
                for call in calls
            )
        )

    def _can_be_put_off(self, run: RunInHand, turn: Turn) -> bool:
        """Whether the run leaves nothing behind but quick work, which its next worker can do
        without tasks too. By tasks it would have to go on by tasks: some would always be open."""
        return (
            len(run.callees) == len(run.at_hand)
            and bool(run.put_off or turn.commit.calls or turn.goes_on)
            and self._are_quick(run, turn.commit.calls)
        )

    def _fits_at_hand(self, run: RunInHand, calls: Sequence[CallSpec]) -> bool:
        """Whether all of these calls are best done here, without tasks."""
        if run.is_placed:
            return all(map(may_be_at_hand, calls))
        if not self._are_quick(run, calls):
            return False
        if len(calls) <= self._room:
            return True
        # more than there are slots: only if all of it is a matter of a moment
        names = {call.task.name for call in calls}
        seconds = max(map(self._pace.seconds, names)) * (self.at_hand + len(calls))
        return (
            (self._room > 0 or self.at_hand > 0)
            and seconds <= STAY_SECONDS * self._served.slots
            and all(map(self._is_plain, names))
        )

    def _are_quick(self, run: RunInHand, calls: Sequence[CallSpec]) -> bool:
        # what has brought a worker down is done where that counts: by a task
        return not run.task.crashes and all(
            may_be_at_hand(call) and self._pace.is_quick(call.task.name) for call in calls
        )
