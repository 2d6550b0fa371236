"""Random programs, run with random answers: all that they leave behind, to be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from random import Random
from typing import TypeVar

from afl.ir import model as ir
from afl.kernel.model import Close, Json, Outcome, Task
from afl.lang.api import compile_sources
from afl.runtime.calls import PEOPLE
from afl.runtime.persistence import LogLine, PersistenceAPI
from afl.runtime.step import StepDefinition
from afl.testing.clock import SequentialIds
from tests.lang.generate import random_program
from tests.runtime.conformance.driver import Driver, Order, given
from tests.runtime.conformance.values import Values
from tests.runtime.kept import MemoryKept

T = TypeVar("T")


class ChanceDriver(Driver):
    """Answers tasks with values of the right types, and sometimes with failures or wrong ones.

    What is answered depends on what is asked, and on nothing that came before.
    """

    def __init__(
        self,
        program: ir.Program,
        seed: str,
        *,
        evaluators: int = 2,
        order: Order = "made",
        store: PersistenceAPI | None = None,
        first_id: int = 1 << 40,
    ) -> None:
        super().__init__(
            MemoryKept().store if store is None else store,
            program,
            evaluators=evaluators,
            order=order,
            workers=3 if order == "chance" else 1,
            lists=_lists(program),
            ids=SequentialIds(first_id),
        )
        self._facets = {facet.name: facet for facet in program.facets}
        self._values = Values(program)
        self._seed = seed

    def close_of(self, task: Task) -> Close:
        asked = given(task)
        params = json.dumps(asked["params"], sort_keys=True)
        rng = Random(f"{self._seed} {asked['facet']} {params}")
        roll = rng.random()
        if roll < 0.1:
            error: Json = {"type": rng.choice(("Boom", "Busy")), "message": "by chance"}
            return Close(Outcome.FAILED, error=error, permanent=True)
        if roll < 0.13:
            return Close(Outcome.SUCCESS, {"nobody": 1})
        if task.kind == "script":
            return super().close_of(task)
        facet = self._facets[str(asked["facet"])]
        return Close(Outcome.SUCCESS, self._values.record(rng, facet.returns))


@dataclass(frozen=True)
class Trace:
    """All that a run and those it called have left behind."""

    #: state, outputs and error of each run, by where it was called from
    ends: dict[str, tuple[str, Json, Json]]
    steps: list[StepDefinition]
    tasks: list[tuple[str, Json, str]]
    logs: list[LogLine]


def trace(driver: ChanceDriver, workflow: str, inputs: dict[str, Json]) -> Trace:
    """Runs a workflow to its end."""
    run = driver.start(workflow, **inputs)
    while driver.step():
        pass
    store = driver.store
    runs = sorted(store.find_runs(limit=1000), key=lambda each: each.id)
    places = {run: ""}
    for each in runs:
        if each.parent is not None:
            places[each.id] = f"{places[each.parent]} {each.parent_path}"
    return Trace(
        {
            places[each.id]: (
                each.state,
                None if each.outputs is None else dict(each.outputs),
                None if each.error is None else dict(each.error),
            )
            for each in runs
        },
        [step for each in runs for step in store.get_steps_by_workflow(each.id)],
        [(task.name, task.input, task.state.value) for task in driver.tasks(run)],
        [line for each in runs for line in store.get_logs(each.id)],
    )


def programs(seed: str, count: int) -> Iterator[tuple[ir.Program, ir.Facet, dict[str, Json]]]:
    """Random programs, each with the workflows in it that can be run, and inputs for them."""
    rng = Random(seed)
    for _ in range(count):
        compilation = compile_sources(random_program(rng, rng.choice((6, 9, 12)), plain=True))
        program = compilation.program
        assert program is not None
        values = Values(program)
        for workflow in _startable(program):
            yield program, workflow, values.record(rng, workflow.params)


def _lists(program: ir.Program) -> tuple[str, ...]:
    """The queues that anything in a program is put on, that of people among them."""
    found = {
        str(argument.value.value)
        for policy in _nodes(program.facets, ir.Policy)
        if policy.name == "Queue"
        for argument in policy.args
        if isinstance(argument.value, ir.Literal)
    }
    return tuple(sorted(found | {"default", PEOPLE}))


def _startable(program: ir.Program) -> list[ir.Facet]:
    """The workflows whose runs have an end: those that call nothing that calls itself."""
    calls = {
        facet.name: {
            *(step.facet for step in _nodes(facet, ir.Step) if step.kind != "schema"),
            *(mixin.facet for mixin in _nodes(facet, ir.Mixin)),
        }
        for facet in program.facets
    }

    def ends(name: str, above: frozenset[str]) -> bool:
        return name not in above and all(ends(each, above | {name}) for each in calls[name])

    return [
        facet
        for facet in program.facets
        if facet.kind == "workflow" and ends(facet.name, frozenset())
    ]


def uses(program: ir.Program, policy: str) -> bool:
    """Whether a policy stands anywhere in a program."""
    return any(each.name == policy for each in _nodes(program.facets, ir.Policy))


def _nodes(node: object, kind: type[T]) -> Iterator[T]:
    """Everything of a kind in a part of a program."""
    if isinstance(node, tuple):
        for item in node:
            yield from _nodes(item, kind)
    elif is_dataclass(node):
        if isinstance(node, kind):
            yield node
        for each in fields(node):
            yield from _nodes(getattr(node, each.name), kind)
