"""Serves what has to do with mail: steps and tool calls that send or ask, letters that want the
deliverable of a turn as their answer.

Whoever waits, for months if need be, waits by a call: no worker is held, and whichever claims next
goes on from the calls alone. A message that was sent twice is the same message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

from afl.bridges.mail_messages import (
    MailFailure,
    answer_key,
    answered,
    asked_id,
    asked_message,
    is_answer,
    letter,
    no_answer,
    response,
    sender_of,
    sent_message,
    turn_intent,
    turn_key,
)
from afl.kernel.model import (
    Call,
    CallSpec,
    CallStatus,
    Claim,
    Close,
    Commit,
    Json,
    Outcome,
    Retry,
    Suspend,
    Task,
    TaskSpec,
)
from afl.messaging.models import AgentId, AgentMessage
from afl.runtime.calls import ANSWER, ASK, MAIL_TASKS, SEND, SIGNALS
from afl.runtime.handler_table import params_of
from afl.runtime.working.outcomes import attempt_seconds
from afl.turns.grip import Grip, Left
from afl.turns.intents import turn_spec
from afl.turns.model import AgentId as RosterId
from afl.turns.ports import NO_TIMEOUT, TurnStore
from afl.turns.serving import Ring

T = TypeVar("T")
#: A task that sends a message for another, and one that has a message answered by a turn.
POST, LETTER = "afl:post", "afl:letter"
#: The keys of their calls.
_SENT, _TURN = "sent:{number}", "turn"
#: A response that cannot be sent is tried again for days.
_PATIENCE = Retry(max_failures=1000, delay=timedelta(seconds=1), max_delay=timedelta(minutes=5))
_MS = timedelta(milliseconds=1)


class Post(Protocol):
    """The mailboxes, for another event loop than theirs."""

    async def send(self, message: AgentMessage) -> str:
        """Sends a message, once for each id. Raises `MailFailure`. Answers the id."""
        ...

    def answers(self) -> AgentId:
        """Where the answers to what is asked here are received. It may ask the store."""
        ...


def letter_spec(message: AgentMessage, agent: str) -> TaskSpec:
    """The task that has an agent answer a message by a turn. It is made once for each message."""
    return TaskSpec(
        "mail",
        LETTER,
        priority=message.priority.value,
        retry=_PATIENCE,
        input={"agent": agent, "message": letter(message)},
        idem=turn_key(message),
        trace=message.headers.get("traceparent"),
    )


class MailDesk:
    """An `Attendant` of a turn worker, or all that one does."""

    def __init__(self, store: TurnStore, post: Post, ring: Ring) -> None:
        self.store = store
        self._kernel = store.kernel
        self._post = post
        self._ring = ring

    def names(self) -> tuple[str, ...]:
        return (*MAIL_TASKS.values(), POST, LETTER)

    async def run(self, claim: Claim, grip: Grip) -> None:
        if grip.is_draining:
            raise Left
        work = {
            MAIL_TASKS[SEND]: self._send,
            MAIL_TASKS[ASK]: self._ask,
            POST: self._sent,
            LETTER: self._letter,
        }
        try:
            commit = await work[claim.task.name](claim, grip)
        except MailFailure as failure:
            commit = Commit(claim.fence, failure.close(claim.task))
        await grip.commit(self._kernel, commit)
        self._ring({claim.task.list, *(call.task.list for call in commit.calls)})

    # Each kind: what to commit at last

    async def _send(self, claim: Claim, grip: Grip) -> Commit:
        sender, is_heard = await self._sender(claim.task, grip)
        message = sent_message(claim.task, sender, is_heard=is_heard)
        return await self._deliver(claim, grip, message)

    async def _ask(self, claim: Claim, grip: Grip) -> Commit:
        """A call that sends, and one that waits for the answer: both are there, or neither."""
        task = claim.task
        calls = {call.key: call for call in await self._calls(task, grip)}
        # an answer that was taken in and was none: it asks again
        number = sum(call.applied for key, call in calls.items() if is_answer(key))
        if answer_key(number) not in calls:
            sender, _ = await self._sender(task, grip)
            answers = await self._stored(grip, self._post.answers)
            message = asked_message(task, sender, answers, number)
            sending = CallSpec(_SENT.format(number=number), _post_spec(task, message), NO_TIMEOUT)
            waiting = _wait_for_answer(task, message, number)
            return Commit(claim.fence, Suspend(), calls=(sending, waiting))
        sent, answer = calls[_SENT.format(number=number)], calls[answer_key(number)]
        then: Close | Suspend = Suspend()
        if answer.status is not CallStatus.OPEN:
            then = _end(task, lambda: answered(answer, asked_id(task, number)))
        elif sent.status not in (CallStatus.OPEN, CallStatus.OK):
            # who sends has tried it as often as it may be tried
            then = Close(Outcome.FAILED, error=sent.reply, permanent=True)
        taken_in = (call.id for call in (sent, answer) if call.status is not CallStatus.OPEN)
        return Commit(claim.fence, then, applied=tuple(taken_in))

    async def _sent(self, claim: Claim, grip: Grip) -> Commit:
        return await self._deliver(claim, grip, _message_of(claim.task))

    async def _letter(self, claim: Claim, grip: Grip) -> Commit:
        question, agent = _message_of(claim.task), _agent_of(claim.task)
        calls = await self._calls(claim.task, grip)
        if not calls:
            turn = await self._stored(grip, lambda: self._turn(claim.task, question, agent))
            if turn is not None:
                return Commit(claim.fence, Suspend(), calls=(turn,))
            reason = f"there is no agent {agent} any more"
            answer = no_answer(question, "UnknownAgent", reason)
        elif calls[0].status is CallStatus.OPEN:
            return Commit(claim.fence, Suspend())
        else:
            answer = response(question, calls[0])
        return await self._deliver(claim, grip, answer)

    # How

    async def _deliver(self, claim: Claim, grip: Grip, message: AgentMessage) -> Commit:
        sent = await grip.unless_called(self._post.send(message))
        if sent is None:
            # it is to stop: suspended, it does
            return Commit(claim.fence, Suspend())
        return Commit(claim.fence, Close(Outcome.SUCCESS, {"message_id": sent}))

    def _turn(self, task: Task, question: AgentMessage, agent: str) -> CallSpec | None:
        known = self.store.get_agent(RosterId(agent), task.tenant)
        if known is None:
            return None
        spec = turn_spec(turn_intent(question, agent), known)
        return CallSpec(_TURN, replace(spec, trace=task.trace), NO_TIMEOUT)

    async def _calls(self, task: Task, grip: Grip) -> list[Call]:
        return await self._stored(grip, lambda: self._kernel.calls_of(task.id))

    async def _sender(self, task: Task, grip: Grip) -> tuple[AgentId, bool]:
        return await self._stored(grip, lambda: sender_of(task, self._caller(task)))

    def _caller(self, task: Task) -> Task | None:
        call = None if task.parent_call is None else self._kernel.get_call(task.parent_call)
        return None if call is None else self._kernel.get_task(call.caller)

    async def _stored(self, grip: Grip, ask: Callable[[], T]) -> T:
        return await grip.patiently(partial(asyncio.to_thread, ask))


def _wait_for_answer(task: Task, message: AgentMessage, number: int) -> CallSpec:
    """The call that is answered by the answer to a message."""
    given: Json = {"message": message.message_id, "to": str(message.recipient)}
    spans = [NO_TIMEOUT]
    if isinstance(timeout := params_of(task).get("timeout"), int):
        spans.append(timeout * _MS)
    if (limit := attempt_seconds(task)) is not None:
        spans.append(timedelta(seconds=limit))
    waiting = TaskSpec("signal", ANSWER, list=SIGNALS, input=given)
    return CallSpec(answer_key(number), waiting, max(min(spans), _MS))


def _post_spec(task: Task, message: AgentMessage) -> TaskSpec:
    """The task that sends a message for another, as often as that one may be tried."""
    given: dict[str, Json] = {"message": letter(message)}
    if isinstance(task.input, dict) and "retry_on" in task.input:
        given["retry_on"] = task.input["retry_on"]
    return TaskSpec(
        "mail",
        POST,
        tenant=task.tenant,
        list=task.list,
        priority=task.priority,
        retry=task.retry,
        input=given,
        trace=task.trace,
    )


def _end(task: Task, close: Callable[[], Close]) -> Close:
    try:
        return close()
    except MailFailure as failure:
        return failure.close(task)


def _message_of(task: Task) -> AgentMessage:
    assert isinstance(task.input, dict)
    return AgentMessage.model_validate(task.input["message"])


def _agent_of(task: Task) -> str:
    assert isinstance(task.input, dict)
    return str(task.input["agent"])
