"""Briefs of turns that serve a prompt facet: from the program that their run is pinned to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal

from afl.bridges.offers import McpTools, NoMcpTools, facet_tool, named_apart
from afl.ir import model as ir
from afl.kernel.model import Json, Task
from afl.runtime.errors import RunError
from afl.runtime.json_types import JsonTypes
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.turns.asking import briefing
from afl.turns.errors import BadBrief
from afl.turns.model import Allowance, Brief, Tool
from afl.turns.ports import Briefing

#: How many programs beside the deployed ones are looked at for what their runs may still ask.
_NEWEST = 50


class PromptFacets:
    """`ports.Briefs` for tasks whose input names a facet and a program. Threads may share one."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        plans: Plans,
        *,
        models: tuple[str, ...] = (),
        overrides: bool = False,
        without: Collection[str] = (),
        mcp: McpTools | None = None,
    ) -> None:
        """
        Args:
            models: whom to ask where a prompt does not say: the first, then the others.
            overrides: ask them also where a prompt says otherwise.
            without: facets that somebody else serves, by their full or short names.
            mcp: the tools of MCP servers.
        """
        self._persistence = persistence
        self._plans = plans
        self._models = models
        self._overrides = overrides and bool(models)
        self._without = frozenset(without)
        self._mcp = mcp or NoMcpTools()
        self._names: dict[str, tuple[str, ...]] = {}

    def names(self) -> tuple[str, ...]:
        """The prompt facets of the deployed programs and of the newest others.

        A facet for which there is no model is left out: somebody else may have one.
        """
        deployed = self._persistence.deployments().values()
        programs = dict.fromkeys((*deployed, *self._persistence.newest_programs(_NEWEST)))
        found = (name for program in programs for name in self._names_in(program))
        return tuple(dict.fromkeys(found))

    def brief(self, task: Task) -> Briefing:
        given = task.input if isinstance(task.input, dict) else {}
        program, name = str(given.get("program")), str(given.get("facet"))
        try:
            plan = self._plans.get(program)
            facet = plan.facet(name).facet
        except RunError as error:
            raise BadBrief(error.message) from error
        brief = self._brief(program, plan, facet)
        return briefing(task, replace(brief, allowance=_allowance(given.get("budget"))))

    def _names_in(self, program: str) -> tuple[str, ...]:
        found = self._names.get(program)
        if found is None:
            facets = self._plans.get(program).program.facets
            found = self._names[program] = tuple(
                facet.name for facet in facets if self.serves(facet)
            )
        return found

    def serves(self, facet: ir.Facet) -> bool:
        """Whether there is a model for a facet, and nobody else serves it."""
        return (
            facet.prompt is not None
            and bool(self._asked(facet.prompt))
            and not self._without & {facet.name, facet.name.rpartition(".")[2]}
        )

    def _asked(self, prompt: ir.Prompt) -> tuple[str, ...]:
        if prompt.model is None or self._overrides:
            return self._models
        return (prompt.model,)

    def _brief(self, program: str, plan: Plan, facet: ir.Facet) -> Brief:
        prompt = facet.prompt
        if prompt is None:
            raise BadBrief(f"`{facet.name}` has no prompt, so no model can do it.")
        models = self._asked(prompt)
        if not models:
            raise BadBrief(
                f"No model is named for `{facet.name}`. Write `model` in its prompt, or set "
                "AFL_MODEL."
            )
        types = JsonTypes(plan.program)
        returns = types.returns(facet)
        if doc := types.doc(facet.name).text:
            returns = {"description": doc, **returns}
        return Brief(
            system=prompt.system or "",
            template=prompt.template,
            models=models,
            tools=named_apart([self._tool(plan, program, tool) for tool in prompt.tools]),
            returns=returns,
        )

    def _tool(self, plan: Plan, program: str, tool: ir.Tool) -> Tool:
        if tool.kind == "facet":
            return facet_tool(plan, program, tool.name)
        server, _, name = tool.name.partition("/")
        return self._mcp.find(server, name)


def _allowance(budget: Json) -> Allowance:
    """What the policy `Budget` allows, as it is in the task."""
    if not isinstance(budget, dict):
        return Allowance()
    usd, tokens = budget.get("usd"), budget.get("tokens")
    return Allowance(
        usd=None if usd is None else Decimal(str(usd)),
        tokens=tokens if isinstance(tokens, int) else None,
    )
