"""What tests of turns need: stores on a clock that they move, claims made by hand, patience."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic

from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    CallSpec,
    Claim,
    ClaimRequest,
    Json,
    State,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.grip import Grip
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.model import AgentId, Brief, Tool, ToolKind
from afl.turns.ports import Briefing, Model
from afl.turns.serving import Attendant, Served, work_on

PATIENCE_SECONDS = 30.0
LEASE = timedelta(seconds=30)


def memory_turns() -> tuple[MemoryTurnStore, VirtualClock]:
    """A store in memory, and its clock."""
    clock = VirtualClock(tick=timedelta(microseconds=1))
    return MemoryTurnStore(MemoryStore(clock, SequentialIds())), clock


class Hand:
    """A worker that a test moves: it claims, works on, and dies as it is told."""

    def __init__(self, kernel: Store, *attendants: Attendant, name: str = "hand") -> None:
        self.kernel = kernel
        self.id = WorkerId(name)
        self.served = Served(tuple((each, each.names()) for each in attendants))
        kernel.register(WorkerSpec(self.id, name, handlers=self.served.names, lease=LEASE))

    def claim(self, n: int = 100) -> list[Claim]:
        return self.kernel.claim(ClaimRequest(self.id, self.served.names, n=n))

    def work(self, claim: Claim) -> Grip:
        return asyncio.run(self._work(claim))

    async def _work(self, claim: Claim) -> Grip:
        grip = Grip(claim)
        await work_on(self.kernel, self.served, grip)
        return grip

    def work_off(self, rounds: int = 100) -> int:
        """Works until there is nothing to claim; tells how many claims that took."""
        done = 0
        for _ in range(rounds):
            claims = self.claim()
            if not claims:
                return done
            for claim in claims:
                self.work(claim)
                done += 1
        raise AssertionError("it never ends")


def task_of(kernel: Store, task: TaskId) -> Task:
    found = kernel.get_task(task)
    assert found is not None
    return found


def is_closed(kernel: Store, task: TaskId) -> bool:
    return task_of(kernel, task).state is State.CLOSED


def eventually(
    condition: Callable[[], bool], what: str, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Waits for something that only the store, or another process, can tell."""
    end, pause = monotonic() + patience_seconds, threading.Event()
    while not condition():
        assert monotonic() < end, f"not in time: {what}"
        pause.wait(0.01)


# Turns


SCRIPTED = "scripted:test"


class OneModel:
    """Models, of which there is one."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def find(self, name: str) -> Model:
        assert name == SCRIPTED
        return self.model


class FixedBriefs:
    """The same brief for every turn; the arguments are in the task's input."""

    def __init__(self, brief: Brief) -> None:
        self.brief_ = brief
        self.asked = 0

    def names(self) -> tuple[str, ...]:
        return ("agent:default",)

    def brief(self, task: Task) -> Briefing:
        self.asked += 1
        assert isinstance(task.input, dict)
        arguments, context = task.input.get("arguments"), task.input.get("context")
        assert isinstance(arguments, dict)
        boxes = tuple(str(box) for box in context) if isinstance(context, list) else ()
        agent = task.input.get("agent")
        return Briefing(
            self.brief_, arguments, boxes, AgentId(agent) if isinstance(agent, str) else None
        )


class FacetTools:
    """Every tool is a facet on the list `tools`; agents are lanes."""

    def call(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        lane = tool.target if tool.kind is ToolKind.AGENT else None
        name = "agent:other" if lane else tool.target
        spec = TaskSpec("event", name, list="tools", lane=lane, input=arguments)
        return CallSpec(key, spec, tool.timeout)


def tool(name: str, **more: object) -> Tool:
    """A tool with one number."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    given = {"kind": ToolKind.FACET, "target": name, **more}
    return Tool(name, f"Does {name}.", schema, **given)  # type: ignore[arg-type]


def turn_task(agent: str = "ann", **more: object) -> TaskSpec:
    """A turn of an agent."""
    given: dict[str, Json] = {"agent": agent, "arguments": {"what": "the room"}, "context": []}
    return TaskSpec("turn", "agent:default", lane=agent, input=given, **more)  # type: ignore[arg-type]


def brief(*tools: Tool, **more: object) -> Brief:
    return Brief("You tidy.", "Tidy {what}.", (SCRIPTED,), tools, **more)  # type: ignore[arg-type]
