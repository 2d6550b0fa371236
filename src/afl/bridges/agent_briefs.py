"""Briefs of turns of agents: from their profile in the roster and what they are asked."""

from __future__ import annotations

from difflib import get_close_matches

from afl.bridges.mail_tools import mail_program
from afl.bridges.offers import (
    AGENT_PREFIX,
    McpTools,
    NoMcpTools,
    agent_tool,
    facet_tool,
    named_apart,
)
from afl.kernel.model import Task
from afl.runtime.calls import MAIL_TASKS
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.programs import Plans
from afl.turns.asking import briefing
from afl.turns.errors import BadBrief
from afl.turns.model import Agent, AgentId, Brief, Tool
from afl.turns.ports import Briefing, Roster
from afl.turns.templates import literal

_DEFAULT = "default"


class AgentBriefs:
    """`ports.Briefs` for tasks whose input names an agent. Threads may share one."""

    def __init__(
        self,
        roster: Roster,
        persistence: PersistenceAPI,
        plans: Plans,
        *,
        models: tuple[str, ...] = (),
        mcp: McpTools | None = None,
    ) -> None:
        """
        Args:
            models: whom to ask where a profile does not say: the first, then the others.
            mcp: the tools of MCP servers.
        """
        self._roster = roster
        self._persistence = persistence
        self._plans = plans
        self._models = models
        self._mcp = mcp or NoMcpTools()

    def names(self) -> tuple[str, ...]:
        """None: a worker serves agents by their targets, whichever there are."""
        return ()

    def brief(self, task: Task) -> Briefing:
        given = task.input if isinstance(task.input, dict) else {}
        agent = self._agent(str(given.get("agent")), task.tenant)
        models = agent.models or self._models
        if not models:
            raise BadBrief(
                f"No model is named for the agent {agent.id}. Give it one, or set AFL_MODEL."
            )
        instruction, arguments = str(given.get("instruction") or ""), given.get("arguments")
        returns = given.get("returns")
        tools = [self._tool(agent, name) for name in agent.tools]
        brief = Brief(
            # a profile is text, and so is an instruction that comes without arguments
            system=literal(agent.system),
            template=instruction if isinstance(arguments, dict) else literal(instruction),
            models=models,
            tools=named_apart(tools),
            returns=returns if isinstance(returns, dict) else None,
            limits=agent.limits,
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
        )
        return briefing(task, brief)

    def _agent(self, id_: str, tenant: str) -> Agent:
        agent = self._roster.get_agent(AgentId(id_), tenant)
        if agent is None:
            raise BadBrief(
                f"There is no agent {id_}; `afl agents list` shows those that there are."
            )
        return agent

    def _tool(self, agent: Agent, name: str) -> Tool:
        if name.startswith(AGENT_PREFIX):
            return agent_tool(self._agent(name.removeprefix(AGENT_PREFIX), agent.tenant))
        if "/" in name:
            server, _, tool = name.removeprefix("mcp:").partition("/")
            return self._mcp.find(server, tool)
        return self._facet(agent, name)

    def _facet(self, agent: Agent, name: str) -> Tool:
        """A facet of a deployed program: of the default one first, then of the others."""
        deployed = self._persistence.deployments()
        order = sorted(deployed, key=lambda each: (each != _DEFAULT, each))
        known: list[str] = []
        for deployment in order:
            program = deployed[deployment]
            plan = self._plans.get(program)
            names = [facet.name for facet in plan.program.facets if facet.kind == "event"]
            known += names
            found = [each for each in names if name in (each, each.rpartition(".")[2])]
            if name in found or len(found) == 1:
                return facet_tool(plan, program, name if name in found else found[0])
            if found:
                listed = ", ".join(f"`{each}`" for each in found)
                raise BadBrief(
                    f"The tool `{name}` of the agent {agent.id} can be {listed}. Write it in full."
                )
        if name in MAIL_TASKS:
            holder = self._plans.add(mail_program())
            return facet_tool(self._plans.get(holder), holder, name)
        near = get_close_matches(name, known, n=1)
        meant = f" Did you mean `{near[0]}`?" if near else ""
        raise BadBrief(
            f"The tool `{name}` of the agent {agent.id} is no event facet of a deployed program."
            f"{meant}"
        )
