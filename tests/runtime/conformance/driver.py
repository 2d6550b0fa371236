"""Drives runs as workers would: claims tasks, answers them with functions, advances runs.

Several evaluators that share nothing take turns at the flow tasks, so what one of them has in
memory is never all that a run relies on. The order in which work is answered is the test's choice:
as it was made, the other way round, or by a seeded chance between several workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Literal

from afl.base.ids import IdSource
from afl.ir import model as ir
from afl.ir.codec import dumps
from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    RunId,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.lang.api import compile_sources
from afl.runtime.calls import EXECUTE, SCRIPT
from afl.runtime.entities import Fork, Run
from afl.runtime.evaluator import Evaluator, ExecutionResult, ExecutionStatus, Turn
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.states import StepState
from afl.runtime.step import StepDefinition, WorkflowId

#: What answers the tasks of a facet: from the arguments to the result. Raising fails the task.
Answer = Callable[[dict[str, Json]], Mapping[str, Json]]
Order = Literal["made", "reverse", "chance"]
ORDERS: tuple[Order, ...] = ("made", "reverse", "chance")

COMPLETED, ERROR = ExecutionStatus.COMPLETED, ExecutionStatus.ERROR
PAUSED = ExecutionStatus.PAUSED
_SHORT_STATES = {
    StepState.STATEMENT_COMPLETE: "complete",
    StepState.STATEMENT_ERROR: "error",
    StepState.STATEMENT_SKIPPED: "skipped",
}
_numbers = count(1)


class Failure(Exception):
    """What an answer raises to fail with a type of its own."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type


def compiled(text: str) -> ir.Program:
    """The program of a source text, which must have no errors."""
    compilation = compile_sources([("test.afl", text)])
    assert compilation.errors == (), [each.message for each in compilation.errors]
    assert compilation.program is not None
    return compilation.program


@dataclass(frozen=True, slots=True)
class Played:
    """How far a run has come."""

    result: ExecutionResult
    run: Run
    steps: Mapping[str, StepDefinition]
    #: all that was asked of others, in the order in which it was made
    tasks: Sequence[Task]

    @property
    def status(self) -> ExecutionStatus:
        return self.result.status

    @property
    def outputs(self) -> Mapping[str, Json]:
        return self.result.outputs

    @property
    def error(self) -> Mapping[str, Json]:
        assert self.result.error is not None
        return self.result.error

    @property
    def states(self) -> dict[str, str]:
        """Path to state; final ones by a short name."""
        return {
            path: _SHORT_STATES.get(step.state, step.state.removeprefix("state."))
            for path, step in self.steps.items()
        }

    def paths(self, state: str) -> list[str]:
        """The paths of the steps in a state, by its short name."""
        return [path for path, each in self.states.items() if each == state]

    @property
    def asked(self) -> list[tuple[str, Json]]:
        """Short name and arguments of every task."""
        return [(task.short_name, given(task)["params"]) for task in self.tasks]


def given(task: Task) -> dict[str, Json]:
    """The input of a task."""
    assert isinstance(task.input, dict)
    return task.input


def rows(played: Played) -> dict[str, StepDefinition]:
    """The steps without the id of their run: the same for two runs that went the same way."""
    return {path: replace(step, workflow_id=WorkflowId("")) for path, step in played.steps.items()}


class Driver:
    """One program on one store, its workers and its evaluators."""

    def __init__(
        self,
        store: PersistenceAPI,
        program: str | ir.Program,
        answers: Mapping[str, Answer] | None = None,
        *,
        order: Order = "made",
        seed: int = 0,
        workers: int = 1,
        evaluators: int = 2,
        lists: tuple[str, ...] = ("default",),
        ids: IdSource | None = None,
    ) -> None:
        """On a store.

        Args:
            answers: by the short names of facets. Scripts answer themselves.
            order: in which order work is answered; with `chance`, workers hold several at a time.
            evaluators: how many take turns at the flow tasks; 0 makes a new one for each claim.
            ids: where the ids of runs come from.
        """
        self.store = store
        self.kernel = store.kernel
        self.program = compiled(program) if isinstance(program, str) else program
        self.hash = store.save_program(dumps(self.program))
        self.answers = answers or {}
        self._order = order
        self._rng = Random(f"{seed}")
        self._ids = ids
        self._evaluators = [Evaluator(store, ids=ids) for _ in range(evaluators)]
        self._turns = 0
        self._lists = lists
        self._names = (*(f.name for f in self.program.facets if f.kind == "event"), SCRIPT)
        self.workers = [self.worker() for _ in range(workers)]
        self._held: dict[WorkerId, list[Claim]] = {worker: [] for worker in self.workers}

    def worker(self, lease: timedelta = timedelta(days=365)) -> WorkerId:
        """A worker that is new."""
        worker = WorkerId(f"worker-{next(_numbers)}")
        spec = WorkerSpec(
            worker,
            worker,
            lists=self._lists,
            handlers=(EXECUTE, *self._names),
            slots=1000,
            lease=lease,
        )
        self.kernel.register(spec)
        return worker

    @property
    def evaluator(self) -> Evaluator:
        """The one whose turn it is."""
        if not self._evaluators:
            return Evaluator(self.store, ids=self._ids)
        self._turns += 1
        return self._evaluators[self._turns % len(self._evaluators)]

    # Runs

    def start(self, workflow: str = "t.W", /, **inputs: Json) -> WorkflowId:
        return self.evaluator.start(self.hash, workflow, inputs)

    def play(self, workflow: str = "t.W", /, **inputs: Json) -> Played:
        """Starts a run and does all its work."""
        return self.finish(self.start(workflow, **inputs))

    def fork(self, fork: Fork, /, **inputs: Json) -> Played:
        """Starts a run that takes over finished work, and does the rest."""
        return self.finish(self.evaluator.start(self.hash, "t.W", inputs, fork=fork))

    def pause(self, workflow: str = "t.W", /, **inputs: Json) -> Played:
        """Starts a run and advances it as far as it goes without others."""
        run = self.start(workflow, **inputs)
        self.advance()
        return self.played(run)

    def finish(self, run: WorkflowId) -> Played:
        """Does all the work there is, until a run has ended."""
        while self.step():
            pass
        played = self.played(run)
        assert played.status is not PAUSED, f"nothing is left to do, and it has not ended: {played}"
        return played

    def played(self, run: WorkflowId) -> Played:
        """How far a run has come."""
        found = self.store.get_run(run)
        assert found is not None
        steps = {step.path: step for step in self.store.get_steps_by_workflow(run)}
        return Played(Evaluator(self.store).result(run), found, steps, self.tasks(run))

    def tasks(self, run: WorkflowId) -> list[Task]:
        """What was asked of others in a run and those it called."""
        task = self.kernel.get_task(TaskId(run))
        found = self.kernel.find_tasks(run=RunId(run) if task is None else task.run, limit=100_000)
        return [each for each in found if each.kind != "flow"]

    # Work

    def step(self) -> bool:
        """One piece of somebody's work; false if there is none to be had."""
        if self._order == "chance":
            return self._step_by_chance()
        if self.advance():
            return True
        worker = self.workers[0]
        held = self._held[worker]
        held += self.claim(worker, n=1 if self._order == "made" else 1000)
        if not held:
            return False
        self.answer(held.pop(0 if self._order == "made" else -1))
        return True

    def _step_by_chance(self) -> bool:
        acts: list[Callable[[], bool]] = [self._advance_one]
        for worker in self.workers:
            acts += [partial(self._take, worker), partial(self._do, worker)]
        self._rng.shuffle(acts)
        return any(act() for act in acts)

    def _take(self, worker: WorkerId) -> bool:
        claims = self.claim(worker, n=self._rng.randint(1, 4))
        self._held[worker] += claims
        return bool(claims)

    def _do(self, worker: WorkerId) -> bool:
        held = self._held[worker]
        if not held:
            return False
        self.answer(held.pop(self._rng.randrange(len(held))))
        return True

    def claim(self, worker: WorkerId | None = None, n: int = 1000) -> list[Claim]:
        """Takes tasks of event facets and scripts."""
        request = ClaimRequest(worker or self.workers[0], self._names, self._lists, n)
        return self.kernel.claim(request)

    def answer(self, claim: Claim) -> None:
        """Does the work of a task and commits what came of it."""
        self.kernel.commit([Commit(claim.fence, self.close_of(claim.task))])

    def answer_all(self) -> None:
        """Answers everything that is there, and does not advance any run."""
        for claim in self.claim():
            self.answer(claim)

    def close_of(self, task: Task) -> Close:
        """What the work of a task comes to."""
        params = given(task)["params"]
        assert isinstance(params, dict)
        try:
            facet = str(given(task)["facet"]).rpartition(".")[2]
            if task.name == SCRIPT and facet not in self.answers:
                return Close(Outcome.SUCCESS, run_script(str(given(task)["script"]), params))
            return Close(Outcome.SUCCESS, dict(self.answers[facet](params)))
        except Failure as failure:
            return Close(Outcome.FAILED, error={"type": failure.type, "message": str(failure)})

    def advance(self) -> bool:
        """Advances runs as far as they go without others; false if none could."""
        moved = False
        while self._advance_one():
            moved = True
        return moved

    def _advance_one(self) -> bool:
        evaluator = self.evaluator
        worker = self._rng.choice(self.workers)
        claims = self.kernel.claim(ClaimRequest(worker, (EXECUTE,), self._lists))
        for claim in claims:
            self.evaluate(evaluator, claim)
        return bool(claims)

    def evaluate(self, evaluator: Evaluator, claim: Claim) -> list[Turn]:
        """All turns that a claimed flow task has in it, committed."""
        turn = evaluator.evaluate(claim)
        turns = [turn]
        evaluator.commit(turn)
        while turn.goes_on:
            turn = evaluator.go_on(turn)
            turns.append(turn)
            evaluator.commit(turn)
        return turns

    def claim_flow(self, worker: WorkerId | None = None) -> Claim:
        """A flow task in a worker's hands."""
        request = ClaimRequest(worker or self.workers[0], (EXECUTE,), self._lists)
        (claim,) = self.kernel.claim(request)
        return claim


def run_script(code: str, params: dict[str, Json]) -> dict[str, Json]:
    """Runs a script as its sandbox would."""
    result: dict[str, Json] = {}
    try:
        exec(code, {"params": params, "result": result})  # noqa: S102  # the tests' own scripts
    except Exception as error:
        raise Failure(type(error).__name__, str(error)) from error
    return result


def add_one(params: dict[str, Json]) -> dict[str, Json]:
    """The answer to `AddOne`."""
    value = params["input"]
    assert isinstance(value, int)
    return {"output": value + 1}


def failing(type: str = "Boom", message: str = "boom") -> Answer:
    """An answer that always fails."""

    def answer(params: dict[str, Json]) -> Mapping[str, Json]:
        raise Failure(type, message)

    return answer
