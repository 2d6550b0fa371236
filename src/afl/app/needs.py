"""What a program needs that somebody has to serve."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from afl.app.app import App
from afl.ir.model import Facet, Literal, Policy, Program, SourceSpan
from afl.ir.walking import calls, parts
from afl.kernel.rules import serves
from afl.runtime.calls import ASK, SEND, SLEEP, UNTIL, WAIT

#: What the engine does itself.
_BUILT_IN = (SLEEP, UNTIL, WAIT, SEND, ASK)


def _no_model(_facet: Facet) -> bool:
    """Whether a model answers a facet, where there is none."""
    return False


@dataclass(frozen=True, slots=True)
class Need:
    """An event facet that a workflow calls, and the first step that does."""

    facet: Facet
    step: str
    place: SourceSpan | None


def needs_of(
    program: Program, workflow: str, by_model: Callable[[Facet], bool] = _no_model
) -> list[Need]:
    """The event facets that somebody has to serve for a workflow to get through: those that models
    do not answer, and the tools of those that they do."""
    facets = {facet.name: facet for facet in program.facets}
    found: dict[str, Need] = {}
    seen = {workflow}
    rest = [facets[workflow]]
    while rest:
        caller = rest.pop()
        called = [(part.facet, part.id) for part in calls(caller)]
        if caller.prompt is not None and by_model(caller):
            called += [(tool.name, caller.name) for tool in caller.prompt.tools]
        for name, where in called:
            facet = facets.get(name)
            if facet is None or facet.name in seen:
                continue
            seen.add(facet.name)
            rest.append(facet)
            if _is_served(facet) and not by_model(facet):
                found[facet.name] = Need(facet, where, program.spans.get(where))
    return list(found.values())


def missing_from(
    app: App | None,
    program: Program,
    workflow: str,
    by_model: Callable[[Facet], bool] = _no_model,
) -> list[Need]:
    """What a workflow needs and neither an app serves nor a model answers."""
    served = [] if app is None else app.facets

    def answers(facet: Facet) -> bool:
        return by_model(facet) and not serves(served, facet.name)

    needs = needs_of(program, workflow, answers)
    return [need for need in needs if not serves(served, need.facet.name)]


def unserved(program: Program, served: Collection[str]) -> list[str]:
    """The event facets of a program, but for those for people, that are not among the served."""
    return [
        facet.name
        for facet in program.facets
        if needs_worker(facet) and not serves(served, facet.name)
    ]


def is_for_a_person(facet: Facet) -> bool:
    """Whether a person does the work of a facet."""
    return any(policy.name.rpartition(".")[2] == "Human" for policy in facet.policies)


def needs_worker(facet: Facet) -> bool:
    """Whether a facet is done by a handler or a model of a worker."""
    return _is_served(facet) and not is_for_a_person(facet)


def _is_served(facet: Facet) -> bool:
    """Whether a facet needs somebody to serve it."""
    return facet.kind == "event" and facet.script is None and facet.name not in _BUILT_IN


def lists_of(program: Program) -> tuple[str, ...]:
    """The lists of tasks that a program names; one that it computes is not among them."""
    named = {
        argument.value.value
        for part in parts(program.facets)
        if isinstance(part, Policy) and part.name.rpartition(".")[2] == "Queue"
        for argument in part.args
        if isinstance(argument.value, Literal)
    }
    return ("default", *sorted(str(name) for name in named if name != "default"))
