"""A worker: claims tasks, does their work as the scenario says, and commits.

Everything that it knows about a task comes from the claim, the journal and the scenario, so any
other worker can go on where it died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random

from afl.kernel.errors import Fenced, LaneCycle, NotFound
from afl.kernel.model import (
    CallId,
    CallSpec,
    CallStatus,
    CardSpec,
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
from afl.testing.simulation.scenario import HANDLERS, LISTS, Piece, Scenario, verdict
from afl.testing.simulation.steps import Died, Steps, ask
from afl.testing.simulation.watch import WatchedStore

LEASE = timedelta(seconds=30)
RENEW_SECONDS = 10.0
_LONGEST_IDLE = 16.0
_CANCELED = Close(Outcome.CANCELED, error={"code": "stopped"})

_Known = dict[str, tuple[CallStatus, Json]]


class Worker:
    """One process, from its start to its end. `clock` is its own idea of the time, in seconds."""

    def __init__(
        self,
        id: str,
        store: WatchedStore,
        scenario: Scenario,
        rng: Random,
        clock: Callable[[], float],
    ) -> None:
        self.id = WorkerId(id)
        self._store = store
        self._scenario = scenario
        self._rng = rng
        self._clock = clock
        self._renewed = clock()
        self._hand: deque[Claim] = deque()
        self._current: Fence | None = None
        self._ready: list[Commit] = []
        self._stops: set[Fence] = set()
        #: no two lives share a token, even under one name
        self._token = f"{rng.random():.9f}"
        self._tokens = 0

    def life(self) -> Steps[None]:
        spec = WorkerSpec(self.id, self.id, lists=LISTS, handlers=HANDLERS, slots=2, lease=LEASE)
        yield from ask("register", lambda: self._store.register(spec), self.id)
        idle = 2.0
        while True:
            if not self._hand:
                yield from self._go_on()
            if not self._hand:
                yield from self._sleep(idle)
                idle = min(idle * 2, _LONGEST_IDLE)
                continue
            idle = 2.0
            claim = self._hand.popleft()
            self._current = claim.fence
            yield from self._renew_if_due()
            yield from self._serve(claim)
            self._current = None

    # Talking to the store

    def _request(self, n: int) -> ClaimRequest:
        self._tokens += 1
        return ClaimRequest(self.id, HANDLERS, LISTS, n, f"{self._token}/{self._tokens}")

    def _go_on(self) -> Steps[None]:
        """Commits what is done and claims the next, in one transaction if it can be."""
        request = self._request(1 + int(self._rng.random() * 2))
        if self._ready:
            commits = self._ready
            taken = yield from self._commit(commits, request, then_claim=True)
            self._ready = []
            if taken:
                return
        try:
            claims = yield from ask(
                "claim", lambda: self._store.claim(request), self.id, echoes=True
            )
        except NotFound:
            yield from self._renew()
            return
        self._hand.extend(claims)

    def _held(self) -> list[Fence]:
        held = [claim.fence for claim in self._hand] + [commit.fence for commit in self._ready]
        return held if self._current is None else [*held, self._current]

    def _renew(self) -> Steps[None]:
        held = self._held()
        renewal = yield from ask(
            "renew", lambda: self._store.renew(self.id, held), self.id, echoes=True
        )
        self._renewed = self._clock()
        self._stops.update(renewal.stop)
        # What it is doing right now goes on, as a handler does that does not look up.
        self._hand = deque(claim for claim in self._hand if claim.fence not in renewal.lost)
        for fence in renewal.stray:  # no claim is under way: it asks for one thing at a time
            yield from self._give_back(fence)

    def _give_back(self, fence: Fence) -> Steps[None]:
        """Returns a task that it did not know it has. Its namesake may have committed before it,
        which the answer shows."""
        held, number = True, 0
        while held:
            commits = [Commit(fence, Suspend(), number)]
            try:
                (done,) = yield from ask(
                    "give back", partial(self._store.commit, commits), commits, echoes=True
                )
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

    def _commit(
        self,
        commits: list[Commit],
        request: ClaimRequest | None = None,
        *,
        then_claim: bool = False,
    ) -> Steps[bool]:
        """Whether it was taken. If one of several was lost, the others are tried alone."""

        def commit() -> list[Claim]:
            if then_claim and request is not None:
                return self._store.commit_and_claim(commits, request)[1]
            done = self._store.commit(commits, eager=request)
            return [claim for committed in done for claim in committed.eager]

        what = "commit and claim" if then_claim else "commit"
        try:
            claims = yield from ask(what, commit, commits, echoes=True)
        except Fenced:
            if len(commits) > 1:
                for each in commits:
                    yield from self._commit([each])
            return False
        self._hand.extend(claims)
        return True

    def _extend(self, fence: Fence, by: timedelta) -> Steps[None]:
        with suppress(Fenced):  # as a handler that goes on until its commit is refused
            yield from ask("extend", lambda: self._store.extend(fence, by), fence, echoes=True)

    # Doing the work

    def _serve(self, claim: Claim) -> Steps[None]:
        commit = self._blank(claim)
        piece = self._scenario.pieces[str(claim.task.input)]
        known = yield from self._recall(claim)
        stage = next((s for s in piece.stages if any(p.path not in known for p in s)), None)
        if claim.fence in self._stops:
            yield from self._end(replace(commit, then=_CANCELED))
        elif stage is None:
            yield from self._finish(piece, claim, commit, known)
        else:
            yield from self._call(piece, stage, commit, known)

    def _blank(self, claim: Claim) -> Commit:
        """A commit that takes in what has been answered, and nothing else yet."""
        answers: dict[str, Json] = {
            call.key: [call.status.value, call.reply] for call in claim.replies
        }
        return Commit(
            claim.fence,
            Suspend(),
            cards=(CardSpec("answers", answers),) if answers else (),
            applied=tuple(CallId(call.id) for call in claim.replies),
        )

    def _recall(self, claim: Claim) -> Steps[_Known]:
        """All answers so far: from the journal, and those that have just come."""
        known = {call.key: (call.status, call.reply) for call in claim.replies}
        if claim.task.seq:
            box = claim.task.id
            cards = yield from ask("read", lambda: self._store.read_box(box), box)
            for card in cards:
                if isinstance(card.content, dict) and card.kind == "answers":
                    for key, answer in card.content.items():
                        assert isinstance(answer, list)
                        known[key] = (CallStatus(answer[0]), answer[1])
        return known

    def _call(
        self, piece: Piece, stage: tuple[Piece, ...], commit: Commit, known: _Known
    ) -> Steps[None]:
        """Opens what this stage still needs. A call that is open already stays the same call."""
        calls = [child.call_spec() for child in stage if child.path not in known]
        if piece.cycle:
            again = replace(piece, path=f"{piece.path}.again", stages=())
            calls.append(CallSpec(again.path, again.spec(), again.call_timeout))
        chance = self._rng.random()
        request = self._request(1 + int(self._rng.random() * 2)) if chance < 0.8 else None
        commits = [replace(commit, calls=tuple(calls))]
        try:
            yield from self._commit(commits, request, then_claim=chance < 0.5)
        except LaneCycle:
            outcome, body = verdict(piece, known)
            close = Close(outcome, error=body, permanent=True)
            yield from self._commit([replace(commit, then=close)])

    def _finish(self, piece: Piece, claim: Claim, commit: Commit, known: _Known) -> Steps[None]:
        if piece.checkpoint:
            middle = (*commit.cards, CardSpec("middle", claim.fence))
            taken = yield from self._commit([replace(commit, then=Continue(), cards=middle)])
            if not taken:
                return
            commit = Commit(claim.fence, Suspend(), number=1)
        yield from self._sleep(piece.seconds / 2)
        if piece.heartbeat is not None:
            yield from self._extend(claim.fence, piece.heartbeat)
        yield from self._sleep(piece.seconds / 2)
        if piece.poison:
            raise Died(piece.path)
        if claim.fence in self._stops:
            yield from self._end(replace(commit, then=_CANCELED))
        elif claim.task.failures < piece.fails:
            close = Close(Outcome.FAILED, error={"piece": piece.path})
            yield from self._end(replace(commit, then=close))
        else:
            yield from self._deliver(piece, claim, replace(commit, then=_close(piece, known)))

    def _deliver(self, piece: Piece, claim: Claim, commit: Commit) -> Steps[None]:
        """The effect first, then the commit that says that it was done."""
        self._store.effect(piece.path, claim.task.id)
        yield 0.0
        yield from self._end(commit)

    def _end(self, commit: Commit) -> Steps[None]:
        """Commits now, or together with the next one, or when it claims again."""
        self._ready.append(commit)
        if self._hand and (len(self._ready) > 1 or self._rng.random() < 0.6):
            commits = self._ready
            yield from self._commit(commits)
            self._ready = []


def _close(piece: Piece, known: _Known) -> Close:
    outcome, value = verdict(piece, known)
    if outcome is Outcome.SUCCESS:
        return Close(outcome, value)
    return Close(outcome, error=value, permanent=True)
