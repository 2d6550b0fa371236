"""Defects that engines for agents have had, each with a test that it is not here.

Not tested here, because there is nothing that could break:

| defect | why it cannot be                                                                       |
|--------|----------------------------------------------------------------------------------------|
| P22    | control data has one source, the task row: a claim hands it over, nothing repeats it   |
| P23    | there is one version of every message, and none that it has to be compatible with      |
| P24    | turns open no port, and trust no name; what a model may do: test_hostile_model         |
| P25    | nothing is asked over the broker: watchers are told, and nobody waits for an answer    |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest

from afl.kernel.errors import Fenced
from afl.kernel.model import (
    Call,
    CallSpec,
    CallStatus,
    Claim,
    Close,
    Commit,
    Json,
    Outcome,
    ReasonCode,
    State,
    Stopped,
    Suspend,
    Swept,
    Task,
    TaskId,
    TaskSpec,
)
from afl.testing.conformance.invariants import check_snapshot
from afl.turns.cards import TASK, find
from afl.turns.intents import TurnIntent
from afl.turns.joining import JoinMode
from afl.turns.journal import ToolResult
from afl.turns.l0 import L0Engine
from afl.turns.model import AgentId, Deliverable, Ending
from afl.turns.relay import END_BOX, deliverable_card
from tests.turns.driving import LEASE, task_of
from tests.turns.gaming import Line, World
from tests.turns.grounds import MemoryGround, Places, turn_places
from tests.turns.lasting_stores import KINDS

AFTER_A_LEASE = LEASE + timedelta(seconds=5)


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    yield from turn_places()


@pytest.fixture(params=KINDS)
def lasting(request: pytest.FixtureRequest, places: Places) -> Iterator[World]:
    """A world whose threads share a database."""
    ground = places.ground(request.param)
    yield World(ground)
    ground.close()


@pytest.fixture(params=["memory", *KINDS])
def world(request: pytest.FixtureRequest, places: Places) -> Iterator[World]:
    if request.param == "memory":
        yield World(MemoryGround())
        return
    ground = places.ground(request.param)
    yield World(ground)
    ground.close()


def enqueue(world: World, agent: str = "ann", **more: object) -> TaskId:
    intent = TurnIntent(AgentId(agent), "tidy", **more)  # type: ignore[arg-type]
    return world.l0.enqueue(intent).agent_turn_id


def state(world: World, turn: TaskId) -> State:
    return task_of(world.kernel, turn).state


def work(world: World, *lines: Line) -> int:
    """Everything that can be claimed is worked on, once; the model says the lines."""
    claims = world.hand.claim()
    for claim in claims:
        world.work(world.hand, claim, lines)
    return len(claims)


def call(world: World, turn: TaskId, key: str) -> Call:
    found = world.kernel.find_call(turn, key)
    assert found is not None
    return found


def callee(world: World, turn: TaskId, key: str) -> Task:
    id_ = call(world, turn, key).callee
    assert id_ is not None
    return task_of(world.kernel, id_)


def serve(world: World, turn: TaskId, key: str) -> None:
    world.serve_tool(callee(world, turn, key), Outcome.SUCCESS, "")


def late(world: World) -> list[tuple[Json, Json]]:
    """The answers that came after another."""
    bodies = [entry.body for entry in world.kernel.read_outbox() if entry.topic == "late"]
    return [(body["status"], body["body"]) for body in bodies if isinstance(body, dict)]


def delivered(world: World, turn: TaskId) -> Deliverable:
    box, _ = deliverable_card(world.kernel, task_of(world.kernel, turn))
    (found,) = find(world.kernel.read_box(box), Deliverable)
    return found


# Agents and their turns


def test_a_turn_that_comes_while_another_ends_is_not_stranded(lasting: World) -> None:
    """P1: enqueue and the end of the active turn overlap, in every order that chance has."""
    world, turns = lasting, [enqueue(lasting)]
    start = threading.Barrier(2)

    def end(claim: Claim) -> None:
        start.wait()
        world.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS))])

    def add() -> TaskId:
        start.wait()
        return enqueue(world)

    with ThreadPoolExecutor(2) as threads:
        for _ in range(25):
            (claim,) = world.hand.claim()
            ending, adding = threads.submit(end, claim), threads.submit(add)
            ending.result()
            turns.append(adding.result())
            assert check_snapshot(world.ground.snapshot()) == []
            assert state(world, turns[-1]) is State.READY, "nobody has to sweep for it"
    assert {state(world, turn) for turn in turns[:-1]} == {State.CLOSED}


def test_a_doorbell_that_rings_again_makes_no_second_turn(world: World) -> None:
    """P2: waking somebody changes no row, so the turn is taken once, however often it rings."""
    turn = enqueue(world)
    before = task_of(world.kernel, turn)
    for _ in range(3):
        world.l0.dispatch(turn)
        world.l0.dispatch_next(AgentId("ann"))
        world.sweep()
    assert task_of(world.kernel, turn) == before
    assert work(world) == 1
    for _ in range(3):
        world.l0.dispatch(turn)
    assert work(world) == 0
    assert len(world.kernel.find_tasks()) == 1


def test_a_queued_turn_of_a_join_is_stopped_by_the_one_name_it_has(world: World) -> None:
    """P3: whatever its correlation id is, a turn has one id, which stops it in any state."""
    active = enqueue(world)
    world.l0.join([TurnIntent(AgentId("ann"), "help")], correlation_id="batch")
    work(world, ("sweep",))
    (child,) = [task for task in world.kernel.find_tasks() if task.state is State.QUEUED]
    assert world.l0.stop(child.id) is Stopped.CLOSED
    assert state(world, child.id) is State.CLOSED
    assert world.l0.stop(active) is Stopped.CLOSED
    assert state(world, active) is State.CLOSED, "it was suspended"


def test_a_deliverable_is_that_of_its_own_turn(world: World) -> None:
    """P18: a turn that fails after one that succeeded has nothing of it."""
    good, bad = enqueue(world), enqueue(world)
    work(world)
    work(world, "refuse")
    assert delivered(world, good).ending is Ending.DONE
    assert delivered(world, bad).ending is Ending.FAILED
    assert delivered(world, bad).fields == {}
    assert task_of(world.kernel, bad).result is None


def test_an_agent_that_would_wait_for_itself_is_told_so_at_once(world: World) -> None:
    """P21: a call of an agent further up the chain is refused, instead of timing out."""
    turn = enqueue(world, "bob")
    world.work(world.hand, world.hand.claim()[0], [("ask_bob", "sweep")])
    assert state(world, turn) is State.WAITING
    assert world.kernel.find_call(turn, "0.0") is None
    serve(world, turn, "0.1")
    work(world)
    told = find(world.kernel.read_box(turn), ToolResult)[0]
    assert "lane 'bob'" in told.content
    assert task_of(world.kernel, turn).outcome is Outcome.SUCCESS


# Tools and their answers


def test_a_tool_is_called_although_its_caller_died_before_it_could_tell_anybody(
    world: World,
) -> None:
    """P4: the call is a row of the commit, and not a message after it."""
    turn = enqueue(world)
    world.work_and_die([("sweep",)], 0, after=True)
    assert state(world, turn) is State.WAITING
    serve(world, turn, "0.0")
    assert list(world.sink.effects.values()) == [1]
    assert state(world, turn) is State.READY


def test_an_answer_that_comes_twice_is_acknowledged(world: World) -> None:
    """P5: the first counts; the same again, or another one, is no error and changes nothing."""
    turn = enqueue(world)
    work(world, ("mop",))
    assert world.l0.report((turn, "0.0"), CallStatus.OK, "first").counts
    assert world.l0.report((turn, "0.0"), CallStatus.OK, "first").counts
    assert not world.l0.report((turn, "0.0"), CallStatus.ERROR, "second").counts
    assert call(world, turn, "0.0").reply == "first"
    assert ("error", "second") in late(world), "what came too late is kept"


def test_a_turn_goes_on_where_its_worker_died(world: World) -> None:
    """P6: what comes next is in rows, not in a queue of the process."""
    turn = enqueue(world)
    world.work_and_die([("nothing",), ("sweep!",), "text"], 2, after=False)
    assert state(world, turn) is State.RUNNING
    world.let_pass(AFTER_A_LEASE)
    assert state(world, turn) is State.READY
    work(world)
    ended = task_of(world.kernel, turn)
    assert (ended.outcome, delivered(world, turn).ending) == (Outcome.SUCCESS, Ending.DONE)


def test_an_answer_that_is_there_before_the_turn_waits_is_kept(world: World) -> None:
    """P7: a fast tool fills its slot; the turn finds it when it suspends."""
    turn = enqueue(world)
    (claim,) = world.hand.claim()
    spec = CallSpec("k", TaskSpec("event", "mop", list="tools"), timedelta(minutes=1))
    world.l0.command_intent(claim.fence, spec, suspend=False)
    assert world.l0.report((turn, "k"), CallStatus.OK, "quick").counts
    (done,) = world.kernel.commit([Commit(claim.fence, Suspend(), 1)])
    assert done.task.state is State.READY
    (again,) = world.hand.claim()
    assert [reply.reply for reply in again.replies] == ["quick"]


def test_each_call_keeps_its_own_deadline_when_another_is_answered(world: World) -> None:
    """P8: going on with a part of the answers moves no deadline."""
    turn = enqueue(world)
    work(world, ("pay", "mop"))
    deadline = call(world, turn, "0.1").deadline
    world.let_pass(timedelta(minutes=2))
    world.l0.report((turn, "approve:0.0"), CallStatus.OK, {"approved": True})
    assert work(world) == 0, "it waits for all of them"
    serve(world, turn, "0.1")
    work(world)
    assert call(world, turn, "0.1").deadline == deadline
    assert call(world, turn, "0.0").status is CallStatus.OPEN


def test_nothing_may_take_longer_than_what_waits_for_it(world: World) -> None:
    """P9: deadlines come from above, and an answer after the deadline is kept as late."""
    turn = enqueue(world, timeout=timedelta(seconds=60))
    work(world, ("mop",))
    caller, made, served = (
        task_of(world.kernel, turn),
        call(world, turn, "0.0"),
        callee(world, turn, "0.0"),
    )
    assert caller.deadline is not None
    assert served.deadline is not None
    assert served.deadline <= made.deadline <= caller.deadline
    world.let_pass(timedelta(seconds=61))
    assert delivered(world, turn).ending is Ending.TIMEOUT
    assert not world.l0.report(made.id, CallStatus.OK, "at last").counts
    assert ("ok", "at last") in late(world)


def test_a_call_that_was_answered_in_time_keeps_no_other_from_timing_out(world: World) -> None:
    """P10: each is put right by itself."""
    turns = [enqueue(world, agent) for agent in ("ann", "bob", "cid")]
    work(world, ("sweep",))
    world.l0.report((turns[0], "0.0"), CallStatus.OK, "just in time")
    world.let_pass(timedelta(seconds=41))
    statuses = [call(world, turn, "0.0").status for turn in turns]
    assert statuses == [CallStatus.OK, CallStatus.TIMEOUT, CallStatus.TIMEOUT]
    assert {state(world, turn) for turn in turns} == {State.READY}


@pytest.mark.parametrize("line", [("mop",), ("pay",), ("ask_bob",), "busy"])
def test_whatever_a_turn_waits_for_has_a_deadline(world: World, line: Line) -> None:
    """P11: there is no wait that nothing ends."""
    turn = enqueue(world)
    world.work(world.hand, world.hand.claim()[0], [line])
    assert state(world, turn) is State.WAITING
    open_ = [c for c in world.kernel.calls_of(turn) if c.status is CallStatus.OPEN]
    assert open_
    assert all(each.deadline > world.ground.clock.now() for each in open_)


def test_a_turn_that_waits_for_nothing_is_ready(world: World) -> None:
    """P11: a suspend without an open call would never end, so it is none."""
    enqueue(world)
    (claim,) = world.hand.claim()
    (done,) = world.kernel.commit([Commit(claim.fence, Suspend())])
    assert done.task.state is State.READY


def test_calls_are_told_apart_although_the_provider_gives_them_one_id(world: World) -> None:
    """P17: the id of the provider is data; a call goes by a key of its own."""
    turn = enqueue(world)
    work(world, ("mop", "mop"))
    serve(world, turn, "0.1")
    serve(world, turn, "0.0")
    work(world)
    results = find(world.kernel.read_box(turn), ToolResult)
    assert [(r.key, r.content) for r in results] == [("0.0", '{"done": 1}'), ("0.1", '{"done": 2}')]
    assert {result.tool_call_id for result in results} == {"same"}


def test_a_tool_whose_worker_died_is_tried_by_another_under_the_same_key(world: World) -> None:
    """P16: the lease is on the call's own task, so nothing waits for the dead."""
    turn = enqueue(world)
    work(world, ("mop",))
    world.serve_tool(callee(world, turn, "0.0"), Outcome.SUCCESS, "after")
    world.let_pass(AFTER_A_LEASE)
    serve(world, turn, "0.0")
    assert (world.sink.attempts, len(world.sink.effects)) == (2, 1)
    assert state(world, turn) is State.READY


# Those who wait for others


def test_a_caller_is_answered_by_the_commit_that_ends_what_it_called(world: World) -> None:
    """P12: it needs no event; here nobody ever reads one."""
    turn = enqueue(world)
    world.work(world.hand, world.hand.claim()[0], [("ask_bob",)])
    world.work_and_die((), 0, after=True)
    assert call(world, turn, "0.0").reply == {"text": "So far, so good."}
    assert state(world, turn) is State.READY


def test_whoever_waits_for_a_join_is_told_by_the_commit_that_decides_it(world: World) -> None:
    """P13: between the decision and the answer there is nothing that could be lost."""
    inner = world.l0.join([TurnIntent(AgentId("ann"), "help")]).agent_turn_id
    spec = task_of(world.kernel, inner)
    outer = world.l0.join([TaskSpec(spec.kind, spec.name, wake=spec.wake, input=spec.input)])
    for _ in range(6):
        work(world)
    (branch,) = world.kernel.calls_of(outer.agent_turn_id)
    assert branch.status is CallStatus.OK
    closed = [e for e in world.kernel.read_outbox() if e.task == branch.callee]
    assert len(closed) == 1
    assert branch.replied_at == task_of(world.kernel, branch.callee).closed_at  # type: ignore[arg-type]


@pytest.mark.parametrize("after", [False, True])
def test_a_join_opens_all_of_its_branches_or_none(world: World, after: bool) -> None:
    """P27: a worker that dies in between leaves no branch that nobody knows of."""
    branches = [TurnIntent(AgentId(agent), "help") for agent in ("ann", "bob", "cid")]
    join = world.l0.join(branches, JoinMode.ALL).agent_turn_id
    world.work_and_die((), 0, after=after)
    assert len(world.kernel.calls_of(join)) == (3 if after else 0)
    world.let_pass(AFTER_A_LEASE)
    world.play_to_the_end()
    assert task_of(world.kernel, join).outcome is Outcome.SUCCESS
    turns = [task for task in world.kernel.find_tasks() if task.kind == "turn"]
    assert len(turns) == 3


# Brokers, leases, sweeps


class Deaf:
    """A doorbell that nobody hears."""

    def ring(self, lists: object) -> None:
        """Is lost."""

    def wait(self, lists: object, timeout_seconds: float) -> bool:
        return False

    def close(self) -> None:
        """Nothing."""


def test_turns_end_although_no_message_ever_arrives(world: World) -> None:
    """P14: the broker is for speed; what is to be done is found in the rows."""

    class Lost:
        def publish(self, subject: str, body: object) -> None:
            """Is lost."""

        def close(self) -> None:
            """Nothing."""

    world.l0 = L0Engine(world.store, Deaf(), Lost(), world.ground.ids)
    first, second = enqueue(world), enqueue(world)
    work(world, ("mop",))
    serve(world, first, "0.0")
    work(world)
    work(world)
    assert {state(world, turn) for turn in (first, second)} == {State.CLOSED}


def test_a_long_request_is_not_taken_away_and_waiting_in_line_is_no_failure(world: World) -> None:
    """P15: a worker that renews keeps its turn for as long as it takes."""
    turn, next_ = enqueue(world), enqueue(world)
    (claim,) = world.hand.claim()
    for _ in range(50):
        world.ground.clock.advance(LEASE * 0.8)
        assert world.kernel.renew(world.hand.id, [claim.fence]).lost == ()
        world.sweep()
    world.work(world.hand, claim, ())
    assert task_of(world.kernel, turn).outcome is Outcome.SUCCESS
    queued = task_of(world.kernel, next_)
    assert (queued.state, queued.crashes) == (State.READY, 0)


def test_nothing_of_a_request_is_stored_again_and_each_begins_with_the_one_before(
    world: World,
) -> None:
    """P19: what a turn is to do is one card, and its prompts grow at their end."""
    turn = enqueue(world)
    work(world, ("nothing",), ("sweep!",), "text")
    kinds = [card.kind for card in world.kernel.read_box(turn)]
    assert kinds.count(TASK) == 1
    asked = [(each.system, each.tools, *each.messages) for each in world.model.requests]
    assert len(asked) == 3
    for before, after in pairwise(asked):
        assert after[: len(before)] == before


def test_a_stop_needs_no_worker(world: World) -> None:
    """P20: it acts in the rows; whoever still works on the turn cannot write any more."""
    waiting, running = enqueue(world, "ann"), enqueue(world, "bob")
    first, lost = world.hand.claim()
    world.work(world.hand, first, [("mop",)])
    assert world.l0.stop(waiting) is Stopped.CLOSED
    assert world.l0.stop(running) is Stopped.REQUESTED
    assert world.l0.stop(running, force=True) is Stopped.CLOSED
    with pytest.raises(Fenced):
        world.kernel.commit([Commit(lost.fence, Close(Outcome.SUCCESS))])
    assert {delivered(world, t).ending for t in (waiting, running)} == {Ending.STOPPED}
    assert world.kernel.read_box(END_BOX.format(turn=running))


def test_any_number_may_sweep_and_each_thing_is_put_right_once(lasting: World) -> None:
    """P26: nobody has to be elected."""
    world = lasting
    turns = [enqueue(world, agent) for agent in ("ann", "bob", "cid")]
    work(world, ("sweep", "sweep"))
    world.ground.clock.advance(timedelta(seconds=41))
    sweep: Callable[[], Swept] = world.kernel.sweep
    with ThreadPoolExecutor(4) as threads:
        swept = [future.result() for future in [threads.submit(sweep) for _ in range(4)]]
    assert sum(each.calls_timed_out for each in swept) == 6
    for turn in turns:
        assert state(world, turn) is State.READY
        reason = task_of(world.kernel, turn).reason
        assert reason is not None
        assert reason.code is ReasonCode.ANSWERED
