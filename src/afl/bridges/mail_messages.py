"""Messages that steps and tool calls send, and turns that messages ask for. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from afl.base.errors import AflError
from afl.kernel.model import Call, CallStatus, Close, Json, Outcome, Task, TaskId
from afl.messaging.letters import written
from afl.messaging.models import AgentId, AgentMessage, MessagePriority, MessageType
from afl.messaging.requesting import response_to
from afl.runtime.handler_table import params_of
from afl.turns.intents import TurnIntent
from afl.turns.model import TURN
from afl.turns.model import AgentId as RosterId

E = TypeVar("E")
#: Names the error in the headers of a response that says why there is no answer.
ERROR_HEADER = "afl-error"
#: Where trace context is, in the headers of a message.
TRACE_HEADER = "traceparent"
#: What a payload that is a text is under, as in what turns deliver.
TEXT = "text"
_INSTRUCTION, _ARGUMENTS, _RETURNS = "instruction", "arguments", "returns"
_ASKED, _ANSWER_KEY = "ask_", "answer:{number}"
_PRIORITIES = {each.name.lower(): each for each in MessagePriority}
_TYPES = {each.value: each for each in MessageType}


class MailFailure(AflError):
    """A message cannot be sent, or has no answer. The type is what a flow's `catch` sees."""

    code = "mail"

    def __init__(self, type: str, message: str, *, permanent: bool = True) -> None:
        super().__init__(message)
        self.type = type
        self.permanent = permanent

    def close(self, task: Task) -> Close:
        """The end of a task, or of the attempt at it, as its `Retry` says."""
        error: Json = {"type": self.type, "message": self.message}
        retry_on = task.input.get("retry_on") if isinstance(task.input, dict) else None
        is_other = isinstance(retry_on, list) and self.type not in retry_on
        return Close(Outcome.FAILED, error=error, permanent=self.permanent or is_other)


# What steps send


def sender_of(task: Task, caller: Task | None) -> tuple[AgentId, bool]:
    """Who sends what a task asks for, and whether somebody takes in what is sent to it: the agent
    whose turn calls a tool does; a run does not."""
    given = caller.input if caller is not None and caller.kind == TURN else None
    if isinstance(given, dict) and isinstance(agent := given.get("agent"), str):
        address = address_of(agent)
        if address is not None:
            return address, True
    return AgentId(type="run", instance=_run_of(task)), False


def sent_message(task: Task, sender: AgentId, *, is_heard: bool) -> AgentMessage:
    """The message of `afl.mail.Send`. Every attempt at the step makes the same.

    Raises:
        MailFailure: it cannot be sent like this.
    """
    params = params_of(task)
    type_ = _one_of(_TYPES, params, "message_type")
    reply_to = params.get("reply_to")
    if type_ is MessageType.REQUEST and reply_to is None and not is_heard:
        raise MailFailure(
            "BadMessage",
            "Nobody would hear the response to this request. Use `afl.mail.Ask` to wait for it, or "
            "say in `reply_to` who takes it.",
        )
    step = task.input.get("step") if isinstance(task.input, dict) else None
    key = f"{_run_of(task)}:{step or task.id}"
    return _message(
        message_id=f"mail_{hashlib.sha256(key.encode()).hexdigest()[:40]}",
        sender=sender,
        recipient=_address(params, "to"),
        message_type=type_,
        payload=_payload(params),
        priority=_one_of(_PRIORITIES, params, "priority"),
        correlation_id=params.get("correlation_id"),
        reply_to=None if reply_to is None else _address(params, "reply_to"),
        ttl_seconds=_seconds(params.get("ttl")),
        delay_seconds=_seconds(params.get("delay")) or 0.0,
        headers=_headers(task),
    )


def asked_message(task: Task, sender: AgentId, replies: AgentId, number: int) -> AgentMessage:
    """The message of `afl.mail.Ask`, the so manieth that it sends. Its id leads to the call that
    its answer is the answer of.

    Raises:
        MailFailure: it cannot be sent like this.
    """
    params = params_of(task)
    return _message(
        message_id=asked_id(task, number),
        sender=sender,
        recipient=_address(params, "to"),
        message_type=MessageType.REQUEST,
        payload=_payload(params),
        priority=_one_of(_PRIORITIES, params, "priority"),
        reply_to=replies,
        headers=_headers(task),
    )


def asked_id(task: Task, number: int) -> str:
    """The id of the so manieth message of a task that asks."""
    return f"{_ASKED}{task.id}_{number}"


def is_answer(key: str) -> bool:
    """Whether a call waits for an answer."""
    return key.startswith(_ANSWER_KEY.partition(":")[0])


def answer_key(number: int) -> str:
    """The key of the call that waits for the answer to the so manieth message of a task."""
    return _ANSWER_KEY.format(number=number)


def waiting_call(answer: AgentMessage) -> tuple[TaskId, str] | None:
    """Whom an answer is for: the task that has asked, and the key of its call."""
    asked = answer.correlation_id or ""
    task, _, number = asked.removeprefix(_ASKED).rpartition("_")
    if not asked.startswith(_ASKED) or not task or not number.isdecimal():
        return None
    return TaskId(task), answer_key(int(number))


def answer_body(answer: AgentMessage) -> Json:
    """What the call that waits is told."""
    told: dict[str, Json] = {"payload": answer.payload, "sender": str(answer.sender)}
    if ERROR_HEADER in answer.headers:
        told["error"] = answer.headers[ERROR_HEADER]
    return told


def answered(call: Call, message_id: str) -> Close:
    """The end of a step that has asked, by the answer to its call.

    Raises:
        MailFailure: there was none, or it says why there is none.
    """
    told = call.reply if isinstance(call.reply, dict) else {}
    if call.status is not CallStatus.OK:
        raise MailFailure(
            "Timeout" if call.status is CallStatus.TIMEOUT else "Canceled",
            f"There was no answer to the message {message_id} in time; no answer does not mean "
            "that nothing was done. Look whether anybody receives there, or wait longer.",
            permanent=False,
        )
    if "error" in told:
        raise MailFailure(
            "AnswerFailed", f"{told.get('sender')} has no answer: {_problem(told.get('payload'))}"
        )
    result: Json = {
        "payload": told.get("payload"),
        "sender": told.get("sender"),
        "message_id": message_id,
    }
    return Close(Outcome.SUCCESS, result)


# What messages ask for


def address_of(agent: str) -> AgentId | None:
    """The address of an agent of the roster; None if its name cannot be one."""
    try:
        return AgentId.parse(agent)
    except ValidationError:
        return None


def wants_answer(message: AgentMessage) -> bool:
    """Whether whoever has sent a message waits for a response."""
    return message.message_type is MessageType.REQUEST


def turn_key(message: AgentMessage) -> str:
    """Makes a message start one turn, however often it is received."""
    return f"mail:{message.recipient}:{message.message_id}"


def turn_intent(message: AgentMessage, agent: str) -> TurnIntent:
    """The turn that a message asks an agent for: what `instruction` says, with `arguments` and
    `returns` if there are; else the message is shown to the agent as it is.

    Raises:
        MailFailure: the payload makes no sense.
    """
    payload = message.payload
    instruction, arguments = payload.get(_INSTRUCTION), payload.get(_ARGUMENTS)
    returns = payload.get(_RETURNS)
    if _INSTRUCTION not in payload:
        if not payload:
            raise MailFailure("BadMessage", "The message is empty: there is nothing to do.")
        instruction, arguments, returns = _shown(message), None, None
    if not isinstance(instruction, str) or not instruction.strip():
        raise MailFailure("BadMessage", "The `instruction` of a message is a text that says what.")
    for name, value in ((_ARGUMENTS, arguments), (_RETURNS, returns)):
        if value is not None and not isinstance(value, dict):
            raise MailFailure("BadMessage", f"The `{name}` of a message is an object.")
    return TurnIntent(
        RosterId(agent),
        instruction,
        arguments,
        returns=returns,
        priority=message.priority.value,
    )


def letter(message: AgentMessage) -> dict[str, Json]:
    """A message as JSON, to be kept in a task."""
    kept: dict[str, Json] = json.loads(written(message))
    return kept


def response(question: AgentMessage, turn: Call) -> AgentMessage:
    """What a turn has come to, as the response to the message that has started it."""
    if turn.status is CallStatus.OK:
        payload = turn.reply if isinstance(turn.reply, dict) else {TEXT: turn.reply}
        return response_to(question, payload)
    problem = turn.reply if isinstance(turn.reply, dict) else {"message": turn.reply}
    return no_answer(question, str(problem.get("type") or turn.status.value), _text(problem))


def no_answer(question: AgentMessage, type: str, message: str) -> AgentMessage:
    """The response that says why there is no answer."""
    error = {"type": type, "message": message}
    headers = {**question.headers, ERROR_HEADER: type}
    return response_to(question, {"error": error}, headers=headers)


# How


def _message(**fields: Any) -> AgentMessage:  # noqa: ANN401 - of AgentMessage
    try:
        return AgentMessage(**fields)
    except ValidationError as error:
        wrong = "; ".join(f"`{each['loc'][0]}`: {each['msg']}" for each in error.errors())
        raise MailFailure("BadMessage", f"This message cannot be sent: {wrong}.") from error


def _address(params: Mapping[str, Json], name: str) -> AgentId:
    text = str(params.get(name))
    found = address_of(text)
    if found is None:
        raise MailFailure(
            "BadAddress",
            f"`{name}` is `{text}`, which is no address. Write `type` or `type:instance`, such as "
            "`reviewer:eu`, without blanks, braces and further colons.",
        )
    return found


def _one_of(known: Mapping[str, E], params: Mapping[str, Json], name: str) -> E:
    value = str(params.get(name))
    if value not in known:
        raise MailFailure("BadMessage", f"`{name}` is `{value}`. It can be {', '.join(known)}.")
    return known[value]


def _payload(params: Mapping[str, Json]) -> dict[str, Json]:
    payload = params.get("payload")
    if isinstance(payload, str):
        return {TEXT: payload}
    if not isinstance(payload, dict):
        raise MailFailure("BadMessage", "The payload of a message is an object or a text.")
    return payload


def _seconds(ms: Json) -> float | None:
    return ms / 1000 if isinstance(ms, int) else None


def _headers(task: Task) -> dict[str, str]:
    return {} if task.trace is None else {TRACE_HEADER: task.trace}


def _run_of(task: Task) -> str:
    given = task.input if isinstance(task.input, dict) else {}
    return str(given.get("run") or task.run)


def _shown(message: AgentMessage) -> str:
    about = f"A message has come: {message.message_type.value} {message.message_id}"
    if message.correlation_id is not None:
        about += f", which answers {message.correlation_id}"
    payload = message.payload
    told = payload[TEXT] if set(payload) == {TEXT} else json.dumps(payload, ensure_ascii=False)
    return f"{about}, from {message.sender}.\n\n{told}"


def _problem(payload: Json) -> str:
    error = payload.get("error") if isinstance(payload, dict) else None
    return _text(error) if isinstance(error, dict) else str(payload)


def _text(problem: Mapping[str, Json]) -> str:
    return str(problem.get("message") or problem.get("type") or "it does not say why")
