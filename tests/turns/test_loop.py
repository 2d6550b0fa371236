"""One claim of a turn: what is committed, what is spent, and that a crash anywhere does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from afl.kernel.errors import Fenced, StoreUnavailable
from afl.kernel.model import (
    Card,
    Json,
    Outcome,
    State,
    Task,
    TaskId,
    TaskSpec,
)
from afl.kernel.rules import card_hash
from afl.turns import cards
from afl.turns.budget_waits import wake_waiting
from afl.turns.errors import BadBrief, ModelBusy, ModelRefused
from afl.turns.grip import Grip, Left
from afl.turns.journal import Thought
from afl.turns.loop import TurnLoop
from afl.turns.model import (
    Allowance,
    Brief,
    BudgetKey,
    Ending,
    ModelRequest,
    Reply,
    Text,
    ToolKind,
    Usage,
)
from afl.turns.models.scripted import Answer, ScriptedModel
from afl.turns.ports import Listener, Model
from afl.turns.prices import PriceBook
from tests.turns.driving import (
    LEASE,
    SCRIPTED,
    FacetTools,
    Hand,
    OneModel,
    brief,
    tool,
)
from tests.turns.looping import TIDY, TOOLS, World, answers, calls

# What a turn does


def test_a_text_answer_is_one_commit_and_the_deliverable() -> None:
    world = World([Answer("All is tidy.")])
    turn = world.start()
    ended = world.play(turn)
    assert (ended.outcome, ended.result) == (Outcome.SUCCESS, {"text": "All is tidy."})
    assert ended.commits == 1
    assert world.kinds(turn) == ["task", "agent.thought", "task.deliverable"]
    (request,) = world.model.requests
    assert request.system == "You tidy."
    assert world.rung == {"default"}


def test_tools_are_called_and_their_answers_reach_the_model_in_order() -> None:
    world = World(TIDY)
    turn = world.start()
    world.hand.work_off()
    waiting = world.task(turn)
    assert (waiting.state, waiting.worker) == (State.WAITING, None)
    assert world.rung == {"tools"}
    ended = world.play(turn)
    assert ended.result == {"text": "All is tidy."}
    told = answers(world.model.requests[1])
    assert [(each.name, each.content) for each in told] == [("sweep", "2"), ("mop", "4")]


def test_the_brief_stays_as_it_was_when_the_turn_began() -> None:
    world = World(TIDY)
    turn = world.start()
    world.hand.work_off()
    world.briefs.brief_ = Brief("You loiter.", "Loiter.", (SCRIPTED,))
    world.play(turn)
    assert {request.system for request in world.model.requests} == {"You tidy."}
    # whoever could brief it may be gone by now
    assert world.briefs.asked == 1


def test_context_boxes_are_read_as_they_were_when_the_turn_began() -> None:
    world = World(TIDY)

    def note(text: str, at: int) -> None:
        made = Card(card_hash("note", text), "note", text)
        world.kernel.put_cards([made])
        world.kernel.append_box("house", [made.hash], at)

    note("the house rules", 0)
    given: Json = {"agent": "ann", "arguments": {"what": "all"}, "context": ["house"]}
    (task,) = world.kernel.enqueue([TaskSpec("turn", "agent:default", input=given)])
    world.hand.work_off()
    note("written later", 1)
    world.play(task.id)
    texts = [getattr(m, "text", "") for m in world.model.requests[-1].messages]
    assert "the house rules" in texts
    assert "written later" not in texts


def test_a_turn_that_cannot_be_briefed_fails_for_good_with_a_deliverable() -> None:
    world = World(TIDY)

    def refuse(_task: Task) -> None:
        raise BadBrief("the agent has no model; give it one with `afl agents set`")

    world.briefs.brief = refuse  # type: ignore[method-assign, assignment]
    turn = world.start()
    ended = world.play(turn)
    assert (ended.outcome, ended.commits) == (Outcome.FAILED, 1)
    assert world.delivered(turn).ending is Ending.FAILED
    assert "give it one" in world.delivered(turn).message
    assert world.model.requests == []


def test_a_model_that_refuses_fails_the_turn() -> None:
    world = World([ModelRefused("the key is wrong")])
    turn = world.start()
    assert world.play(turn).outcome is Outcome.FAILED
    assert world.delivered(turn).message == "the key is wrong"


def test_a_busy_model_is_asked_again_later_and_nobody_holds_the_turn_meanwhile() -> None:
    busy = ModelBusy("too many requests", after=timedelta(seconds=40))
    world = World([Answer("Done.", failures=(busy,))])
    turn = world.start()
    world.hand.work_off()
    waiting = world.task(turn)
    assert (waiting.state, waiting.worker) == (State.WAITING, None)
    (call,) = world.kernel.calls_of(turn)
    assert call.key == "busy:0"
    assert world.play(turn).outcome is Outcome.SUCCESS
    assert "agent.deferred" in world.kinds(turn)


def test_a_second_model_is_asked_when_the_first_is_busy() -> None:
    world = World([Answer("Done.")], Brief("s", "t", ("other:model", SCRIPTED)))

    class Two(OneModel):
        def find(self, name: str) -> Model:
            return ScriptedModel([ModelBusy("busy")]) if name == "other:model" else self.model

    world.models = Two(world.model)
    world.loop = TurnLoop(
        world.store,
        world.models,
        PriceBook(),
        world.briefs,
        FacetTools(),
        world.feed,
    )
    world.hand = Hand(world.kernel, world.loop, name="second")
    assert world.play(world.start()).outcome is Outcome.SUCCESS


def test_what_the_model_says_is_streamed() -> None:
    world = World([Answer("All is tidy.", piece=4)])
    turn = world.start()
    world.play(turn)
    pieces = [body for _, body in world.feed.published("str.agent.ann.chunk")]
    assert [piece["chunk_type"] for piece in pieces] == ["start", *["content"] * 3, "end"]
    assert "".join(str(piece["content"]) for piece in pieces) == "All is tidy."
    assert [piece["index"] for piece in pieces] == list(range(5))
    assert {piece["agent_turn_id"] for piece in pieces} == {turn}


def test_every_commit_announces_what_the_agent_does() -> None:
    world = World(TIDY)
    turn = world.start()
    world.play(turn)
    told = [
        (entry.topic, body.get("status") or body.get("phase"), body.get("waiting_tool_count"))
        for entry in world.kernel.read_outbox()
        if entry.task == turn and isinstance(body := entry.body, dict)
    ]
    epochs = [
        entry.body["turn_epoch"]
        for entry in world.kernel.read_outbox()
        if entry.topic == "agent.state" and isinstance(entry.body, dict)
    ]
    assert epochs == sorted(set(epochs)), "each claim has an epoch of its own"  # type: ignore[type-var]
    assert told == [
        ("agent.state", "suspended", 2),
        ("agent.step", "completed", None),
        ("agent.state", "suspended", 1),
        ("agent.step", "completed", None),
        ("closed", None, None),
        ("agent.state", "idle", None),
        ("agent.step", "completed", None),
    ]


# Calls that the kernel refuses


def test_a_tool_that_the_kernel_refuses_is_told_to_the_model() -> None:
    """An agent that calls itself would wait for itself."""
    itself = tool("ask_ann", kind=ToolKind.AGENT, target="ann")
    world = World(
        [calls(("ask_ann", 1), ("sweep", 2)), Answer("Alone then.")], brief(itself, tool("sweep"))
    )
    turn = world.start()
    ended = world.play(turn)
    assert ended.result == {"text": "Alone then."}
    told = answers(world.model.requests[1])
    assert [(each.name, each.is_error) for each in told] == [("ask_ann", True), ("sweep", False)]
    assert "lane 'ann'" in told[0].content


# Budgets


def limit(world: World, turn: TaskId, usd: Decimal) -> BudgetKey:
    key = BudgetKey("run", world.task(turn).run)
    world.store.set_budget(key, Allowance(usd=usd))
    return key


def test_room_is_reserved_before_a_request_and_settled_with_its_answer() -> None:
    world = World(TIDY)
    turn = world.start()
    key = limit(world, turn, Decimal(1))
    seen: list[Decimal] = []

    class Looking(ScriptedModel):
        async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
            found = world.store.get_budget(key)
            assert found is not None
            seen.append(found.reserved.usd)
            return await super().ask(request, listener)

    world.models.model = Looking(TIDY)
    world.play(turn)
    budget = world.store.get_budget(key)
    assert budget is not None
    assert len(seen) == 3
    assert all(reserved > 0 for reserved in seen)
    assert budget.reserved.usd == 0
    prices = [t.price.usd for t in cards.find(world.journal(turn), Thought)]
    assert budget.spent.usd == sum(prices)
    assert (budget.spent.model_calls, budget.spent.tool_calls) == (3, 3)
    (total,) = world.store.usage("run")
    assert (total.requests, total.usd) == (3, budget.spent.usd)


def test_a_turn_without_room_waits_for_it_and_goes_on() -> None:
    world = World([Answer("Done.")])
    turn = world.start()
    key = limit(world, turn, Decimal(0))
    world.hand.work_off()
    assert world.task(turn).state is State.WAITING
    assert world.model.requests == []
    assert wake_waiting(world.store) == 0
    world.store.set_budget(key, Allowance(usd=Decimal(1)))
    assert wake_waiting(world.store) == 1
    assert wake_waiting(world.store) == 0
    assert world.play(turn).outcome is Outcome.SUCCESS
    assert world.kinds(turn)[:2] == ["task", "agent.deferred"]


def test_a_request_whose_worker_died_counts_as_spent() -> None:
    world = World([Answer("Done.")])
    turn = world.start()
    key = limit(world, turn, Decimal(1))
    world.kernel.before = die_at(1)  # the reservation is committed, the answer is not
    lose_a_worker(world)
    before = world.store.get_budget(key)
    assert before is not None
    reserved = before.reserved.usd
    assert reserved > 0
    world.play(turn)
    after = world.store.get_budget(key)
    assert after is not None
    (thought,) = cards.find(world.journal(turn), Thought)
    assert after.spent.usd == reserved + thought.price.usd
    assert after.reserved.usd == 0


def test_a_busy_model_costs_nothing() -> None:
    world = World([Answer("Done.", failures=(ModelBusy("busy"),))])
    turn = world.start()
    key = limit(world, turn, Decimal(1))
    world.hand.work_off()
    budget = world.store.get_budget(key)
    assert budget is not None
    assert budget.reserved.usd == budget.spent.usd == 0


def test_a_turn_whose_own_allowance_cannot_hold_the_next_request_ends() -> None:
    world = World(TIDY, brief(tool("sweep"), tool("mop"), allowance=Allowance(tokens=100)))
    turn = world.start()
    ended = world.play(turn)
    assert ended.outcome is Outcome.FAILED
    assert world.delivered(turn).ending is Ending.BUDGET
    assert world.model.requests == []


# Stopping and leaving


class Waiting:
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.cancelled = False

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return Reply((Text("never"),), "stop", SCRIPTED, Usage())


def interrupted(world: World, how: Callable[[Grip], None]) -> tuple[Waiting, Grip, bool]:
    """Interrupts a turn while the model thinks; tells whether it had to leave."""

    async def go() -> tuple[Waiting, Grip, bool]:
        model = world.models.model = Waiting()
        (claim,) = world.hand.claim()
        grip = Grip(claim)
        running = asyncio.ensure_future(world.loop.run(claim, grip))
        await model.asked.wait()
        how(grip)
        try:
            await running
        except (Left, Fenced):
            return model, grip, True
        return model, grip, False

    return asyncio.run(go())


def test_a_stop_cancels_the_request_and_closes_the_turn() -> None:
    world = World([])
    turn = world.start()

    def stop(grip: Grip) -> None:
        world.kernel.stop(turn)
        grip.stop()

    model, _, left = interrupted(world, stop)
    assert (model.cancelled, left) == (True, False)
    assert world.task(turn).outcome is Outcome.CANCELED
    assert world.delivered(turn).ending is Ending.STOPPED


def test_a_turn_that_is_lost_writes_nothing_more() -> None:
    world = World([])
    turn = world.start()
    model, grip, left = interrupted(world, Grip.lose)
    assert (model.cancelled, left, grip.is_over) == (True, True, True)
    assert world.journal(turn) == []


def test_a_turn_that_its_worker_leaves_is_not_closed() -> None:
    world = World([])
    turn = world.start()
    model, grip, left = interrupted(world, Grip.leave)
    assert (model.cancelled, left, grip.is_over) == (True, True, False)
    assert world.task(turn).state is State.RUNNING


def test_a_draining_worker_begins_no_request() -> None:
    world = World([calls(("nothing", 1)), Answer("Done.")])
    turn = world.start()
    (claim,) = world.hand.claim()
    grip = Grip(claim)
    grip.drain()
    with pytest.raises(Left):
        asyncio.run(world.loop.run(claim, grip))
    assert world.model.requests == []
    assert world.task(turn).state is State.RUNNING


def test_a_zombie_stops_at_its_next_commit() -> None:
    world = World([Answer("Done.")])
    turn = world.start()
    (claim,) = world.hand.claim()
    world.clock.advance(timedelta(minutes=1))
    world.kernel.sweep()
    with pytest.raises(Fenced):
        asyncio.run(world.loop.run(claim))
    assert world.journal(turn) == []


# Crashes


class Died(BaseException):
    """The process is gone: nothing of it runs any more."""


def die_at(commit: int) -> Callable[[int], None]:
    def hook(number: int) -> None:
        if number == commit:
            raise Died

    return hook


def lose_a_worker(world: World) -> bool:
    """Works until a worker dies; lets its lease run out. Tells whether one did."""
    try:
        while world.hand.work_off() or world.answer_tools():
            pass
    except Died:
        world.clock.advance(LEASE * 2)
        world.kernel.sweep()
        for worker in (world.hand.id, TOOLS):
            world.kernel.renew(worker)
        return True
    return False


def transcript(world: World, turn: TaskId) -> list[tuple[str, Json]]:
    return [(card.kind, card.content) for card in world.journal(turn)]


def undisturbed(with_budget: bool) -> tuple[int, list[tuple[str, Json]]]:
    world = World(TIDY)
    turn = world.start()
    if with_budget:
        limit(world, turn, Decimal(1))
    world.play(turn)
    return world.kernel.commits_seen, transcript(world, turn)


@pytest.mark.parametrize("with_budget", [False, True], ids=["free", "budgeted"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_commit_leaves_the_same_journal(when: str, with_budget: bool) -> None:
    count, expected = undisturbed(with_budget)
    assert count == (6 if with_budget else 3)
    for commit in range(count):
        world = World(TIDY)
        turn = world.start()
        if with_budget:
            limit(world, turn, Decimal(1))
        setattr(world.kernel, when, die_at(commit))
        assert lose_a_worker(world)
        ended = world.play(turn)
        assert ended.outcome is Outcome.SUCCESS
        assert transcript(world, turn) == expected
        closed = [e for e in world.kernel.read_outbox() if (e.topic, e.task) == ("closed", turn)]
        assert len(closed) == 1
        (total,) = world.store.usage("task")
        assert total.requests == 3


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_commit_whose_answer_is_lost_is_made_once(lost: str) -> None:
    _, expected = undisturbed(with_budget=False)
    world = World(TIDY)
    turn = world.start()
    away = iter([True, True, False] * 20)

    def drop(_number: int) -> None:
        if next(away):
            raise StoreUnavailable("the network is away")

    setattr(world.kernel, "before" if lost == "request" else "after", drop)
    ended = world.play(turn)
    assert ended.outcome is Outcome.SUCCESS
    assert transcript(world, turn) == expected
    (total,) = world.store.usage("task")
    assert total.requests == 3
    assert len(world.model.requests) == 3


def test_an_unforeseen_error_fails_the_turn_and_not_the_worker() -> None:
    world = World([])

    class Broken:
        async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
            raise ZeroDivisionError("a mistake of ours")

    world.models.model = Broken()
    turn = world.start()
    ended = world.play(turn)
    assert ended.outcome is Outcome.FAILED
    assert ended.error == {"code": "internal", "message": "ZeroDivisionError: a mistake of ours"}
