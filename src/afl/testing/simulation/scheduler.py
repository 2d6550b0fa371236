"""One schedule: who goes next, what goes wrong, until all work is done or it never will be.

Single-threaded, on a virtual clock. Everything is drawn from the seed, so the same seed is the same
schedule, to the last step.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from afl.kernel.errors import KernelError, StoreUnavailable
from afl.testing.simulation import actors
from afl.testing.simulation.faults import CALM, Fault, Mood, Tape
from afl.testing.simulation.judge import check_invariants, judge
from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.locks import WatchedLocks
from afl.testing.simulation.scenario import make_scenario
from afl.testing.simulation.steps import Ask, Died, Steps
from afl.testing.simulation.trace import brief
from afl.testing.simulation.watch import WatchedStore
from afl.testing.simulation.worker import LEASE, Worker
from afl.testing.simulation.world import MemoryWorld, World

WORKERS = 3
SWEEPERS = 2
LOCKERS = 2
#: When faults stop, and how long the system then has to finish, in seconds.
HORIZON = 120.0
HEALING = 600.0
#: The invariants are checked after so many steps, and at the end.
CHECK_EVERY = 100

_LEASE_SECONDS = LEASE.total_seconds()


@dataclass(slots=True)
class Actor:
    """Somebody who lives, dies and is born again."""

    name: str
    rng: Random
    #: decides what goes wrong; apart from `rng`, so that a fault that is left out shifts nothing
    fate: Random
    born: Callable[[int], Steps[None]]
    offset: float = 0.0
    speed: float = 1.0
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
    #: pieces of work that are left out
    without: frozenset[str] = field(default_factory=frozenset)


class Simulation:
    """Builds the schedule of a plan and runs it. Raises `Violation`."""

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.world = self.make_world()
        self.scenario = make_scenario(self._source("scenario")).without(plan.without)
        self.tape = Tape(plan.only)
        self.store = WatchedStore(self.world, self.scenario)
        self.locks = WatchedLocks(self.world)
        self.now = 0.0
        self.steps = 0
        self._mood = CALM if plan.only == frozenset() else Mood.of(self._source("mood"))
        self._trace = trace
        self._events: list[tuple[float, int, Actor | _Echo]] = []
        self._order = 0
        self._client = self._add("client", lambda _: actors.client(self.store, self.scenario))
        for number in range(1, WORKERS + 1):
            self._add_worker(f"w{number}")
        for number in range(1, SWEEPERS + 1):
            self._add_sweeper(f"sweeper{number}")
        for number in range(1, LOCKERS + 1):
            self._add_locker(f"locker{number}")
        self._add_person()
        if self._mood.redrives:
            self._add_operator()

    # What a mutant may replace

    def make_world(self) -> World:
        return MemoryWorld()

    def make_worker(self, id: str, actor: Actor) -> Worker:
        return Worker(
            id,
            self.store,
            self.scenario,
            actor.rng,
            lambda: actor.offset + self.now * actor.speed,
        )

    def perform(self, actor: Actor, request: Ask) -> object:
        """Carries out a request, for whom it is."""
        return request.call()

    # Running

    def run(self) -> None:
        self._run_until_done()
        self._settle()
        # what arrived last may have been new work, such as a redrive
        self._run_until_done()
        judge(self.world, self.store, self.scenario)

    def _run_until_done(self) -> None:
        end = HORIZON + HEALING
        while self._events and not self._is_done():
            moment, _, who = heapq.heappop(self._events)
            self._pass_time(moment - self.now)
            if self.now > end:
                raise Violation("everything ends", self._what_is_open())
            self.steps += 1
            if isinstance(who, _Echo):
                self._echo(who)
            else:
                self._step(who)
            if self.steps % CHECK_EVERY == 0:
                check_invariants(self.world)

    def _is_done(self) -> bool:
        return self._client.done and not self.store.ledger.open

    def _settle(self) -> None:
        """What is still on its way arrives: there may be zombies among it."""
        for _, _, who in sorted(self._events):
            if isinstance(who, _Echo):
                self._echo(who)
            elif who.asking is not None and who.asking.echoes:
                self._echo(_Echo(who.asking, who))

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

    def _answer(self, actor: Actor, request: Ask, *, lost: bool = False) -> None:
        answer: object = None
        error: KernelError | None = None
        try:
            answer = self.perform(actor, request)
        except KernelError as refusal:
            error = refusal
        self._tell(actor.name, request, answer, error)
        if lost:
            error = StoreUnavailable("the answer was lost")
        self._resume(actor, answer, error)

    def _echo(self, echo: _Echo) -> None:
        answer: object = None
        error: KernelError | None = None
        try:
            answer = self.perform(echo.of, echo.ask)
        except KernelError as refusal:
            error = refusal
        self._tell(f"({echo.of.name})", echo.ask, answer, error)

    def _resume(
        self, actor: Actor, answer: object = None, error: KernelError | None = None
    ) -> None:
        """Lets an actor go on to its next yield."""
        if actor.life is None:
            actor.lives += 1
            actor.life = actor.born(actor.lives)
        try:
            said = actor.life.send(answer) if error is None else actor.life.throw(error)
        except StopIteration:
            actor.done = True
            actor.asking = None
            return
        except Died as death:
            self._say(actor.name, f"died of {death}")
            self._crash(actor)
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
            self.world.advance(timedelta(seconds=seconds))

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
            return self.make_worker(id, actor).life()

        actor = self._add(name, born)
        if actor.fate.random() < self._mood.skew:
            offset, speed = actor.fate.random(), actor.fate.random()
            if self._permit(actor, Fault.SKEW, ""):
                actor.offset, actor.speed = (offset - 0.5) * 7200, 0.2 + 1.3 * speed

    def _add_sweeper(self, name: str) -> None:
        actor = self._add(name, lambda _: actors.sweeper(self.store, actor.rng))
        if actor.fate.random() < self._mood.skew:
            offset = actor.fate.random()
            if self._permit(actor, Fault.SKEW, ""):
                actor.offset = (offset - 0.5) * 7200

    def _add_locker(self, name: str) -> None:
        actor = self._add(name, lambda life: actors.locker(self.locks, actor.rng, f"{name}.{life}"))

    def _add_person(self) -> None:
        deeds = self._mood.people
        actor = self._add(
            "person",
            lambda _: actors.person(
                self.store, self.scenario, actor.rng, deeds, self._permit_for(actor)
            ),
        )

    def _add_operator(self) -> None:
        actor = self._add(
            "operator",
            lambda _: actors.operator(
                self.store, self.scenario, actor.rng, self._permit_for(actor)
            ),
        )

    def _permit_for(self, actor: Actor) -> actors.Permit:
        def permit(fault: Fault, about: str) -> bool:
            actor.points += 1
            return self._permit(actor, fault, about)

        return permit

    # For people

    def _tell(self, name: str, request: Ask, answer: object, error: KernelError | None) -> None:
        if self._trace is not None:
            outcome = brief(answer) if error is None else error.code
            self._say(name, f"{request.what} {brief(request.about)} -> {outcome}")

    def _say(self, name: str, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now:10.3f}  {name:<10} {what}")

    def _what_is_open(self) -> str:
        store = self.world.store
        tasks = [self.store.ledger.tasks[task] for task in sorted(self.store.ledger.open)]
        if not tasks:
            return "a client never got its answer"
        reasons = [(task, store.get_task(task.id), store.why(task.id)) for task in tasks]
        return "; ".join(
            f"{task.path} is {row.state.value if row else 'gone'} because of {reason}"
            for task, row, reason in reasons
        )
