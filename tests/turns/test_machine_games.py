"""Random games: whatever models, tools and people do, a turn keeps its promises and ends."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from afl.kernel.model import CallStatus, Close, Json, Outcome, State, Suspend
from afl.turns.cards import find
from afl.turns.changes import Changes
from afl.turns.deliverable import ended
from afl.turns.errors import ModelBusy, ModelRefused
from afl.turns.journal import Thought, ToolCall
from afl.turns.machine import stopped
from afl.turns.model import (
    After,
    AgentSaid,
    Brief,
    Deliverable,
    Ending,
    Limits,
    ModelRequest,
    Reply,
    Text,
    Thinking,
    ToolAnswered,
    ToolUse,
    Usage,
)
from afl.turns.schemas import fits
from afl.turns.steps import steps
from afl.turns.transcript import canonical, request
from tests.turns.playing import RETURNS, Play, brief, tool

T = TypeVar("T")
Said = Reply | ModelBusy | ModelRefused
LIMITS = Limits(model_calls=6, tool_calls=5, repairs=2, busy=2, argument_bytes=300, result_bytes=50)
TOOLS = (
    tool("add"),
    tool("pay", needs_approval=True),
    tool("hand_over", after=After.TERMINATE),
    tool("web", untrusted=True),
    tool("broken"),
)
GOOD = '{"title": "A", "score": 1}'


def mostly(usual: st.SearchStrategy[T], rare: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """One in eight is rare."""
    return st.integers(0, 7).flatmap(lambda dice: rare if dice == 7 else usual)


ids = st.sampled_from(["", "a", "b"])
names = st.sampled_from(["add", "pay", "web", "hand_over", "broken"])
others = st.sampled_from(["submit_result", "ad", "\0"])
bad = st.sampled_from([GOOD, "{}", "", "[", '{"n": "x"}', '{"n":' + "1" * 400])
tool_uses = st.builds(ToolUse, ids, mostly(names, others), mostly(st.just('{"n": 1}'), bad))
submits = st.builds(ToolUse, ids, st.just("submit_result"), mostly(st.just(GOOD), bad))
texts = st.builds(Text, mostly(st.just("so far"), st.sampled_from(["", " ", "x\0"])))
thoughts = st.builds(Thinking, st.just("hm"))
parts = st.one_of(
    st.lists(tool_uses | thoughts, max_size=4),
    st.lists(texts | tool_uses, max_size=2),
    st.lists(submits, min_size=1, max_size=1),
)
cut = st.sampled_from(["tool_call", "length", "content_filter", "error"])
replies = st.builds(
    Reply,
    parts.map(tuple),
    mostly(st.just("stop"), cut),
    st.just("m"),
    st.just(Usage(10, 5)),
)
failures: st.SearchStrategy[Said] = mostly(st.builds(ModelBusy), st.builds(ModelRefused))
said: st.SearchStrategy[Said] = mostly(replies, failures)
briefs = st.builds(
    brief,
    *(st.just(each) for each in TOOLS),
    returns=st.sampled_from([None, RETURNS]),
    limits=st.just(LIMITS),
)
bodies: st.SearchStrategy[Json] = st.sampled_from(
    [None, 1, "x" * 99, {"approved": True}, {"approved": False}, {"title": "B", "score": 2}]
)
bad_statuses = st.sampled_from([CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.CANCELED])
statuses = mostly(st.just(CallStatus.OK), bad_statuses)


@settings(max_examples=100, deadline=None)
@given(briefs, st.booleans(), st.data())
def test_a_turn_keeps_its_promises_and_ends(
    to_do: Brief, before: bool, data: st.DataObject
) -> None:
    play = Play(to_do, [], commit_before=before)
    for _ in range(200):
        task = play.task
        if task.state is State.CLOSED:
            break
        if data.draw(st.integers(0, 99)) == 99:
            stop(play)
        elif task.state is State.WAITING:
            key = data.draw(st.sampled_from(play.open_keys()))
            play.answer(key, data.draw(bodies), data.draw(statuses))
        else:
            play.script = [data.draw(said)]
            check_commit(play.move())
    assert play.task.state is State.CLOSED
    check_end(play)
    check_requests(play)
    check_calls(play)


def stop(play: Play) -> None:
    """By its worker if it has one, else by the kernel."""
    if play.task.state is State.RUNNING:
        play.commit(stopped(play.turn(), "enough"))
    else:
        play.store.stop(play.id)


def check_commit(changes: Changes) -> None:
    if isinstance(changes.then, Close):
        assert not changes.calls
        assert find(changes.cards, Deliverable)
    else:
        assert not find(changes.cards, Deliverable)
    assert isinstance(changes.then, Suspend) or not changes.calls


def check_end(play: Play) -> None:
    cards = play.store.read_box(play.id)
    made = ended(play.task, cards)
    assert len(find(cards, Deliverable)) <= 1
    assert (play.task.outcome is Outcome.SUCCESS) == (
        made.ending is Ending.DONE and not made.partial
    )
    if not made.partial and play.brief.returns is not None:
        assert fits(play.brief.returns, made.fields)
    if made.partial:
        assert made.message
    if play.task.outcome is Outcome.SUCCESS:
        assert play.task.result == made.fields


def check_requests(play: Play) -> None:
    turn = play.turn()
    thoughts = find(turn.cards, Thought)
    assert [thought.number for thought in thoughts] == list(range(len(play.asked)))
    assert len(thoughts) <= LIMITS.model_calls
    for number, asked in enumerate(play.asked):
        assert canonical(request(turn, number)) == asked
    for made in play.requests:
        check_answered(made)


def check_answered(made: ModelRequest) -> None:
    """Providers want exactly one answer to each tool use, and ids that are used once."""
    used = [
        part.id
        for message in made.messages
        if isinstance(message, AgentSaid)
        for part in message.parts
        if isinstance(part, ToolUse)
    ]
    answered = [message.id for message in made.messages if isinstance(message, ToolAnswered)]
    assert used == answered
    assert len(set(used)) == len(used)


def check_calls(play: Play) -> None:
    cards = play.store.read_box(play.id)
    calls = {call.key: call for call in play.store.calls_of(play.id)}
    noted = find(cards, ToolCall)
    of_tools = [call for call in noted if not call.key.startswith("approve:")]
    assert len({call.key for call in noted}) == len(noted)
    assert {call.key for call in noted} == {key for key in calls if key[0] in "0123456789a"}
    assert len(of_tools) <= LIMITS.tool_calls
    for call in of_tools:
        if call.tool == "pay":
            assert calls[f"approve:{call.key}"].reply == {"approved": True}
    for step in steps(cards):
        indexes = [index for index, _ in enumerate(step.thought.reply.tool_uses)]
        assert set(step.results) <= set(indexes)
