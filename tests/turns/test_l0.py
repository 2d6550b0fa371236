from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import Fenced
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Fence,
    Outcome,
    State,
    Stopped,
    Suspend,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.turns.errors import L0Refused, UnknownAgent
from afl.turns.feed import MemoryFeed
from afl.turns.intents import TurnIntent
from afl.turns.joining import JoinMode
from afl.turns.l0 import L0Engine
from afl.turns.model import Agent, AgentId
from tests.turns.driving import memory_turns, task_of

ANN, BOB = AgentId("ann"), AgentId("bob")
WORKER = WorkerId("w")
MINUTE = timedelta(minutes=1)


class World:
    """An engine on a store in memory, two agents, and a worker that claims by hand."""

    def __init__(self) -> None:
        self.store, self.clock = memory_turns()
        self.kernel = self.store.kernel
        self.bell, self.feed = LocalDoorbell(), MemoryFeed()
        self.l0 = L0Engine(self.store, self.bell, self.feed)
        for agent in (ANN, BOB):
            self.store.save_agent(Agent(agent, target="office"))
        self.kernel.register(WorkerSpec(WORKER, "w", handlers=("agent:office",)))

    def claim(self) -> list[Claim]:
        return self.kernel.claim(ClaimRequest(WORKER, ("agent:office",), n=10))

    def close(self, claim: Claim) -> None:
        self.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS))])


@pytest.fixture
def world() -> World:
    return World()


def ask(agent: AgentId = ANN, **more: object) -> TurnIntent:
    return TurnIntent(agent, "Tidy up.", **more)  # type: ignore[arg-type]


# Turns


def test_an_enqueued_turn_is_dispatched_and_rung_for(world: World) -> None:
    accepted = world.l0.enqueue(ask(arguments={"room": 1}, context=("b1",), priority=2))
    task = task_of(world.kernel, accepted.agent_turn_id)
    assert (accepted.status, accepted.turn_epoch) == ("dispatched", None)
    assert accepted.inbox_id == accepted.agent_turn_id == accepted.correlation_id
    assert (task.kind, task.name, task.lane, task.hold) == ("turn", "agent:office", "ann", True)
    assert task.priority == 2
    assert task.input == {
        "agent": "ann",
        "context": ["b1"],
        "instruction": "Tidy up.",
        "returns": None,
        "arguments": {"room": 1},
    }
    assert world.bell.wait(["default"], 0)
    assert world.feed.published() == [("cmd.agent.office.wakeup", {"inbox_id": task.id})]


def test_an_agent_takes_one_turn_at_a_time_and_is_never_busy(world: World) -> None:
    first, second = world.l0.enqueue(ask()), world.l0.enqueue(ask())
    assert (first.status, second.status) == ("dispatched", "queued")
    (claim,) = world.claim()
    assert claim.task.id == first.agent_turn_id
    world.close(claim)
    (claim,) = world.claim()
    assert claim.task.id == second.agent_turn_id


def test_the_same_correlation_id_is_the_same_turn(world: World) -> None:
    first = world.l0.enqueue(ask(), correlation_id="order-7")
    again = world.l0.enqueue(ask(), correlation_id="order-7")
    assert again.agent_turn_id == first.agent_turn_id
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert again.correlation_id == "order-7"
    (claim,) = world.claim()
    assert world.l0.enqueue(ask(), correlation_id="order-7").turn_epoch == claim.fence


def test_an_unknown_agent_gets_no_turn(world: World) -> None:
    with pytest.raises(UnknownAgent, match="no agent eve"):
        world.l0.enqueue(ask(AgentId("eve")))


def test_a_turn_that_another_causes_is_deeper_and_in_its_run(world: World) -> None:
    first = world.l0.enqueue(ask(), trace="trace-1")
    second = world.l0.enqueue(ask(BOB), parent=first.agent_turn_id)
    assert second.channel_id == first.channel_id
    assert (second.recursion_depth, second.trace_id) == (1, "trace-1")


def test_agents_that_set_each_other_to_work_are_stopped_at_a_depth(world: World) -> None:
    parent = world.l0.enqueue(ask())
    for _ in range(19):
        parent = world.l0.enqueue(ask(BOB), parent=parent.agent_turn_id)
    with pytest.raises(L0Refused, match="set each other to work") as refused:
        world.l0.enqueue(ask(), parent=parent.agent_turn_id)
    assert refused.value.error_code == "recursion_depth_exceeded"


def test_a_turn_without_a_parent_that_is_there_is_refused(world: World) -> None:
    with pytest.raises(L0Refused) as refused:
        world.l0.enqueue(ask(), parent=TaskId("00000000-0000-7000-8000-0000000000ff"))
    assert refused.value.error_code == "invalid_source_actor"


def test_a_turn_that_nobody_works_on_stops_at_once(world: World) -> None:
    first, second = world.l0.enqueue(ask()), world.l0.enqueue(ask())
    world.claim()
    assert world.l0.stop(second.agent_turn_id, reason="not needed") is Stopped.CLOSED
    assert world.l0.stop(first.agent_turn_id) is Stopped.REQUESTED
    assert world.l0.stop(first.agent_turn_id, force=True) is Stopped.CLOSED
    assert world.l0.stop(first.agent_turn_id) is Stopped.ALREADY_CLOSED
    error = task_of(world.kernel, second.agent_turn_id).error
    assert error == {"code": "stopped", "message": "not needed"}


# Heads


def test_the_head_of_an_agent_follows_its_turn(world: World) -> None:
    assert world.l0.dispatch_next(ANN).status == "idle"
    turn = world.l0.enqueue(ask()).agent_turn_id
    queued = world.l0.enqueue(ask()).agent_turn_id
    assert world.l0.dispatch(turn).status == "dispatched"
    (claim,) = world.claim()
    for head in (
        world.l0.dispatch(turn),
        world.l0.dispatch(queued),
        world.l0.dispatch_next(ANN),
    ):
        assert (head.status, head.active_agent_turn_id) == ("running", turn)
        assert head.turn_epoch == claim.fence
    assert world.l0.dispatch_next(BOB).status == "idle"
    tool = CallSpec("0.0", TaskSpec("event", "Tool"), MINUTE)
    world.l0.command_intent(claim.fence, tool)
    assert world.l0.dispatch_next(ANN).status == "suspended"


def test_a_dispatch_rings_and_changes_nothing(world: World) -> None:
    turn = world.l0.enqueue(ask()).agent_turn_id
    before = task_of(world.kernel, turn)
    world.bell.wait(["default"], 0)
    world.l0.dispatch(turn)
    assert world.bell.wait(["default"], 0)
    assert task_of(world.kernel, turn) == before


def test_what_is_no_turn_has_no_head(world: World) -> None:
    with pytest.raises(L0Refused) as refused:
        world.l0.dispatch(TaskId("00000000-0000-7000-8000-0000000000ff"))
    assert refused.value.error_code == "protocol_violation"


# Calls


def called(world: World) -> tuple[TaskId, Fence]:
    turn = world.l0.enqueue(ask()).agent_turn_id
    (claim,) = world.claim()
    return turn, claim.fence


def test_a_command_is_a_call_of_the_turn_that_makes_it(world: World) -> None:
    turn, fence = called(world)
    tool = CallSpec("0.0", TaskSpec("event", "Tool", list="tools"), MINUTE)
    cards = [CardSpec("tool.call", {"tool": "Tool"})]
    call = world.l0.command_intent(fence, tool, cards=cards)
    assert task_of(world.kernel, turn).state is State.WAITING
    assert world.bell.wait(["tools"], 0)
    assert [card.kind for card in world.kernel.read_box(turn)] == ["tool.call"]
    # its answer was lost: the same again is the same call
    assert world.l0.command_intent(fence, tool, cards=cards) == call
    assert len(world.kernel.calls_of(turn)) == 1


def test_a_command_of_a_turn_that_is_lost_does_nothing(world: World) -> None:
    turn, fence = called(world)
    world.kernel.stop(turn, force=True)
    with pytest.raises(Fenced):
        world.l0.command_intent(fence, CallSpec("0.0", TaskSpec("event", "Tool"), MINUTE))
    assert world.kernel.calls_of(turn) == []


def test_a_command_that_wants_its_own_agent_is_refused(world: World) -> None:
    _, fence = called(world)
    own = CallSpec("0.0", TaskSpec("turn", "agent:office", lane="ann"), MINUTE)
    with pytest.raises(L0Refused, match="lane 'ann'") as refused:
        world.l0.command_intent(fence, own)
    assert refused.value.error_code == "protocol_violation"


def test_the_first_report_counts_and_others_are_acknowledged(world: World) -> None:
    turn, fence = called(world)
    call = world.l0.command_intent(fence, CallSpec("0.0", TaskSpec("event", "Tool"), MINUTE))
    first = world.l0.report((turn, "0.0"), CallStatus.OK, {"answer": 42})
    assert (first.call, first.agent_turn_id, first.counts) == (call, turn, True)
    assert not world.l0.report(call, CallStatus.ERROR, {"code": "late"}).counts
    # the same again, because its answer was lost
    assert world.l0.report(call, CallStatus.OK, {"answer": 42}).counts
    (claim,) = world.claim()
    assert [reply.reply for reply in claim.replies] == [{"answer": 42}]
    found = world.kernel.get_call(call)
    assert found is not None
    assert found.callee is not None
    assert task_of(world.kernel, found.callee).outcome is Outcome.CANCELED


def test_a_report_for_a_call_that_nobody_made_is_refused(world: World) -> None:
    turn, _ = called(world)
    with pytest.raises(L0Refused, match=r"there is no call '0\.0'") as refused:
        world.l0.report((turn, "0.0"), CallStatus.OK)
    assert refused.value.error_code == "protocol_violation"


# Joins


def test_a_join_of_turns_is_one_task_with_their_specs(world: World) -> None:
    accepted = world.l0.join(
        [ask(), ask(BOB)], JoinMode.QUORUM, quorum=1, correlation_id="j", timeout=MINUTE
    )
    task = task_of(world.kernel, accepted.agent_turn_id)
    assert (task.kind, task.name, task.idem) == ("join", "afl:join", "j")
    assert isinstance(task.input, dict)
    branches = task.input["branches"]
    assert isinstance(branches, list)
    assert [branch["lane"] for branch in branches if isinstance(branch, dict)] == ["ann", "bob"]
    assert task.deadline is not None


def test_a_join_that_cannot_be_decided_is_refused(world: World) -> None:
    with pytest.raises(L0Refused, match="from 1 to 1") as refused:
        world.l0.join([ask()], JoinMode.QUORUM, quorum=2)
    assert refused.value.error_code == "protocol_violation"


# Context


def test_packed_context_is_named_by_its_content(world: World) -> None:
    note = CardSpec("note", {"text": "hello"})
    one = world.l0.pack_context([], [note])
    assert one == world.l0.pack_context([], [note])
    assert one.startswith("context:")
    more = world.l0.pack_context([one, one], [note, CardSpec("note", {"text": "again"})])
    assert more != one
    texts = [card.content for card in world.kernel.read_box(more)]
    assert texts == [{"text": "hello"}, {"text": "again"}]


def test_packed_context_stays_when_its_boxes_grow(world: World) -> None:
    turn, fence = called(world)
    cards = (CardSpec("agent.note", {"text": "1"}),)
    world.kernel.commit([Commit(fence, Suspend(), cards=cards)])
    packed = world.l0.pack_context([turn])
    (claim,) = world.claim()
    cards = (CardSpec("agent.note", {"text": "2"}),)
    world.kernel.commit([Commit(claim.fence, Suspend(), cards=cards)])
    assert len(world.kernel.read_box(packed)) == 1
    assert len(world.kernel.read_box(turn)) == 2


def test_the_context_of_nothing_is_an_empty_box(world: World) -> None:
    assert world.kernel.read_box(world.l0.pack_context([])) == []
