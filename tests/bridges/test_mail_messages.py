"""The messages of steps, and the turns that messages ask for."""

from __future__ import annotations

import pytest

from afl.bridges.mail_messages import (
    MailFailure,
    answer_body,
    answered,
    asked_id,
    asked_message,
    response,
    sender_of,
    sent_message,
    turn_intent,
    turn_key,
    waiting_call,
)
from afl.kernel.model import Call, CallId, CallStatus, Json, Outcome, RunId, Task, TaskId, TaskSpec
from afl.messaging.models import AgentId, AgentMessage, MessagePriority, MessageType
from afl.messaging.requesting import response_to
from afl.testing.clock import SequentialIds, VirtualClock
from tests.bridges.worlds import world

SENDER, REPLIES = AgentId(type="run", instance="r-1"), AgentId(type="afl-answers", instance="x")


def task_of(kind: str = "event", **given: Json) -> Task:
    (task,) = world().store.kernel.enqueue([TaskSpec(kind, "x", input=given)])
    return task


def sending(step: str = "0/sent", **params: Json) -> Task:
    usual: dict[str, Json] = {"message_type": "event", "priority": "normal", "payload": "hello"}
    return task_of(run="r-1", step=step, params={"to": "clerk", **usual, **params})


def call_of(status: CallStatus, reply: Json) -> Call:
    now = VirtualClock().now()
    id_ = CallId(SequentialIds().new_id())
    return Call(id_, RunId("r"), TaskId("t"), "k", None, status, now, reply, now, applied=False)


def test_every_attempt_at_a_step_sends_the_same_message_and_every_step_another() -> None:
    one, again = (sent_message(sending(), SENDER, is_heard=False) for _ in range(2))
    other = sent_message(sending("0/other"), SENDER, is_heard=False)
    assert one == again
    assert one.message_id != other.message_id
    assert (one.payload, one.priority) == ({"text": "hello"}, MessagePriority.NORMAL)


def test_what_a_step_says_is_in_its_message() -> None:
    made = sent_message(
        sending(
            message_type="request",
            priority="low",
            correlation_id="c-1",
            reply_to="desk:2",
            ttl=1500,
            delay=250,
            payload={"n": 1},
        ),
        SENDER,
        is_heard=False,
    )
    assert made.message_type is MessageType.REQUEST
    assert (made.correlation_id, made.reply_to) == ("c-1", AgentId(type="desk", instance="2"))
    assert (made.ttl_seconds, made.delay_seconds) == (1.5, 0.25)
    assert (made.payload, made.priority) == ({"n": 1}, MessagePriority.LOW)


@pytest.mark.parametrize(
    ("params", "type_"),
    [
        ({"to": "a b"}, "BadAddress"),
        ({"reply_to": "a:b:c"}, "BadAddress"),
        ({"payload": [1]}, "BadMessage"),
        ({"priority": "urgent"}, "BadMessage"),
        ({"message_type": "request"}, "BadMessage"),
        ({"ttl": -1}, "BadMessage"),
    ],
)
def test_what_cannot_be_sent_is_refused_for_good(params: dict[str, Json], type_: str) -> None:
    task = sending(**params)  # type: ignore[arg-type]
    with pytest.raises(MailFailure) as refused:
        sent_message(task, SENDER, is_heard=False)
    assert refused.value.type == type_
    assert refused.value.close(task).permanent


def test_the_agent_whose_turn_calls_a_tool_is_the_sender() -> None:
    tool = sending()
    assert sender_of(tool, task_of("turn", agent="buyer:eu")) == (
        AgentId(type="buyer", instance="eu"),
        True,
    )
    assert sender_of(tool, task_of("turn", facet="shop.Review")) == (SENDER, False)
    assert sender_of(tool, task_of("turn", agent="has blanks")) == (SENDER, False)
    assert sender_of(tool, None) == (SENDER, False)


def test_an_answer_finds_the_call_that_waits_for_it() -> None:
    task = sending()
    question = asked_message(task, SENDER, REPLIES, 3)
    assert question.message_id == asked_id(task, 3)
    assert (question.message_type, question.reply_to) == (MessageType.REQUEST, REPLIES)
    reply = response_to(question, {"cents": 2})
    assert waiting_call(reply) == (task.id, "answer:3")
    close = answered(call_of(CallStatus.OK, answer_body(reply)), question.message_id)
    assert (close.outcome, close.result) == (
        Outcome.SUCCESS,
        {
            "payload": {"cents": 2},
            "sender": "clerk:default",
            "message_id": question.message_id,
        },
    )


@pytest.mark.parametrize("id_", [None, "", "ask_", "ask_x", "ask_x_", "mail_x_1", "ask__1"])
def test_what_answers_nothing_finds_no_call(id_: str | None) -> None:
    message = _message({"n": 1}).model_copy(update={"correlation_id": id_})
    assert waiting_call(message) is None


def test_a_failure_is_tried_again_as_the_policy_says() -> None:
    timeout = call_of(CallStatus.TIMEOUT, None)
    with pytest.raises(MailFailure) as late:
        answered(timeout, "ask_x_0")
    assert late.value.type == "Timeout"
    assert not late.value.close(task_of()).permanent
    assert not late.value.close(task_of(retry_on=["Timeout"])).permanent
    assert late.value.close(task_of(retry_on=["MailUnavailable"])).permanent


def test_a_turn_that_failed_is_an_answer_that_says_why() -> None:
    question = _message({"instruction": "x"})
    error: Json = {"type": "ModelRefused", "message": "not for you"}
    said = response(question, call_of(CallStatus.ERROR, error))
    with pytest.raises(MailFailure, match="clerk:default has no answer: not for you") as failed:
        answered(call_of(CallStatus.OK, answer_body(said)), "ask_x_0")
    assert failed.value.type == "AnswerFailed"
    good = response(question, call_of(CallStatus.OK, {"text": "yes"}))
    assert (good.payload, good.headers) == ({"text": "yes"}, {})
    # made again it is the same message
    assert said.message_id == good.message_id


def test_a_message_is_one_turn_for_each_recipient() -> None:
    one = _message({"text": "x"})
    other = one.model_copy(update={"recipient": AgentId(type="other")})
    assert len({turn_key(one), turn_key(other), turn_key(one)}) == 2


def test_an_instruction_is_taken_as_it_is_and_anything_else_is_shown() -> None:
    wanted = turn_intent(_message({"instruction": "Do {it}.", "arguments": {"it": 1}}), "clerk")
    assert (wanted.instruction, wanted.arguments, wanted.priority) == ("Do {it}.", {"it": 1}, 5)
    shown = turn_intent(_message({"n": 1}), "clerk")
    assert shown.arguments is None
    assert shown.instruction == (
        'A message has come: request msg-0001, from asker:default.\n\n{"n": 1}'
    )


def _message(payload: dict[str, Json]) -> AgentMessage:
    return AgentMessage(
        message_id="msg-0001",
        sender=AgentId(type="asker"),
        recipient=AgentId(type="clerk"),
        message_type=MessageType.REQUEST,
        payload=payload,
    )
