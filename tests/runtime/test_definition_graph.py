"""The definition graph: its nodes are what steps are instances of, its edges what they wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from afl.app.compiling import compile_program
from afl.runtime.definition_graph import DefinitionGraph, definition_graph
from afl.runtime.errors import UnknownFacet
from afl.runtime.plan import Plan
from afl.runtime.states import ObjectType
from afl.runtime.step import StepDefinition
from afl.testing.engine import Engine

EXAMPLES = Path(__file__).parents[2] / "examples"

EVERYTHING = """
namespace t {
  event facet Get(n: Long) => (r: Long)
  event facet Bad(n: Long) => (r: Long)
  event facet Start() => (token: String)

  facet Twice(n: Long) => (r: Long) andThen {
    a = Get(n = $.n)
    b = Get(n = a.r)
    yield Twice(r = b.r)
  }

  facet Once(n: Long) => (r: Long) andThen {
    inner = Twice(n = $.n)
    yield Once(r = inner.r)
  }

  workflow Child(n: Long) => (r: Long) andThen {
    got = Get(n = $.n)
    yield Child(r = got.r)
  }

  workflow W(xs: [Long]) => (sum: Long, seen: [Long], note: String?) with Start() as start
  andThen {
    first = Get(n = 1)
    one = Once(n = first.r)
    two = Twice(n = one.r)
    saved = Bad(n = 2) catch {
      again = Get(n = first.r)
      yield Bad(r = again.r)
    }
    child = Child(n = saved.r)
    sys.assert(two.r > 0)
    sys.log(two = two.r)
    yield W(sum = two.r + child.r)
  } andThen foreach x in $.xs {
    each = Get(n = $.x + first.r)
    yield W(seen = [each.r])
  } andThen when {
    case first.r > 0 => {
      chosen = Get(n = 3)
    }
    case _ => {
      other = Get(n = 4)
    }
  } andThen {
    risky = Bad(n = 9)
    yield W(note = "never")
  } catch {
    yield W(note = error.type)
  }
}
"""


def _played() -> tuple[DefinitionGraph, list[StepDefinition]]:
    engine = Engine()
    program = engine.compile(EVERYTHING)
    engine.stub("Get", returns=lambda n: {"r": n})
    engine.stub("Bad", raises=ValueError("no"))
    engine.stub("Start", returns={"token": "t"})
    run = engine.run("t.W", {"xs": [1, 2, 3]})
    assert run.success, run.error
    found = engine.operations.list(workflow="t.W")[0]
    return definition_graph(engine.evaluator.plans.get(program), "t.W"), (
        engine.store.get_steps_by_workflow(found.id)
    )


def test_every_step_is_an_instance_of_a_node() -> None:
    graph, steps = _played()
    nodes = {node.id: node for node in graph.nodes}
    assert len(nodes) == len(graph.nodes)
    plain = {step.statement_id for step in steps if step.statement_id not in nodes}
    assert plain == {"t.W/0", "t.Twice/0", "t.Once/0"}
    for step in steps:
        if step.object_type in (ObjectType.VARIABLE_ASSIGNMENT, ObjectType.MIXIN):
            assert nodes[step.statement_id].kind == "step"
            assert nodes[step.statement_id].facet == step.facet_name
    kinds = {node.id: node.kind for node in graph.nodes}
    assert kinds["t.W"] == "workflow"
    assert kinds["t.W/1"] == "foreach"
    assert kinds["t.W/2"] == "when"
    assert kinds["t.W/2/case-0"] == "block"
    assert kinds["t.W/3"] == "block"
    assert kinds["t.W/3/catch"] == "catch"
    assert kinds["t.W/0/yield-0"] == "yield"


def test_a_body_stands_in_its_only_caller_and_else_beside_all_of_them() -> None:
    graph = definition_graph(compile_program(EVERYTHING), "t.W")
    parents = {node.id: node.parent for node in graph.nodes}
    assert parents["t.W"] is None
    assert parents["t.W/0/one"] == "t.W"
    assert parents["t.Once/0/inner"] == "t.W/0/one"
    assert parents["t.Twice"] == "t.W"
    assert parents["t.Twice/0/a"] == "t.Twice"
    assert parents["t.W/1/each"] == "t.W/1"
    assert parents["t.W/with/start"] == "t.W"
    assert "t.Child/0/got" not in parents, "another run"
    assert set(parents.values()) - {None} <= parents.keys()


def test_edges_are_what_waits_for_what() -> None:
    graph = definition_graph(compile_program(EVERYTHING), "t.W")
    edges = {(edge.source, edge.target) for edge in graph.edges}
    assert len(edges) == len(graph.edges)
    assert {
        ("t.W/0/first", "t.W/0/one"),
        ("t.W/0/first", "t.W/1/each"),
        ("t.W/0/first", "t.W/2"),
        ("t.W/0/saved", "t.W/0/saved/catch"),
        ("t.W/0/first", "t.W/0/saved/catch/again"),
        ("t.W/3", "t.W/3/catch"),
        ("t.Twice/0/a", "t.Twice/0/b"),
        ("t.W/0/two", "t.Twice"),
        ("t.Once/0/inner", "t.Twice"),
    } <= edges


def test_the_hash_names_the_shape_alone() -> None:
    graph = definition_graph(Plan(compile_program(EVERYTHING)), "t.W")
    moved = definition_graph(compile_program("\n\n// a comment\n" + EVERYTHING), "t.W")
    other = definition_graph(compile_program(EVERYTHING.replace("other =", "third =")), "t.W")
    assert graph.hash == moved.hash != other.hash
    lines = {node.id: node.line for node in graph.nodes}
    assert lines["t.W/0/first"] == EVERYTHING.split("first = Get")[0].count("\n") + 1
    assert {node.id: node.line for node in moved.nodes}["t.W/0/first"] == lines["t.W/0/first"] + 3


@pytest.mark.parametrize(
    "folder", ["approval", "errors", "fanout", "hello", "pipelines", "review", "two_files"]
)
def test_graphs_of_examples_are_whole(folder: str) -> None:
    program = compile_program(EXAMPLES / folder)
    for facet in program.facets:
        if facet.kind == "workflow":
            graph = definition_graph(program, facet.name)
            ids = {node.id for node in graph.nodes}
            assert len(ids) == len(graph.nodes) > 1
            assert all(edge.source in ids and edge.target in ids for edge in graph.edges)


def test_there_is_no_graph_of_what_is_no_workflow() -> None:
    with pytest.raises(UnknownFacet, match=r"Did you mean `t\.W`"):
        definition_graph(compile_program(EVERYTHING), "W")
