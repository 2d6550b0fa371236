"""A worker process: advances runs, and does the work of their event facets.

What it remembers of runs is in its evaluator, and dies with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random

from afl.kernel.errors import Fenced, NotFound
from afl.kernel.model import (
    CallId,
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Fence,
    Json,
    Outcome,
    Suspend,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction
from afl.runtime.calls import EXECUTE
from afl.runtime.context import count
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.replies import Reply
from afl.runtime.step import ROOT, WorkflowId
from afl.runtime.working.at_hand import may_be_at_hand, may_begin_unseen
from afl.testing.flow_simulation.answers import EVENTS, answer
from afl.testing.flow_simulation.store import FlowStore
from afl.testing.simulation.steps import Steps, ask

LEASE = timedelta(seconds=30)
RENEW_SECONDS = 10.0
_LONGEST_IDLE = 8.0
_NAMES = (EXECUTE, *EVENTS)


@dataclass(frozen=True, slots=True)
class Habits:
    """How the workers of a schedule go about it; each share is a chance from 0 to 1."""

    #: keep a run in hand and do the work of its steps oneself
    inline: float
    #: forget what is known of all runs
    forgets: float
    #: claim together with a commit
    hands_on: float
    #: do the work of steps oneself without a task, where that is allowed
    at_hand: float


class Worker:
    """One process, from its start to its end. `clock` is its own idea of the time, in seconds."""

    def __init__(
        self,
        id: str,
        store: FlowStore,
        evaluator: Callable[[], Evaluator],
        habits: Habits,
        rng: Random,
        clock: Callable[[], float],
    ) -> None:
        self.id = WorkerId(id)
        self._store = store
        self._kernel = store.kernel
        self._make = evaluator
        self._evaluator = evaluator()
        self._habits = habits
        self._rng = rng
        self._clock = clock
        self._renewed = clock()
        self._hand: deque[Claim] = deque()
        self._current: list[Fence] = []
        self._token = f"{rng.random():.9f}"
        self._tokens = 0

    def life(self) -> Steps[None]:
        spec = WorkerSpec(self.id, self.id, handlers=_NAMES, slots=2, lease=LEASE)
        yield from ask("register", lambda: self._kernel.register(spec), self.id)
        idle = 1.0
        while True:
            if not self._hand:
                yield from self._claim()
            if not self._hand:
                yield from self._sleep(idle)
                idle = min(idle * 2, _LONGEST_IDLE)
                continue
            idle = 1.0
            yield from self._renew_if_due()
            if self._hand:
                yield from self._serve(self._hand.popleft())

    # Talking to the store

    def _request(self, names: tuple[str, ...] = _NAMES) -> ClaimRequest:
        self._tokens += 1
        n = 1 + int(self._rng.random() * 2)
        return ClaimRequest(self.id, names, n=n, token=f"{self._token}/{self._tokens}")

    def _claim(self) -> Steps[None]:
        request = self._request()
        try:
            claims = yield from ask(
                "claim", lambda: self._kernel.claim(request), self.id, echoes=True
            )
        except NotFound:
            yield from self._renew()
            return
        self._hand.extend(claims)

    def _renew(self) -> Steps[None]:
        held = [*self._current, *(claim.fence for claim in self._hand)]
        renewal = yield from ask(
            "renew", lambda: self._kernel.renew(self.id, held), self.id, echoes=True
        )
        self._renewed = self._clock()
        self._hand = deque(claim for claim in self._hand if claim.fence not in renewal.lost)
        for fence in renewal.stray:
            yield from self._give_back(fence)

    def _give_back(self, fence: Fence) -> Steps[None]:
        """Returns a task that it did not know it has."""
        held, number = True, 0
        while held:
            commits = [Commit(fence, Suspend(), number)]
            try:
                (done,) = yield from ask("give back", partial(self._kernel.commit, commits), fence)
            except Fenced:
                return
            held, number = done.task.fence == fence, done.task.commits

    def _renew_if_due(self) -> Steps[None]:
        if self._clock() - self._renewed >= RENEW_SECONDS:
            yield from self._renew()

    def _sleep(self, seconds: float) -> Steps[None]:
        """Sleeps, and renews as often as its own clock says."""
        while seconds > 0:
            step = min(seconds, RENEW_SECONDS)
            yield step
            seconds -= step
            yield from self._renew_if_due()

    # Doing the work

    def _serve(self, claim: Claim) -> Steps[None]:
        self._current.append(claim.fence)
        if claim.task.kind == "flow":
            yield from self._advance(claim)
        else:
            yield from self._work(claim)
        self._current.remove(claim.fence)

    def _advance(self, claim: Claim) -> Steps[None]:
        """Advances a run as far as it goes."""
        if self._rng.random() < self._habits.forgets:
            self._store.counts.memories_lost += 1
            self._evaluator = self._make()
        evaluator = self._evaluator
        stay = self._rng.random() < self._habits.inline
        turn = self._evaluated(claim, lambda: evaluator.evaluate(claim, stay=stay))
        is_first = not claim.task.crashes
        while turn is not None:
            at_hand: Sequence[CallSpec] = ()
            if self._rng.random() < self._habits.at_hand and _may_keep(turn):
                at_hand = turn.commit.calls
                turn = evaluator.keep_at_hand(turn)
                if is_first and may_begin_unseen(turn):
                    unseen = int(self._rng.random() * (len(at_hand) + 1))
                    early = at_hand[:unseen]
                    at_hand = at_hand[unseen:]
                    turn = yield from self._work_unseen(claim, evaluator, turn, early)
                    if turn is None:
                        return
            is_first = False
            claims = yield from self.commit_turn(evaluator, turn, stay=stay)
            if claims is None or not turn.goes_on:
                return
            replies: list[tuple[CallId | None, Reply]] = []
            for spec in at_hand:
                replies.append((None, (yield from self._work_at_hand(spec))))
            self._current += [each.fence for each in claims]
            for each in claims:
                yield from self._work(each)
                self._current.remove(each.fence)
                replies += self._reply_to(each)
            following = partial(evaluator.go_on, turn, replies, stay=stay)
            turn = self._evaluated(claim, following)

    def _evaluated(self, claim: Claim, evaluate: Callable[[], Turn]) -> Turn | None:
        """The next turn. Who was overtaken while it read has rows of different times, which need
        not make sense; then the fence tells that it was."""
        try:
            return evaluate()
        except (LookupError, AssertionError):
            task = self._kernel.get_task(claim.task.id)
            if task is not None and task.fence == claim.fence:
                raise
            self._store.counts.mixed_reads_dropped += 1
            return None

    def commit_turn(
        self, evaluator: Evaluator, turn: Turn, *, stay: bool
    ) -> Steps[Sequence[Claim] | None]:
        """The callees to work on at once; None if the run is in other hands by now."""
        eager = self._request(EVENTS) if stay else None
        hands_on = not turn.goes_on and self._rng.random() < self._habits.hands_on
        request = self._request()

        def commit() -> list[Claim]:
            def writes(transaction: Transaction) -> None:
                evaluator.write(transaction, turn)

            if hands_on:
                return self._kernel.commit_and_claim([turn.commit], request, writes=writes)[1]
            (done,) = self._kernel.commit([turn.commit], writes=writes, eager=eager)
            return list(done.eager)

        try:
            claims = yield from ask("commit", commit, turn.commit, echoes=True)
        except Fenced:
            self._store.counts.stale_writes_refused += 1
            return None
        self.committed(evaluator, turn)
        if turn.goes_on:
            return claims
        self._hand.extend(claims)
        return ()

    def committed(self, evaluator: Evaluator, turn: Turn) -> None:
        """A turn is through."""
        evaluator.accepted(turn)

    def _reply_to(self, claim: Claim) -> list[tuple[CallId, Reply]]:
        """The answer that work of its own has led to, if it has."""
        assert claim.task.parent_call is not None
        call = self._kernel.get_call(claim.task.parent_call)
        if call is None or call.status is CallStatus.OPEN:
            return []
        self._store.counts.inline_answers += 1
        return [(call.id, Reply(call.key, call.status, call.reply))]

    def _work_at_hand(self, spec: CallSpec) -> Steps[Reply]:
        """Does the work of an event facet for a run that it holds; nothing tells of it but the next
        turn of the run."""
        yield from self._sleep(self._rng.random() ** 3 * 12)
        close = self._effect(spec.task.input, 0)
        self._store.counts.answers_at_hand += 1
        failed = close.outcome is Outcome.FAILED
        body = close.error if failed else close.result
        return Reply(spec.key, CallStatus.ERROR if failed else CallStatus.OK, body)

    def _work_unseen(
        self, claim: Claim, evaluator: Evaluator, turn: Turn, specs: Sequence[CallSpec]
    ) -> Steps[Turn | None]:
        """Does work at hand before the turn that asks for it is committed; the turn with it."""
        replies: list[tuple[CallId | None, Reply]] = []
        for spec in specs:
            replies.append((None, (yield from self._work_at_hand(spec))))
            self._store.counts.answers_unseen += 1
        if not replies:
            return turn
        return self._evaluated(claim, lambda: evaluator.extend(turn, replies))

    def _effect(self, given: Json, failures: int) -> Close:
        assert isinstance(given, dict)
        params = given["params"]
        assert isinstance(params, dict)
        self._store.effect(WorkflowId(str(given["run"])), str(given["step"]))
        return close_of(str(given["facet"]), params, failures)

    def _work(self, claim: Claim) -> Steps[None]:
        """Does the work of an event facet: first the effect, then the commit that tells of it."""
        yield from self._sleep(self._rng.random() ** 3 * 12)
        commits = [Commit(claim.fence, self._effect(claim.task.input, claim.task.failures))]
        try:
            yield from ask("close", lambda: self._kernel.commit(commits), commits, echoes=True)
        except Fenced:
            self._store.counts.stale_writes_refused += 1


def _may_keep(turn: Turn) -> bool:
    """Whether all that a run waits for is new, and may be done without tasks."""
    calls = turn.commit.calls
    outstanding = count(turn.context.row(ROOT), "open")
    return (
        bool(calls)
        and isinstance(turn.commit.then, Suspend | Continue)
        and outstanding == len(calls)
        and not turn.context.row(ROOT).frame.get("more")
        and all(may_be_at_hand(call) for call in calls)
    )


def close_of(facet: str, params: Mapping[str, Json], failures: int) -> Close:
    """How the work of a facet ends when it has failed so many times before."""
    found = answer(facet, params)
    if failures < found.hiccups:
        return Close(Outcome.FAILED, error={"type": "Hiccup", "message": "again"})
    if found.result is None:
        return Close(Outcome.FAILED, error=dict(found.error or {}), permanent=True)
    return Close(Outcome.SUCCESS, dict(found.result))
