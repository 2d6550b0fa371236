"""The ways of steps through their states, without the states in which nothing happens to them.

Most states are there for what most steps do not have: scripts, mixins, a body. What a step has is
known from its program; so where it has to stop on its way is found out once, and not by stopping.
"""

from __future__ import annotations

from collections.abc import Mapping

from afl.ir import model as ir
from afl.runtime.handlers import handlers_of
from afl.runtime.plan import Plan
from afl.runtime.states import BLOCKS, TERMINAL, ObjectType, StepState, transitions_of
from afl.runtime.step import StepDefinition

#: For every state in which nothing happens, the next one in which something does, or the last.
Route = Mapping[str, str]

_STEPS = (ObjectType.WORKFLOW, ObjectType.VARIABLE_ASSIGNMENT, ObjectType.MIXIN)
#: What its handler does is what the table does.
_ALWAYS_QUIET = frozenset((StepState.STATEMENT_END,))
_SCRIPTS = (StepState.FACET_SCRIPTS_BEGIN, StepState.FACET_SCRIPTS_CONTINUE)
_MIXINS = (
    StepState.MIXIN_BLOCKS_BEGIN,
    StepState.MIXIN_BLOCKS_CONTINUE,
    StepState.MIXIN_CAPTURE_BEGIN,
)
_BODY = (StepState.STATEMENT_BLOCKS_BEGIN, StepState.STATEMENT_BLOCKS_CONTINUE)


def route_of(plan: Plan, step: StepDefinition) -> Route:
    """The route of a step."""
    key = (step.object_type, step.statement_id, step.facet_name)
    route = plan.routes.get(key)
    if route is None:
        route = plan.routes[key] = _route(step.object_type, _quiet(plan, *key))
    return route


def _quiet(plan: Plan, object_type: str, statement: str, facet: str) -> frozenset[str]:
    """The states that have something to do, but not for such a step."""
    if object_type not in _STEPS or not plan.has_facet(facet):
        return _ALWAYS_QUIET
    found = plan.facet(facet)
    called = found.facet
    quiet: list[str] = []
    if called.script is None or found.is_event:
        quiet += _SCRIPTS
    if not found.mixins:
        quiet += _MIXINS
    clauses = called.clauses
    if object_type == ObjectType.VARIABLE_ASSIGNMENT:
        node = plan.statement(statement).node
        assert isinstance(node, ir.Step)
        clauses = node.clauses or clauses
        if called.kind == "workflow" and not node.clauses:
            # a run of its own
            return _ALWAYS_QUIET.union(quiet, _BODY)
    if not found.is_event and called.kind != "workflow":
        quiet.append(StepState.EVENT_TRANSMIT)
    if not clauses:
        quiet += _BODY
    return _ALWAYS_QUIET.union(quiet)


def every_state(object_type: str) -> Route:
    """The route that leaves out nothing, for those who want to be told of each state."""
    return _EVERY_STATE[object_type in BLOCKS, object_type in _STEPS]


def _route(object_type: str, quiet: frozenset[str]) -> Route:
    transitions, handlers = transitions_of(object_type), handlers_of(object_type)
    route: dict[str, str] = {}
    for state in transitions:
        to = state
        while to not in TERMINAL and (to not in handlers or to in quiet):
            to = transitions[to]
        if to != state:
            route[state] = to
    return route


_EVERY_STATE = {
    (each in BLOCKS, each in _STEPS): _route(each, frozenset())
    for each in (ObjectType.BLOCK, ObjectType.WORKFLOW, ObjectType.SYS_LOG)
}
