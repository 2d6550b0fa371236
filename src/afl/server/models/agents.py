"""Agents, their turns, what people are asked, mail, logs and cost."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from afl.server.models.base import Form, JsonMap, View


class AgentLine(View):
    """An agent, and what it is at."""

    agent: str
    #: idle, dispatched, running or suspended
    status: str
    turn: str | None
    waits_for: list[str]
    queued: int
    model: str | None


class TurnLine(View):
    """A turn in a list."""

    id: str
    agent: str
    state: str
    outcome: str | None
    instruction: str
    run: str | None
    step: str | None
    requests: int
    tokens: int
    cost_usd: float
    unpriced: int
    created_at: datetime
    closed_at: datetime | None


class TokenUse(View):
    """What a request to a model used."""

    input: int
    output: int
    cache_read: int
    cache_write: int


class ModelCall(View):
    """One request to a model."""

    number: int
    model: str
    finish: str
    usage: TokenUse
    cost_usd: float
    price_version: str


class TranscriptLine(View):
    """A message, a tool call, its answer, or a note of the engine."""

    #: context, user, assistant, thinking, tool_call, tool_result, note, wait, error or deliverable
    kind: str
    text: str
    #: for tool_call and tool_result
    tool: str | None
    #: for tool_call: as the model wrote them, mostly JSON
    arguments: str | None
    #: whether a tool answered with an error
    failed: bool
    #: the number of the model request that it belongs to
    request: int | None


class TranscriptView(View):
    """A turn as it went."""

    turn: str
    name: str
    run: str | None
    step: str | None
    state: str
    outcome: str | None
    system: str
    lines: list[TranscriptLine]
    calls: list[ModelCall]
    tokens: int
    cost_usd: float
    deliverable: JsonMap | None


class SpokenPart(View):
    """Something that a model says, or goes on to say."""

    #: assistant, thinking or tool_call, as in a transcript; gap where something was not heard
    kind: str
    text: str
    #: the name of the tool, where a call begins
    tool: str | None = None


class ChunkEvent(View):
    """What the model of a turn has said since the event before, while it still speaks."""

    topic: str
    #: the number of the request to the model; it is answered when the transcript has it
    request: int
    #: whether this is everything so far, instead of what follows
    fresh: bool
    #: whether that was all: the commit comes next
    over: bool
    parts: list[SpokenPart]


class InboxView(View):
    """Something that a person is asked for."""

    task: str
    facet: str
    title: str
    params: JsonMap
    group: str
    #: JSON Schema of the answer
    form: JsonMap
    since: datetime
    deadline: datetime | None
    at_deadline: str | None
    run: str
    step: str | None
    #: a link that answers this one without an account; for operators
    link: str | None


class AnswerForm(Form):
    """An answer, or a refusal with its reason."""

    verb: Literal["answer", "reject"] = "answer"
    values: JsonMap = Field(default_factory=dict)
    reason: str = ""


class Answered(View):
    """What became of an answer."""

    task: str
    run: str
    sentence: str


class MailboxView(View):
    """A mailbox, and how much is in it."""

    agent: str
    ready: int
    taken: int
    dead: int


class MessageView(View):
    """A message in a mailbox."""

    id: str
    sender: str
    recipient: str
    type: str
    payload: JsonMap
    attempts: int
    reason: str | None
    sent_at: datetime | None


class MailForm(Form):
    """A message to send."""

    to: str
    type: Literal["event", "request", "response"] = "event"
    payload: JsonMap = Field(default_factory=dict)
    priority: Literal["low", "normal", "high"] = "normal"


class LogLineView(View):
    """A line of a log."""

    #: tells the line from all others of its run
    cursor: str
    run: str
    step: str
    attempt: int
    stream: str
    level: str | None
    seq: int
    at: datetime
    text: str
    #: how many lines are missing here, 0 if nobody knows; the text says why
    gap: int | None


class LogPage(View):
    """A window of log lines, the oldest first."""

    items: list[LogLineView]
    #: goes on behind the last line; the same again if there is nothing yet
    next: str | None
    #: goes back before the first line
    before: str | None


class LogStoreView(View):
    """The store of log lines, by an id that no other has."""

    id: str


class SpoolView(View):
    """How much of a worker's spool is stored. So much may be freed there."""

    spool: str
    position: int


class CostLine(View):
    """What models have cost, added up by something."""

    key: str
    requests: int
    tokens: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float
    unpriced: int


class BudgetView(View):
    """What may be spent, and what is."""

    tenant: str
    scope: str
    key: str
    limit_usd: float | None
    limit_tokens: int | None
    spent_usd: float
    spent_tokens: int


class Hook(View):
    """A signed web hook that starts runs."""

    name: str
    workflow: str
    program: str
    path: str


class HookForm(Form):
    """A web hook to make."""

    name: str
    workflow: str
    program: str = "default"


class NewHook(Hook):
    """A web hook that was just made. The secret is told once."""

    secret: str


class HookRun(View):
    """The run that a call of a web hook has started, or had started before."""

    run: str
