"""Runs in hand: their turns, and staying.

A flow whose calls are all served here, at once, is not suspended: its callees are born in this
worker's hands, and the turn that takes in an answer is committed with the end of the callee that
gave it. So a sequence of short steps costs one transaction for each. If it takes longer than a
moment, or anything else gets in between, the flow is suspended like any other. Work that is known
to be quick does not even become a task: see `at_hand`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
from afl.kernel.working.hands import Hands, Held
from afl.kernel.working.task_fields import task_fields
from afl.runtime.calls import placement_of
from afl.runtime.context import count
from afl.runtime.entities import Run
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.replies import Reply
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, WorkflowId, error_of
from afl.runtime.working.at_hand import (
    asks_nothing,
    held_at_hand,
    is_at_hand,
    may_begin_unseen,
)
from afl.runtime.working.counters import Counters
from afl.runtime.working.outcomes import reply_of
from afl.runtime.working.parts import Part
from afl.runtime.working.runs_in_hand import RunInHand
from afl.runtime.working.staying import Stay, Staying

_log = logging.getLogger("afl.worker")
#: An answer this close to its deadline may have been given as a timeout already.
_CLOSE_TO_DEADLINE = timedelta(seconds=2)
#: The error of a run that is on one worker or nowhere, when that worker is lost.
_CRASHED: Mapping[str, Json] = {
    "type": "Crashed",
    "message": "The worker on which the run was pinned is lost. Submit it again, or place it "
    "`sticky`, to have it go on elsewhere.",
    "step": ROOT,
}


class Flows:
    """The runs in a worker's hands. Used by the dispatcher's thread alone."""

    def __init__(
        self,
        evaluator: Evaluator,
        hands: Hands,
        counters: Counters,
        staying: Staying,
    ) -> None:
        self._evaluator = evaluator
        self._hands = hands
        self._counters = counters
        self._rules = staying
        self._in_hand: dict[TaskId, RunInHand] = {}
        #: runs that are to take their next turn, and runs that stay for their callees
        self._due: dict[TaskId, RunInHand] = {}
        self._staying: dict[TaskId, RunInHand] = {}
        #: runs whose next turn has to wait until the store is there
        self._stuck: dict[TaskId, RunInHand] = {}
        #: runs that were lost with what is in their replies, until the dispatcher takes them
        self.late: list[RunInHand] = []
        #: runs in hand by the fences of the callees that they stay for
        self._waiting: dict[Fence, RunInHand] = {}
        self._canceled: dict[WorkflowId, Json] = {}
        self._runs: Mapping[WorkflowId, Run] = {}
        #: work at hand that has to be begun
        self._to_begin: list[Held] = []

    def __len__(self) -> int:
        return len(self._in_hand)

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def next_expiry(self) -> float | None:
        """When the first of those that stay is to be let go, or to be committed."""
        untils = (run.until for run in self._staying.values() if run.begun or not run.at_hand)
        return min(untils, default=None)

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
        if run.at_hand.pop(held.fence, None) is not None:
            self._rules.at_hand -= 1
        if isinstance(then, Close) and not held.lost and self._answers(held, then):
            run.replies.append((call, Reply(key, *reply_of(then))))
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
        """Has runs let go that have stayed long enough, or were asked to stop, or are lost; has
        turns committed that have waited long enough for the results of their work."""
        for run in list(self._staying.values()):
            wanted = not (run.held.stop or run.held.lost)
            if run.begun is not None and (run.until <= now or not wanted):
                del self._staying[run.task.id]
                self._due[run.task.id] = run
                continue
            if wanted and run.at_hand:
                # nobody else can see it, so nobody can take it: it is waited for
                continue
            if run.until <= now or not wanted or not self._rules.is_allowed:
                del self._staying[run.task.id]
                run.leaving = True
                self._due[run.task.id] = run

    def take_to_begin(self) -> list[Held]:
        """Work at hand that is to begin."""
        begin, self._to_begin = self._to_begin, []
        return begin

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
        self._rules.at_hand -= len(run.at_hand)
        for held in run.at_hand.values():
            held.cancelled.set()

    # Turns

    def add_turn(self, part: Part) -> None:
        """Adds the next turn of a part's run, as its last commit."""
        run = part.flow
        assert run is not None
        if run.held.lost:
            self.forget(run)
            self.late.append(run)
            part.flow = None
        elif run.held.stop:
            self._suspend(part, run)
        elif run.begun is not None:
            if run.callees and monotonic() < run.until:
                # the rest will be here in a moment
                self._staying[run.task.id] = run
            else:
                self._extend(part, run, run.begun)
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
            self._fail(part, run, error)
        else:
            self._counters.turns += 1
            run.placement = placement_of(turn.context)
            if run.placement == "pinned" and run.task.crashes:
                self.give_up(part, dict(_CRASHED))
                return
            turn = self._stay(run, turn)
            if run.to_begin and may_begin_unseen(turn):
                # what it is asked with is on record: whoever takes the run over asks the same
                self._begin_callees(run)
                run.begin(turn)
                self._staying[run.task.id] = run
            else:
                _put(part, turn)

    def _fail(self, part: Part, run: RunInHand, error: Exception) -> None:
        """Gives up a run that cannot go on. Who was overtaken while it read has rows of different
        times, which need not make sense: then the run is in other hands, and goes on there."""
        try:
            task = self._evaluator.persistence.kernel.get_task(run.task.id)
        except StoreUnavailable:
            self._suspend(part, run)
            return
        if task is None or task.fence != run.held.fence:
            self.forget(run)
            part.flow = None
            return
        _warn("run %s cannot go on, and is given up", run, error)
        self.give_up(part, error_of(error, ROOT))

    def _extend(self, part: Part, run: RunInHand, begun: Turn) -> None:
        """Commits a turn whose work has begun, with the results that there are."""
        run.begun = None
        if not run.replies:
            _put(part, begun)
            return
        replies, run.replies = run.replies, []
        try:
            turn = self._evaluator.extend(begun, replies)
        except Exception:  # noqa: BLE001 - whoever claims it next starts from what is stored
            _warn("run %s is started over from its rows", run)
            self._suspend(part, run)
        else:
            self._add(part, run, turn)

    def _go_on(self, part: Part, run: RunInHand, last: Turn) -> None:
        replies, run.replies = run.replies, []
        part.answers = [reply for call, reply in replies if call is None]
        winds_up = self._rules.winds_up(run, last, len(replies))
        try:
            turn = self._evaluator.go_on(last, replies, winds_up=winds_up)
        except StoreUnavailable:
            run.replies, part.answers = replies, []
            self._stuck[run.task.id] = run
        except Exception:  # noqa: BLE001 - whoever claims it next starts from what is stored
            _warn("run %s is started over from its rows", run)
            self._suspend(part, run)
        else:
            self._add(part, run, turn)

    def _add(self, part: Part, run: RunInHand, turn: Turn) -> None:
        self._counters.turns += 1
        _put(part, self._stay(run, turn))

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
        stay = self._rules.decide(run, turn)
        if stay is Stay.PUT_OFF:
            run.put_off += turn.commit.calls
            return self._evaluator.put_off(turn, Continue() if run.at_hand else Suspend())
        if run.put_off:
            # something else has come up for which it would wait, and that with it
            run.to_begin, run.put_off = run.put_off, []
            self._evaluator.take_up(turn)
        if stay is Stay.NO:
            if (run.at_hand or run.to_begin) and isinstance(turn.commit.then, Suspend):
                # nobody else can see it, so nobody can take it: it is waited for
                return replace(turn, commit=replace(turn.commit, then=Continue()))
            return turn
        self._counters.stays += 1
        if stay is Stay.AT_HAND:
            run.to_begin += turn.commit.calls
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
            _warn("what is known of run %s is forgotten", run)
        if not isinstance(turn.commit.then, Continue):
            self._let_go(run, done)
        elif turn.context.row(ROOT).frame.get("more") and not (run.at_hand and run.has_enough):
            self._begin_callees(run)
            self._due[run.task.id] = run
        else:
            self._wait_for_callees(run, turn, done)

    # While the store is away

    def goes_on_unseen(self, held: Held) -> bool:
        """Whether a task that has ended has a run go on though the store is away."""
        run = self._waiting.get(held.fence)
        return run is not None and self._may_go_on(run)

    def take_due_unseen(self) -> list[RunInHand]:
        """Runs that are to take their next turn, and can do so while the store is away."""
        due = [run for run in self._due.values() if self._may_go_on(run)]
        for run in due:
            del self._due[run.task.id]
        return due

    def go_on_unseen(self, part: Part) -> None:
        """Has a run go on from a turn that the store will be told, if it is placed here and the
        turn asks nothing of the store; else the run waits."""
        run, turn = part.flow, part.turn
        if run is None or part.is_told:
            return
        if turn is None or not (self._may_go_on(run) and asks_nothing(turn)):
            self._stuck[run.task.id] = run
            return
        part.is_told = True
        run.turn = turn
        self._evaluator.accepted_unseen(turn)
        self._begin_callees(run)
        if turn.goes_on:
            self._due[run.task.id] = run
        else:
            run.stay()
            self._staying[run.task.id] = run

    def seen(self, turn: Turn) -> None:
        """The store has taken a turn from which its run has gone on long ago."""
        self._evaluator.keep_memos(turn)

    def store_is_back(self) -> None:
        """Nothing has to wait for the store any more."""
        for run in self._stuck.values():
            if run.replies and run.task.id in self._in_hand:
                self._due[run.task.id] = run
        self._stuck.clear()

    def _may_go_on(self, run: RunInHand) -> bool:
        """Whether a run can take its next turn while the store is away. The first one needs it."""
        wanted = not (run.held.stop or run.held.lost)
        is_free = run.begun is None and run.task.id not in self._stuck
        return run.is_placed and wanted and is_free

    def _wait_for_callees(self, run: RunInHand, turn: Turn, done: Committed) -> None:
        self._begin_callees(run)
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
            (self._staying if run.at_hand else self._due)[run.task.id] = run

    def _begin_callees(self, run: RunInHand) -> None:
        """Has the work begin that is at hand for a run."""
        for spec in run.to_begin:
            held = held_at_hand(run.task, spec)
            run.callees[held.fence] = (spec.key, None)
            self._waiting[held.fence] = run
            run.at_hand[held.fence] = held
            self._to_begin.append(held)
        self._rules.at_hand += len(run.to_begin)
        run.to_begin = []

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


def _put(part: Part, turn: Turn) -> None:
    part.turn = turn
    part.commits.append(turn.commit)


def _finish_canceled(
    persistence: PersistenceAPI,
    run: WorkflowId,
    error: dict[str, Json] | None,
    transaction: Transaction,
) -> None:
    persistence.finish_run(transaction, run, RunState.CANCELED, None, error)


def _warn(text: str, run: RunInHand, error: Exception | None = None) -> None:
    """Logs what is amiss with a run, and the error that is being handled, or this one."""
    _log.warning(text, run.task.id, exc_info=error or True, extra=task_fields(run.task))
