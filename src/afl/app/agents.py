"""`Agents`: the roster, what each agent is doing, and turns for them. Needs the extra `agents`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from afl.app.run import span_of
from afl.app.services import Services
from afl.bridges.turn_stores import turn_store
from afl.kernel.model import CallStatus, Json, State, Task, TaskId
from afl.kernel.waiting import PollPolicy
from afl.runtime.errors import StillRunning
from afl.turns import cards
from afl.turns.deliverable import ended
from afl.turns.errors import UnknownAgent
from afl.turns.feed import SilentFeed, agent_of
from afl.turns.intents import TurnIntent, head_of
from afl.turns.journal import BREAKER, BUDGET, BUSY, ToolCall
from afl.turns.l0 import L0Engine
from afl.turns.model import TURN, Agent, AgentId, Deliverable, Limits, UsageSum
from afl.turns.relay import END_BOX

#: The target of people unless another is given: no turn worker serves it, so no model is asked.
PEOPLE_TARGET = "people"
_DEFAULT_TARGET = "default"
_WAITING = PollPolicy(0.05, 1.0)
_WAITS = {
    BUSY: "a model that is busy",
    BUDGET: "room in a budget",
    BREAKER: "a provider that is down",
}


@dataclass(frozen=True, slots=True)
class AgentHead:
    """What an agent is doing."""

    #: idle, dispatched (a turn may be claimed), running, or suspended (a turn waits)
    status: str
    turn: str | None = None
    #: the tools, people or models that the turn waits for
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A turn in one line."""

    id: str
    agent: str
    #: queued, ready, running, waiting or closed
    state: str
    #: success, failed, timeout, canceled or partial; None while it goes on
    outcome: str | None
    instruction: str
    requests: int
    tokens: int
    usd: Decimal
    #: requests whose price no table knew: `usd` is without them
    unpriced: int
    created_at: datetime
    closed_at: datetime | None


class Agents:
    """Agents of one tenant. Threads may share one."""

    def __init__(self, services: Services, tenant: str = "default") -> None:
        self._store = turn_store(services.persistence)
        self._kernel = self._store.kernel
        self._doorbell = services.doorbell
        self._l0 = L0Engine(self._store, services.doorbell, SilentFeed())
        self._tenant = tenant

    # What they do

    def head(self, agent: str) -> AgentHead:
        """What an agent is doing, and what its turn waits for."""
        self.get(agent)
        active = self._store.active_turn(AgentId(agent), self._tenant)
        head = head_of(AgentId(agent), active)
        waits = () if active is None else self._waits_for(active)
        return AgentHead(head.status, head.active_agent_turn_id, waits)

    def turns(
        self, agent: str, *, before: str | None = None, limit: int = 100
    ) -> list[TurnSummary]:
        """The turns of an agent, the newest first, also of one that is off the roster."""
        start = None if before is None else TaskId(before)
        found = self._store.turns_of(AgentId(agent), self._tenant, start, limit)
        if not found and start is None:
            self.get(agent)
        ids = [task.id for task in found]
        sums = self._store.usage("task", tenant=self._tenant, tasks=ids, limit=len(ids))
        costs = {each.key: each for each in sums}
        return [_summary(task, costs.get(task.id)) for task in found]

    def send(
        self,
        agent: str,
        instruction: str,
        *,
        arguments: Mapping[str, Json] | None = None,
        context: Sequence[str] = (),
        returns: Mapping[str, Json] | None = None,
        key: str | None = None,
        priority: int = 0,
        timeout: str | timedelta | None = None,
    ) -> str:
        """Gives an agent a turn: now, or after those that it has. Answers the id of the turn.

        Args:
            instruction: what it is to do; with arguments, `{name}` stands for one of them.
            context: boxes whose cards it reads before the instruction.
            returns: JSON Schema of what it is to deliver, an object; without it, text.
            key: makes it repeatable: sending again finds the same turn.
            timeout: after how long the turn is given up.
        """
        intent = TurnIntent(
            AgentId(agent),
            instruction,
            arguments,
            tuple(context),
            None if returns is None else dict(returns),
            self._tenant,
            priority,
            span_of(timeout),
        )
        return self._l0.enqueue(intent, correlation_id=key).agent_turn_id

    def wait(self, turn: str, timeout: str | timedelta | None = None) -> Deliverable:
        """What a turn delivers, once it has ended, however it has.

        Raises:
            StillRunning: it has not ended in that time.
        """
        task = self._task(turn)
        span = span_of(timeout)
        end = None if span is None else time.monotonic() + span.total_seconds()
        looks = 0
        while task.state is not State.CLOSED:
            looks += 1
            seconds = _WAITING.wait_seconds(looks, 0.0)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise StillRunning(f"Turn {turn} has not ended in time: {self._why(task)}.")
                seconds = min(seconds, left)
            self._pause_for(task.list, seconds)
            task = self._task(turn)
        return self._deliverable(task)

    def stop(self, agent_or_turn: str, *, force: bool = False, reason: str = "") -> tuple[str, str]:
        """Ends the turn that an agent has in hand, or the turn with this id.

        Args:
            force: at once, whatever a worker is doing with it.

        Returns:
            The turn, and what became of it: `closed`, `requested` or `already_closed`.
        """
        turn = self._meant(agent_or_turn)
        stopped = self._l0.stop(turn, force=force, reason=reason)
        return turn, stopped.value

    # The roster

    def get(self, agent: str) -> Agent:
        """The profile of an agent. Raises `UnknownAgent`."""
        found = self._store.get_agent(AgentId(agent), self._tenant)
        if found is None:
            raise UnknownAgent(
                f"There is no agent {agent}. `afl agents list` shows those that there are."
            )
        return found

    def set(
        self,
        agent: str,
        *,
        person: bool | None = None,
        target: str | None = None,
        system: str | None = None,
        models: Sequence[str] | None = None,
        tools: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        limits: Limits | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> Agent:
        """Puts an agent on the roster, or changes what is given. Turns that have begun go on as
        they began.

        Args:
            person: whether a person takes its turns instead of a model.
            target: which turn workers serve it.
            models: whom to ask: the first, and the next when it does not answer.
            tools: facets of deployed programs, `server/tool` of MCP servers, `agent:NAME`.
        """
        known = self._store.get_agent(AgentId(agent), self._tenant)
        before = known or Agent(AgentId(agent), self._tenant, target=_DEFAULT_TARGET)
        if person is not None:
            before = replace(before, kind="person" if person else "model")
            if person and before.target == _DEFAULT_TARGET:
                before = replace(before, target=PEOPLE_TARGET)
        given = {
            "target": target,
            "system": system,
            "models": None if models is None else tuple(models),
            "tools": None if tools is None else tuple(tools),
            "tags": None if tags is None else tuple(tags),
            "limits": limits,
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        return self._store.save_agent(replace(before, **changes))  # type: ignore[arg-type]

    def delete(self, agent: str) -> None:
        """Takes an agent off the roster. Turns that it has not begun will fail."""
        self.get(agent)
        self._store.delete_agent(AgentId(agent), self._tenant)

    def list(self, *, after: str | None = None, limit: int = 100) -> list[Agent]:
        """Agents in the order of their names, from after one."""
        start = None if after is None else AgentId(after)
        return self._store.list_agents(self._tenant, start, limit)

    # How

    def _meant(self, agent_or_turn: str) -> TaskId:
        if self._store.get_agent(AgentId(agent_or_turn), self._tenant) is None:
            return self._task(agent_or_turn).id
        active = self._store.active_turn(AgentId(agent_or_turn), self._tenant)
        if active is None:
            raise UnknownAgent(
                f"The agent {agent_or_turn} is idle: there is no turn to stop. "
                f"`afl agents turns {agent_or_turn}` shows those that it had."
            )
        return active.id

    def _task(self, turn: str) -> Task:
        task = self._kernel.get_task(TaskId(turn))
        if task is None or task.kind != TURN or task.tenant != self._tenant:
            raise UnknownAgent(
                f"There is no agent and no turn {turn}. `afl agents list` shows the agents, and "
                "`afl agents turns AGENT` their turns."
            )
        return task

    def _waits_for(self, task: Task) -> tuple[str, ...]:
        calls = [call for call in self._kernel.calls_of(task.id) if call.status is CallStatus.OPEN]
        if not calls:
            return ()
        made = cards.find(self._kernel.read_box(task.id), ToolCall)
        tools = {each.key: each.tool for each in made}
        return tuple(_wait(call.key, tools) for call in calls)

    def _why(self, task: Task) -> str:
        waits = self._waits_for(task)
        if waits:
            return f"it waits for {', '.join(waits)}"
        return f"it is {task.state.value}; `afl tasks get {task.id}` says why"

    def _pause_for(self, task_list: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        if not self._doorbell.wait([task_list], seconds):
            # a closed doorbell does not wait
            time.sleep(max(0.0, end - time.monotonic()))

    def _deliverable(self, task: Task) -> Deliverable:
        journal = self._kernel.read_box(task.id)
        # where the kernel has ended a turn, its deliverable is in a box beside
        for box in (journal, self._kernel.read_box(END_BOX.format(turn=task.id))):
            found = cards.read(box[-1]) if box else None
            if isinstance(found, Deliverable):
                return found
        return ended(task, journal)


def _wait(key: str, tools: Mapping[str, str]) -> str:
    kind, _, of = key.partition(":")
    if kind == "approve":
        return f"approval of {tools.get(key) or tools.get(of) or of}"
    return tools.get(key) or _WAITS.get(kind, key)


def _summary(task: Task, cost: UsageSum | None) -> TurnSummary:
    given = task.input if isinstance(task.input, dict) else {}
    return TurnSummary(
        id=task.id,
        agent=agent_of(task),
        state=task.state.value,
        outcome=None if task.outcome is None else task.outcome.value,
        instruction=str(given.get("instruction") or ""),
        requests=0 if cost is None else cost.requests,
        tokens=0 if cost is None else cost.usage.total,
        usd=Decimal(0) if cost is None else cost.usd,
        unpriced=0 if cost is None else cost.unpriced,
        created_at=task.created_at,
        closed_at=task.closed_at,
    )
