"""A worker that is overtaken while it reads the rows of a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Claim, ClaimRequest, Fence, Suspend, Task, TaskId, WorkerId, WorkerSpec
from afl.kernel.working.hands import Hands
from afl.lang.api import compile_sources
from afl.runtime.calls import EXECUTE
from afl.runtime.entities import Run
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.memory_store import MemoryStore
from afl.runtime.step import WorkflowId
from afl.runtime.working.at_hand import Pace
from afl.runtime.working.counters import Counters
from afl.runtime.working.flows import Flows
from afl.runtime.working.messages import Served
from afl.runtime.working.parts import Part
from afl.runtime.working.runs_in_hand import RunInHand
from afl.runtime.working.staying import Staying

_WORKER = WorkerId("w")
_TEXT = "namespace t { workflow W(x: Int) => (y: Int) andThen { yield W(y = $.x) } }"


class Confused(Evaluator):
    """Has read rows of different times."""

    def evaluate(
        self, claim: Claim, *, stay: bool = False, runs: Mapping[WorkflowId, Run] | None = None
    ) -> Turn:
        raise LookupError("run 1 has no step '0/a'")


def flows_and_part() -> tuple[MemoryStore, Flows, Part]:
    """A run that was claimed, and is to take its next turn."""
    store = MemoryStore()
    evaluator = Confused(store)
    program = compile_sources([("t.afl", _TEXT)]).program
    assert program is not None
    evaluator.start(evaluator.plans.add(program), "t.W", {"x": 1})
    store.kernel.register(WorkerSpec(_WORKER, "w"))
    (claim,) = store.kernel.claim(ClaimRequest(_WORKER, (EXECUTE,)))
    hands = Hands()
    served = Served(_WORKER, (), ("default",), 1, True)
    flows = Flows(evaluator, hands, Counters(), Staying(served, Pace(), lambda name: True))
    flows.begin(hands.put(claim))
    run = flows.next_due()
    assert run is not None
    return store, flows, Part(flow=run)


def test_a_run_that_somebody_else_has_is_left_to_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, flows, part = flows_and_part()
    get_task = store.kernel.get_task

    def with_another_fence(task: TaskId) -> Task | None:
        found = get_task(task)
        return None if found is None else replace(found, fence=Fence(10**6))

    monkeypatch.setattr(store.kernel, "get_task", with_another_fence)
    with caplog.at_level(logging.WARNING):
        flows.add_turn(part)
    assert part.commits == []
    assert part.flow is None
    assert len(flows) == 0
    assert caplog.records == []


def test_a_run_that_cannot_go_on_is_given_up_by_whoever_has_it() -> None:
    _, flows, part = flows_and_part()
    flows.add_turn(part)
    assert isinstance(part.flow, RunInHand)
    assert part.failure is not None
    assert part.failure["type"] == "LookupError"
    assert len(part.commits) == 1


def test_as_long_as_nobody_knows_the_run_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store, flows, part = flows_and_part()

    def away(task: TaskId) -> Task | None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(store.kernel, "get_task", away)
    flows.add_turn(part)
    assert part.failure is None
    assert [type(commit.then) for commit in part.commits] == [Suspend]
