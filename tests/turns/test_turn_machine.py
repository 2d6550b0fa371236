"""Random games of whole turns: whatever callers, models, tools, people, workers and time do, every
turn keeps its promises and ends. In memory, on PostgreSQL and on MongoDB, by the same rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from afl.kernel.model import CallStatus, Claim, Json, Outcome, State, Stopped, Task, TaskId
from afl.testing.conformance.invariants import Snapshot, Watch
from afl.turns.budget_waits import wake_waiting
from afl.turns.intents import TurnIntent
from afl.turns.joining import JoinMode
from afl.turns.model import TURN, AgentId, Allowance, BudgetKey
from tests.turns.driving import LEASE, Hand
from tests.turns.gaming import AGENTS, Line, World
from tests.turns.grounds import (
    Ground,
    LastingGround,
    MemoryGround,
    Places,
    PostgresGround,
    turn_places,
)
from tests.turns.judging import check_ends, check_turns, check_views
from tests.turns.lasting_stores import KINDS

T = TypeVar("T")
MEMORY_GAMES = int(os.environ.get("TURN_GAMES_IN_MEMORY", "60"))
LASTING_GAMES = int(os.environ.get("TURN_GAMES", "8"))
AFTER_A_LEASE = LEASE + timedelta(seconds=5)
TENANT = BudgetKey("tenant", "default")

agents = st.sampled_from(AGENTS)
#: Which of those that there are.
which = st.integers(0, 200)
tools = st.sampled_from(["sweep", "mop", "web", "pay", "ask_bob", "hand_over"])
mistakes = st.sampled_from(["nothing", "sweep!", "submit_result"])
steps: st.SearchStrategy[Line] = st.one_of(
    st.lists(tools, min_size=1, max_size=4).map(tuple),
    st.lists(tools | mistakes, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["text", "empty", "busy", "refuse"]),
)
lines = st.lists(steps, min_size=1, max_size=3)
bodies: st.SearchStrategy[Json] = st.sampled_from(
    [None, "done", {"approved": True}, {"approved": False}, {"title": "B", "score": 2}]
)
statuses = st.sampled_from([CallStatus.OK, CallStatus.OK, CallStatus.ERROR, CallStatus.TIMEOUT])
outcomes = st.sampled_from([Outcome.SUCCESS, Outcome.SUCCESS, Outcome.FAILED])
timeouts = st.sampled_from([None, None, timedelta(seconds=90)])
#: Shorter than a lease, longer than one, longer than most tools may take.
times = st.sampled_from([5, 20, 45, 700]).map(lambda seconds: timedelta(seconds=seconds))


class TurnGames(RuleBasedStateMachine):
    """Games in memory."""

    fresh: Callable[[], Ground] = staticmethod(MemoryGround)

    def __init__(self) -> None:
        super().__init__()
        self.ground = self.fresh()
        self.world = World(self.ground)
        self.kernel = self.world.kernel
        self.watch = Watch(self.kernel)
        self.rows: Snapshot = self.ground.snapshot()
        #: what was enqueued, by its correlation id if it has one
        self.accepted: dict[str, TaskId] = {}
        #: claims whose worker is out of reach; nobody knows whether it is dead
        self.held: list[tuple[Hand, Claim]] = []

    # Callers

    @initialize(agents=st.lists(agents, min_size=1, max_size=4))
    def begin(self, agents: list[str]) -> None:
        for agent in agents:
            self.enqueue(agent, "", None)

    @rule(agent=agents, correlation=st.sampled_from(["", "", "a", "b"]), timeout=timeouts)
    def enqueue(self, agent: str, correlation: str, timeout: timedelta | None) -> None:
        intent = TurnIntent(AgentId(agent), "tidy", timeout=timeout)
        done = self.world.l0.enqueue(intent, correlation_id=correlation or None)
        known = self.accepted.setdefault(correlation or done.agent_turn_id, done.agent_turn_id)
        assert known == done.agent_turn_id == done.inbox_id

    @rule(modes=st.sampled_from(JoinMode), branches=st.lists(agents, min_size=1, max_size=3))
    def join(self, modes: JoinMode, branches: list[str]) -> None:
        intents = [TurnIntent(AgentId(agent), "help") for agent in branches]
        self.world.l0.join(intents, modes, quorum=1)

    @precondition(lambda self: self.tasks())
    @rule(which=which, force=st.booleans())
    def stop(self, which: int, force: bool) -> None:
        task = pick(self.tasks(), which)
        done = self.world.l0.stop(task.id, force=force)
        assert (done is Stopped.ALREADY_CLOSED) == (task.state is State.CLOSED)

    @precondition(lambda self: self.tasks())
    @rule(which=which)
    def look_around(self, which: int) -> None:
        """Watchers are told, and somebody rings, which changes nothing."""
        self.world.read_relay()
        task = pick(self.tasks(), which)
        if task.lane is not None:
            before = self.kernel.get_task(task.id)
            self.world.l0.dispatch(task.id)
            assert self.kernel.get_task(task.id) == before

    # Workers

    @rule(uses=st.lists(tools, max_size=4).map(tuple))
    def dispatch(self, uses: tuple[str, ...]) -> None:
        """The usual: whoever can go on does, and calls tools or is done."""
        hand = self.world.hand
        for claim in hand.claim():
            self.world.work(hand, claim, [uses] if uses else [])

    @rule(lines=lines, heard=st.sampled_from(["", "", "", "stop", "stop unheard"]))
    def dispatch_one(self, lines: list[Line], heard: str) -> None:
        hand = self.world.hand
        for claim in hand.claim(1):
            if heard:
                self.world.l0.stop(claim.task.id)
            self.world.work(hand, claim, lines, stopping=heard == "stop")

    @rule(lines=lines, commit=st.integers(0, 2), after=st.booleans(), noticed=st.booleans())
    def crash(self, lines: list[Line], commit: int, after: bool, noticed: bool) -> None:
        self.world.work_and_die(lines, commit, after=after)
        if noticed:
            self.let_pass(AFTER_A_LEASE)

    @precondition(lambda self: len(self.held) < 3)
    @rule()
    def fall_silent(self) -> None:
        """A worker takes something, and nothing is heard of it."""
        hand = self.world.new_hand()
        self.held += [(hand, claim) for claim in hand.claim(1)]

    @precondition(lambda self: self.held)
    @rule(which=which, lines=lines)
    def come_back(self, which: int, lines: list[Line]) -> None:
        """It goes on with what it has, or had."""
        hand, claim = self.held.pop(which % len(self.held))
        before = self.kernel.get_task(claim.task.id)
        self.world.work(hand, claim, lines)
        if before is None or before.fence != claim.fence:
            assert self.kernel.get_task(claim.task.id) == before, "it was not its own any more"

    # Tools and people

    @precondition(lambda self: self.ready_tools())
    @rule(which=which, outcome=outcomes, dies=st.sampled_from(["after", "", "before"]))
    def tools_work(self, which: int, outcome: Outcome, dies: str) -> None:
        """All of them do as they were told; one may die before it could say so."""
        ready = self.ready_tools()
        for index, task in enumerate(ready):
            self.world.serve_tool(task, outcome, dies if index == which % len(ready) else "")
        if dies:
            self.let_pass(AFTER_A_LEASE)

    @precondition(lambda self: self.rows.calls)
    @rule(which=which, status=statuses, body=bodies, times=st.integers(1, 2))
    def report(self, which: int, status: CallStatus, body: Json, times: int) -> None:
        """Somebody answers a call: an open one, or one that was answered, or whose turn is over."""
        call = pick(list(self.rows.calls.values()), which)
        for _ in range(times):
            done = self.world.l0.report(call.id, status, body)
            kept = self.kernel.get_call(call.id)
            assert kept is not None
            assert done.counts == ((kept.status, kept.reply) == (status, body))
            if call.status is not CallStatus.OPEN:
                assert (kept.status, kept.reply) == (call.status, call.reply), "the first counts"

    @precondition(lambda self: self.questions())
    @rule(which=which, approved=st.booleans())
    def answer_question(self, which: int, approved: bool) -> None:
        task = pick(self.questions(), which)
        assert task.parent_call is not None
        self.world.l0.report(task.parent_call, CallStatus.OK, {"approved": approved})

    # Time and money

    @rule(by=times)
    def let_pass(self, by: timedelta) -> None:
        self.world.let_pass(by)
        now = self.ground.clock.now()
        late = [call for call in self.ground.snapshot().calls.values() if call.deadline < now]
        assert all(call.status is not CallStatus.OPEN for call in late)

    @rule(calls=st.sampled_from([1, 4, 12, 100]))
    def set_budget(self, calls: int) -> None:
        self.world.store.set_budget(TENANT, Allowance(model_calls=calls))
        wake_waiting(self.world.store)

    # What is true

    @invariant()
    def all_is_well(self) -> None:
        self.rows = self.ground.snapshot()
        wrong = [*self.watch.check_snapshot(self.rows), *check_turns(self.world, self.rows)]
        if isinstance(self.ground, PostgresGround):
            wrong += check_views(self.ground, self.rows)
        assert wrong == []
        assert len(set(self.accepted.values())) == len(self.accepted)
        assert set(self.accepted.values()) <= self.rows.tasks.keys()

    def teardown(self) -> None:
        self.world.store.set_budget(TENANT, Allowance())
        self.world.play_to_the_end()
        self.all_is_well()
        assert list(check_ends(self.world, self.rows)) == []
        (budget,) = self.world.store.budgets([TENANT])
        assert budget.reserved.model_calls == 0

    # Which there are

    def tasks(self) -> list[Task]:
        return [task for task in self.rows.tasks.values() if task.kind in (TURN, "join")]

    def ready_tools(self) -> list[Task]:
        return [t for t in self.rows.tasks.values() if (t.list, t.state) == ("tools", State.READY)]

    def questions(self) -> list[Task]:
        return [t for t in self.rows.tasks.values() if (t.kind, t.state) == ("human", State.READY)]


def pick(of: list[T], which: int) -> T:
    return of[which % len(of)]


def rounds(games: int, steps: int) -> settings:
    return settings(
        max_examples=games,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.mark.timeout(max(120, MEMORY_GAMES * 3))
def test_games_in_memory() -> None:
    run_state_machine_as_test(TurnGames, settings=rounds(MEMORY_GAMES, 40))


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    yield from turn_places()


@pytest.mark.timeout(max(300, LASTING_GAMES * 30))
@pytest.mark.parametrize("kind", KINDS)
def test_games_on_a_database(places: Places, kind: str) -> None:
    open_: list[LastingGround] = []

    def fresh() -> Ground:
        while open_:
            open_.pop().close()
        open_.append(places.ground(kind))
        return open_[0]

    games = type("LastingTurnGames", (TurnGames,), {"fresh": staticmethod(fresh)})
    try:
        run_state_machine_as_test(games, settings=rounds(LASTING_GAMES, 30))
    finally:
        while open_:
            open_.pop().close()
