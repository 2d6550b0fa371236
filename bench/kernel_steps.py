"""What one step of a flow costs on PostgreSQL: `python -m bench.kernel_steps`.

Two sides, in turns, on one connection each: the kernel's port, with the rows of steps that a worker
writes, and bare SQL that writes the same rows and looks at nothing. A step is a callee that ends
and the flow's commit that takes in its answer. The shapes:

    sequence   so many runs in one worker's hands: each transaction ends the callee of every run,
               takes in the answers, and opens the next calls, which are born running
    fan        a flow opens 100 calls and suspends; the callees end in batches, the first of which
               wakes it; in the end it takes in all answers at once

CPU is what the process and the server's backend have used, by the kernel's accounts: it says what a
step costs when the disk is not waited for.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from afl.base.system import SystemIds
from afl.kernel.model import (
    CallId,
    CallSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Json,
    Outcome,
    Suspend,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction, Writes
from afl.runtime.persistence import IterationChanges
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition, WorkflowId
from bench.kernel_steps_bare import BareSteps
from bench.server import database, parser

FAN_CALLS = 100
_FLOW = TaskSpec("flow", "afl:execute", wake=Wake.ANY)
_DONE = Close(Outcome.SUCCESS, {"n": 42, "path": "out/part-0001"})
_TIMEOUT = timedelta(days=3650)
_WORKER = WorkerId("bench")


class Ours:
    """A worker that holds runs, through the port."""

    def __init__(self, url: str) -> None:
        self._rows = PostgresPersistence.connect(url, max_size=1)
        self._kernel = self._rows.kernel
        self._ids = SystemIds()
        names = ("Work", "afl:execute")
        self._kernel.register(WorkerSpec(_WORKER, "bench", handlers=names, lease=_TIMEOUT))

    @property
    def backend(self) -> int:
        return self._rows.kernel.database.run(lambda cursor: cursor.connection.info.backend_pid)

    def close(self) -> None:
        self._rows.close()

    def sequence(self, runs: int) -> Iterator[int]:
        """One transaction after the other, each with a step of every run."""
        self._kernel.enqueue([_FLOW] * runs)
        flows = self._kernel.claim(self._request(runs, "afl:execute"))
        callees: dict[str, Claim] = {}
        for number in range(1_000_000):
            ends = [Commit(callee.fence, _DONE) for callee in callees.values()]
            steps = [
                Commit(
                    flow.fence,
                    Continue(),
                    number,
                    calls=(_call(flow, number),),
                    applied=(_parent_call(callees[flow.task.id]),) if callees else (),
                )
                for flow in flows
            ]
            done, _ = self._kernel.commit_and_claim(
                [*ends, *steps], self._request(runs, "Work"), writes=self._writes(flows, number)
            )
            born = [answer.eager[0] for answer in done[len(ends) :]]
            callees = {flow.task.id: callee for flow, callee in zip(flows, born, strict=True)}
            yield runs

    def fan(self, batch: int) -> Iterator[int]:
        """One flow after the other; its callees end in batches of this size."""
        while True:
            self._kernel.enqueue([_FLOW])
            (flow,) = self._kernel.claim(self._request(1, "afl:execute"))
            calls = tuple(_call(flow, number) for number in range(FAN_CALLS))
            commit = Commit(flow.fence, Suspend(), calls=calls)
            _, claims = self._kernel.commit_and_claim(
                [commit], self._request(batch, "Work"), writes=self._writes([flow], 0)
            )
            while claims:
                ends = [Commit(claim.fence, _DONE) for claim in claims]
                _, claims = self._kernel.commit_and_claim(ends, self._request(batch, "Work"))
            (flow,) = self._kernel.claim(self._request(1, "afl:execute"))
            commit = Commit(flow.fence, _DONE, applied=tuple(call.id for call in flow.replies))
            assert len(commit.applied) == FAN_CALLS
            self._kernel.commit([commit], writes=self._writes([flow], 1))
            yield FAN_CALLS

    def _request(self, n: int, name: str) -> ClaimRequest:
        return ClaimRequest(_WORKER, (name,), n=n, token=self._ids.new_id())

    def _writes(self, flows: Sequence[Claim], number: int) -> Writes:
        def write(transaction: Transaction) -> None:
            self._rows.write_many(
                transaction,
                [(WorkflowId(flow.task.id), _changes(flow.task.id, number)) for flow in flows],
            )

        return write


def _call(flow: Claim, number: int) -> CallSpec:
    path = f"0/s{number}"
    given: dict[str, Json] = {"facet": "bench.Work", "params": {"n": 1}}
    given |= {"run": flow.task.id, "step": path}
    return CallSpec(path, TaskSpec("event", "bench.Work", input=given), _TIMEOUT)


def _parent_call(callee: Claim) -> CallId:
    assert callee.task.parent_call is not None
    return callee.task.parent_call


def _changes(run: str, number: int) -> IterationChanges:
    """The step that has ended, the one that begins, and the root, which counts them."""
    id_, type_ = WorkflowId(run), ObjectType.VARIABLE_ASSIGNMENT
    state = StepState.STATEMENT_COMPLETE
    ended = StepDefinition(id_, f"0/s{number - 1}", type_, "s", "bench.Work", state)
    ended.returns = {"n": 42}
    begun = StepDefinition(id_, f"0/s{number}", type_, "s", "bench.Work", params={"n": 1})
    root = StepDefinition(id_, "", ObjectType.WORKFLOW, "", "bench.Run", frame={"open": 1})
    if not number:
        return IterationChanges(created_steps=[begun, root])
    return IterationChanges(created_steps=[begun], updated_steps=[ended, root])


@dataclass(slots=True)
class Cost:
    """Microseconds a step of every round."""

    python: list[float] = field(default_factory=list)
    backend: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        return {
            name: round(statistics.median(getattr(self, name)), 1)
            for name in ("python", "backend", "wall")
        }


def measure(cost: Cost, steps: Iterator[int], backend: int, seconds: float) -> None:
    """Goes on with the steps for so long."""
    before, done = _now(backend), 0
    until = before[2] + seconds
    while time.perf_counter() < until:
        done += next(steps)
    for values, start, end in zip(
        (cost.python, cost.backend, cost.wall), before, _now(backend), strict=True
    ):
        values.append((end - start) / done * 1e6)


def _now(backend: int) -> tuple[float, float, float]:
    """Seconds: of this process's CPU, of the backend's, and of the wall."""
    spent = Path(f"/proc/{backend}/schedstat").read_text(encoding="ascii").split()[0]
    return time.process_time(), int(spent) / 1e9, time.perf_counter()


@dataclass(frozen=True, slots=True)
class Shape:
    """What is measured, by the same name on both sides, with its size."""

    name: str
    size: int

    def steps(self, side: Ours | BareSteps) -> Iterator[int]:
        begin: Callable[[int], Iterator[int]] = getattr(side, self.name)
        return begin(self.size)


SHAPES = tuple(
    Shape(*each)
    for each in (("sequence", 1), ("sequence", 10), ("sequence", 50), ("fan", 10), ("fan", 50))
)


def compare(url: str, shapes: Sequence[Shape], rounds: int, seconds: float) -> list[Cost]:
    """Both sides of every shape in turns: ours, then bare."""
    migrate(url)
    sides = (Ours(url), BareSteps(url))
    costs: list[Cost] = []
    try:
        for shape in shapes:
            going = [(Cost(), shape.steps(side), side.backend) for side in sides]
            for _, steps, _ in going:
                for _ in range(5):
                    next(steps)
            for _ in range(rounds):
                for cost, steps, backend in going:
                    measure(cost, steps, backend, seconds)
            costs += [cost for cost, _, _ in going]
    finally:
        for side in sides:
            side.close()
    return costs


def report(shapes: Sequence[Shape], costs: Sequence[Cost]) -> str:
    """A table, and the figures as one JSON object in the last line."""
    rows = [
        "microseconds a step, medians of the rounds",
        f"{'shape':<14}{'':>6}{'python':>10}{'backend':>10}{'both':>10}{'wall':>10}{'to bare':>9}",
    ]
    cells = []
    for shape, ours, bare in zip(shapes, costs[::2], costs[1::2], strict=True):
        name = f"{shape.name} {shape.size}"
        ratio = _both(ours) / _both(bare)
        rows += [_row(name, "ours", ours) + f"{ratio:>9.2f}", _row(name, "bare", bare)]
        sides = {"ours": ours.medians(), "bare": bare.medians()}
        cells.append({"shape": name, **sides, "ratio": round(ratio, 2)})
    figures = {"load": round(os.getloadavg()[0], 1), "cells": cells}
    return "\n".join([*rows, json.dumps(figures)])


def _both(cost: Cost) -> float:
    medians = cost.medians()
    return medians["python"] + medians["backend"]


def _row(name: str, side: str, cost: Cost) -> str:
    each = cost.medians()
    return (
        f"{name:<14}{side:>6}{each['python']:>10.1f}{each['backend']:>10.1f}"
        f"{_both(cost):>10.1f}{each['wall']:>10.1f}"
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=1.0, help="for each measurement (1)")
    options.add_argument("--rounds", type=int, default=3, help="of every shape (3)")
    options.add_argument("--quick", action="store_true", help="one short round")
    chosen = options.parse_args()
    rounds, seconds = (1, 0.2) if chosen.quick else (chosen.rounds, chosen.seconds)
    with database(chosen.server) as url:
        print(report(SHAPES, compare(url, SHAPES, rounds, seconds)))


if __name__ == "__main__":
    main()
