"""Runs of pipelines do what the rules of their graphs say: on the real evaluator, with stand-ins
for commands."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from afl.app.front_ends import compile_together
from afl.kernel.model import Json
from afl.runtime.states import RunState
from afl.testing.engine import Engine
from tests.pipelines.compiled import pipeline, program_of, read
from tests.pipelines.dag_reference import Dag, outcome, random_dag

BATCHES = 10
DAGS_IN_A_BATCH = 100
#: So many workflows are in one program: an engine for each would cost more than what it runs.
DAGS_IN_A_PROGRAM = 25


@dataclass
class Case:
    """A graph, the tasks that are to fail, and those that were executed, in order."""

    dag: Dag
    failing: Collection[str]
    executed: list[str] = field(default_factory=list)

    def execute(self, id: str) -> Mapping[str, Json]:
        assert set(self.dag[id]) <= set(self.executed) - set(self.failing), "it started too early"
        self.executed.append(id)
        if id in self.failing:
            raise RuntimeError(f"{id} is to fail")
        return {
            "exit_code": 0,
            "signal": None,
            "stdout": "",
            "stderr": "",
            "stdout_cut": 0,
            "stderr_cut": 0,
            "duration": 1,
            "cpu": 1,
            "max_rss": 1,
            "artifacts": [],
        }


def _states(engine: Engine, run: str) -> dict[str, str]:
    """The state of every task of a run."""
    found: dict[str, str] = {}
    after: str | None = None
    while True:
        page = engine.operations.tree(run, after=after)
        assert page.root is not None
        nodes = [page.root]
        while nodes:
            node = nodes.pop()
            nodes += node.children
            if node.facet == "afl.exec.Command":
                found[node.name] = node.state
        after = page.next
        if after is None:
            return found


def _engine(cases: Mapping[str, Case]) -> Engine:
    """Has a pipeline for each case; its commands are named like it and given the id of a task."""
    files = [read(pipeline(case.dag, cmd=workflow), workflow) for workflow, case in cases.items()]
    program = compile_together(files).program
    assert program is not None
    engine = Engine()
    engine.compile(program)

    def command(argv: list[str], **_others: Json) -> Mapping[str, Json]:
        workflow, id = argv
        return cases[workflow].execute(id)

    engine.stub("afl.exec.Command", returns=command)
    return engine


def _run(engine: Engine, workflow: str, case: Case) -> dict[str, str]:
    """Runs a pipeline and holds it against the rules; what its tasks came to."""
    run = engine.run(workflow)
    expected = outcome(case.dag, case.failing)
    assert _states(engine, run.id) == expected
    ran = [id for id, state in expected.items() if state != "skipped"]
    assert sorted(case.executed) == sorted(ran), "each once, and no other"
    is_whole = all(state == "done" for state in expected.values())
    assert run.state == (RunState.COMPLETED if is_whole else RunState.FAILED)
    return expected


def _check(dag: Dag, failing: Collection[str]) -> dict[str, str]:
    case = Case(dag, failing)
    return _run(_engine({"w": case}), "w", case)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_graphs_with_failures(batch: int) -> None:
    """1,000 graphs over all batches; the number of a batch is its seed."""
    chance = random.Random(batch)
    for _ in range(DAGS_IN_A_BATCH // DAGS_IN_A_PROGRAM):
        cases = {f"w{n}": Case(*random_dag(chance)) for n in range(DAGS_IN_A_PROGRAM)}
        engine = _engine(cases)
        for workflow, case in cases.items():
            _run(engine, workflow, case)


DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


def test_a_diamond() -> None:
    assert set(_check(DIAMOND, ()).values()) == {"done"}


def test_a_diamond_with_a_failure_on_one_side() -> None:
    found = _check(DIAMOND, {"left"})
    assert found == {"top": "done", "left": "failed", "right": "done", "bottom": "skipped"}


def test_a_failure_at_the_top() -> None:
    found = _check({**DIAMOND, "other": []}, {"top"})
    assert found["other"] == "done"
    assert [found[id] for id in DIAMOND] == ["failed", "skipped", "skipped", "skipped"]


def test_mixed_parents() -> None:
    """One parent is done, one has failed, one is skipped; and a branch that has none of them."""
    dag = {
        "good": [],
        "bad": [],
        "below": ["bad"],
        "mixed": ["good", "bad", "below"],
        "free": ["good"],
        "freer": ["free"],
    }
    found = _check(dag, {"bad"})
    assert (found["below"], found["mixed"]) == ("skipped", "skipped")
    assert (found["free"], found["freer"]) == ("done", "done")


def test_a_long_chain() -> None:
    size = 200
    dag = {f"t{n}": [f"t{n - 1}"] if n else [] for n in range(size)}
    assert set(_check(dag, ()).values()) == {"done"}


def test_a_long_chain_with_a_failure_near_its_top() -> None:
    size = 200
    dag = {f"t{n}": [f"t{n - 1}"] if n else [] for n in reversed(range(size))}
    found = _check(dag, {"t3"})
    assert [found[f"t{n}"] for n in range(5)] == ["done", "done", "done", "failed", "skipped"]
    assert found[f"t{size - 1}"] == "skipped"


def test_ids_that_no_step_of_afl_could_have() -> None:
    assert set(_check({"load-all": [], "2nd": ["load-all"], "täglich": ["2nd"]}, ()).values()) == {
        "done"
    }


def test_what_was_skipped_says_because_of_whom() -> None:
    engine = Engine()
    engine.compile(program_of(pipeline({"a": [], "b": ["a"], "c": ["b"]})))
    engine.stub("afl.exec.Command", raises=RuntimeError("no"))
    run = engine.run("nightly")
    root = engine.operations.tree(run.id).root
    assert root is not None
    steps = {node.name: node for node in root.children[0].children} or {
        node.name: node for node in root.children
    }
    assert steps["b"].skipped_because == "0/a"
    assert steps["c"].skipped_because in ("0/a", "0/b")
