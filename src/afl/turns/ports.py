"""What turns need from outside: models, what they are to do, tools, a store, a live feed.

The loop is async; the store is not, and is called from threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from afl.kernel.model import CallSpec, Claim, Close, Json, RunId, Task, TaskId
from afl.kernel.port import Store, Transaction
from afl.turns.chunks import Chunk
from afl.turns.model import (
    Agent,
    AgentId,
    Allowance,
    Brief,
    Budget,
    BudgetKey,
    Hold,
    ModelRequest,
    Price,
    Reply,
    Spending,
    Tool,
    Usage,
    UsageEntry,
    UsageSum,
)

#: Pieces of an answer while it is being made: the kind and the text. The kind is `text`,
#: `thinking`, `tool` for the name of one that is called, `tool_call` for what it is called with, or
#: `again` before another model is asked.
Listener = Callable[[str, str], None]


class Model(Protocol):
    """One model of one provider: one request at a time, and no loop."""

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        """Asks once. Raises `ModelBusy` or `ModelRefused`, nothing else."""
        ...


class Models(Protocol):
    """Models by name, such as `anthropic:claude-sonnet-5`."""

    def find(self, name: str) -> Model:
        """Raises `ModelRefused` with what to set or install if there is no such model here."""
        ...


class Prices(Protocol):
    def price(self, model: str, usage: Usage) -> Price: ...
    def most(self, model: str, request_bytes: int, known_input: int, max_tokens: int) -> Decimal:
        """More than what a request can cost: `known_input` tokens of its prefix were counted by the
        provider before, `request_bytes` are new since then. 0 if the model has no price.
        """
        ...


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a turn is to do, and what its template is filled with."""

    brief: Brief
    arguments: dict[str, Json]
    #: boxes whose cards come before the instruction
    context: tuple[str, ...] = ()
    agent: AgentId | None = None
    facet: str | None = None
    step: str | None = None


class Briefs(Protocol):
    """Who serves what: turns of agents by their profile, turns of facets by their program."""

    def names(self) -> tuple[str, ...]:
        """The names of the tasks that can be briefed now; asked again and again."""
        ...

    def brief(self, task: Task) -> Briefing:
        """Raises `BadBrief`; the turn then fails for good, with this message."""
        ...


class Tools(Protocol):
    """How the tools of a brief are called: each call is a task that somebody serves."""

    def call(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        """The call of a tool by this turn. Same arguments, same call. Raises `BadBrief`."""
        ...


class Server(Protocol):
    """Serves tasks in a turn worker that are no turns, such as calls of MCP tools."""

    def names(self) -> tuple[str, ...]:
        """The names of the tasks that it serves."""
        ...

    async def serve(self, claim: Claim) -> Close:
        """Does the task, and answers with how it ends. It is cancelled when the task is."""
        ...


@dataclass(frozen=True, slots=True)
class BudgetWait:
    """A turn that waits for room in a budget, by a call with this key."""

    task: TaskId
    call_key: str
    budgets: tuple[BudgetKey, ...]
    amount: Spending


class Roster(Protocol):
    def save_agent(self, agent: Agent) -> Agent: ...
    def get_agent(self, id: AgentId, tenant: str = "default") -> Agent | None: ...
    def list_agents(
        self, tenant: str = "default", after: AgentId | None = None, limit: int = 100
    ) -> list[Agent]: ...
    def delete_agent(self, id: AgentId, tenant: str = "default") -> bool: ...


class AgentTurns(Protocol):
    """The turns of an agent, found without reading those of others."""

    def turns_of(
        self,
        agent: AgentId,
        tenant: str = "default",
        before: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        """The newest first, from before the given one."""
        ...

    def active_turn(self, agent: AgentId, tenant: str = "default") -> Task | None:
        """The turn that the agent has in hand; None if it is idle."""
        ...

    def turns_within(self, run: RunId, after: TaskId | None = None, limit: int = 100) -> list[Task]:
        """Turns among the work that a run, or a turn, has called, and what that has; the oldest
        first, from after the given one. What else there is of it is not read."""
        ...


class Budgets(Protocol):
    """What may be spent. What takes a transaction writes in it, or raises."""

    def set_budget(self, key: BudgetKey, limit: Allowance) -> Budget:
        """Sets what may be spent; what was spent stays."""
        ...

    def get_budget(self, key: BudgetKey) -> Budget | None: ...
    def budgets(self, keys: Sequence[BudgetKey]) -> list[Budget]:
        """Those of the keys that have a row."""
        ...

    def list_budgets(self, tenant: str | None = "default", limit: int = 100) -> list[Budget]:
        """The budgets of a tenant, or of all of them with None."""
        ...

    def reserve(self, transaction: Transaction, hold: Hold) -> None:
        """Takes room in every budget of the hold that has a row, all or none.

        Older holds of the same turn are settled as spent; the same number is replaced. Raises
        `BudgetExhausted`, which names the budget.
        """
        ...

    def settle(self, transaction: Transaction, task: TaskId, number: int, spent: Spending) -> None:
        """Turns a hold into what was spent. Without a hold, nothing happens."""
        ...

    def spend(
        self, transaction: Transaction, budgets: Sequence[BudgetKey], spent: Spending
    ) -> None:
        """Counts what needs no reservation before, such as tool calls; it may not be refused."""
        ...

    def await_budget(self, transaction: Transaction, wait: BudgetWait) -> None:
        """Notes that a turn waits for room."""
        ...

    def ready_waits(self, limit: int = 100) -> list[BudgetWait]:
        """Waits whose budgets have room now, the oldest first, each budget's room counted once for
        all of them."""
        ...

    def end_wait(self, task: TaskId, call_key: str) -> None: ...
    def settle_holds_of_closed(self, limit: int = 100) -> int:
        """Counts the holds of turns that have ended without settling them as spent."""
        ...


class Accounts(Protocol):
    def record_usage(self, transaction: Transaction, entry: UsageEntry) -> None:
        """Writes one request down, once for each task and number."""
        ...

    def usage(
        self,
        by: str,
        *,
        tenant: str | None = "default",
        run: str | None = None,
        since: datetime | None = None,
        tasks: Sequence[TaskId] | None = None,
        runs: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[UsageSum]:
        """Requests added up by `run`, `agent`, `facet`, `step`, `model`, `task` or `day`, the most
        expensive first; only those of a tenant, of a run, since a time, of these turns, or of these
        runs."""
        ...


class Pins(Protocol):
    """Definitions of MCP tools, as somebody has agreed to them."""

    def get_pin(self, server: str, tool: str) -> str | None: ...
    def set_pin(self, server: str, tool: str, hash: str) -> None: ...


class TurnStore(Roster, AgentTurns, Budgets, Accounts, Pins, Protocol):
    """Everything that turns keep beside the kernel's rows, in the kernel's transactions."""

    @property
    def kernel(self) -> Store: ...


class LiveFeed(Protocol):
    """What watchers see at once. Nothing depends on it: what is lost is lost."""

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        """Never fails and never waits."""
        ...

    def close(self) -> None: ...


#: Told what a model says, by any thread; it returns at once.
Hear = Callable[[Chunk], None]


class LiveEar(Protocol):
    """Hears what models say in turns, through the feeds of whoever asks them."""

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        """Has what the model says in a turn heard from now on: first what it has said so far, if
        it speaks. Never waits. Whoever calls what is returned hears no more."""
        ...

    def close(self) -> None: ...


#: How long a wait of a turn may last where nobody has said so.
NO_TIMEOUT = timedelta(days=3650)
