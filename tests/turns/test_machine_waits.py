"""Turns that wait: for people, answers, models and budgets; and how they end early."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from afl.kernel.model import (
    CallId,
    CallStatus,
    Close,
    Json,
    Outcome,
    Retry,
    State,
    Suspend,
    TaskSpec,
)
from afl.turns.cards import find
from afl.turns.changes import Act, Ask, grown
from afl.turns.endings import never_begun
from afl.turns.errors import BadBrief, ModelBusy, ModelRefused, ProviderDown
from afl.turns.journal import Deferred, Problem, ResultStatus, ToolCall
from afl.turns.machine import after_reply, next_move, no_room, out_of_budget, stopped
from afl.turns.model import (
    BUDGETS,
    PEOPLE,
    TIMERS,
    After,
    Allowance,
    BudgetKey,
    Deliverable,
    Ending,
    Limits,
    Spending,
    ToolAnswered,
)
from afl.turns.states import Status, status_of
from afl.turns.transcript import request
from tests.turns.playing import ONE, PRICE, RETURNS, Play, brief, call_tool, says, tool, uses

# People


@pytest.mark.parametrize("given", [{"needs_approval": True}, {"effect": "irreversible"}])
def test_a_tool_that_needs_it_is_called_when_a_person_has_agreed(given: dict[str, object]) -> None:
    play = Play(brief(tool(**given)), [uses(("add", ONE)), says("2")]).run()
    assert play.open_keys() == ["approve:0.0"]
    call = play.store.find_call(play.id, "approve:0.0")
    assert call is not None
    assert call.callee is not None
    person = play.store.get_task(call.callee)
    assert person is not None
    assert (person.kind, person.name, person.list) == ("human", "afl.Approve", PEOPLE)
    assert isinstance(person.input, dict)
    assert person.input["params"] == {"tool": "math.add", "arguments": {"n": 1}}
    play.answer("approve:0.0", {"approved": True}).run()
    assert play.open_keys() == ["0.0"]
    assert [call.key for call in play.turn().replies] == [], "the yes is used once"
    play.answer("0.0", 2).run()
    assert play.task.result == {"text": "2"}
    assert [result.content for result in play.results()] == ["2"]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"approved": False, "reason": "too dear"}, CallStatus.OK, "too dear"),
        ({"approved": "yes"}, CallStatus.OK, "did not agree"),
        ("yes", CallStatus.OK, "did not agree"),
        (None, CallStatus.TIMEOUT, "nobody has agreed"),
        (None, CallStatus.CANCELED, "nobody has agreed"),
        ({"message": "no"}, CallStatus.ERROR, "nobody has agreed"),
    ],
)
def test_a_tool_is_not_called_without_a_clear_yes(
    body: Json, status: CallStatus, told: str
) -> None:
    play = Play(brief(tool(needs_approval=True)), [uses(("add", ONE)), says("a pity")]).run()
    play.answer("approve:0.0", body, status).run()
    assert play.task.result == {"text": "a pity"}
    assert [call.key for call in play.store.calls_of(play.id)] == ["approve:0.0"]
    (result,) = play.results()
    assert told in result.content
    assert result.status is not ResultStatus.OK


def test_answers_that_came_early_wait_for_those_that_need_a_person(commit_before: bool) -> None:
    plain, careful = tool("add"), tool("pay", needs_approval=True)
    asked = uses(("add", ONE), ("pay", ONE), ("pay", '{"n": 2}'), ("add", ONE))
    play = Play(brief(plain, careful), [asked, says("ok")], commit_before=commit_before).run()
    play.answer("0.3", "d").answer("0.0", "a")
    play.answer("approve:0.1", {"approved": True}).answer("approve:0.2", {"approved": False}).run()
    assert play.open_keys() == ["0.1"]
    assert not play.results()
    play.answer("0.1", "b").run()
    assert play.task.outcome is Outcome.SUCCESS
    assert [result.index for result in play.results()] == [0, 1, 2, 3]
    assert [call.applied for call in play.store.calls_of(play.id)] == [True] * 5


def test_a_tool_that_was_agreed_to_and_cannot_be_called_is_an_error() -> None:
    careful = tool("broken", needs_approval=True)
    play = Play(brief(careful), [uses(("broken", ONE)), says("a pity")]).run()
    play.answer("approve:0.0", {"approved": True}).run()
    assert play.task.result == {"text": "a pity"}


# Tools that end the turn


def test_the_answer_of_a_tool_that_terminates_is_the_deliverable() -> None:
    final = tool("hand_over", after=After.TERMINATE)
    play = Play(brief(final, returns=RETURNS), [uses(("hand_over", ONE))]).run()
    play.answer("0.0", {"title": "B", "score": 1}).run()
    assert play.task.outcome is Outcome.SUCCESS
    assert play.deliverable() == Deliverable(Ending.DONE, False, {"title": "B", "score": 1})


def test_an_answer_that_terminates_and_does_not_fit_is_delivered_as_partial() -> None:
    final = tool("hand_over", after=After.TERMINATE)
    play = Play(brief(final, returns=RETURNS), [uses(("hand_over", ONE))]).run()
    play.answer("0.0", {"title": "B"}).run()
    assert play.task.outcome is Outcome.PARTIAL
    assert play.deliverable().fields == {"title": "B"}
    assert "score" in play.deliverable().message


def test_a_tool_that_was_to_terminate_and_failed_does_not() -> None:
    final = tool("hand_over", after=After.TERMINATE)
    play = Play(brief(final), [uses(("hand_over", ONE)), says("then so")]).run()
    play.answer("0.0", {"code": "x", "message": "no"}, CallStatus.ERROR).run()
    assert play.task.result == {"text": "then so"}


# Replies that are not expected


def test_a_reply_that_belongs_to_no_tool_use_is_only_marked_as_taken() -> None:
    play = Play(brief(tool()), [uses(("add", ONE)), ModelBusy("later"), says("ok")]).run()
    play.answer("0.0", 2).run()
    assert play.open_keys() == ["busy:0"]
    before = len(play.store.read_box(play.id))
    play.answer("busy:0", {"surprise": True}).run()
    assert play.task.result == {"text": "ok"}
    kinds = [card.kind for card in play.store.read_box(play.id)[before:]]
    assert kinds == ["agent.thought", "task.deliverable"]
    assert all(call.applied for call in play.store.calls_of(play.id))


def test_a_second_answer_to_the_same_call_changes_nothing() -> None:
    play = Play(brief(tool()), [uses(("add", ONE), ("add", ONE)), says("ok")]).run()
    play.answer("0.0", "first").answer("0.0", "second").answer("0.1", "other").run()
    assert [result.content for result in play.results()] == ["first", "other"]
    turn = play.turn()
    doubled = replace(turn, replies=tuple(play.store.calls_of(play.id)))
    move = next_move(replace(doubled, cards=turn.cards[:-2]), call_tool)
    assert isinstance(move, Ask)
    assert not move.before.cards
    assert len(move.before.applied) == 2


def test_a_turn_that_is_claimed_too_early_goes_on_waiting() -> None:
    play = Play(brief(tool()), [uses(("add", ONE), ("add", ONE))]).run()
    play.answer("0.0", "first")
    move = next_move(play.turn(), call_tool)
    assert isinstance(move, Act)
    assert move.changes.then == Suspend()
    assert not move.changes.cards
    assert not move.changes.applied


def test_a_reply_to_nothing_is_marked_as_taken_while_tools_are_waited_for() -> None:
    play = Play(brief(tool()), [uses(("add", ONE))]).run()
    (call,) = play.store.calls_of(play.id)
    stray = replace(call, key="9.9", id=CallId("stray"), status=CallStatus.OK)
    move = next_move(replace(play.turn(), replies=(stray,)), call_tool)
    assert isinstance(move, Act)
    assert move.changes.then == Suspend()
    assert move.changes.applied == ("stray",)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (CallStatus.ERROR, {"code": "c", "message": "it broke"}, "the tool failed: it broke (c)"),
        (CallStatus.TIMEOUT, None, "did not answer in time"),
        (CallStatus.CANCELED, None, "was canceled"),
    ],
)
def test_what_became_of_a_call_is_told_to_the_model(
    status: CallStatus, body: Json, told: str
) -> None:
    play = Play(brief(tool()), [uses(("add", ONE)), says("I see")]).run()
    play.answer("0.0", body, status).run()
    answer = play.requests[-1].messages[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.is_error
    assert told in answer.content


# Models that do not answer


def test_a_busy_model_is_asked_again_later_without_a_worker() -> None:
    after = timedelta(seconds=90)
    play = Play(brief(), [ModelBusy("429", after=after), says("ok")]).run()
    assert play.task.state is State.WAITING
    call = play.store.find_call(play.id, "busy:0")
    assert call is not None
    assert call.callee is not None
    assert call.deadline - play.task.created_at == after
    timer = play.store.get_task(call.callee)
    assert timer is not None
    assert timer.list == TIMERS
    play.clock.advance(timedelta(seconds=91))
    assert play.store.sweep().calls_timed_out == 1
    play.run()
    assert play.task.result == {"text": "ok"}


def test_waits_for_a_busy_model_grow_and_are_limited() -> None:
    play = Play(brief(limits=Limits(busy=4)), [ModelBusy("429")] * 5).run()
    waits = []
    while play.task.state is State.WAITING:
        waits.append(find(play.store.read_box(play.id), Deferred)[-1].until_seconds)
        play.answer(play.open_keys()[0], None, CallStatus.TIMEOUT).run()
    assert len(waits) == 4
    assert all(wait is not None for wait in waits)
    assert waits == sorted(set(waits), key=lambda wait: wait or 0)
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable().ending is Ending.FAILED
    assert "busy 5 times in a row" in play.deliverable().message


def test_a_turn_waits_for_a_provider_that_is_down_however_often() -> None:
    down = ProviderDown("down", breaker="model/x@y", after=timedelta(seconds=40))
    play = Play(brief(limits=Limits(busy=1)), [*[down] * 12, says("ok")]).run()
    for number in range(12):
        call = play.store.find_call(play.id, f"breaker:{number}")
        assert call is not None
        assert call.callee is not None
        timer = play.store.get_task(call.callee)
        assert timer is not None
        assert (timer.list, timer.input) == (TIMERS, {"breaker": "model/x@y"})
        play.answer(call.key, None, CallStatus.TIMEOUT).run()
    waits = find(play.store.read_box(play.id), Deferred)
    assert [(each.attempt, each.reason) for each in waits] == [(n, "breaker") for n in range(1, 13)]
    assert play.task.result == {"text": "ok"}


def test_a_busy_turn_that_may_be_tried_again_delivers_when_it_is_given_up() -> None:
    spec = TaskSpec("turn", "agent:default", retry=Retry(max_failures=1, jitter=False))
    play = Play(brief(limits=Limits(busy=0)), [ModelBusy("429")] * 2, spec=spec)
    play.move()
    assert play.task.state is State.READY
    assert not find(play.store.read_box(play.id), Deliverable)
    assert len(find(play.store.read_box(play.id), Problem)) == 1
    play.clock.advance(timedelta(minutes=1))
    play.run()
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable().ending is Ending.FAILED


def test_a_turn_that_is_tried_again_has_all_its_patience_again() -> None:
    spec = TaskSpec("turn", "agent:default", retry=Retry(max_failures=1, jitter=False))
    play = Play(brief(limits=Limits(busy=1)), [ModelBusy("429")] * 3, spec=spec).run()
    play.answer("busy:0", None, CallStatus.TIMEOUT)
    play.move()
    assert play.task.state is State.READY
    play.clock.advance(timedelta(minutes=1))
    play.run()
    assert play.open_keys() == ["busy:1"]


def test_a_refusal_of_the_model_is_final() -> None:
    play = Play(brief(), [ModelRefused("no such model")]).run()
    assert play.task.outcome is Outcome.FAILED
    assert play.task.error == {
        "type": "ModelRefused",
        "code": "turns.model_refused",
        "message": "no such model",
    }
    assert play.deliverable() == Deliverable(Ending.FAILED, True, {}, "no such model")


# Budgets, stops, briefs


def test_a_turn_without_room_in_a_budget_waits_for_it() -> None:
    play = Play(brief(), [])
    play.claim()
    amount = Spending(Decimal("0.5"), 100, 1)
    changes = play.commit(no_room(play.turn(), [BudgetKey("run", "r1")], amount))
    assert play.task.state is State.WAITING
    (call,) = changes.calls
    assert (call.key, call.task.list) == ("budget:0", BUDGETS)
    assert isinstance(call.task.input, dict)
    assert call.task.input["budgets"] == [{"scope": "run", "key": "r1"}]
    play.answer("budget:0", {})
    play.script = [says("ok")]
    play.run()
    assert play.task.result == {"text": "ok"}


def test_every_wait_has_a_key_of_its_own() -> None:
    play = Play(brief(), [ModelBusy("1"), ModelBusy("2")]).run()
    play.answer("busy:0", None, CallStatus.TIMEOUT).run()
    assert play.open_keys() == ["busy:1"]
    play.answer("busy:1", None, CallStatus.TIMEOUT)
    play.claim()
    play.commit(no_room(play.turn(), [BudgetKey("run", "r1")], Spending()))
    assert play.open_keys() == ["budget:0"]


@pytest.mark.parametrize(
    "allowance",
    [Allowance(model_calls=1), Allowance(tokens=15), Allowance(usd=Decimal("0.005"))],
)
def test_a_turn_that_has_spent_its_allowance_ends(allowance: Allowance) -> None:
    play = Play(brief(tool(), allowance=allowance), [uses(("nope", "{}"), text="so far")]).run()
    assert play.task.outcome is Outcome.PARTIAL
    assert play.deliverable().ending is Ending.BUDGET
    assert play.deliverable().fields == {"text": "so far"}


def test_an_allowance_of_tools_stops_tools_and_not_the_turn() -> None:
    allowed = brief(tool(), allowance=Allowance(tool_calls=1))
    play = Play(allowed, [uses(("add", ONE), ("add", ONE)), says("fine")]).run()
    assert play.open_keys() == ["0.0"]
    play.answer("0.0", 1).run()
    assert play.task.result == {"text": "fine"}


def test_a_turn_can_be_ended_for_want_of_budget() -> None:
    play = Play(brief(), [])
    play.claim()
    play.commit(out_of_budget(play.turn(), "the request may cost 3 USD, and 1 is left"))
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable().ending is Ending.BUDGET


def test_a_stopped_turn_delivers_what_it_knows() -> None:
    play = Play(brief(tool()), [uses(("nope", "{}"), text="half")])
    play.move()
    play.commit(stopped(play.turn(), "asked by a person"))
    assert play.task.outcome is Outcome.CANCELED
    assert play.deliverable() == Deliverable(
        Ending.STOPPED, True, {"text": "half"}, "asked by a person"
    )


def test_a_template_that_cannot_be_filled_ends_the_turn_without_a_request() -> None:
    play = Play(brief(template="Do {something}."), []).run()
    assert play.task.outcome is Outcome.FAILED
    assert isinstance(play.task.error, dict)
    assert play.task.error["code"] == "turns.bad_brief"
    assert "`{something}`" in play.deliverable().message


def test_a_task_that_cannot_be_briefed_has_a_deliverable_too() -> None:
    play = Play(brief(), [])
    play.claim()
    play.commit(never_begun(BadBrief("no such agent")))
    assert play.task.outcome is Outcome.FAILED
    assert play.deliverable() == Deliverable(Ending.FAILED, True, {}, "no such agent")


def test_calls_are_noted_without_their_arguments() -> None:
    play = Play(brief(tool()), [uses(("add", ONE))]).run()
    (call,) = find(play.store.read_box(play.id), ToolCall)
    assert call == ToolCall(0, 0, "0.0", "add", "math.add", "id0")


def test_what_was_committed_before_a_request_is_not_committed_again() -> None:
    play = Play(brief(tool()), [uses(("add", ONE))]).run()
    play.answer("0.0", 1)
    turn = play.turn()
    move = next_move(turn, call_tool)
    assert isinstance(move, Ask)
    assert move.before.cards
    assert move.before.applied
    later = grown(turn, move.before)
    assert request(later) == move.request
    changes = after_reply(later, says("ok"), PRICE, "", call_tool)
    assert not changes.applied
    assert [card.kind for card in changes.cards] == ["agent.thought", "task.deliverable"]


def test_a_move_made_again_is_the_same() -> None:
    play = Play(brief(tool()), [uses(("add", ONE))]).run()
    play.answer("0.0", 1)
    assert next_move(play.turn(), call_tool) == next_move(play.turn(), call_tool)
    assert isinstance(play.last_then(), Suspend)
    assert not isinstance(play.last_then(), Close)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (State.QUEUED, Status.IDLE),
        (State.READY, Status.DISPATCHED),
        (State.RUNNING, Status.RUNNING),
        (State.WAITING, Status.SUSPENDED),
        (State.CLOSED, Status.IDLE),
    ],
)
def test_others_see_a_turn_by_the_state_of_its_task(state: State, status: Status) -> None:
    assert status_of(state) is status
