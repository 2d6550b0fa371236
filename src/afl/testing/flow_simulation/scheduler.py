"""One schedule of flows: who goes next, what goes wrong, until all runs have ended.

Single-threaded, on a virtual clock. Everything is drawn from the seed, so the same seed is the same
schedule, to the last step.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from afl.kernel.errors import KernelError, StoreUnavailable
from afl.runtime import context
from afl.runtime.evaluator import Evaluator
from afl.runtime.handlers import blocks
from afl.runtime.step import WorkflowId
from afl.testing.clock import SequentialIds, VirtualClock
from afl.testing.flow_simulation import actors
from afl.testing.flow_simulation.cases import SCHEDULES_PER_PROGRAM, ReadyPlans, case_of, text_of
from afl.testing.flow_simulation.judge import judge
from afl.testing.flow_simulation.store import FlowStore
from afl.testing.flow_simulation.worker import LEASE, Habits, Worker
from afl.testing.simulation.faults import CALM, Fault, Mood, Tape
from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.steps import Ask, Steps

WORKERS = 3
SWEEPERS = 2
#: When faults stop, and how long the system then has to finish, in seconds.
HORIZON = 120.0
HEALING = 900.0

_LEASE_SECONDS = LEASE.total_seconds()


@dataclass(slots=True)
class Actor:
    """Somebody who lives, dies and is born again."""

    name: str
    rng: Random
    #: decides what goes wrong; apart from `rng`, so that a fault that is left out shifts nothing
    fate: Random
    born: Callable[[int], Steps[None]]
    lives: int = 0
    points: int = 0
    #: how bad the present fault is, from 0 to 1
    extent: float = 0.0
    life: Steps[None] | None = None
    asking: Ask | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class _Echo:
    """A request that arrives without anybody waiting for its answer."""

    ask: Ask
    of: Actor


@dataclass(frozen=True, slots=True)
class Plan:
    """Which schedule: its seed, and what is left out of it."""

    seed: int
    #: the only faults that may happen, by their ids; None lets all of them happen
    only: frozenset[str] | None = None
    #: the program to play instead of the one that the seed stands for
    text: str | None = None

    @property
    def program(self) -> str:
        return text_of(self.seed // SCHEDULES_PER_PROGRAM) if self.text is None else self.text


class FlowSimulation:
    """Builds the schedule of a plan and runs it. Raises `Violation`."""

    #: what a mutant may replace
    evaluator_type = Evaluator
    worker_type = Worker

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.case = case_of(plan.program)
        self.clock = VirtualClock()
        self.ids = SequentialIds()
        self.store = self.make_store()
        self._plans = ReadyPlans(self.store, self.case)
        self.tape = Tape(plan.only)
        self.now = 0.0
        self.steps = 0
        self._mood = CALM if plan.only == frozenset() else Mood.of(self._source("mood"))
        self._trace = trace
        self._events: list[tuple[float, int, Actor | _Echo]] = []
        self._order = 0
        rng = self._source("habits")
        self._habits = Habits(
            rng.choice((0, 0, 0.5)),
            rng.choice((0, 0.2)),
            rng.choice((0, 0.5)),
            rng.choice((0, 0, 0.7)),
        )
        #: how many new steps, and iterations of a foreach, one commit may have
        self._sizes = rng.choice(((1000, 10_000), (2, 10_000), (5, 2)))
        self.runs: list[WorkflowId] = []
        self._count = rng.choice((1, 1, 2))
        self._active: Actor | None = None
        self._rivals = 0
        self.store.on_load = self._maybe_overtake
        outside = self._make_evaluator()
        self._client = self._add(
            "client", lambda _: actors.client(outside, self.case, self._count, self.runs)
        )
        for number in range(1, WORKERS + 1):
            self._add_worker(f"w{number}")
        for number in range(1, SWEEPERS + 1):
            self._add_sweeper(f"sweeper{number}")
        self._add_person(outside)

    def make_store(self) -> FlowStore:
        return FlowStore(self.clock, self.ids)

    def _make_evaluator(self) -> Evaluator:
        return self.evaluator_type(self.store, plans=self._plans, ids=self.ids)

    def _make_worker(self, id: str, actor: Actor) -> Worker:
        return self.worker_type(
            id, self.store, self._make_evaluator, self._habits, actor.rng, lambda: self.now
        )

    # Running

    def run(self) -> None:
        with _sizes(*self._sizes):
            end = HORIZON + HEALING
            while self._events and not self._is_done():
                moment, _, who = heapq.heappop(self._events)
                self._pass_time(moment - self.now)
                if self.now > end:
                    break
                self.steps += 1
                if isinstance(who, _Echo):
                    self._echo(who)
                else:
                    self._step(who)
            self._settle()
        if self.store.counts.tasks_given_up:
            return  # a run that lost its worker too often ends in other ways
        if not self._is_done():
            raise Violation("everything ends", self._what_is_open())
        judge(self.store, self.case, self.runs)

    def _is_done(self) -> bool:
        return self._client.done and all(run in self.store.ended for run in self.runs)

    def _settle(self) -> None:
        """What is still on its way arrives: there may be zombies among it."""
        for _, _, who in sorted(self._events):
            if isinstance(who, _Echo):
                self._echo(who)
            elif who.asking is not None and who.asking.echoes:
                self._echo(_Echo(who.asking, who))
        self._pass_time(_LEASE_SECONDS * 2)
        while self.store.sweep(100).total:
            pass

    def _step(self, actor: Actor) -> None:
        request = actor.asking
        if request is None:
            self._resume(actor)
            return
        fault = self._fault(actor, request) if self.now < HORIZON else None
        if fault is None:
            self._answer(actor, request)
        elif fault is Fault.PAUSE:
            self._schedule(_LEASE_SECONDS * (0.5 + 2.5 * actor.extent), actor)
        elif fault is Fault.LOST_REQUEST:
            self._resume(actor, error=StoreUnavailable("the request was lost"))
        elif fault is Fault.LOST_ANSWER:
            self._answer(actor, request, lost=True)
        elif fault is Fault.CRASH_AFTER:
            self._echo(_Echo(request, actor))
            self._crash(actor)
        elif fault is Fault.ZOMBIE:
            self._schedule(_LEASE_SECONDS * 2 * actor.extent, _Echo(request, actor))
            self._crash(actor)
        elif fault is Fault.CRASH:
            self._crash(actor)
        else:
            self._disturb(actor, request, fault)
            self._answer(actor, request)

    def _fault(self, actor: Actor, request: Ask) -> Fault | None:
        """What goes wrong with this request, if anything does."""
        actor.points += 1
        chance, actor.extent = actor.fate.random(), actor.fate.random()
        if chance >= self._mood.total:
            return None
        for fault, rate in self._mood.rates.items():
            chance -= rate
            if chance < 0:
                possible = request.echoes or fault is not Fault.ECHO
                return fault if possible and self._permit(actor, fault, request.what) else None
        return None

    def _permit(self, actor: Actor, fault: Fault, about: str) -> bool:
        id = f"{actor.name}@{actor.points}"
        if self.now >= HORIZON or not self.tape.allows(id):
            return False
        self.tape.note(id, self.now, fault, about)
        self._say(actor.name, f"** {fault.value} ** {about}")
        return True

    def _disturb(self, actor: Actor, request: Ask, fault: Fault) -> None:
        """Something happens just before the request is carried out."""
        if fault is Fault.LEAP:
            self._pass_time(_LEASE_SECONDS * 1.5 * actor.extent)
        elif fault is Fault.SWEEP:
            for _ in range(SWEEPERS):
                self.store.sweep(100)
        else:
            self._schedule(_LEASE_SECONDS * 2 * actor.extent, _Echo(request, actor))

    def _maybe_overtake(self) -> None:
        """While somebody reads the rows of a run, its lease may end and others take the run on:
        then the rows are of different times."""
        actor = self._active
        if actor is None or self.now >= HORIZON:
            return
        actor.points += 1
        if actor.fate.random() >= self._mood.rates.get(Fault.PAUSE, 0.0):
            return
        if self._permit(actor, Fault.PAUSE, "while it loads"):
            self.store.on_load = None
            self._pass_time(_LEASE_SECONDS * 1.5)
            self.store.sweep(100)
            self._rivals += 1
            actors.overtake(self.store, self._make_evaluator(), f"rival-{self._rivals}")
            self.store.on_load = self._maybe_overtake

    def _answer(self, actor: Actor, request: Ask, *, lost: bool = False) -> None:
        answer, error = self._perform(actor.name, request)
        if lost:
            error = StoreUnavailable("the answer was lost")
        self._resume(actor, answer, error)

    def _echo(self, echo: _Echo) -> None:
        self._perform(f"({echo.of.name})", echo.ask)

    def _perform(self, name: str, request: Ask) -> tuple[object, KernelError | None]:
        answer: object = None
        error: KernelError | None = None
        try:
            answer = request.call()
        except KernelError as refusal:
            error = refusal
        if self._trace is not None:
            outcome = _brief(answer) if error is None else error.code
            self._say(name, f"{request.what} {_brief(request.about)} -> {outcome}")
        return answer, error

    def _resume(
        self, actor: Actor, answer: object = None, error: KernelError | None = None
    ) -> None:
        """Lets an actor go on to its next yield."""
        self._active = actor
        if actor.life is None:
            actor.lives += 1
            actor.life = actor.born(actor.lives)
        try:
            said = actor.life.send(answer) if error is None else actor.life.throw(error)
        except StopIteration:
            actor.done = True
            actor.asking = None
            return
        if isinstance(said, Ask):
            actor.asking = said
            self._schedule(actor.rng.random() * 0.2, actor)
        else:
            actor.asking = None
            self._schedule(said, actor)

    def _crash(self, actor: Actor) -> None:
        actor.life = actor.asking = None
        self._schedule(2 + actor.extent * 10, actor)

    # Time

    def _schedule(self, seconds: float, who: Actor | _Echo) -> None:
        self._order += 1
        heapq.heappush(self._events, (self.now + seconds, self._order, who))

    def _pass_time(self, seconds: float) -> None:
        if seconds > 0:
            self.now += seconds
            self.clock.advance(timedelta(seconds=seconds))

    # Actors

    def _source(self, name: str) -> Random:
        return Random(f"{self.plan.seed}/{name}")

    def _add(self, name: str, born: Callable[[int], Steps[None]]) -> Actor:
        actor = Actor(name, self._source(name), self._source(f"{name}/fate"), born)
        self._schedule(actor.rng.random(), actor)
        return actor

    def _add_worker(self, name: str) -> None:
        id = f"{name}.1"

        def born(life: int) -> Steps[None]:
            nonlocal id
            actor.points += 1
            again = life > 1 and actor.fate.random() < self._mood.namesakes
            if not (again and self._permit(actor, Fault.NAMESAKE, id)):
                id = f"{name}.{life}"
            return self._make_worker(id, actor).life()

        actor = self._add(name, born)

    def _add_sweeper(self, name: str) -> None:
        actor = self._add(name, lambda _: actors.sweeper(self.store, actor.rng))

    def _add_person(self, evaluator: Evaluator) -> None:
        deeds = tuple(deed for deed in actors.DEEDS if deed in self._mood.people)

        def permit(fault: Fault, about: str) -> bool:
            actor.points += 1
            return self._permit(actor, fault, about)

        actor = self._add(
            "person", lambda _: actors.person(self.store, evaluator, actor.rng, deeds, permit)
        )

    # For people

    def _say(self, name: str, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now:10.3f}  {name:<10} {what}")

    def _what_is_open(self) -> str:
        open_runs = [run for run in self.runs if run not in self.store.ended]
        rows = [row for run in open_runs for row in self.store.get_steps_by_workflow(run)]
        waiting = [f"{row.path or 'root'} in {row.state}" for row in rows if not row.is_terminal]
        return "; ".join(waiting) or "a client never got its answer"


def _brief(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else f"{text[:160]}..."


@contextmanager
def _sizes(steps: int, iterations: int) -> Iterator[None]:
    """Commits so small that a run needs several of them."""
    before = context.STEPS_PER_ITERATION, blocks.MAX_ITERATIONS_AT_ONCE
    context.STEPS_PER_ITERATION, blocks.MAX_ITERATIONS_AT_ONCE = steps, iterations
    try:
        yield
    finally:
        context.STEPS_PER_ITERATION, blocks.MAX_ITERATIONS_AT_ONCE = before
