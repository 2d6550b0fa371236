"""Workflows and facets as pages and forms need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.app.needs import needs_worker
from afl.ir import model as ir
from afl.ir.types import OptionalOf, type_text
from afl.kernel.model import Json, Worker
from afl.kernel.rules import serves
from afl.runtime.definition_graph import DefinitionGraph
from afl.runtime.expressions import constant
from afl.runtime.json_types import JsonTypes, Schema
from afl.server.models.runs import GraphEdge, GraphNode, GraphView
from afl.server.models.system import FacetView, Parameter, WorkflowView

_EXEC = "afl.exec."


def workflow_views(program: ir.Program) -> list[WorkflowView]:
    """What can be started."""
    types = JsonTypes(program)
    return [_workflow(program, types, each) for each in program.facets if each.kind == "workflow"]


def facet_views(program: ir.Program, workers: Sequence[Worker]) -> list[FacetView]:
    """What is called, and how many live workers serve it."""
    types = JsonTypes(program)
    return [
        FacetView(
            name=facet.name,
            kind=kind_of(facet),
            doc=types.doc(facet.name).text or None,
            parameters=_parameters(facet.params, types.params(facet)),
            returns=_parameters(facet.returns, types.returns(facet)),
            workers=_serving(facet, workers) if needs_worker(facet) else None,
        )
        for facet in program.facets
        if facet.kind != "workflow"
    ]


def unserved(program: ir.Program, workers: Sequence[Worker]) -> list[str]:
    """The facets that need a worker and have none that lives."""
    return [
        facet.name
        for facet in program.facets
        if needs_worker(facet) and not _serving(facet, workers)
    ]


def kind_of(facet: ir.Facet) -> str:
    """Who does the work of a facet: event, prompt, script, human, exec or plain."""
    if facet.kind != "event":
        return "plain"
    if facet.prompt is not None:
        return "prompt"
    if facet.script is not None:
        return "script"
    if _policy(facet, "Human") is not None:
        return "human"
    return "exec" if facet.name.startswith(_EXEC) else "event"


def graph_view(
    graph: DefinitionGraph, states: Mapping[str, Mapping[str, int]] | None = None
) -> GraphView:
    """A graph, with how many steps of each statement are in which state; before any run, none."""
    known = states or {}
    return GraphView(
        hash=graph.hash,
        workflow=graph.workflow,
        nodes=[
            GraphNode(
                id=node.id,
                name=node.name,
                facet=node.facet,
                kind=node.kind,
                parent=node.parent,
                states=dict(known.get(node.id, {})),
                line=node.line,
            )
            for node in graph.nodes
        ],
        edges=[GraphEdge(source=edge.source, target=edge.target) for edge in graph.edges],
    )


def _workflow(program: ir.Program, types: JsonTypes, facet: ir.Facet) -> WorkflowView:
    span = program.spans.get(facet.name)
    return WorkflowView(
        name=facet.name,
        doc=types.doc(facet.name).text or None,
        parameters=_parameters(facet.params, types.params(facet)),
        returns=_parameters(facet.returns, types.returns(facet)),
        file=None if span is None else span.file,
        line=None if span is None else span.line,
    )


def _parameters(params: Sequence[ir.Param], schema: Schema) -> list[Parameter]:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return [_parameter(each, properties[each.name], schema) for each in params]


def _parameter(param: ir.Param, form: Json, schema: Schema) -> Parameter:
    assert isinstance(form, dict)
    doc = form.get("description")
    if "$defs" in schema:
        form = {**form, "$defs": schema["$defs"]}
    return Parameter.model_validate(
        {
            "name": param.name,
            "type": type_text(param.type),
            "form": form,
            "required": param.default is None and not isinstance(param.type, OptionalOf),
            "default": None if param.default is None else constant(param.default),
            "doc": doc,
        }
    )


def _serving(facet: ir.Facet, workers: Sequence[Worker]) -> int:
    queue = (_policy(facet, "Queue") or {}).get("name", "default")
    return sum(
        serves(each.handlers, facet.name) and (queue is None or queue in each.lists)
        for each in workers
    )


def _policy(facet: ir.Facet, name: str) -> Mapping[str, Json] | None:
    """The arguments of a policy, those that are computed as null; None if there is none."""
    for policy in facet.policies:
        if policy.name.rpartition(".")[2] == name:
            return {
                each.name: each.value.value if isinstance(each.value, ir.Literal) else None
                for each in policy.args
            }
    return None
