"""Machines, evaluators and stores that are wrong on purpose. The simulation of flows must find out
every one of them.

Each mutant takes away one thing that the runtime does. If one survives, either that thing is not
needed or the simulation cannot see that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from afl.kernel import memory
from afl.kernel.model import CallId, Claim, Json
from afl.kernel.port import Transaction
from afl.runtime import machine
from afl.runtime.context import ExecutionContext, count
from afl.runtime.entities import Run
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.handlers import blocks, completion
from afl.runtime.persistence import IterationChanges
from afl.runtime.plan import Plan as ProgramPlan
from afl.runtime.replies import Reply
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, parent_of
from afl.testing.flow_simulation import FlowSimulation, Plan, Result, run_schedule
from afl.testing.flow_simulation.store import FlowStore
from afl.testing.flow_simulation.worker import Worker
from afl.testing.simulation.steps import Steps
from tests.sim.mutants import NoFenceCheck

# Wrong machines

_SETTLE, _ENDED, _NEXT_CATCH = machine._settle, machine._ended, machine._next_catch
_START_ITERATIONS = blocks.start_iterations
_CARRY = ExecutionContext.carry


def _settle_early(context: ExecutionContext, block: StepDefinition, step: StepDefinition) -> None:
    waits = block.frame.get("waits")
    if isinstance(waits, dict):
        waits.update(dict.fromkeys(waits, 1))
    _SETTLE(context, block, step)


def _skip_everybody(context: ExecutionContext, block: StepDefinition, step: StepDefinition) -> None:
    _SETTLE(context, block, step)
    waits, plan = block.frame.get("waits"), context.plan.block(block.statement_id)
    if step.state == StepState.STATEMENT_ERROR and isinstance(waits, dict) and plan is not None:
        for name in list(waits):
            del waits[name]
            blocks.skip(context, block, plan.by_name[name], step.path)


def _skipped_uncounted(context: ExecutionContext, step: StepDefinition) -> None:
    if step.state == StepState.STATEMENT_SKIPPED and step.path != ROOT:
        parent = context.edit(parent_of(step.path))
        parent.frame["left"] = count(parent, "left") + 1
    _ENDED(context, step)


def _fail_at_once(context: ExecutionContext, step: StepDefinition) -> None:
    if step.state == StepState.STATEMENT_ERROR and step.path != ROOT:
        context.edit(parent_of(step.path)).frame["left"] = 1
    _ENDED(context, step)


def _catch_again(context: ExecutionContext, step: StepDefinition) -> str | None:
    part, caught = _NEXT_CATCH(context, step), step.frame.get("caught")
    if part is None and isinstance(caught, list) and len(caught) == 1:
        return str(caught[0])
    return part


def _never_catch(context: ExecutionContext, step: StepDefinition) -> str | None:
    return None


def _first_in_time(context: ExecutionContext, parent: StepDefinition, step: StepDefinition) -> None:
    parent.frame.setdefault("error", step.error)


def _no_order(handler: object, row: StepDefinition) -> tuple[int, ...]:
    return ()


def _no_guards(self: ProgramPlan, id: str) -> tuple[str, ...]:
    return ()


def _without_limit(context: ExecutionContext, map_step: StepDefinition) -> None:
    map_step.frame["limit"] = 1_000_000
    _START_ITERATIONS(context, map_step)


# Wrong evaluators


class TrustsMemory(Evaluator):
    """Takes what it remembers of a run for what is so, whoever had the run meanwhile."""

    def evaluate(
        self, claim: Claim, *, stay: bool = False, runs: Mapping[WorkflowId, Run] | None = None
    ) -> Turn:
        kept = self._kept.get(claim.task.id)
        if kept is not None:
            kept.fence, kept.commits = claim.task.committed_fence, claim.task.commits
        return super().evaluate(claim, stay=stay, runs=runs)


class KeepsAnswers(Evaluator):
    """Does not say which answers it has taken in."""

    def _turn(self, *args: Any, **options: Any) -> Turn:  # noqa: ANN401 - as the original
        turn = super()._turn(*args, **options)
        return replace(turn, commit=replace(turn.commit, applied=()))


class EndsLater(Evaluator):
    """Writes the end of a run when its task has been closed."""

    def write(self, transaction: Transaction, *turns: Turn) -> None:
        super().write(transaction, *(replace(turn, end=None) for turn in turns))

    def accepted(self, turn: Turn) -> None:
        end = turn.end
        if end is not None:
            self.persistence.kernel.commit(
                (), writes=lambda each: self.persistence.finish_run(each, turn.run.id, *end)
            )
        super().accepted(turn)


class ForgetsInline(Evaluator):
    """Drops the answers to the steps whose work was done on the way."""

    def go_on(
        self,
        turn: Turn,
        replies: Sequence[tuple[CallId | None, Reply]] = (),
        *,
        stay: bool = False,
        winds_up: bool = False,
    ) -> Turn:
        following = super().go_on(turn, (), stay=stay, winds_up=winds_up)
        applied = tuple(call for call, _ in replies if call is not None)
        return replace(following, commit=replace(following.commit, applied=applied))


class AcceptsEarly(Worker):
    """Remembers a turn as done before it is committed."""

    def commit_turn(
        self, evaluator: Evaluator, turn: Turn, *, stay: bool
    ) -> Steps[Sequence[Claim] | None]:
        evaluator.accepted(turn)
        return (yield from super().commit_turn(evaluator, turn, stay=stay))

    def committed(self, evaluator: Evaluator, turn: Turn) -> None:
        pass


def _carry_rows_alone(context: ExecutionContext, before: ExecutionContext) -> None:
    """What a turn has added to what the store knows is looked for in the store, too early."""
    _CARRY(context, before)
    context._yields, context._waits = {}, {}


def _nothing_to_take_over(context: ExecutionContext) -> None:
    """Work that was at hand of a lost worker is waited for, for ever."""


# Wrong stores


class RestInMemory(FlowStore):
    """Does not write down what is left to do after a commit that was full."""

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        super().write_changes(transaction, run, changes)
        rows = transaction.tables[f"step:{run}"]  # type: ignore[attr-defined]  # in memory
        frame: Mapping[str, Json] = rows[ROOT].frame
        kept = {name: value for name, value in frame.items() if name != "more"}
        rows[ROOT] = replace(rows[ROOT], frame=kept)


class WaitsInMemory(FlowStore):
    """Does not write down which blocks wait for which steps."""

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        super().write_changes(transaction, run, replace(changes, waits=[]))


class YieldsForgotten(FlowStore):
    """Does not find again the yields that an earlier commit has written."""

    def load(self, run: WorkflowId, needed: Any) -> Any:  # noqa: ANN401 - as the original
        return replace(super().load(run, needed), yields={})


# The list

Patch = tuple[Any, str, Callable[..., object]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is wrong, and how. `patches` replace functions of the machine."""

    name: str
    patches: tuple[Patch, ...] = ()
    evaluator: type[Evaluator] = Evaluator
    worker: type[Worker] = Worker
    store: type[FlowStore] = FlowStore
    kernel: type[memory.MemoryStore] = memory.MemoryStore

    @contextmanager
    def simulation(self) -> Iterator[type[FlowSimulation]]:
        """The simulation of this mutant, as long as the context lasts."""
        mutant = self

        class Mutated(FlowSimulation):
            evaluator_type, worker_type = mutant.evaluator, mutant.worker

            def make_store(self) -> FlowStore:
                return mutant.store(self.clock, self.ids, mutant.kernel)

        with ExitStack() as stack:
            for owner, name, replacement in self.patches:
                stack.enter_context(patch.object(owner, name, replacement))
            yield Mutated


MUTANTS = (
    Mutant("one need is enough", ((machine, "_settle", _settle_early),)),
    Mutant("a failure skips its whole block", ((machine, "_settle", _skip_everybody),)),
    Mutant("skipped steps are not counted", ((machine, "_ended", _skipped_uncounted),)),
    Mutant("a failure does not wait for the rest", ((machine, "_ended", _fail_at_once),)),
    Mutant("a catch runs twice", ((machine, "_next_catch", _catch_again),)),
    Mutant("a catch never runs", ((machine, "_next_catch", _never_catch),)),
    Mutant("the first failure in time counts", ((machine, "_note_failure", _first_in_time),)),
    Mutant("lists are joined as they come", ((completion, "_order", _no_order),)),
    Mutant("yields of guarded parts count", ((ProgramPlan, "guards", _no_guards),)),
    Mutant("no limit", ((blocks, "start_iterations", _without_limit),)),
    Mutant("memory is trusted", evaluator=TrustsMemory),
    Mutant("accepted before the commit", evaluator=TrustsMemory, worker=AcceptsEarly),
    Mutant("the rest is kept in memory", store=RestInMemory),
    Mutant("waits are kept in memory", store=WaitsInMemory),
    Mutant("yields are not found again", store=YieldsForgotten),
    Mutant("answers stay untaken", evaluator=KeepsAnswers),
    Mutant("inline answers are dropped", evaluator=ForgetsInline),
    Mutant("work at hand is not taken over", ((machine, "take_over", _nothing_to_take_over),)),
    Mutant("what is not committed is forgotten", ((ExecutionContext, "carry", _carry_rows_alone),)),
    Mutant("the end comes later", evaluator=EndsLater),
    Mutant("no fence", kernel=NoFenceCheck),
)


def first_kill(mutant: Mutant, schedules: int) -> Result | None:
    """The first schedule that finds the mutant out, from seed 0 on."""
    with mutant.simulation() as simulation:
        for seed in range(schedules):
            result = run_schedule(Plan(seed), simulation)
            if result.rule is not None:
                return result
    return None
