"""How runs come to be: with a key, at most one at a time has it, and the policy says which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum

from afl.base.ids import IdSource
from afl.ir import model as ir
from afl.kernel.model import Json, State, TaskId, TaskSpec
from afl.runtime.calls import run_task
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Fork, Run
from afl.runtime.errors import BadInputs, RunConflict, UnknownFacet, UnknownProgram
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId

#: The label of runs that have taken over a key from another one.
KEY_LABEL = "afl.key"
_HASH = "sha256:"
#: More than this many will not replace each other within a moment.
_AT_ONCE = 20


class Conflict(Enum):
    """What a submit does when a run has its key already."""

    ATTACH = "attach"  # answers with that run
    REJECT = "reject"  # raises `RunConflict`
    REPLACE = "replace"  # cancels that run if it has not ended, and starts another


@dataclass(frozen=True, slots=True)
class Order:
    """A run to be made. Its workflow's own policies say what is left out."""

    program: str
    workflow: str
    inputs: Mapping[str, Json]
    key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int | None = None
    timeout: timedelta | None = None
    tenant: str = "default"
    fork: Fork | None = None


def ring_nobody(lists: Iterable[str]) -> None:
    """Whoever serves these lists finds out by looking."""


class Submitter:
    """Makes runs, ready to be advanced by any worker, and rings for those that could."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        plans: Plans,
        ids: IdSource,
        ring: Callable[[Iterable[str]], None] = ring_nobody,
    ) -> None:
        self._persistence = persistence
        self._plans = plans
        self._ids = ids
        self.ring = ring

    def program(self, name: str) -> str:
        """The hash of a program, given by itself or by the name of a deployment."""
        if name.startswith(_HASH):
            return name
        found = self._persistence.deployed(name)
        if found is None:
            others = ", ".join(f"`{each}`" for each in self._persistence.deployments())
            hint = f"Deployed are {others}." if others else "Deploy one with `afl deploy`."
            raise UnknownProgram(f"No program is deployed as `{name}`. {hint}")
        return found

    def submit(self, order: Order, conflict: Conflict = Conflict.ATTACH) -> WorkflowId:
        """Makes the run that is ordered, or finds the one that has its key."""
        if order.key is None:
            return self._start(order, None)[0]
        run, is_new = self._start(order, idem_of(order.key))
        if is_new:
            return run
        run = self._latest(order.key, order.tenant) or run
        if conflict is Conflict.ATTACH:
            return self._attach(order, run)
        if conflict is Conflict.REJECT:
            raise RunConflict(
                f"The key `{order.key}` is taken by run {run}. Use another key, or the policy "
                "`attach` to get that run, or `replace` to start another in its place."
            )
        return self._take_over(order, run)

    def _attach(self, order: Order, run: WorkflowId) -> WorkflowId:
        found = self._persistence.get_run(run)
        if found is not None and found.workflow != order.workflow:
            raise RunConflict(
                f"The key `{order.key}` is taken by run {run} of `{found.workflow}`, which is not "
                f"`{order.workflow}`. Use another key."
            )
        return run

    def _latest(self, key: str, tenant: str) -> WorkflowId | None:
        """The last run of a tenant that has taken over a key.

        Ids that several processes make within a moment are in no order; but of the runs with one
        key all are stopped but the last.
        """
        wanted = RunFilter(labels={KEY_LABEL: key}, tenant=tenant)
        found = self._persistence.search_runs(wanted, limit=_AT_ONCE)
        for run in found:
            task = self._persistence.kernel.get_task(TaskId(run.id))
            if task is not None and task.state is not State.CLOSED:
                return run.id
        return found[0].id if found else None

    def _take_over(self, order: Order, run: WorkflowId) -> WorkflowId:
        assert order.key is not None
        order = replace(order, labels={**order.labels, KEY_LABEL: order.key})
        while True:
            error: Json = {"type": "Replaced", "message": "Another run has taken its key."}
            self._persistence.kernel.stop(TaskId(run), force=True, error=error)
            # named after the one that goes: of several that replace it at once, one is made
            run, is_new = self._start(order, f"run:{order.key}:after:{run}")
            if is_new:
                return run

    def _start(self, order: Order, idem: str | None) -> tuple[WorkflowId, bool]:
        """Makes a run, unless the idem is known; tells whether it did."""
        run, spec = self.prepare(order, idem)
        (made,) = self._persistence.kernel.enqueue(
            [spec], writes=lambda transaction: self._persistence.write_run(transaction, run)
        )
        is_new = made.id == spec.id
        if is_new:
            self.ring((spec.list,))
        return WorkflowId(made.id), is_new

    def prepare(self, order: Order, idem: str | None) -> tuple[Run, TaskSpec]:
        """The run that is ordered and its task, which are to be put in place together."""
        plan = self._plans.get(order.program)
        refuse_unknown_workflow(plan, order.workflow)
        run = Run(
            WorkflowId(self._ids.new_id()),
            order.program,
            order.workflow,
            check_inputs(plan, order.workflow, order.inputs),
            labels=order.labels,
            key=order.key,
            tenant=order.tenant,
            fork=order.fork,
        )
        spec = replace(
            run_task(run, plan, priority=order.priority, timeout=order.timeout),
            id=TaskId(run.id),
            tenant=order.tenant,
            idem=idem,
        )
        return replace(run, priority=spec.priority), spec


def idem_of(key: str) -> str:
    """What makes the first run with a key the only one."""
    return f"run:{key}"


def check_inputs(plan: Plan, workflow: str, inputs: Mapping[str, Json]) -> Mapping[str, Json]:
    """The inputs of a run, complete and of the right types."""
    try:
        return plan.conversions.record(inputs, plan.facet(workflow).facet.params)
    except WrongValue as error:
        raise BadInputs(f"`{workflow}` cannot start: {error}") from error


def refuse_unknown_workflow(plan: Plan, workflow: str) -> None:
    """Raises for a name that is no workflow, with those that come close."""
    if plan.has_facet(workflow) and plan.facet(workflow).facet.kind == "workflow":
        return
    names = workflows_of(plan.program)
    short = {name.rpartition(".")[2]: name for name in names}
    near = get_close_matches(workflow, names, n=1) or [
        short[each] for each in get_close_matches(workflow.rpartition(".")[2], short, n=1)
    ]
    if near:
        hint = f"Did you mean `{near[0]}`?"
    else:
        hint = f"It has {', '.join(f'`{name}`' for name in names[:10]) or 'none'}."
    raise UnknownFacet(f"The program has no workflow `{workflow}`. {hint}")


def workflows_of(program: ir.Program) -> list[str]:
    """The names of what a program can be asked to run."""
    return [facet.name for facet in program.facets if facet.kind == "workflow"]
