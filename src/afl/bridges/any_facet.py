"""Briefs of turns that serve any event facet, with a prompt or without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from afl.bridges.prompt_facets import PromptFacets
from afl.ir import model as ir
from afl.kernel.model import Task
from afl.runtime.errors import RunError
from afl.runtime.handler_table import params_of
from afl.runtime.json_types import JsonTypes
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.runtime.working.outcomes import facet_of
from afl.turns.errors import BadBrief
from afl.turns.model import Brief, Limits
from afl.turns.ports import Briefing
from afl.turns.templates import literal

_SYSTEM = (
    "You do one step of a workflow. Do what its description says with what it is given, and hand "
    "in the result. Nobody can answer questions."
)


class AnyFacet:
    """`ports.Briefs`. A facet without a prompt is described by its name, its comment and what it
    is given."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        plans: Plans,
        *,
        model: str,
        overrides: bool,
        limits: Limits,
        max_tokens: int,
    ) -> None:
        """
        Args:
            model: whom to ask where a prompt does not say.
            overrides: ask it also where a prompt says otherwise.
        """
        self._plans = plans
        self._model = model
        self._limits = limits
        self._max_tokens = max_tokens
        self._prompts = PromptFacets(persistence, plans, models=(model,), overrides=overrides)

    def names(self) -> tuple[str, ...]:
        """None: whoever uses it has claimed what it is to do."""
        return ()

    def brief(self, task: Task) -> Briefing:
        given = task.input if isinstance(task.input, dict) else {}
        try:
            plan = self._plans.get(str(given.get("program")))
            facet = plan.facet(facet_of(task)).facet
        except RunError as error:
            raise BadBrief(error.message) from error
        if facet.prompt is None:
            briefing = self._described(task, plan, facet)
        else:
            briefing = self._prompts.brief(task)
        brief = replace(briefing.brief, limits=self._limits, max_tokens=self._max_tokens)
        return replace(briefing, brief=brief)

    def _described(self, task: Task, plan: Plan, facet: ir.Facet) -> Briefing:
        types = JsonTypes(plan.program)
        doc = types.doc(facet.name)
        params = params_of(task)
        told = [literal(f"The step is `{facet.name}`."), literal(doc.text)]
        if params:
            told.append("It is given:\n" + "\n".join(_given(name, doc.params) for name in params))
        step = task.input.get("step") if isinstance(task.input, dict) else None
        brief = Brief(
            system=_SYSTEM,
            template="\n\n".join(part for part in told if part),
            models=(self._model,),
            returns=types.returns(facet),
        )
        return Briefing(
            brief, params, facet=facet.name, step=step if isinstance(step, str) else None
        )


def _given(name: str, docs: Mapping[str, str]) -> str:
    comment = docs.get(name)
    about = f" ({literal(comment)})" if comment else ""
    return f"- {name}{about}: {{{name}}}"
