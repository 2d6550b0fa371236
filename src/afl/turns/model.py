"""The values of a turn: what an agent is asked, what the model said, what it cost. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import NewType

from afl.kernel.model import Json, RunId, TaskId

AgentId = NewType("AgentId", str)

#: The kind of the tasks that are turns, and of those that only collect the answers of others.
TURN, JOIN, MCP, HUMAN = "turn", "join", "mcp", "human"
#: The task names that turn workers serve: turns of agents by their target, joins, MCP tools by
#: their server. Turns that serve a facet are named by the facet.
AGENT_NAME, JOIN_NAME, MCP_NAME = "agent:{target}", "afl:join", "mcp:{server}"
#: Lists that no worker serves: what is on them is answered by time, a raised budget, a person.
TIMERS, BUDGETS, PEOPLE = "afl.timers", "afl.budgets", "afl.people"


class ToolKind(Enum):
    """Who does what a tool promises."""

    FACET = "facet"  # any worker that serves the event facet
    MCP = "mcp"  # a turn worker that is connected to the server
    AGENT = "agent"  # another agent, by a turn of its own
    BUILTIN = "builtin"  # the turn machine itself


class After(Enum):
    """What the turn does when a tool has answered."""

    SUSPEND = "suspend"  # think on
    TERMINATE = "terminate"  # the tool's answer is the deliverable


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that the model may call."""

    #: as the model sees it: letters, digits, `_` and `-`, at most 64
    name: str
    description: str
    #: JSON Schema of the arguments, an object
    schema: dict[str, Json]
    kind: ToolKind
    #: the facet, `server/tool`, or the agent
    target: str
    effect: str = "keyed"
    #: a person has to agree to every call
    needs_approval: bool = False
    timeout: timedelta = timedelta(minutes=10)
    after: After = After.SUSPEND
    #: the hash of an MCP tool's definition, as it was when the turn began
    pin: str | None = None
    #: what it answers comes from outside, and is marked so for the model
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """When a turn is ended although it is not done. The wall time is the task's own timeout."""

    model_calls: int = 50
    tool_calls: int = 200
    #: how often in a row an answer that breaks the rules is handed back to the model
    repairs: int = 3
    #: how often in a row the model may be busy before the turn fails
    busy: int = 8
    argument_bytes: int = 256_000
    result_bytes: int = 512_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may be spent. None is: as much as it takes."""

    usd: Decimal | None = None
    tokens: int | None = None
    model_calls: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Brief:
    """What a turn is to do. It is the turn's first card, so it stays as it was when it began.

    What differs from turn to turn, the arguments and the context, is not in it: they are read from
    the task's input and from boxes. So turns of the same facet share one card.
    """

    system: str
    #: the instruction, with `{name}` for arguments
    template: str
    #: such as `anthropic:claude-sonnet-5`; then those to ask when it does not answer
    models: tuple[str, ...]
    tools: tuple[Tool, ...] = ()
    #: JSON Schema of the deliverable, an object; None for text
    returns: dict[str, Json] | None = None
    limits: Limits = Limits()
    #: of this turn alone; those of run, agent and tenant are rows
    allowance: Allowance = Allowance()
    max_tokens: int = 8192
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A named identity that takes turns: a row of the roster."""

    id: AgentId
    tenant: str = "default"
    #: `model` or `person`
    kind: str = "model"
    #: which turn workers serve it
    target: str = "default"
    system: str = ""
    models: tuple[str, ...] = ()
    #: names of facets, `server/tool`, `agent:name`
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    limits: Limits = Limits()
    max_tokens: int = 8192
    temperature: float | None = None
    created_at: datetime | None = None


# What the model says


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning, with what its provider wants back with it."""

    text: str
    opaque: Json = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The model calls a tool. The id is the provider's, and nothing but data."""

    id: str
    name: str
    #: as the model wrote them: JSON, or not
    arguments: str


Part = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model."""

    parts: tuple[Part, ...]
    #: stop, length, tool_call, content_filter or error
    finish: str
    #: the model that answered, as in `Brief.models`
    model: str
    usage: Usage = Usage()
    #: what the provider calls this answer
    provider_id: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


# What the model is asked


@dataclass(frozen=True, slots=True)
class UserSays:
    text: str


@dataclass(frozen=True, slots=True)
class AgentSaid:
    parts: tuple[Part, ...]
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    id: str
    name: str
    content: str
    is_error: bool = False


Message = UserSays | AgentSaid | ToolAnswered


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that a model is asked, from nothing but cards: made twice, it is the same."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    max_tokens: int
    temperature: float | None = None
    #: the model has to call one of the tools
    tool_required: bool = False


# What it costs


@dataclass(frozen=True, slots=True)
class Price:
    usd: Decimal
    #: which table of prices said so; `unknown` where no table has the model
    version: str


@dataclass(frozen=True, slots=True)
class Spending:
    """Something to be reserved, or that was spent."""

    usd: Decimal = Decimal(0)
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class BudgetKey:
    """Whose budget: the scope is `turn`, `run`, `agent` or `tenant`."""

    scope: str
    key: str
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class Budget:
    """A row: what may be spent, what is reserved, what was spent."""

    key: BudgetKey
    limit: Allowance
    reserved: Spending = Spending()
    spent: Spending = Spending()


@dataclass(frozen=True, slots=True)
class Hold:
    """Room reserved for one request of a turn, in every budget that covers it.

    Reserving the same number again replaces it. A hold that was neither settled nor released when
    its turn asks again is counted as spent: the request may have reached the provider.
    """

    task: TaskId
    #: which request of the turn, from 0
    number: int
    budgets: tuple[BudgetKey, ...]
    amount: Spending


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """One request to a model, for the accounts."""

    task: TaskId
    number: int
    run: RunId
    tenant: str
    agent: str | None
    facet: str | None
    step: str | None
    model: str
    usage: Usage
    price: Price
    tool_calls: int
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Requests added up under one key."""

    key: str
    requests: int
    usage: Usage
    usd: Decimal
    #: requests whose price no table knew: `usd` is without them
    unpriced: int = 0


# How it ends


class Ending(Enum):
    """Why a turn has ended. `DONE` is the only good one."""

    DONE = "done"
    FAILED = "failed"  # the model, or what it was asked for
    STOPPED = "stopped"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    LIMIT = "limit"  # too many requests, tool calls or repairs
    CRASHED = "crashed"  # it lost its worker too often


@dataclass(frozen=True, slots=True)
class Deliverable:
    """What a turn delivers, on every way out. `fields` fit the schema exactly if not `partial`."""

    ending: Ending
    partial: bool
    #: by name; text is under `text`
    fields: dict[str, Json] = field(default_factory=dict)
    message: str = ""
