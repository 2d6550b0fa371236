"""What callers ask of agents, and what they are told: the values of the L0 engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from afl.kernel.model import CallId, Fence, Json, RunId, State, Task, TaskId, TaskSpec
from afl.turns.model import AGENT_NAME, TURN, Agent, AgentId

_STATUSES = {
    State.QUEUED: "idle",
    State.READY: "dispatched",
    State.RUNNING: "running",
    State.WAITING: "suspended",
    State.CLOSED: "idle",
}


@dataclass(frozen=True, slots=True)
class TurnIntent:
    """What an agent is asked to do: one enqueue is one turn."""

    agent: AgentId
    instruction: str
    arguments: Mapping[str, Json] | None = None
    #: boxes that it may read
    context: tuple[str, ...] = ()
    #: JSON Schema of what it is to deliver; None for text
    returns: dict[str, Json] | None = None
    tenant: str = "default"
    priority: int = 0
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A turn, or a join, that is on its way."""

    inbox_id: TaskId
    agent_turn_id: TaskId
    #: known once the turn is claimed
    turn_epoch: Fence | None
    correlation_id: str
    channel_id: RunId
    recursion_depth: int
    trace_id: str | None
    #: `dispatched`, or `queued` behind another turn of the agent
    status: str
    #: the same request was accepted before
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Reported:
    """An answer that was taken in. Another answer came first if it `counts` not."""

    call: CallId
    agent_turn_id: TaskId
    counts: bool


@dataclass(frozen=True, slots=True)
class Head:
    """What an agent is doing."""

    agent: AgentId
    #: idle, dispatched, running or suspended
    status: str
    active_agent_turn_id: TaskId | None
    turn_epoch: Fence | None


def turn_spec(intent: TurnIntent, agent: Agent) -> TaskSpec:
    """The task of a turn. The agent is its lane, which it keeps while it waits."""
    given: dict[str, Json] = {
        "agent": intent.agent,
        "context": list(intent.context),
        "instruction": intent.instruction,
        "returns": intent.returns,
    }
    if intent.arguments is not None:
        given["arguments"] = dict(intent.arguments)
    return TaskSpec(
        kind=TURN,
        name=AGENT_NAME.format(target=agent.target),
        tenant=intent.tenant,
        lane=intent.agent,
        priority=intent.priority,
        timeout=intent.timeout,
        input=given,
    )


def depth_of(task: Task) -> int:
    """How deep a turn is: by the calls above it, and by who has enqueued it without a call."""
    lineage = task.input.get("lineage") if isinstance(task.input, dict) else None
    above = lineage.get("depth") if isinstance(lineage, dict) else 0
    return task.depth + (above if isinstance(above, int) else 0)


def head_of(agent: AgentId, active: Task | None) -> Head:
    """What an agent is doing, by the task that holds its lane."""
    if active is None or active.state is State.CLOSED:
        return Head(agent, "idle", None, None)
    return Head(agent, _STATUSES[active.state], active.id, active.fence)
