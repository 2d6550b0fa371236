"""All turns that a worker can serve: those of facets and those of agents."""

from __future__ import annotations

from afl.kernel.model import Task
from afl.turns.errors import BadBrief
from afl.turns.ports import Briefing, Briefs


class AllBriefs:
    """`ports.Briefs` that asks whoever knows what a turn is to do."""

    def __init__(self, facets: Briefs, agents: Briefs) -> None:
        self._facets = facets
        self._agents = agents

    def names(self) -> tuple[str, ...]:
        return (*self._facets.names(), *self._agents.names())

    def brief(self, task: Task) -> Briefing:
        given = task.input if isinstance(task.input, dict) else {}
        if "agent" in given:
            return self._agents.brief(task)
        if "facet" in given and "program" in given:
            return self._facets.brief(task)
        raise BadBrief(
            "The turn names neither an agent nor a facet of a program, so nobody can tell what it "
            "is to do."
        )
