"""`afl graph`: the model, and every way to draw it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from afl.cli import exit_codes
from afl.cli.graph.model import Edge, Graph, Node, build_graph, clusters, simplified
from afl.cli.graph.svg import to_svg
from afl.lang.api import compile_sources
from tests.cli.programs import EVERYTHING, GOOD, UNKNOWN_TYPE
from tests.cli.runner import run

FORMATS = ("text", "mermaid", "dot", "svg", "json")


def graph_of(text: str, name: str) -> Graph:
    program = compile_sources([("a.afl", text)]).program
    assert program is not None
    return build_graph(program, next(facet for facet in program.facets if facet.name == name))


@pytest.fixture(scope="module")
def order() -> Graph:
    return graph_of(EVERYTHING, "shop.Order")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.afl"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


def _nodes(graph: Graph) -> dict[str, Node]:
    items = [item for cluster in clusters(graph.root) for item in cluster.items]
    return {item.name: item for item in items if isinstance(item, Node) and item.kind != "yield"}


def test_every_step_has_its_kind(order: Graph) -> None:
    assert {name: (node.kind, node.detail) for name, node in _nodes(order).items()} == {
        "order": ("event", "Load"),
        "risk": ("prompt", "Risk"),
        "first": ("schema", "Item"),
        "sub": ("workflow", "Sub"),
        "note": ("facet", "Note"),
        "pay": ("event", "Charge"),
        "inner": ("event", "Charge"),
        "each": ("workflow", "Sub"),
        "ask": ("human", "Ask"),
    }


def test_blocks_are_clusters(order: Graph) -> None:
    found = [(cluster.kind, cluster.label) for cluster in clusters(order.root)]
    assert found == [
        ("workflow", "shop.Order"),
        ("catch", "catch pay"),
        ("body", "group = Group"),
        ("foreach", "foreach item in order.items limit 4"),
        ("when", "when"),
        ("case", 'case risk.score > 0.5 && pay.receipt != "a \\"b\\" <c> & d"'),
        ("case", "case _"),
        ("catch", "catch Order"),
    ]


def test_edges_say_why(order: Graph) -> None:
    base = "shop.Order/0"
    assert Edge(f"{base}/order", f"{base}/pay", "data") in order.edges
    assert Edge(f"{base}/risk", f"{base}/pay", "after") in order.edges
    assert Edge(f"{base}/pay", f"{base}/pay/catch", "catch") in order.edges
    assert Edge(f"{base}/order", "shop.Order/1", "data") in order.edges
    assert Edge(f"{base}/risk", "shop.Order/2", "data") in order.edges


def test_arrows_that_a_cluster_implies_are_not_drawn(order: Graph) -> None:
    inner = Edge("shop.Order/0/pay", "shop.Order/2/case-0/ask", "data")
    assert inner in order.edges
    assert inner not in simplified(order).edges
    assert Edge("shop.Order/0/pay", "shop.Order/2", "data") in simplified(order).edges


def test_a_catch_around_a_block_guards_a_cluster() -> None:
    text = GOOD.replace("yield Hello(text = hello.text)\n  }", "yield Hello(text = hello.text)\n  }"
                        ' catch when { case _ => { yield Hello(text = "") } }')  # fmt: skip
    graph = graph_of(text, "demo.Hello")
    assert [(cluster.kind, cluster.label) for cluster in clusters(graph.root)][1:] == [
        ("block", "andThen"),
        ("catch", "catch andThen"),
        ("case", "case _"),
    ]
    assert Edge("demo.Hello/0", "demo.Hello/0/catch", "catch") in graph.edges


def test_scripts_mixins_and_empty_blocks_are_shown() -> None:
    text = """
    namespace demo {
      event facet User(name: String) => (id: String)
      event facet Act(a: String)
      workflow W(name: String) => (x: String?) with User(name = $.name) as user
      script { params["name"] = "x" }
      andThen script { result["x"] = "y" }
      andThen when {
        case $.name == "a" => { step = Act(a = $.user.id) }
        case _ => { }
      }
    }
    """
    graph = graph_of(text, "demo.W")
    items = [item for cluster in clusters(graph.root) for item in cluster.items]
    kinds = {item.id: item.kind for item in items if isinstance(item, Node)}
    assert kinds == {
        "demo.W/with/user": "event",
        "demo.W/script": "script",
        "demo.W/0": "script",
        "demo.W/1/case-0/step": "event",
        "demo.W/1/case-1/empty": "empty",
    }
    assert to_svg(graph).count('class="node empty"') == 1


def test_text(file: Path) -> None:
    result = run("graph", file, "--workflow", "Order")
    assert result.exit_code == exit_codes.OK
    assert result.stdout == (
        "workflow shop.Order\n"
        "\n"
        "1  order  event     Load\n"
        "   first  schema    Item\n"
        "   catch Order\n"
        "   │ 1  yield  Order  state, log\n"
        "2  risk   prompt    Risk    needs order\n"
        "   sub    workflow  Sub     needs first\n"
        "   foreach item in order.items limit 4  needs order\n"
        "   │ 1  each   workflow  Sub\n"
        "   │ 2  yield  Order     log  needs each\n"
        "3  note   facet     Note    needs sub\n"
        "   pay    event     Charge  needs order; after risk\n"
        "4  catch pay\n"
        "   │ 1  yield  pay  receipt\n"
        "   group = Group  needs note\n"
        "   │ 1  inner  event  Charge   needs risk\n"
        "   │ 2  yield  group  receipt  needs inner\n"
        "   when  needs risk, pay\n"
        '   │ 1  case risk.score > 0.5 && pay.receipt != "a \\"b\\" <c> & d"\n'
        "   │    │ 1  ask    human  Ask    needs pay\n"
        "   │    │ 2  yield  Order  state  needs ask\n"
        "   │    case _\n"
        "   │    │ 1  yield  Order  state\n"
    )


def test_mermaid(file: Path) -> None:
    text = run("graph", file, "--workflow", "Order", "--format", "mermaid").stdout
    assert text.startswith('---\ntitle: "shop.Order"\n---\nflowchart TB\n')
    assert '  n0["<b>order</b><br/>Load"]\n' in text
    assert '{{"<b>risk</b><br/>Risk"}}' in text
    assert " -.-> " in text
    assert " -. fails .-> " in text
    assert text.count("subgraph") == text.count("    end\n") + text.count("\n  end\n")
    title = next(line for line in text.splitlines() if "0.5" in line)
    assert not set("<>&") & set(title.split('"')[1])


def test_dot(file: Path) -> None:
    text = run("graph", file, "--workflow", "Order", "--format", "dot").stdout
    assert text.startswith('digraph "shop.Order" {\n')
    assert text.count("{") == text.count("}")
    assert '"shop.Order/0/risk" -> "shop.Order/0/pay" [style=dashed];' in text
    assert 'lhead="cluster shop.Order/1"' in text
    assert 'pay.receipt != \\"a \\\\\\"b\\\\\\" <c> & d\\""' in text


def test_json(file: Path) -> None:
    result = run("graph", file, "--workflow", "Order", "--json")
    data = json.loads(result.stdout)
    assert data["workflow"] == "shop.Order"
    assert {"source": "shop.Order/0/risk", "target": "shop.Order/0/pay", "kind": "after"} in (
        data["edges"]
    )
    assert data["items"][0] == {
        "id": "shop.Order/0/order",
        "kind": "event",
        "name": "order",
        "detail": "Load",
    }


def test_svg_is_xml_with_every_step(file: Path, order: Graph) -> None:
    text = run("graph", file, "--workflow", "Order", "--format", "svg").stdout
    root = ElementTree.fromstring(text)
    names = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(_nodes(order)) <= set(names)
    paths = root.findall("{http://www.w3.org/2000/svg}path")
    assert len(paths) == len(simplified(order).edges)
    assert "prefers-color-scheme: dark" in text
    assert "case risk.score &gt; 0.5 &amp;&amp; pay.receipt != &quot;a" in text


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_program_gives_the_same_text(file: Path, format: str) -> None:
    args = ("graph", file, "--workflow", "shop.Order", "--format", format)
    assert run(*args).stdout == run(*args).stdout


@pytest.mark.parametrize("format", FORMATS)
def test_a_file(file: Path, tmp_path: Path, format: str) -> None:
    output = tmp_path / f"graph.{format}"
    args = ("graph", file, "--workflow", "Order", "--format", format)
    result = run(*args, "-o", output)
    assert result.stdout == ""
    assert result.stderr == f"wrote shop.Order to {output}\n"
    assert output.read_text(encoding="utf-8") == run(*args).stdout


def test_the_only_workflow_needs_no_name() -> None:
    result = run("graph", "-", input=GOOD)
    assert result.exit_code == exit_codes.OK
    assert result.stdout.startswith("workflow demo.Hello\n")


def test_many_workflows_are_listed(file: Path) -> None:
    result = run("graph", file)
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == (
        "error: there are 2 workflows: shop.Order, shop.Sub\n"
        f"help: `afl graph {file} --workflow shop.Order` draws the first one\n"
    )


def test_an_unknown_workflow_gets_the_nearest(file: Path) -> None:
    result = run("graph", file, "--workflow", "Oder")
    assert result.exit_code == exit_codes.FAILED
    assert "there is no workflow 'Oder'\nhelp: did you mean `Order`?" in result.stderr
    assert "the workflows are shop.Order, shop.Sub" in run("graph", file, "--workflow", "x").stderr


def test_a_short_name_that_two_workflows_have() -> None:
    text = "namespace a { workflow W() andThen {} }\nnamespace b { workflow W() andThen {} }\n"
    result = run("graph", "-", "--workflow", "W", input=text)
    assert result.exit_code == exit_codes.FAILED
    assert "'W' can be a.W or b.W" in result.stderr
    assert run("graph", "-", "--workflow", "b.W", input=text).stdout == (
        "workflow b.W\n\n1  nothing to do\n"
    )


def test_no_workflow_and_wrong_programs() -> None:
    assert "there is no workflow to draw" in run("graph", "-", input="namespace a {}").stderr
    result = run("graph", "-", input=UNKNOWN_TYPE)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout == ""
    assert "error[AFL1007]" in result.stderr


def test_formats_that_contradict(file: Path) -> None:
    assert run("graph", file, "--json", "--format", "dot").exit_code == exit_codes.USAGE


def test_hostile_texts_stay_inside_their_labels() -> None:
    text = """
    namespace demo {
      event facet F(a: String) => (b: String)
      workflow W(a: String) => (b: String) andThen when {
        case $.a == "</text><script>alert(1)</script>\\u{1b}[31m]\\"; end" => {
          yield W(b = "1")
        }
        case _ => { yield W(b = "2") }
      }
    }
    """
    for format in FORMATS:
        result = run("graph", "-", "--format", format, input=text)
        assert result.exit_code == exit_codes.OK, result.stderr
        assert "\x1b" not in result.stdout
    svg = run("graph", "-", "--format", "svg", input=text).stdout
    assert "<script" not in svg
    ElementTree.fromstring(svg)
    mermaid = run("graph", "-", "--format", "mermaid", input=text).stdout
    assert not re.search(r"<(?!/?b>|br/>)", mermaid)
