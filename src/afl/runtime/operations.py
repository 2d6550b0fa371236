"""`Operations`: all that people and programs do to runs. Commands, the SDK and servers use these.

Each is a few transactions that may be repeated when the answer was lost. What cannot be done is
refused with an error that says what to do instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.ir import model as ir
from afl.ir.types import JSON, OptionalOf
from afl.kernel.doorbell import Doorbell
from afl.kernel.errors import NotFound
from afl.kernel.model import (
    CallStatus,
    Json,
    Outcome,
    RunId,
    State,
    Stopped,
    Task,
    TaskId,
    Worker,
    WorkerId,
    WorkerState,
)
from afl.kernel.waiting import PollPolicy
from afl.runtime import signalling, views
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Fork, Run
from afl.runtime.errors import (
    BadInputs,
    NotSkippable,
    RunCanceled,
    RunEnded,
    RunFailed,
    StillRunning,
    UnknownRun,
    UnknownStep,
    UnknownWorker,
)
from afl.runtime.evaluator import Evaluator
from afl.runtime.explaining import Explainer
from afl.runtime.forking import Forks
from afl.runtime.inbox import Inbox
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import FacetPlan
from afl.runtime.reasons import Answer, Why
from afl.runtime.scheduling.declared import declared_schedules
from afl.runtime.scheduling.service import Scheduling, Synced
from afl.runtime.settling import ENDED, settle_run
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, step_id
from afl.runtime.submitting import Conflict, Order, Submitter
from afl.runtime.superseded import Superseded
from afl.runtime.task_reasons import TaskReasons
from afl.runtime.views import Tree, state_word

_WAITING = PollPolicy(min_seconds=0.01, max_seconds=1.0, backoff=1.6, jitter=0.1)
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Deployed:
    """What became of a deployment."""

    program: str
    #: the program that it had before
    before: str | None
    schedules: Synced


class Operations:
    """On one store. Threads may share one."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        evaluator: Evaluator | None = None,
        *,
        ids: IdSource | None = None,
        doorbell: Doorbell | None = None,
    ) -> None:
        self.persistence = persistence
        self.evaluator = evaluator or Evaluator(persistence)
        self._plans = self.evaluator.plans
        self._submitter = Submitter(persistence, self._plans, ids or SystemIds(), self._ring)
        self._forks = Forks(persistence, self._plans)
        self._explainer = Explainer(persistence, self._plans)
        self._doorbell = doorbell
        #: what waits for people
        self.inbox = Inbox(persistence, self._plans, self._ring)
        #: what starts runs at its times
        self.schedules = Scheduling(persistence, self._plans, self._submitter, self._ring)

    # Starting

    def submit(
        self,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
        *,
        program: str = "default",
        key: str | None = None,
        conflict: str | Conflict = Conflict.ATTACH,
        labels: Mapping[str, str] | None = None,
        priority: int | None = None,
        deadline: timedelta | datetime | None = None,
        tenant: str = "default",
    ) -> Run:
        """Starts a run of a deployed program; workers advance it.

        Args:
            program: the name of a deployment, or a hash.
            key: makes the submit repeatable: one run has it.
            conflict: what to do when a run has the key: `attach`, `reject` or `replace`.
            priority: which of two ready runs goes first; else that of the workflow's own policy.
            deadline: when the run is given up, as a time or as a distance from now; else after the
                `Timeout` of the workflow.
        """
        order = Order(
            self._submitter.program(program),
            workflow,
            inputs or {},
            key,
            labels or {},
            priority,
            timeout_of(deadline, self.persistence.now),
            tenant,
        )
        return self.get(self._submitter.submit(order, _policy(conflict)))

    def deploy(
        self,
        program: ir.Program,
        name: str = "default",
        *,
        sources: Mapping[str, str] | None = None,
    ) -> Deployed:
        """Makes a program the current one under a name, and its schedules those of the deployment.

        Schedules that it declares no more are deleted. Runs that have begun keep their program.

        Args:
            sources: the texts that it was made of, by file, to be kept for people to read.

        Raises:
            BadSchedule: one of its schedules is not possible; nothing is deployed.
        """
        before = self.persistence.deployed(name)
        digest = self._plans.add(program)
        declared = declared_schedules(program, name)
        self.schedules.check_declared(name, declared, digest)
        if sources is not None:
            self.persistence.save_sources(digest, sources)
        self.persistence.deploy(name, digest)
        return Deployed(digest, before, self.schedules.declare(name, declared))

    def program(self, name: str = "default") -> str:
        """The hash of the program that is deployed under a name."""
        return self._submitter.program(name)

    def rerun(self, run: str, *, program: str | None = None) -> Run:
        """A fresh run with the same inputs, of the same program unless another one is named."""
        found = self.get(run)
        name = found.program if program is None else self._submitter.program(program)
        return self._again(replace(found, program=name), None)

    def retry(self, run: str, step: str | None = None, *, force: bool = False) -> Run:
        """A new run that takes over what an ended one has finished, and does again what failed.

        With a step, that step must have failed. Failures are never taken over, so other failed
        steps are done again too.
        """
        found = self.get(run)
        redo = self._forks.check_retry(found, step, force=force)
        return self._again(found, Fork(found.id, redo))

    def fork(
        self,
        run: str,
        step: str = ROOT,
        inputs: Mapping[str, Json] | None = None,
        *,
        force: bool = False,
    ) -> Run:
        """A new run from a step of an ended one on, whose inputs may be edited.

        Finished steps that do not depend on it are taken over. With the root as the step, the
        inputs are those of the run, and steps whose arguments stay the same are taken over.
        """
        found = self.get(run)
        edited = self._forks.check_fork(found, step, inputs or {}, force=force)
        if step == ROOT:
            return self._again(replace(found, inputs={**found.inputs, **edited}), Fork(found.id))
        overrides = {step: edited} if edited else {}
        return self._again(found, Fork(found.id, (step,), overrides))

    def _again(self, run: Run, fork: Fork | None) -> Run:
        task = self.persistence.kernel.get_task(TaskId(run.id))
        deadline = None if task is None else task.deadline
        labels = {name: text for name, text in run.labels.items() if not name.startswith("afl.")}
        order = Order(
            run.program,
            run.workflow,
            run.inputs,
            labels=labels,
            priority=run.priority,
            timeout=None if task is None or deadline is None else deadline - task.created_at,
            tenant=run.tenant,
            fork=fork,
        )
        return self.get(self._submitter.submit(order))

    # Reading

    def get(self, run: str) -> Run:
        """A run as it stands. One whose task was closed from outside has ended with this."""
        found = self.persistence.get_run(WorkflowId(run))
        if found is None:
            raise UnknownRun(f"There is no run {run}. `afl runs list` shows the runs there are.")
        return self._reconciled(found)

    def list(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        before: str | None = None,
        limit: int = _PAGE,
    ) -> list[Run]:
        """Runs, the newest first, from before the given one."""
        found: list[Run] = []
        while len(found) < limit:
            page = self.persistence.find_runs(
                state=RunState.RUNNING if state == RunState.PAUSED else state,
                workflow=workflow,
                labels=labels,
                parent=None if parent is None else WorkflowId(parent),
                before=None if before is None else WorkflowId(before),
                limit=limit,
            )
            runs = map(self._reconciled, page)
            found += [run for run in runs if state is None or state_word(run) == state]
            if len(page) < limit:
                break
            before = page[-1].id
        return found[:limit]

    def _reconciled(self, run: Run) -> Run:
        """A run whose task was stopped, or has run out of time, has ended too."""
        if RunState.is_terminal(run.state):
            return run
        if not settle_run(self.persistence, run.id):
            return run
        return self.persistence.get_run(run.id) or run

    def wait(self, run: str, timeout: timedelta | None = None) -> Run:
        """Waits until a run has ended.

        Raises:
            StillRunning: it has not ended in time; the message says what it waits for.
        """
        end = None if timeout is None else time.monotonic() + timeout.total_seconds()
        looks = 0
        while True:
            found = self.get(run)
            if RunState.is_terminal(found.state):
                return found
            looks += 1
            seconds = _WAITING.wait_seconds(looks, 0.0)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    why = self._explainer.run(found).sentence
                    raise StillRunning(f"Run {run} has not ended in time. {why}")
                seconds = min(seconds, left)
            self._pause_for(seconds)

    def result(self, run: str, timeout: timedelta | None = None) -> Mapping[str, Json]:
        """The outputs of a run, once it has ended.

        Raises:
            RunFailed, RunCanceled: it has ended otherwise. StillRunning: it has not, in that time.
        """
        found = self.wait(run, timeout)
        if found.state == RunState.COMPLETED:
            return found.outputs or {}
        why = self._explainer.run(found).sentence
        if found.state == RunState.CANCELED:
            raise RunCanceled(f"Run {run}: {why}")
        raise RunFailed(f"Run {run}: {why}")

    def _pause_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        if self._doorbell is None or not self._doorbell.wait([ENDED], seconds):
            # a closed doorbell does not wait
            time.sleep(max(0.0, end - time.monotonic()))

    def why(self, run: str, step: str | None = None) -> Why:
        """Why a run, or a step of it, is where it is."""
        found = self.get(run)
        return self._explainer.run(found) if step is None else self._explainer.step(found, step)

    def why_task(self, task: Task) -> Answer:
        """Why a task is where it is."""
        return TaskReasons(self.persistence).of_task(task)

    def superseded(self, run: str, *, limit: int = 100) -> Sequence[Superseded]:
        """Results of a run that came when somebody else had been given the work."""
        return self.persistence.get_superseded(self.get(run).id, limit)

    def tree(self, run: str, *, after: str | None = None, limit: int = 200) -> Tree:
        """A page of the steps of a run, nested."""
        return views.tree(self.persistence, self.get(run).id, after=after, limit=limit)

    def export(self, run: str) -> dict[str, Json]:
        """Everything that is known of a run, as JSON."""
        return views.export(self.persistence, self.get(run))

    # Changing what runs

    def cancel(self, run: str, *, force: bool = False, reason: str = "") -> Run:
        """Stops a run, and the runs that it has called; other work of theirs is stopped by the
        next sweep.

        A worker that is advancing it right now finishes that step first, unless it is forced.
        Canceling what is canceled changes nothing; what has ended otherwise is refused.
        """
        found = self.get(run)
        if not RunState.is_terminal(found.state):
            error: Json = {"type": "Canceled", "message": reason or "It was stopped by a request."}
            kernel = self.persistence.kernel
            stopped = kernel.stop(TaskId(found.id), force=force, error=error)
            for each in self._called(found.id):
                kernel.stop(TaskId(each.id), force=force, error=error)
                self._reconciled(each)
            found = self.get(run)
            if stopped is Stopped.REQUESTED:
                return found
        if found.state != RunState.CANCELED:
            raise RunEnded(f"Run {run} has {found.state} already, so it cannot be canceled.")
        return found

    def pause(self, run: str) -> Run:
        """Lets nothing more start in a run, nor in those that it has called. Outside work that
        has begun goes on."""
        found = self._set_pause(run, True)
        # those that are being called right now see the flag of their caller
        for each in self._called(found.id):
            self.persistence.set_pause(each.id, True)
        return found

    def resume(self, run: str) -> Run:
        """Lets a paused run go on, and those that it has called."""
        found = self._set_pause(run, False)
        self._end_pause(found)
        for each in self._called(found.id):
            if self.persistence.set_pause(each.id, False):
                self._end_pause(each)
        return found

    def _end_pause(self, run: Run) -> None:
        root = self.persistence.get_step(step_id(run.id, ROOT))
        if root is not None:
            self.evaluator.end_pause(run.id, root)
            self._ring_flow(run.id)

    def _called(self, run: WorkflowId) -> Iterator[Run]:
        """The runs that a run has called, and those that they have, which have not ended."""
        before: WorkflowId | None = None
        while page := self.persistence.find_runs(
            state=RunState.RUNNING, parent=run, before=before, limit=_PAGE
        ):
            for each in page:
                yield each
                yield from self._called(each.id)
            before = page[-1].id

    def _set_pause(self, run: str, pause: bool) -> Run:
        found = self.get(run)
        if not self.persistence.set_pause(found.id, pause):
            verb = "paused" if pause else "resumed"
            raise RunEnded(f"Run {run} has {found.state} already, so it cannot be {verb}.")
        return self.get(run)

    # Steps

    def continue_step(self, run: str, step: str, result: Mapping[str, Json]) -> bool:
        """Answers the outside work of a step. False if it had its answer already."""
        facet = self._waiting_facet(run, step)
        plan = self._plans.get(self.get(run).program)
        try:
            plan.conversions.record(result, facet.facet.returns, facet.facet.name)
        except WrongValue as error:
            raise BadInputs(f"Step `{step}` cannot have this result: {error}") from error
        return self._answer(run, step, lambda id_: self.evaluator.continue_step(id_, result))

    def fail_step(self, run: str, step: str, message: str, type: str = "Error") -> bool:
        """Fails the outside work of a step. False if it had its answer already."""
        self._waiting_facet(run, step)
        return self._answer(run, step, lambda id_: self.evaluator.fail_step(id_, message, type))

    def skip(self, run: str, step: str) -> bool:
        """Lets a step be done without its work: its results are their defaults, or null.

        Raises:
            NotSkippable: it has a result without either; give one with `continue_step`.
        """
        facet = self._waiting_facet(run, step)
        result = empty_result(facet)
        if isinstance(result, str):
            raise NotSkippable(
                f"Step `{step}` cannot be skipped: `{facet.facet.name}` returns `{result}`, which "
                "has no default and cannot be null. Give the step its result instead."
            )
        return self.continue_step(run, step, result)

    def _waiting_facet(self, run: str, step: str) -> FacetPlan:
        found = self.get(run)
        row: StepDefinition | None = self.persistence.get_step(step_id(found.id, step))
        if row is None or not row.facet_name:
            raise UnknownStep(
                f"Run {run} has no step `{step}` that outside work is done for. "
                f"`afl runs tree {run}` shows its steps."
            )
        return self._plans.get(found.program).facet(row.facet_name)

    def _answer(self, run: str, step: str, answer: Callable[..., None]) -> bool:
        call = self.persistence.kernel.find_call(TaskId(run), step)
        is_open = call is not None and call.status is CallStatus.OPEN
        answer(step_id(run, step))
        self._ring_flow(run)
        return is_open

    # Events from outside

    def emit(
        self, name: str, key: str = "", payload: Json = None, *, id: str | None = None
    ) -> bool:
        """Gives an event to the first that waits, or will wait, for this name and key.

        With an id, the same event may be emitted again without effect; then it is False.
        """
        is_new = signalling.emit(self.persistence, name, key, payload, id=id)
        self._ring(["default"])
        return is_new

    def deliver_events(self) -> int:
        """Answers waits that began after their events had come."""
        return signalling.deliver(self.persistence)

    # The queue

    def tasks(
        self,
        *,
        run: str | None = None,
        state: State | None = None,
        outcome: Outcome | None = None,
        after: str | None = None,
        limit: int = _PAGE,
    ) -> Sequence[Task]:
        """Tasks in the order of their ids."""
        return self.persistence.kernel.find_tasks(
            run=None if run is None else RunId(run),
            state=state,
            outcome=outcome,
            after=None if after is None else TaskId(after),
            limit=limit,
        )

    def workers(self) -> Sequence[Worker]:
        """The workers that are there."""
        return self.persistence.kernel.live_workers()

    def drain(self, worker: str) -> Worker:
        """Has a worker claim nothing more, let its handlers finish, and end. It hears of that when
        it next renews its lease."""
        kernel = self.persistence.kernel
        found = kernel.get_worker(WorkerId(worker))
        if found is None:
            raise UnknownWorker(
                f"There is no worker {worker}. `afl workers list` shows those that are there."
            )
        kernel.set_worker_state(found.id, WorkerState.SHUTDOWN)
        return replace(found, state=WorkerState.SHUTDOWN)

    def dead_letters(self, *, after: str | None = None, limit: int = _PAGE) -> Sequence[Task]:
        """Tasks that were given up and not driven again."""
        return self.persistence.kernel.dead_letters(limit, None if after is None else TaskId(after))

    def redrive(self, task: str) -> Task:
        """Does the work of a dead letter again. Its run has gone on without it: nobody takes the
        result. To have a run use it, retry the run instead."""
        try:
            return self.persistence.kernel.redrive(TaskId(task))
        except NotFound as error:
            raise NotFound(
                f"There is no task {task}. `afl dlq list` shows those that can be driven again."
            ) from error

    def _ring_flow(self, run: str) -> None:
        """Tells whoever advances a run that it can go on."""
        task = self.persistence.kernel.get_task(TaskId(run)) if self._doorbell else None
        if task is not None:
            self._ring([task.list])

    def _ring(self, lists: Iterable[str]) -> None:
        if self._doorbell is not None:
            self._doorbell.ring(lists)


def timeout_of(
    deadline: timedelta | datetime | None, now: Callable[[], datetime]
) -> timedelta | None:
    """How long a run may take that has to end by a time, or within a distance from now.

    Raises:
        BadInputs: the time has no zone, or has passed.
    """
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise BadInputs("A deadline that is a time needs a time zone.")
        deadline = deadline - now()
    if deadline is not None and deadline <= timedelta(0):
        raise BadInputs("The deadline has passed already. Give one that lies ahead.")
    return deadline


def empty_result(facet: FacetPlan) -> dict[str, Json] | str:
    """What stands in for the results of a facet that was not done; the name of one that has
    nothing that could."""
    result: dict[str, Json] = {}
    for name, type_ in facet.returns.items():
        if name in facet.return_defaults:
            result[name] = facet.return_defaults[name]
        elif isinstance(type_, OptionalOf) or type_ == JSON:
            result[name] = None
        else:
            return name
    return result


def _policy(conflict: str | Conflict) -> Conflict:
    try:
        return Conflict(conflict)
    except ValueError:
        names = ", ".join(f"`{each.value}`" for each in Conflict)
        raise BadInputs(
            f"`{conflict}` is no policy for a key that is taken; use {names}."
        ) from None
