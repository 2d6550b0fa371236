"""The definition graph of a workflow: its steps, what holds them, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from afl.cli.unparse import expression_text, namespace_of, short_name, step_name
from afl.ir import model as ir

NodeKind = Literal[
    "event", "prompt", "human", "facet", "workflow", "schema", "script", "yield", "empty"
]
ClusterKind = Literal["workflow", "foreach", "when", "case", "catch", "body", "block"]
EdgeKind = Literal["data", "after", "catch"]

#: What a clause is called.
_WORDS = {ir.Block: "andThen", ir.When: "when", ir.Script: "script"}


@dataclass(frozen=True, slots=True)
class Node:
    """A step, a yield or a script. `detail` is the facet of a step, or what a yield gives."""

    id: str
    kind: NodeKind
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that belong together. It has always at least one item."""

    id: str
    kind: ClusterKind
    label: str
    items: tuple[Item, ...]


Item = Node | Cluster


@dataclass(frozen=True, slots=True)
class Edge:
    """The target waits for the source: to read it, by `after`, or to catch its failure."""

    source: str
    target: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Graph:
    """A workflow with its name; `root` has everything that is drawn."""

    name: str
    root: Cluster
    edges: tuple[Edge, ...]

    def parents(self) -> dict[str, str]:
        """Which cluster each item stands in."""
        return {item.id: cluster.id for cluster in clusters(self.root) for item in cluster.items}


def clusters(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster and all that are inside of it."""
    yield cluster
    for item in cluster.items:
        if isinstance(item, Cluster):
            yield from clusters(item)


def simplified(graph: Graph) -> Graph:
    """The graph without arrows into a cluster that waits for the same source as a whole."""
    parents = graph.parents()
    waits = {(edge.source, edge.target) for edge in graph.edges}

    def is_implied(edge: Edge) -> bool:
        item = edge.target
        while item in parents:
            item = parents[item]
            if (edge.source, item) in waits:
                return True
        return False

    return Graph(
        graph.name, graph.root, tuple(edge for edge in graph.edges if not is_implied(edge))
    )


def build_graph(program: ir.Program, workflow: ir.Facet) -> Graph:
    """The graph of a workflow, or of any facet with a body."""
    builder = _Builder({facet.name: facet for facet in program.facets}, namespace_of(workflow.name))
    items = builder.declaration(workflow)
    root = Cluster(workflow.name, "workflow", workflow.name, items)
    graph = Graph(workflow.name, root, ())
    return Graph(workflow.name, root, tuple(_drawable(builder.edges, graph.parents())))


def _drawable(edges: list[Edge], parents: Mapping[str, str]) -> Iterator[Edge]:
    """The edges between items that are shown, each once, and none into its own inside."""
    seen = set()
    for edge in edges:
        key = (edge.source, edge.target)
        shown = edge.source in parents and edge.target in parents
        if key not in seen and shown and not _contains(parents, edge.source, edge.target):
            seen.add(key)
            yield edge


def _contains(parents: Mapping[str, str], outer: str, inner: str) -> bool:
    while inner != outer and inner in parents:
        inner = parents[inner]
    return inner == outer


class _Builder:
    def __init__(self, facets: Mapping[str, ir.Facet], namespace: str) -> None:
        self._facets = facets
        self._namespace = namespace
        self.edges: list[Edge] = []

    def declaration(self, facet: ir.Facet) -> tuple[Item, ...]:
        items: list[Item] = [
            Node(mixin.id, self._kind(mixin.facet, ()), mixin.alias, self._short(mixin.facet))
            for mixin in facet.mixins
            if mixin.alias is not None
        ]
        if facet.script is not None:
            items.append(Node(f"{facet.name}/script", "script", "script", "sets the inputs"))
        items += self._clauses(facet.clauses)
        if facet.catch is not None:
            items.append(self._catch(facet.catch, f"catch {self._short(facet.name)}"))
        return self._filled(facet.name, items)

    def _clauses(self, clauses: tuple[ir.Clause, ...]) -> list[Item]:
        return [item for clause in clauses for item in self._clause(clause)]

    def _clause(self, clause: ir.Clause) -> list[Item]:
        self._need(clause.needs, clause.id)
        items: list[Item]
        match clause.body:
            case ir.Script():
                items = [Node(clause.id, "script", "script", "sets the returns")]
            case ir.When() as when:
                items = [Cluster(clause.id, "when", "when", self._cases(when))]
            case ir.Block() as block if clause.foreach is not None:
                label = self._foreach(clause.foreach)
                items = [Cluster(clause.id, "foreach", label, self._block(clause.id, block))]
            case ir.Block() as block if clause.catch is not None:
                items = [Cluster(clause.id, "block", "andThen", self._block(clause.id, block))]
            case ir.Block() as block:
                items = [item for each in block.statements for item in self._statement(each)]
        if clause.catch is not None:
            self.edges.append(Edge(clause.id, clause.catch.id, "catch"))
            guarded = "foreach" if clause.foreach is not None else _WORDS[type(clause.body)]
            items.append(self._catch(clause.catch, f"catch {guarded}"))
        return items

    def _foreach(self, foreach: ir.Foreach) -> str:
        iterable = expression_text(foreach.iterable, self._namespace)
        text = f"foreach {foreach.variable} in {iterable}"
        if foreach.limit is not None:
            text += f" limit {expression_text(foreach.limit, self._namespace)}"
        return text

    def _cases(self, when: ir.When) -> tuple[Item, ...]:
        return tuple(
            Cluster(case.id, "case", self._condition(case), self._block(case.id, case.block))
            for case in when.cases
        )

    def _condition(self, case: ir.Case) -> str:
        if case.condition is None:
            return "case _"
        return f"case {expression_text(case.condition, self._namespace)}"

    def _catch(self, catch: ir.Catch, label: str) -> Cluster:
        self._need(catch.needs, catch.id)
        if isinstance(catch.body, ir.When):
            return Cluster(catch.id, "catch", label, self._cases(catch.body))
        return Cluster(catch.id, "catch", label, self._block(catch.id, catch.body))

    def _block(self, id: str, block: ir.Block) -> tuple[Item, ...]:
        items = [item for each in block.statements for item in self._statement(each)]
        return self._filled(id, items)

    def _filled(self, id: str, items: list[Item]) -> tuple[Item, ...]:
        """Every cluster shows something, also one with nothing to do."""
        return tuple(items) or (Node(f"{id}/empty", "empty", "nothing to do", ""),)

    def _statement(self, statement: ir.Statement) -> Iterator[Item]:
        match statement:
            case ir.Step():
                yield from self._step(statement)
            case ir.Yield():
                self._need(statement.needs, statement.id)
                yield self._yield(statement)

    def _step(self, step: ir.Step) -> Iterator[Item]:
        self._need(step.needs, step.id, step.after)
        if step.clauses:
            # the body runs in place of the facet's own, so it is the step
            label = f"{step.name} = {self._short(step.facet)}"
            items = self._filled(step.id, self._clauses(step.clauses))
            yield Cluster(step.id, "body", label, items)
        else:
            kind = "schema" if step.kind == "schema" else self._kind(step.facet, step.policies)
            yield Node(step.id, kind, step.name, self._short(step.facet))
        if step.catch is not None:
            self.edges.append(Edge(step.id, step.catch.id, "catch"))
            yield self._catch(step.catch, f"catch {step.name}")

    def _yield(self, statement: ir.Yield) -> Node:
        owners = [self._short(step_name(target.owner)) for target in statement.targets]
        names = [arg.name for target in statement.targets for arg in target.args]
        return Node(statement.id, "yield", f"yield {', '.join(owners)}", ", ".join(names))

    def _kind(self, facet: str, policies: tuple[ir.Policy, ...]) -> NodeKind:
        declared = self._facets[facet]
        if declared.kind != "event":
            return declared.kind
        if any(policy.name == "Human" for policy in (*declared.policies, *policies)):
            return "human"
        return "prompt" if declared.prompt is not None else "event"

    def _need(self, needs: tuple[str, ...], id: str, after: tuple[str, ...] = ()) -> None:
        for source in needs:
            self.edges.append(Edge(source, id, "after" if source in after else "data"))

    def _short(self, name: str) -> str:
        return short_name(name, self._namespace)
