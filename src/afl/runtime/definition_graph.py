"""The definition graph of a workflow, as the steps of a run know it: one node for each statement.

A node's id is what the steps of the statement carry as `statement_id`, so whoever has counted the
steps by statement can put the counts on the graph. Plain blocks are left out: what is in them
stands in what holds them. The body of a facet stands in the one step that calls it; if there are
several such steps, it stands beside them once, and they lead to it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from afl.ir import model as ir
from afl.runtime.plan import Plan
from afl.runtime.submitting import refuse_unknown_workflow

NodeKind = Literal["step", "block", "foreach", "when", "catch", "yield", "workflow"]


@dataclass(frozen=True, slots=True)
class DefinitionNode:
    """A statement, or what holds some. Statements that call nothing have `log`, `assert` or
    `script` as their facet."""

    id: str
    name: str
    facet: str
    kind: NodeKind
    #: the node that it stands in; the workflow stands in nothing
    parent: str | None
    #: where it stands in the source
    line: int | None


@dataclass(frozen=True, slots=True)
class DefinitionEdge:
    """`target` needs `source`, catches it, or is the body that it calls."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DefinitionGraph:
    """The graph of one workflow, in the order in which it is written."""

    #: names the shape alone: the same for programs that differ elsewhere, or in their lines
    hash: str
    workflow: str
    nodes: tuple[DefinitionNode, ...]
    edges: tuple[DefinitionEdge, ...]


def definition_graph(program: ir.Program | Plan, workflow: str) -> DefinitionGraph:
    """The graph of a workflow of a program.

    Raises:
        UnknownFacet: the program has no such workflow.
    """
    plan = program if isinstance(program, Plan) else Plan(program)
    refuse_unknown_workflow(plan, workflow)
    walk = _Walk(plan.program)
    walk.workflow(workflow)
    nodes, edges = tuple(walk.nodes), tuple(_drawable(walk))
    return DefinitionGraph(_hash(workflow, nodes, edges), workflow, nodes, edges)


def _hash(workflow: str, nodes: Sequence[DefinitionNode], edges: Sequence[DefinitionEdge]) -> str:
    shape = [
        workflow,
        [[each.id, each.name, each.facet, each.kind, each.parent] for each in nodes],
        [[each.source, each.target] for each in edges],
    ]
    return hashlib.sha256(json.dumps(shape, separators=(",", ":")).encode()).hexdigest()


def _drawable(walk: _Walk) -> Iterator[DefinitionEdge]:
    """The edges between nodes that there are, each once, and none into its own inside."""
    parents = {node.id: node.parent for node in walk.nodes}
    for edge in dict.fromkeys(walk.edges):
        if edge.source not in parents or edge.target not in parents:
            continue
        inside: str | None = edge.target
        while inside is not None and inside != edge.source:
            inside = parents[inside]
        if inside is None:
            yield edge


def _short(name: str) -> str:
    return name.rpartition(".")[2]


class _Walk:
    """Goes through a workflow, and through what it calls."""

    def __init__(self, program: ir.Program) -> None:
        self._facets = {facet.name: facet for facet in program.facets}
        self._spans = program.spans
        self._shared: frozenset[str] = frozenset()
        self.nodes: list[DefinitionNode] = []
        self.edges: list[DefinitionEdge] = []

    def workflow(self, name: str) -> None:
        sites = Counter(self._called(name))
        self._shared = frozenset(facet for facet, count in sites.items() if count > 1)
        self._add(name, _short(name), name, "workflow", None)
        self._declaration(self._facets[name], name)
        for facet in sites:
            if facet in self._shared:
                self._add(facet, _short(facet), facet, "block", name)
                self._declaration(self._facets[facet], facet)

    def _called(self, root: str) -> Iterator[str]:
        """The facets whose bodies run in a run of the workflow, once for each place of a call."""
        waiting, seen = [root], {root}
        while waiting:
            for facet in _calls(self._facets[waiting.pop()]):
                if self._has_body(facet):
                    yield facet
                    if facet not in seen:
                        seen.add(facet)
                        waiting.append(facet)

    def _has_body(self, name: str) -> bool:
        """Whether there is more to a call than a task. A workflow is called as another run."""
        facet = self._facets.get(name)
        if facet is None or facet.kind == "workflow":
            return False
        return bool(facet.clauses or facet.catch or any(each.alias for each in facet.mixins))

    def _declaration(self, facet: ir.Facet, parent: str) -> None:
        for mixin in facet.mixins:
            if mixin.alias is not None:
                self._add(mixin.id, mixin.alias, mixin.facet, "step", parent)
                self._call(mixin.id, mixin.facet)
        self._clauses(facet.clauses, parent)
        if facet.catch is not None:
            self._catch(facet.catch, parent)

    def _call(self, id: str, facet: str) -> None:
        if facet in self._shared:
            self.edges.append(DefinitionEdge(id, facet))
        elif self._has_body(facet):
            self._declaration(self._facets[facet], id)

    def _clauses(self, clauses: Sequence[ir.Clause], parent: str) -> None:
        for clause in clauses:
            self._clause(clause, parent)

    def _clause(self, clause: ir.Clause, parent: str) -> None:
        holder = clause.id
        if clause.foreach is not None:
            name = f"foreach {clause.foreach.variable}"
            self._add(clause.id, name, "", "foreach", parent)
        elif isinstance(clause.body, ir.When):
            self._add(clause.id, "when", "", "when", parent)
        elif isinstance(clause.body, ir.Script):
            self._add(clause.id, "script", "script", "step", parent)
        elif clause.catch is not None:
            self._add(clause.id, "andThen", "", "block", parent)
        else:
            holder = parent
        self._need(clause.id, clause.needs)
        self._body(clause.body, holder)
        if clause.catch is not None:
            self.edges.append(DefinitionEdge(clause.id, clause.catch.id))
            self._catch(clause.catch, parent)

    def _catch(self, catch: ir.Catch, parent: str) -> None:
        self._add(catch.id, "catch", "", "catch", parent)
        self._need(catch.id, catch.needs)
        self._body(catch.body, catch.id)

    def _body(self, body: ir.Block | ir.When | ir.Script, holder: str) -> None:
        if isinstance(body, ir.Block):
            self._block(body, holder)
        elif isinstance(body, ir.When):
            for number, case in enumerate(body.cases, 1):
                name = "case _" if case.condition is None else f"case {number}"
                self._add(case.id, name, "", "block", holder)
                self._block(case.block, case.id)

    def _block(self, block: ir.Block, holder: str) -> None:
        for statement in block.statements:
            self._need(statement.id, statement.needs)
            match statement:
                case ir.Step():
                    self._step(statement, holder)
                case ir.Yield():
                    self._add(statement.id, "yield", "", "yield", holder)
                case ir.Log():
                    self._add(statement.id, "log", "log", "step", holder)
                case ir.Assert():
                    self._add(statement.id, "assert", "assert", "step", holder)

    def _step(self, step: ir.Step, holder: str) -> None:
        self._add(step.id, step.name, step.facet, "step", holder)
        if step.clauses:
            # they run in place of the facet's own
            self._clauses(step.clauses, step.id)
        elif step.kind != "schema":
            self._call(step.id, step.facet)
        if step.catch is not None:
            self.edges.append(DefinitionEdge(step.id, step.catch.id))
            self._catch(step.catch, holder)

    def _need(self, id: str, needs: Sequence[str]) -> None:
        self.edges.extend(DefinitionEdge(need, id) for need in needs)

    def _add(self, id: str, name: str, facet: str, kind: NodeKind, parent: str | None) -> None:
        span = self._spans.get(id)
        line = None if span is None else span.line
        self.nodes.append(DefinitionNode(id, name, facet, kind, parent, line))


def _calls(facet: ir.Facet) -> Iterator[str]:
    """The facets that a declaration calls without a body of their own, one for each call."""
    yield from (mixin.facet for mixin in facet.mixins if mixin.alias is not None)
    yield from _calls_of_clauses(facet.clauses)
    yield from _calls_of_catch(facet.catch)


def _calls_of_clauses(clauses: Sequence[ir.Clause]) -> Iterator[str]:
    for clause in clauses:
        yield from _calls_of_body(clause.body)
        yield from _calls_of_catch(clause.catch)


def _calls_of_catch(catch: ir.Catch | None) -> Iterator[str]:
    if catch is not None:
        yield from _calls_of_body(catch.body)


def _calls_of_body(body: ir.Block | ir.When | ir.Script) -> Iterator[str]:
    match body:
        case ir.Block():
            blocks = [body]
        case ir.When():
            blocks = [case.block for case in body.cases]
        case ir.Script():
            blocks = []
    for block in blocks:
        for step in block.statements:
            if isinstance(step, ir.Step):
                if not step.clauses and step.kind != "schema":
                    yield step.facet
                yield from _calls_of_clauses(step.clauses)
                yield from _calls_of_catch(step.catch)
