"""The tree of a run as people see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afl import Client
from afl.app.app import App
from afl.app.services import connect
from afl.app.serving import AppWorker
from afl.cli import exit_codes
from afl.cli.live.lines import Line, Positions, lines_of
from afl.cli.live.views import most_telling
from afl.runtime.worker import WorkerConfig
from tests.cli.deployed import FLOW, demo_app, write_project
from tests.cli.runner import run


def tree_of(flow: str, workflow: str, inputs: dict[str, object], app: App) -> list[str]:
    """The lines of a run that has ended."""
    with connect("memory:") as services:
        client = Client(services=services)
        program = client.deploy(flow)
        plans = services.evaluator.plans
        table = app.table(plans.get(program), plans)
        with AppWorker(services, table, WorkerConfig()):
            done = client.submit(workflow, inputs)  # type: ignore[arg-type]
            done.wait("30s")
        operations = services.operations
        lines = lines_of(operations.tree(done.id), Positions(operations, done.get()))
        return [line.text() for line in lines]


def test_steps_stand_in_the_order_of_the_program() -> None:
    assert tree_of(FLOW, "demo.Hello", {}, demo_app()) == [
        "✓ zero demo.Fetch done",
        "✓ hello demo.Greet done",
    ]


def test_iterations_are_counted_and_those_that_failed_are_shown() -> None:
    app = App("demo")

    @app.handler("demo.Greet")
    def greet(name: str) -> str:
        return name

    @app.handler("demo.Store")
    def store(n: int, text: str) -> bool:
        return True

    @app.handler("demo.Fetch")
    def fetch(name: str) -> int:
        if name == "b":
            raise KeyError("b")
        return 1

    lines = tree_of(FLOW, "demo.Total", {"names": ["a", "b", "c"]}, app)
    assert lines == [
        "✓ greeted demo.Greet done",
        "✓ saved demo.Store done",
        "✗ foreach failed (2 done, 1 failed)",
        "  ✗ [1] failed because of 1/1/one",
        "    ✗ one demo.Fetch failed KeyError: 'b'",
    ]


WHEN = """\
namespace demo {
  event facet Greet(name: String) => (text: String)
  workflow Pick(n: Int) => (text: String) andThen when {
    case $.n > 5 => {
      big = Greet(name = "big")
      yield Pick(text = big.text)
    }
    case _ => {
      small = Greet(name = "small") catch {
        yield Greet(text = error.message)
      }
      yield Pick(text = small.text)
    }
  }
}
"""


def test_a_case_and_a_catch_are_named() -> None:
    app = App("demo")

    @app.handler("demo.Greet")
    def greet(name: str) -> str:
        if name == "small":
            raise ValueError("too small")
        return name

    assert tree_of(WHEN, "demo.Pick", {"n": 7}, app) == [
        "✓ case 0 done",
        "  ✓ big demo.Greet done",
    ]
    assert tree_of(WHEN, "demo.Pick", {"n": 1}, app) == [
        "✓ case 1 done",
        "  ✓ small demo.Greet done",
        "    ✓ catch done",
    ]


@pytest.mark.parametrize(("room", "kept"), [(9, "abcde"), (3, "bde"), (2, "bd"), (1, "b")])
def test_a_small_terminal_shows_what_is_not_done_first(room: int, kept: str) -> None:
    states = {"a": "done", "b": "running", "c": "done", "d": "failed", "e": "done"}
    lines = [Line(path, 0, path, "", state) for path, state in states.items()]
    assert "".join(line.path for line in most_telling(lines, room)) == kept


def test_a_run_that_waits_says_for_what(tmp_path: Path) -> None:
    write_project(tmp_path)
    result = run("run", tmp_path / "flow.afl", "Wait", "-i", "key=k", "--timeout", "3s")
    assert result.exit_code == exit_codes.NOT_ENDED
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert "`answer`" in lines[0]


def test_a_long_run_says_that_not_all_of_it_is_shown(tmp_path: Path) -> None:
    write_project(tmp_path)
    handlers = tmp_path / "handlers.py"
    names = json.dumps(["n"] * 300)
    given = ("-i", f"names={names}", "--handlers", handlers)
    result = run("run", tmp_path / "flow.afl", "Total", *given)
    assert result.exit_code == exit_codes.OK
    assert len(json.loads(result.stdout)["ns"]) == 300
    assert result.stderr.splitlines()[-1] == "only the first 500 steps are shown"
