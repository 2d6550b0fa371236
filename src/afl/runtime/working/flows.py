"""Runs in hand: their turns, and staying.

A flow whose calls are all served here, at once, is not suspended: its callees are born in this
worker's hands, and the turn that takes in an answer is committed with the end of the callee that
gave it. So a sequence of short steps costs one transaction for each. If it takes longer than a
moment, or anything else gets in between, the flow is suspended like any other. Work that is known
to be quick does not even become a task: see `at_hand`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from time import monotonic

from afl.kernel import rules
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import (
    Close,
    Commit,
    Committed,
    Continue,
    Fence,
    Json,
    Outcome,
    State,
    Suspend,
    TaskId,
)
from afl.kernel.port import Transaction
from afl.runtime.calls import EXECUTE
from afl.runtime.context import count
from afl.runtime.entities import Run
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.replies import Reply
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, WorkflowId, error_of
from afl.runtime.working.at_hand import Pace, held_at_hand, is_at_hand, may_be_at_hand
from afl.runtime.working.counters import Counters
from afl.runtime.working.hands import Hands, Held
from afl.runtime.working.parts import Part
from afl.runtime.working.runs_in_hand import RunInHand

_log = logging.getLogger("afl.worker")
#: An answer this close to its deadline may have been given as a timeout already.
_CLOSE_TO_DEADLINE = timedelta(seconds=2)

Serves = Callable[[str, str], bool]


class Flows:
    """The runs in a worker's hands. Used by the dispatcher's thread alone."""

    def __init__(
        self, evaluator: Evaluator, hands: Hands, counters: Counters, serves: Serves, pace: Pace
    ) -> None:
        """`serves` tells whether this worker takes tasks of a name on a list."""
        self._evaluator = evaluator
        self._hands = hands
        self._counters = counters
        self._serves = serves
        self._pace = pace
        self._in_hand: dict[TaskId, RunInHand] = {}
        #: runs that are to take their next turn, and runs that stay for their callees
        self._due: dict[TaskId, RunInHand] = {}
        self._staying: dict[TaskId, RunInHand] = {}
        #: runs in hand by the fences of the callees that they stay for
        self._waiting: dict[Fence, RunInHand] = {}
        self._canceled: dict[WorkflowId, Json] = {}
        self._runs: Mapping[WorkflowId, Run] = {}
        #: work at hand that has to be begun
        self._to_begin: list[Held] = []
        #: new callees that the parts of this cycle may still have at once
        self._room = 0
        #: slots that this cycle gives to work at hand
        self.taken_at_hand = 0
        self.may_stay = True

    def __len__(self) -> int:
        return len(self._in_hand)

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def offer(self, slots: int) -> None:
        """A cycle begins with so many free slots."""
        self._room, self.taken_at_hand = slots, 0

    def next_expiry(self) -> float | None:
        """When the first of those that stay is to be suspended."""
        return min((run.until for run in self._staying.values()), default=None)

    # What happens to a run

    def begin(self, held: Held) -> None:
        """A flow task was claimed."""
        run = self._in_hand[held.claim.task.id] = RunInHand(held)
        self._due[run.task.id] = run

    def ended(self, held: Held, then: Close | Suspend) -> RunInHand | None:
        """A task has ended: the run that goes on with that, if one stays for it."""
        run = self._waiting.pop(held.fence, None)
        if run is None:
            return None
        self._staying.pop(run.task.id, None)
        self._due.pop(run.task.id, None)
        key, call = run.callees.pop(held.fence)
        run.at_hand.pop(held.fence, None)
        if isinstance(then, Close) and not held.lost and self._answers(held, then):
            status = rules.status_of(then.outcome)
            body = then.error if then.outcome is Outcome.FAILED else then.result
            run.replies.append((call, Reply(key, status, body)))
        return run

    def _answers(self, held: Held, close: Close) -> bool:
        """Whether closing a callee this way is sure to be the answer to its call."""
        if is_at_hand(held):
            return True
        task = held.claim.task
        if held.stop or rules.failure_retries(task, close):
            return False
        if task.deadline is None:
            return True
        # it was made in the transaction that put it into these hands
        taken = timedelta(seconds=monotonic() - held.since)
        return taken < task.deadline - task.created_at - _CLOSE_TO_DEADLINE

    def expire(self, now: float) -> None:
        """Has runs let go that have stayed long enough, or were asked to stop, or are lost."""
        for run in list(self._staying.values()):
            wanted = not (run.held.stop or run.held.lost)
            if wanted and run.at_hand:
                # nobody else can see it, so nobody can take it: it is waited for
                continue
            if run.until <= now or not wanted or not self.may_stay:
                del self._staying[run.task.id]
                run.leaving = True
                self._due[run.task.id] = run

    def next_to_begin(self) -> Held | None:
        """Work at hand that is to begin."""
        return self._to_begin.pop() if self._to_begin else None

    def read_due(self) -> None:
        """Reads the runs that are due and new in these hands, all at once."""
        new = [WorkflowId(run.task.id) for run in self._due.values() if run.turn is None]
        self._runs = {}
        if len(new) > 1:
            # if one of them cannot be read, that is found out, and told, when it is read alone
            with suppress(Exception):
                self._runs = self._evaluator.persistence.get_runs(new)

    def next_due(self) -> RunInHand | None:
        """A run that is to take its next turn."""
        if not self._due:
            return None
        return self._due.pop(next(iter(self._due)))

    def forget(self, run: RunInHand) -> None:
        """The run is not in hand any more. Its callees go on like those of any other."""
        self._in_hand.pop(run.task.id, None)
        self._staying.pop(run.task.id, None)
        self._due.pop(run.task.id, None)
        self._hands.drop(run.held.fence)
        for fence in run.callees:
            self._waiting.pop(fence, None)
        for held in run.at_hand.values():
            held.cancelled.set()

    # Turns

    def add_turn(self, part: Part) -> None:
        """Adds the next turn of a part's run, as its last commit."""
        run = part.flow
        assert run is not None
        if run.held.lost:
            self.forget(run)
            part.flow = None
        elif run.held.stop:
            self._suspend(part, run)
        elif run.turn is None:
            self._evaluate(part, run)
        else:
            self._go_on(part, run, run.turn)

    def _evaluate(self, part: Part, run: RunInHand) -> None:
        try:
            turn = self._evaluator.evaluate(run.held.claim, runs=self._runs)
        except StoreUnavailable:
            self._suspend(part, run)
        except Exception as error:  # noqa: BLE001 - one run that cannot go on stops no other
            _log.warning("run %s cannot go on, and is given up", run.task.id, exc_info=True)
            self.give_up(part, error_of(error, ROOT))
        else:
            self._add(part, run, turn)

    def _go_on(self, part: Part, run: RunInHand, last: Turn) -> None:
        replies, run.replies = run.replies, []
        try:
            turn = self._evaluator.go_on(last, replies)
        except Exception:  # noqa: BLE001 - whoever claims it next starts from what is stored
            _log.warning("run %s is started over from its rows", run.task.id, exc_info=True)
            self._suspend(part, run)
        else:
            self._add(part, run, turn)

    def _add(self, part: Part, run: RunInHand, turn: Turn) -> None:
        self._counters.turns += 1
        part.turn = self._stay(run, turn)
        part.commits.append(part.turn.commit)

    def _suspend(self, part: Part, run: RunInHand) -> None:
        part.commits.append(Commit(run.held.fence, Suspend(), run.number))

    def give_up(self, part: Part, error: dict[str, Json]) -> None:
        """Ends the run of a part with an error."""
        run = part.flow
        assert run is not None
        part.turn, part.failure = None, error
        close = Close(Outcome.FAILED, error=error, permanent=True)
        part.commits.append(Commit(run.held.fence, close, run.number))

    def _stay(self, run: RunInHand, turn: Turn) -> Turn:
        """The turn, without suspending if the run can stay in hand."""
        calls = turn.commit.calls
        outstanding = count(turn.context.row(ROOT), "open")
        if (
            not self.may_stay
            or not isinstance(turn.commit.then, Suspend)
            or turn.run.pause_requested
            or outstanding != len(calls) + len(run.callees)
            or len(calls) > self._room
            or not run.may_stay
            or not all(
                call.task.lane is None
                and call.task.name != EXECUTE
                and self._serves(call.task.name, call.task.list)
                for call in calls
            )
        ):
            return turn
        self._room -= len(calls)
        self._counters.stays += 1
        if calls and all(
            may_be_at_hand(call) and self._pace.is_quick(call.task.name) for call in calls
        ):
            run.to_begin = list(calls)
            self.taken_at_hand += len(calls)
            return self._evaluator.keep_at_hand(turn)
        return replace(turn, commit=replace(turn.commit, then=Continue()))

    def accepted(self, part: Part, done: Committed) -> None:
        """The flow's commit was taken."""
        run, turn = part.flow, part.turn
        assert run is not None
        if turn is None:
            self._let_go(run, done)
            return
        run.turn = turn
        try:
            self._evaluator.accepted(turn)
        except Exception:  # noqa: BLE001 - it is committed; what is forgotten is read again
            _log.warning("what is known of run %s is forgotten", run.task.id, exc_info=True)
        if not isinstance(turn.commit.then, Continue):
            self._let_go(run, done)
        elif turn.context.row(ROOT).frame.get("more"):
            self._due[run.task.id] = run
        else:
            self._wait_for_callees(run, turn, done)

    def _wait_for_callees(self, run: RunInHand, turn: Turn, done: Committed) -> None:
        for spec in run.to_begin:
            held = held_at_hand(run.task, spec)
            run.callees[held.fence] = (spec.key, None)
            self._waiting[held.fence] = run
            run.at_hand[held.fence] = held
            self._to_begin.append(held)
        run.to_begin = []
        born = {claim.task.parent_call: claim.fence for claim in done.eager}
        for key, call in done.calls.items():
            if (fence := born.get(call)) is not None:
                run.callees[fence] = (key, call)
                self._waiting[fence] = run
        if len(run.callees) == count(turn.context.row(ROOT), "open"):
            run.stay()
            self._staying[run.task.id] = run
        else:
            # one of them did not come: it may take as long as it likes
            run.leaving = True
            self._due[run.task.id] = run

    def _let_go(self, run: RunInHand, done: Committed) -> None:
        """The flow is suspended or closed. A stop that came in between has made it canceled."""
        self.forget(run)
        task = done.task
        if task.state is State.CLOSED and task.outcome is Outcome.CANCELED:
            self._canceled[WorkflowId(task.id)] = task.error

    def note_canceled(self) -> None:
        """Ends the runs whose flows turned out to be canceled."""
        persistence = self._evaluator.persistence
        while self._canceled:
            run, error = next(iter(self._canceled.items()))
            stored = error if isinstance(error, dict) else None
            persistence.kernel.commit(
                (), writes=partial(_finish_canceled, persistence, run, stored)
            )
            del self._canceled[run]


def _finish_canceled(
    persistence: PersistenceAPI,
    run: WorkflowId,
    error: dict[str, Json] | None,
    transaction: Transaction,
) -> None:
    persistence.finish_run(transaction, run, RunState.CANCELED, None, error)
