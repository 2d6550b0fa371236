"""Calls of tools: the same tasks that steps of a flow make, with the same policies."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from datetime import timedelta
from threading import Lock

from afl.bridges.offers import INSTRUCTION
from afl.kernel.model import CallSpec, Json, Task, TaskId
from afl.runtime.calls import event_call
from afl.runtime.context import ExecutionContext, Memory
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Run
from afl.runtime.errors import RunError
from afl.runtime.persistence import PersistenceAPI, RateWish
from afl.runtime.placing import delayed
from afl.runtime.programs import Plans
from afl.runtime.states import ObjectType
from afl.runtime.step import StepDefinition, WorkflowId
from afl.turns.errors import BadBrief
from afl.turns.intents import TurnIntent, turn_spec
from afl.turns.mcp.tools import call_spec
from afl.turns.model import AgentId, Tool, ToolKind
from afl.turns.ports import NO_TIMEOUT, Roster

#: Slots of rates that calls were given and may ask for again.
_SLOTS_KEPT = 1000


class FacetTools:
    """`ports.Tools`. Threads may share one."""

    def __init__(self, roster: Roster, persistence: PersistenceAPI, plans: Plans) -> None:
        self._roster = roster
        self._persistence = persistence
        self._plans = plans
        self._slots: OrderedDict[tuple[TaskId, str], timedelta] = OrderedDict()
        self._lock = Lock()

    def call(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        match tool.kind:
            case ToolKind.FACET:
                return self._facet(task, tool, arguments, key)
            case ToolKind.AGENT:
                return self._agent(task, tool, arguments, key)
            case ToolKind.MCP:
                return call_spec(task, tool, arguments, key)
            case ToolKind.BUILTIN:
                raise BadBrief(f"`{tool.name}` is done by the turn itself.")

    def _facet(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        """The call that a step would make whose path is that of the turn's step, with the key."""
        given = task.input if isinstance(task.input, dict) else {}
        program = tool.pin or str(given.get("program"))
        try:
            plan = self._plans.get(program)
            facet = plan.facet(tool.target)
            params = plan.conversions.record(arguments, facet.facet.params)
        except (RunError, WrongValue) as error:
            raise BadBrief(f"`{tool.name}` cannot be called: {error.message}") from error
        run = Run(
            WorkflowId(str(given.get("run") or task.run)),
            program,
            workflow="",
            inputs={},
            priority=task.priority,
            tenant=task.tenant,
        )
        # turns of agents have no step; their own id tells them apart
        path = f"{given.get('step') or task.id}#{key}"
        step = StepDefinition(run.id, path, ObjectType.WORKFLOW, tool.target, tool.target)
        step.params = params
        now = self._persistence.now()
        context = ExecutionContext(run, plan, Memory({path: step}), now)
        call = event_call(context, step, facet)
        call = replace(call, key=key, task=replace(call.task, tenant=task.tenant, trace=task.trace))
        if path in context.changes.rates:
            call = self._in_its_slot(task, call, context.changes.rates[path])
        return call

    def _in_its_slot(self, task: Task, call: CallSpec, wish: RateWish) -> CallSpec:
        """The call, delayed as its `RateLimit` says. A turn may ask for the same call again before
        it is committed: that takes no second slot."""
        place = (task.id, call.key)
        with self._lock:
            delay = self._slots.get(place)
        if delay is None:
            (delay,) = self._persistence.reserve_slots(wish)
            with self._lock:
                self._slots[place] = delay
                while len(self._slots) > _SLOTS_KEPT:
                    self._slots.popitem(last=False)
        return delayed(call, delay)

    def _agent(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        agent = self._roster.get_agent(AgentId(tool.target), task.tenant)
        if agent is None:
            raise BadBrief(f"The agent {tool.target} is not there any more.")
        intent = TurnIntent(
            agent.id,
            str(arguments.get(INSTRUCTION, "")),
            tenant=task.tenant,
            priority=task.priority,
        )
        return CallSpec(key, replace(turn_spec(intent, agent), trace=task.trace), NO_TIMEOUT)
