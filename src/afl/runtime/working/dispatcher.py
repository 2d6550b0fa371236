"""The cycle of a worker: take in what has ended, commit it, claim the next, start it.

One thread does that. Whatever ends while a transaction is under way is part of the next one: an
idle worker answers at once, and a busy one commits many things together.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from time import monotonic

from afl.base.ids import IdSource
from afl.kernel import rules
from afl.kernel.errors import Fenced, StoreUnavailable
from afl.kernel.model import (
    CallId,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    State,
    Suspend,
    Task,
    TaskId,
)
from afl.kernel.working.hands import Hands, Held, give_back
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.lease import Lease
from afl.kernel.working.task_fields import task_fields
from afl.runtime.calls import EXECUTE, SIGNALS, TIMERS
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.guarding import Guard
from afl.runtime.handler_table import Handler, HandlerKind, HandlerTable
from afl.runtime.settling import ENDED
from afl.runtime.superseded import Superseded
from afl.runtime.working.at_hand import Pace, is_at_hand
from afl.runtime.working.away import Away
from afl.runtime.working.counters import Counters
from afl.runtime.working.execution import Execution
from afl.runtime.working.flows import Flows
from afl.runtime.working.in_turn import Attempt
from afl.runtime.working.messages import Finished, Look, Message, Passed, Served
from afl.runtime.working.outcomes import (
    attempt_seconds,
    close_of_error,
    close_of_timeout,
    facet_of,
    is_guarded,
    is_irreversible,
    run_of,
)
from afl.runtime.working.parts import Committer, Part
from afl.runtime.working.passing import Passing, commit_of
from afl.runtime.working.refusals import (
    split,
    superseded,
    superseded_answers,
    superseded_end,
)
from afl.runtime.working.spooling import ResultSpool
from afl.runtime.working.staying import Staying

_log = logging.getLogger("afl.worker")
#: About how many commits go into one transaction.
COMMITS_PER_TRANSACTION = 128
#: Handlers that have kept their slots this long may keep them for ever.
STUCK_SECONDS = 0.1
#: What ends this soon after the first is committed with it, if it is work at hand.
GATHER_SECONDS = 0.001
_NOBODY_SERVES = (TIMERS, SIGNALS)


class Dispatcher:
    """Used by one thread, apart from the inbox and `draining`."""

    def __init__(
        self,
        served: Served,
        table: HandlerTable,
        evaluator: Evaluator,
        ids: IdSource,
        hands: Hands,
        lease: Lease,
        counters: Counters,
        ring: Callable[[Iterable[str]], None],
        guard: Guard | None = None,
        spool: ResultSpool | None = None,
    ) -> None:
        self.inbox: SimpleQueue[Message] = SimpleQueue()
        self.health = LoopHealth("dispatcher")
        self.draining = False
        self._served = served
        self._table = table
        self._ids = ids
        self._hands = hands
        self._lease = lease
        self._away = Away()
        self._spool = spool
        self._counters = counters
        self._ring = ring
        self._persistence = evaluator.persistence
        self._kernel = evaluator.persistence.kernel
        self._committer = Committer(evaluator)
        self._pace = Pace()
        self._staying = Staying(served, self._pace, self._is_plain)
        self._flows = Flows(evaluator, hands, counters, self._staying)
        self._execution = Execution(self._kernel, served.slots, self.inbox.put)
        self._passing = None if guard is None else Passing(guard, self.inbox.put)
        self._running: dict[Fence, Held] = {}
        self._ended: deque[tuple[Held, Close | Suspend]] = deque()
        #: a transaction whose answer was lost
        self._again: tuple[list[Part], ClaimRequest | None] | None = None
        #: runs that may go on, by the id of their flow or by the call that has made it
        self._to_follow: dict[TaskId, None] = {}
        self._called: deque[CallId] = deque()
        self._to_ring: set[str] = set()
        #: results for which this worker was too late
        self._late: list[Superseded] = []
        self._look = True

    def _is_plain(self, name: str) -> bool:
        """Whether a facet is served by a plain function, in a thread."""
        handler = self._table.find(name)
        return handler is not None and handler.kind is HandlerKind.SYNC

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in hand or on its way."""
        on_its_way = (
            self._ended or self._again or self._away.backlog or self._to_follow or self._called
        )
        return not (self._running or on_its_way or len(self._flows))

    def look(self) -> None:
        """Has the next cycle claim, even if there is nothing to commit."""
        self._look = True

    def take_in(self, timeout_seconds: float) -> bool:
        """Waits for messages, and for what is due; false if there was nothing in time."""
        wait_seconds = self._wait_seconds(timeout_seconds)
        try:
            message = self.inbox.get(timeout=max(0.0, wait_seconds))
        except Empty:
            return wait_seconds < timeout_seconds
        until = monotonic() + GATHER_SECONDS
        while True:
            self._note(message)
            try:
                message = self.inbox.get(timeout=self._gather_seconds(until))
            except Empty:
                return True

    def cycle(self) -> bool:
        """One transaction, if there is anything to do, and what follows from it; tells whether
        there was something. While the store is away, runs that are placed here go on without."""
        self._expire()
        if self._away.seconds_left:
            return self._go_on_unseen()
        try:
            did = self._cycle()
        except StoreUnavailable:
            self._away.begins()
            self._look = True
            for part in (*(self._again[0] if self._again else ()), *self._away.backlog):
                self._flows.go_on_unseen(part)
            self._begin_at_hand()
            self._keep_results()
            raise
        if self._spool is not None and not self._ended:
            self._spool.clear()
        self._away.ends()
        self._flows.store_is_back()
        return did

    def _cycle(self) -> bool:
        if self._away.backlog and self._again is None:
            self._work_off()
        parts, request = self._again or self._prepare()
        claims: list[Claim] = []
        if parts or (request is not None and self._look):
            self._again = (parts, request)
            self._look = False
            claims = self._commit(parts, request)
            self._again = None
            if request is not None and len(claims) >= request.n:
                self._look = True
                self._to_ring.update(self._served.lists)
            self._tell()
        self._flows.note_canceled()
        self._note_late()
        self._follow()
        return bool(parts or claims)

    def hand_back(self) -> None:
        """Gives everything back to the store, to be done by others.

        What cannot be taken back, and has begun, is not: when the lease ends it counts as crashed.
        """
        if self._passing is not None:
            self._passing.give_up()
        for held in self._hands.all():
            self._execution.cancel(held)
            if held.fence not in self._running or not is_irreversible(held.claim.task):
                give_back(self._kernel, held.fence)
                self._hands.drop(held.fence)
        self._running.clear()

    def check_loop(self) -> None:
        """Warns of handlers that block the event loop. Any thread may call it."""
        self._execution.check_loop()

    def close(self) -> None:
        self._execution.close()

    # Waiting

    def _wait_seconds(self, timeout_seconds: float) -> float:
        left_alone = self._away.seconds_left
        if left_alone:
            timeout_seconds = min(timeout_seconds, left_alone)
        elif (
            self._ended
            or self._flows.has_due
            or self._again
            or self._away.backlog
            or (self._look and self._has_room())
        ):
            return 0.0
        expiries = [held.expires for held in self._running.values() if held.expires is not None]
        if (stay := self._flows.next_expiry()) is not None:
            expiries.append(stay)
        return min([timeout_seconds, *(expiry - monotonic() for expiry in expiries)])

    def _gather_seconds(self, until: float) -> float:
        """How long to wait for more to commit: a moment, while quick work is under way."""
        is_coming = any(map(is_at_hand, self._running.values()))
        return max(0.0, until - monotonic()) if is_coming else 0.0

    def _has_room(self) -> bool:
        has_slot = len(self._running) < self._served.slots
        return not self.draining and (has_slot or self._served.all_flows)

    def _note(self, message: Message) -> None:
        if isinstance(message, Finished):
            held = self._running.pop(message.fence, None)
            if self._passing is not None:
                self._passing.ended(message.fence, message.then)
            if held is not None:
                self._pace.note(held.claim.task.name, message.seconds)
            if held is None:
                self._counters.late_results += 1
            else:
                self._ended.append((held, message.then))
        elif isinstance(message, Look):
            self._look = True
        elif isinstance(message, Passed):
            self._note_passed(message)
        else:
            for fence in message.fences:
                give_back(self._kernel, fence)

    def _note_passed(self, message: Passed) -> None:
        """The guard has answered: the attempt is made, or the task is put off."""
        assert self._passing is not None
        held = self._running.get(message.fence)
        found = self._passing.answered(held, message)
        if held is None or found is None:
            self._counters.late_results += 1
        elif isinstance(found, Suspend):
            del self._running[message.fence]
            self._ended.append((held, found))
        else:
            self._begin(held, found)

    def _expire(self) -> None:
        """Ends attempts that took too long; lets go of runs that stayed too long."""
        now = monotonic()
        for held in list(self._running.values()):
            if held.expires is not None and held.expires <= now:
                del self._running[held.fence]
                self._execution.give_up(held)
                seconds = attempt_seconds(held.claim.task) or 0.0
                close = close_of_timeout(held.claim.task, seconds)
                if self._passing is not None:
                    self._passing.ended(held.fence, close)
                self._ended.append((held, close))
            elif held.lost or held.stop:
                self._execution.cancel(held)
        self._staying.is_allowed = not self.draining
        self._flows.expire(now)

    # Committing

    def _prepare(self) -> tuple[list[Part], ClaimRequest | None]:
        """What is to be committed, and what to claim with it."""
        free = max(0, self._served.slots - len(self._running))
        self._staying.offer(free)
        parts = self._parts()
        self._begin_at_hand()
        if self.draining:
            return parts, None
        free -= self._staying.taken_at_hand
        running = [held.claim.task.name for held in self._running.values()]
        return parts, self._served.request(
            free, self._ids.new_id(), is_stuck=self._is_stuck(), running=running
        )

    def _is_stuck(self) -> bool:
        """Whether handlers have had all slots for longer than a moment."""
        moment = monotonic() - STUCK_SECONDS
        return all(held.since < moment for held in self._running.values())

    def _parts(self) -> list[Part]:
        """What is to be committed, up to about as much as one transaction should have."""
        plain: list[Part] = []
        of_run: dict[TaskId, Part] = {}
        left = COMMITS_PER_TRANSACTION
        while self._ended and left > 0:
            held, then = self._ended.popleft()
            run = self._flows.ended(held, then)
            part = Part() if run is None else of_run.setdefault(run.task.id, Part(flow=run))
            if is_at_hand(held):
                # the row of the step says all about it; without its run nobody asks
                self._count(held, Commit(held.fence, then))
            elif held.lost:
                self._counters.late_results += 1
                self._late += superseded_end(held, then, self._served.worker)
                self._hands.drop(held.fence)
            else:
                part.end(held, commit_of(held, then))
                left -= 1
                if run is None:
                    plain.append(part)
        # those with a run come first: what they call is to be born in these hands
        parts = list(of_run.values())
        for part in parts:
            self._flows.add_turn(part)
        self._flows.read_due()
        while left > 0 and (due := self._flows.next_due()) is not None:
            part = Part(flow=due)
            self._flows.add_turn(part)
            parts.append(part)
            left -= 1
        return [part for part in (*parts, *plain) if part.commits]

    def _commit(self, parts: list[Part], request: ClaimRequest | None) -> list[Claim]:
        """Commits parts together, or one by one if that is refused; starts what comes with it."""
        self._hands.begin_claim()
        try:
            brought = self._committer.commit(parts, request)
        except StoreUnavailable:
            raise
        except Exception:
            if not parts:
                raise
            return self._commit_one_by_one(parts)
        self._counters.transactions += 1
        for part, answers in zip(parts, brought.answers, strict=True):
            self._accept(part, answers)
        for claim in brought.claims:
            self._start(claim)
        self._hands.end_claim()
        self._begin_at_hand()
        return brought.claims

    def _commit_one_by_one(self, parts: list[Part]) -> list[Claim]:
        """So that what one part is refused for costs no other."""
        self._again = None
        self._away.put_first(parts)
        self._work_off()
        self._hands.end_claim()
        self._begin_at_hand()
        self._look = True
        return []

    def _work_off(self) -> None:
        """Commits what the store is to be told, one part after the other. If it goes away, the rest
        is still to be done."""
        backlog = self._away.backlog
        while backlog:
            part = backlog[0]
            try:
                answers = self._committer.commit([part], None).answers[0]
            except StoreUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, others go on
                backlog.popleft()
                self._counters.refused += 1
                if isinstance(error, Fenced) and len(part.commits) == 1:
                    self._late += superseded(part, self._served.worker)
                self._away.put_first(split(part, error, self._flows, self._hands))
                continue
            backlog.popleft()
            self._counters.transactions += 1
            self._accept(part, answers)

    def _go_on_unseen(self) -> bool:
        """Has runs go on that are placed here, from what has ended; the rest waits for the
        store."""
        self._staying.offer(max(0, self._served.slots - len(self._running)))
        parts: dict[TaskId, Part] = {}
        rest: deque[tuple[Held, Close | Suspend]] = deque()
        for held, then in self._ended:
            if not self._flows.goes_on_unseen(held):
                rest.append((held, then))
                continue
            run = self._flows.ended(held, then)
            assert run is not None
            part = parts.setdefault(run.task.id, Part(flow=run))
            if is_at_hand(held):
                self._count(held, Commit(held.fence, then))
            else:
                part.end(held, commit_of(held, then))
        self._ended = rest
        for run in self._flows.take_due_unseen():
            parts.setdefault(run.task.id, Part(flow=run))
        for part in parts.values():
            self._flows.add_turn(part)
            if part.commits:
                self._away.backlog.append(part)
                self._flows.go_on_unseen(part)
        self._begin_at_hand()
        self._keep_results()
        return bool(parts)

    def _keep_results(self) -> None:
        """Writes down what handlers have come to, until the store has it. Work at hand is not of
        use without its run, and is done again."""
        if self._spool is None:
            return
        parts = (*(self._again[0] if self._again else ()), *self._away.backlog)
        told = [pair for part in parts for pair in zip(part.ended, part.commits, strict=False)]
        ends = [(held, commit.then) for held, commit in told]
        for held, then in (*ends, *self._ended):
            if isinstance(then, Close) and not is_at_hand(held):
                self._spool.keep(held, then)

    def _accept(self, part: Part, answers: list[Committed]) -> None:
        """A part was committed."""
        self._counters.commits += len(answers)
        for held, commit in zip(part.ended, part.commits, strict=False):
            self._hands.drop(held.fence)
            self._count(held, commit)
            if part.flow is None:
                self._note_caller(held.claim.task)
        if part.flow is None:
            return
        if part.is_told:
            assert part.turn is not None
            self._flows.seen(part.turn)
            return
        done = answers[-1]
        self._note_end(part)
        if part.turn is not None:
            born = {claim.task.parent_call for claim in done.eager}
            for call in part.turn.commit.calls:
                if done.calls.get(call.key) not in born and call.task.list not in _NOBODY_SERVES:
                    self._to_ring.add(call.task.list)
            if not self._served.all_flows:
                self._note_runs(part.turn, done)
        if not (part.turn is not None and part.turn.goes_on) and done.task.state is State.READY:
            # an answer has come in between, and whoever has given it could not take the run
            self._to_follow[done.task.id] = None
        self._flows.accepted(part, done)

    def _note_end(self, part: Part) -> None:
        """Rings for those who wait for the end of a run, and looks for an event that was there
        before the wait for it."""
        if part.failure is not None or (part.turn is not None and part.turn.end is not None):
            self._to_ring.add(ENDED)
        if part.turn is not None and part.turn.changes.awaits:
            self._look = True

    def _note_runs(self, turn: Turn, done: Committed) -> None:
        """The runs that go on because of a turn: the caller's, and workflows called as steps."""
        if turn.end is not None and turn.run.parent is not None:
            self._to_follow[TaskId(turn.run.parent)] = None
        for call in turn.commit.calls:
            if call.task.name == EXECUTE:
                self._called.append(done.calls[call.key])

    def _note_caller(self, task: Task) -> None:
        """Whoever waits for a task that has ended can go on: a run, or a task of others."""
        run = run_of(task)
        if run is not None:
            self._to_follow[TaskId(run)] = None
        elif task.parent_call is not None:
            self._to_ring.add(task.list)

    def _count(self, held: Held, commit: Commit) -> None:
        task, then = held.claim.task, commit.then
        outcome = "returned"
        if isinstance(then, Close):
            retried = rules.failure_retries(task, then)
            outcome = "retried" if retried else then.outcome.value
        self._counters.handled(facet_of(task), outcome)

    # Starting

    def _start(self, claim: Claim) -> None:
        self._counters.claims += 1
        held = self._hands.put(claim)
        task = claim.task
        if task.name == EXECUTE:
            self._flows.begin(held)
            return
        handler = self._table.find(task.name)
        if handler is None:
            self._ended.append((held, Suspend()))
            return
        self._attempt(held, handler)

    def _begin_at_hand(self) -> None:
        in_turn: list[Attempt] = []
        free = self._served.slots - len(self._running)
        for held in self._flows.take_to_begin():
            handler = self._table.find(held.claim.task.name)
            assert handler is not None, "what is not served here is not done at hand"
            if handler.kind is HandlerKind.SYNC:
                self._running[held.fence] = held
                in_turn.append((held, handler))
            else:
                free -= 1
                self._attempt(held, handler)
        if in_turn:
            self._execution.start_in_turn(in_turn, free)

    def _attempt(self, held: Held, handler: Handler) -> None:
        if is_irreversible(held.claim.task) and not self._lease.is_safe:
            # by the time it takes effect the task may be somebody else's
            self._ended.append((held, Suspend()))
            return
        self._running[held.fence] = held
        self._begin(held, handler, is_new=True)

    def _begin(self, held: Held, handler: Handler, *, is_new: bool = False) -> None:
        """Begins an attempt, or asks the guard for it if that is new and guarded."""
        try:
            if is_new and self._passing is not None and is_guarded(held.claim.task):
                self._passing.ask(held, handler)
            else:
                self._execution.start(held, handler)
        except Exception as error:  # noqa: BLE001 - what cannot even start has failed
            fields = task_fields(held.claim.task)
            _log.warning("`%s` cannot be started", handler.name, exc_info=True, extra=fields)
            self._running.pop(held.fence, None)
            close = close_of_error(held.claim.task, error)
            if self._passing is not None:
                self._passing.ended(held.fence, close)
            self._ended.append((held, close))

    def _follow(self) -> None:
        """Takes the runs whose tasks were done here, if this worker does not serve all runs."""
        if self._served.all_flows:
            self._to_follow.clear()
        while self._called:
            made = self._kernel.get_call(self._called[0])
            self._called.popleft()
            if made is not None and made.callee is not None:
                self._to_follow[made.callee] = None
        while self._to_follow:
            run = next(iter(self._to_follow))
            claim = self._kernel.take(self._served.worker, run)
            del self._to_follow[run]
            if claim is not None:
                self._start(claim)

    def _note_late(self) -> None:
        """Keeps both outcomes of work that was done twice."""
        while self._flows.late:
            run = self._flows.late.pop()
            at_hand = [reply for call, reply in run.replies if call is None]
            self._late += superseded_answers(run, at_hand, self._served.worker)
        if self._late:
            self._persistence.note_superseded(self._late)
            self._late = []

    def _tell(self) -> None:
        """Rings where tasks were left for others, after the commit that made them."""
        self._counters.in_flight = len(self._running)
        self._counters.flows_in_hand = len(self._flows)
        self.health.succeeded()
        if self._to_ring:
            lists, self._to_ring = self._to_ring, set()
            self._ring(lists)
