"""The shell around the machine: load what the answers touch, advance to a fixed point, commit.

A claimed flow task is evaluated into a `Turn`: what to commit, and what to remember when that is
through. Workers commit turns of many runs at once; `execute` and `resume` commit theirs themselves,
for programs that drive a run without a worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from threading import Lock

from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.ir import model as ir
from afl.kernel.model import (
    CallId,
    CallStatus,
    Claim,
    Close,
    Commit,
    Continue,
    Fence,
    Json,
    Outcome,
    State,
    Suspend,
    Task,
    TaskId,
    Then,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction
from afl.runtime.at_hand import keep, put_off, take_up
from afl.runtime.context import ExecutionContext, Memory, Unloaded, count
from afl.runtime.entities import Fork, Run
from afl.runtime.errors import UnknownRun, UnknownStep
from afl.runtime.machine import advance, unresolved
from afl.runtime.pausing import hold, pause_key
from afl.runtime.persistence import IterationChanges, Needed, PersistenceAPI
from afl.runtime.placing import keep_rates, lane_cycles
from afl.runtime.programs import Plans
from afl.runtime.replies import Reply, with_mixins
from afl.runtime.settling import End
from afl.runtime.signalling import deliver
from afl.runtime.states import RunState, StepState
from afl.runtime.step import (
    ROOT,
    StepDefinition,
    StepId,
    WorkflowId,
    parent_of,
    split_step_id,
)
from afl.runtime.submitting import Order, Submitter
from afl.runtime.telemetry import SILENT, Telemetry

#: How many runs a process keeps the rows of, for when it gets to advance them again.
MEMORIES = 512
_LEASE = timedelta(hours=1)


class ExecutionStatus(Enum):
    """How far a run has come."""

    COMPLETED = "COMPLETED"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    CANCELED = "CANCELED"


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What `execute` and `resume` answer. PAUSED: the run waits for work that others do."""

    status: ExecutionStatus
    workflow_id: WorkflowId
    outputs: Mapping[str, Json] = field(default_factory=dict)
    error: Mapping[str, Json] | None = None

    @property
    def success(self) -> bool:
        return self.status is ExecutionStatus.COMPLETED


@dataclass(frozen=True, slots=True)
class Turn:
    """One evaluation of a claimed flow task, to be committed."""

    run: Run
    task: Task
    commit: Commit
    changes: IterationChanges
    end: End | None
    #: the run is written with this turn: it is a workflow called as a step, seen the first time
    is_new: bool
    context: ExecutionContext

    @property
    def goes_on(self) -> bool:
        """Whether there is more to do under the same fence."""
        return isinstance(self.commit.then, Continue)


@dataclass(slots=True)
class _Kept:
    """What is known of a run, good as long as nobody else has committed its task."""

    run: Run
    task: Task
    memory: Memory
    fence: Fence | None = None
    commits: int = 0


class Evaluator:
    """Advances runs. Shared by threads; what an iteration works on is made for it alone."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        telemetry: Telemetry = SILENT,
        *,
        plans: Plans | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self.persistence = persistence
        self.telemetry = telemetry
        self.plans = plans or Plans(persistence)
        self._ids = ids or SystemIds()
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()
        self._driver: WorkerId | None = None

    # What workers use

    def evaluate(
        self, claim: Claim, *, stay: bool = False, runs: Mapping[WorkflowId, Run] | None = None
    ) -> Turn:
        """Advances the run of a claimed flow task as far as it goes.

        With `stay`, the task is kept in hand while its callees run. `runs` are runs that were read
        just now; one that is not among them is read here.
        """
        task = claim.task
        with self._lock:
            kept = self._kept.pop(task.id, None)
        if kept is not None and (kept.fence, kept.commits) != (task.committed_fence, task.commits):
            kept = None
        run = (runs or {}).get(WorkflowId(task.id)) or self.persistence.get_run(WorkflowId(task.id))
        is_new = run is None
        run = run or self._child_run(task)
        if kept is None:
            kept = _Kept(run, task, Memory())
            if task.committed_fence is None:
                kept.memory.steps[ROOT] = None
        kept.run, kept.task = run, task
        replies = [(call.id, Reply(call.key, call.status, call.reply)) for call in claim.replies]
        return self._turn(claim.fence, 0, kept, replies, is_new=is_new, stay=stay)

    def go_on(
        self,
        turn: Turn,
        replies: Sequence[tuple[CallId | None, Reply]] = (),
        *,
        stay: bool = False,
        winds_up: bool = False,
    ) -> Turn:
        """The next turn under the same fence, after one that was accepted. An answer to work at
        hand has no call. One that winds up starts no iterations."""
        # under the same fence nobody else has written: what the last turn knew is still so
        kept = _Kept(turn.run, turn.task, turn.context.memory)
        with self._lock:
            self._kept.pop(turn.run.id, None)
        number = turn.commit.number + 1
        return self._turn(
            turn.commit.fence, number, kept, replies, is_new=False, stay=stay, winds_up=winds_up
        )

    def extend(self, turn: Turn, replies: Sequence[tuple[CallId | None, Reply]]) -> Turn:
        """A turn that was not committed, and what follows from answers that have come since: one
        turn, to be committed in its place."""
        kept = _Kept(turn.run, turn.task, turn.context.memory)
        commit = turn.commit
        return self._turn(
            commit.fence, commit.number, kept, replies, is_new=turn.is_new, stay=False, before=turn
        )

    def keep_at_hand(self, turn: Turn) -> Turn:
        """The turn with its calls done by whoever holds the run, instead of by tasks."""
        keep(turn.context)
        return _without_calls(turn, Continue())

    def put_off(self, turn: Turn, then: Then) -> Turn:
        """The turn with its calls left to whoever claims the run next. Nothing of it is open in the
        store, so that it can be claimed again as soon as it is suspended."""
        put_off(turn.context)
        return _without_calls(turn, then)

    def take_up(self, turn: Turn) -> None:
        """Has the rows say that what was put off is begun."""
        take_up(turn.context)

    def accepted(self, turn: Turn) -> None:
        """A turn was committed: what it changed is what is known of the run from now on."""
        turn.context.accepted()
        self.keep_memos(turn)
        if turn.end is not None:
            return
        commit = turn.commit
        if turn.is_new and turn.run.parent is not None:
            self._recheck_parent(turn)
        elif turn.run.pause_requested:
            self._recheck_pause(turn)
        for key in turn.changes.cancels:
            self._stop_call(turn.run.id, key)
        if turn.changes.awaits:
            # the event may have come before
            deliver(self.persistence)
        kept = _Kept(turn.run, turn.task, turn.context.memory, commit.fence, commit.number + 1)
        with self._lock:
            while len(self._kept) >= MEMORIES:
                self._kept.pop(next(iter(self._kept)))
            self._kept[turn.run.id] = kept

    def accepted_unseen(self, turn: Turn) -> None:
        """A turn that asks nothing of the store will be committed in its order: what it changes is
        what is known of the run from now on."""
        turn.context.accepted_unseen()

    def keep_memos(self, turn: Turn) -> None:
        """Keeps results that others may use again."""
        for memo in turn.changes.memos:
            self.persistence.put_memo(memo.facet, memo.key, memo.returns, memo.ttl)

    def _recheck_pause(self, turn: Turn) -> None:
        """A resume that came while the pause was being noted has not found it: answer it here."""
        run = self.persistence.get_run(turn.run.id)
        if run is not None and not run.pause_requested:
            self.end_pause(run.id, turn.context.row(ROOT))

    def _recheck_parent(self, turn: Turn) -> None:
        """A pause of the caller, or its end, has not found a run that was not written yet."""
        assert turn.run.parent is not None
        parent = self.persistence.get_run(turn.run.parent)
        if parent is not None and parent.pause_requested != turn.run.pause_requested:
            self.persistence.set_pause(turn.run.id, parent.pause_requested)
            if turn.run.pause_requested:
                self.end_pause(turn.run.id, turn.context.row(ROOT))

    def _stop_call(self, run: WorkflowId, key: str) -> None:
        """Has work stopped whose answer nobody waits for. If this is lost, it ends by itself."""
        call = self.persistence.kernel.find_call(TaskId(run), key)
        if call is not None and call.status is CallStatus.OPEN and call.callee is not None:
            error: Json = {"type": "Canceled", "message": "Its caller took longer than its time."}
            self.persistence.kernel.stop(call.callee, error=error)

    def end_pause(self, run: WorkflowId, root: StepDefinition) -> None:
        """Lets a run that has paused go on."""
        key = pause_key(root)
        call = None if key is None else self.persistence.kernel.find_call(TaskId(run), key)
        if call is not None:
            self.persistence.kernel.reply(call.id, CallStatus.OK)

    def write(self, transaction: Transaction, *turns: Turn) -> None:
        """The rows of turns, in the transaction that commits them."""
        persistence = self.persistence
        for turn in turns:
            if turn.is_new:
                persistence.write_run(transaction, turn.run)
            turn.context.leave_out_unchanged()
        changes = [(turn.run.id, turn.changes) for turn in turns if turn.changes.has_changes]
        if changes:
            persistence.write_many(transaction, changes)
        for turn in turns:
            if turn.end is not None:
                persistence.finish_run(transaction, turn.run.id, *turn.end)
            elif turn.run.state == RunState.CREATED and turn.commit.number == 0:
                persistence.start_run(transaction, turn.run.id)

    def _turn(
        self,
        fence: Fence,
        number: int,
        kept: _Kept,
        replies: Sequence[tuple[CallId | None, Reply]],
        *,
        is_new: bool,
        stay: bool,
        before: Turn | None = None,
        winds_up: bool = False,
    ) -> Turn:
        """The next turn. `before` is one that is committed with it."""
        plan = self.plans.get(kept.run.program)
        answers = [reply for _, reply in replies]
        now = self.persistence.now()
        refused: dict[str, Mapping[str, Json]] = {}
        while True:
            context = ExecutionContext(
                kept.run,
                plan,
                kept.memory,
                now,
                telemetry=self.telemetry,
                takes_over=number == 0 and before is None,
                winds_up=winds_up,
                depth=kept.task.depth,
                refused=refused,
            )
            if before is not None:
                context.carry(before.context)
            try:
                if kept.run.pause_requested:
                    hold(context, answers)
                else:
                    advance(context, answers)
            except Unloaded as missing:
                self._load(kept, missing.needed)
                continue
            cycles = lane_cycles(self.persistence, kept.task, context.changes.calls)
            if not cycles:
                break
            refused |= cycles
        keep_rates(self.persistence, context.changes)
        then, end = self._then(context, stay)
        commit = Commit(
            fence,
            then,
            number,
            calls=tuple(context.changes.calls),
            applied=(
                *(() if before is None else before.commit.applied),
                *(call for call, _ in replies if call is not None),
            ),
        )
        return Turn(kept.run, kept.task, commit, context.changes, end, is_new, context)

    def _then(self, context: ExecutionContext, stay: bool) -> tuple[Then, End | None]:
        root = context.row(ROOT)
        if root.is_complete:
            outputs = dict(root.returns)
            answer = with_mixins(outputs, _changed_mixins(context, root))
            return Close(Outcome.SUCCESS, answer), (RunState.COMPLETED, outputs, None)
        if not root.is_terminal:
            goes_on = root.frame.get("more") or (stay and context.changes.calls)
            if goes_on and not context.run.pause_requested:
                return Continue(), None
            if count(root, "open"):
                return Suspend(), None
            # nothing runs, nothing is outstanding, and the run has not ended
            root = context.edit(ROOT)
            root.mark_error(self._deadlock(context))
        error = dict(root.error or {"type": "Error", "message": "The run failed.", "step": ROOT})
        close = Close(Outcome.FAILED, error=error, permanent=True)
        return close, (RunState.FAILED, None, error)

    def _deadlock(self, context: ExecutionContext) -> dict[str, Json]:
        rows = self.persistence.get_steps_by_state(
            context.run.id, StepState.BLOCK_EXECUTION_CONTINUE
        )
        waits = unresolved(context, rows) or ["no step says what it waits for"]
        message = "Nothing can go on: " + "; ".join(waits)
        return {"type": "Deadlock", "message": message, "step": ROOT}

    def _load(self, kept: _Kept, needed: Needed) -> None:
        """Loads what an iteration asked for, and what it is about to ask for: what stands above."""
        if needed.steps or needed.yields or needed.waits:
            above = {
                path
                for step in needed.steps
                for path in _above(step)
                if path not in kept.memory.steps and not kept.memory.knows(path)
            }
            asked = replace(needed, steps=needed.steps | above)
            kept.memory.add(asked, self.persistence.load(kept.run.id, asked))
        if needed.origin and kept.run.fork is not None:
            rows = self.persistence.load(kept.run.fork.run, Needed(steps=needed.origin))
            for path in needed.origin:
                kept.memory.origin[path] = rows.steps.get(path)
        for path in needed.unended:
            unended = self.persistence.get_unended_steps(kept.run.id, path)
            kept.memory.unended[path] = [row.path for row in unended]
            for row in unended:
                kept.memory.steps.setdefault(row.path, row)
        for facet, key in needed.memos:
            kept.memory.memos[facet, key] = self.persistence.get_memo(facet, key)

    def _child_run(self, task: Task) -> Run:
        """The run of a workflow that was called as a step, seen for the first time. It is paused
        if its caller is."""
        given = task.input
        assert isinstance(given, dict)
        inputs = given.get("inputs")
        parent = WorkflowId(str(given["run"]))
        caller = self.persistence.get_run(parent)
        return Run(
            WorkflowId(task.id),
            str(given["program"]),
            str(given["workflow"]),
            inputs if isinstance(inputs, dict) else {},
            state=RunState.RUNNING,
            priority=task.priority,
            tenant=task.tenant,
            parent=parent,
            parent_path=str(given["step"]),
            pause_requested=caller is not None and caller.pause_requested,
        )

    # What programs use that drive a run without a worker

    def start(
        self,
        program: str,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
        *,
        key: str | None = None,
        fork: Fork | None = None,
    ) -> WorkflowId:
        """Makes a run, ready to be advanced by any worker. A known key answers with its run."""
        order = Order(program, workflow, inputs or {}, key=key, fork=fork)
        return Submitter(self.persistence, self.plans, self._ids).submit(order)

    def execute(
        self,
        workflow_ast: ir.Program | str,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
    ) -> ExecutionResult:
        """Starts a run of a program and advances it as far as it goes without others."""
        return self.resume(self.start(self.plans.add(workflow_ast), workflow, inputs))

    def resume(
        self,
        workflow_id_val: WorkflowId,
        workflow_ast: object = None,
        program_ast: object = None,
        inputs: object = None,
    ) -> ExecutionResult:
        """Advances a run as far as it goes without others; PAUSED if somebody else is at it.

        A run is pinned to the program and the inputs it was started with: what is handed in besides
        its id is taken for the seeds' sake, and not needed.
        """
        del workflow_ast, program_ast, inputs
        run = self.persistence.get_run(workflow_id_val)
        if run is None:
            raise UnknownRun(f"There is no run {workflow_id_val}.")
        while self._advance_ready(workflow_id_val):
            pass
        return self.result(workflow_id_val)

    def result(self, run: WorkflowId) -> ExecutionResult:
        """How far a run has come."""
        found = self.persistence.get_run(run)
        if found is None:
            raise UnknownRun(f"There is no run {run}.")
        status = {
            RunState.COMPLETED: ExecutionStatus.COMPLETED,
            RunState.FAILED: ExecutionStatus.ERROR,
            RunState.CANCELED: ExecutionStatus.CANCELED,
        }.get(found.state, ExecutionStatus.PAUSED)
        return ExecutionResult(status, run, found.outputs or {}, found.error)

    def continue_step(self, step_id: StepId, result: Mapping[str, Json] | None = None) -> None:
        """Answers the outside work of a step. One that is not waited for any more changes nothing.

        The answer is the advance: whoever advances the run next takes it in. There is no moment at
        which the one is written and the other is not.
        """
        self._answer(step_id, CallStatus.OK, dict(result or {}))

    def fail_step(self, step_id: StepId, error_message: str, error_type: str = "Error") -> None:
        """Fails the outside work of a step."""
        self._answer(step_id, CallStatus.ERROR, {"type": error_type, "message": error_message})

    def _answer(self, step: StepId, status: CallStatus, body: Json) -> None:
        run, path = split_step_id(step)
        kernel = self.persistence.kernel
        call = kernel.find_call(TaskId(run), path)
        if call is None:
            raise UnknownStep(f"There is no step {step} that has outside work to wait for.")
        if call.status is not CallStatus.OPEN:
            return
        kernel.reply(call.id, status, body)
        if call.callee is not None:
            # whoever works on it is told to stop; its own answer would come too late anyway
            kernel.stop(call.callee, force=True)

    def _advance_ready(self, root: WorkflowId) -> bool:
        """Advances the runs that belong to a run and can go on; false if there was none."""
        kernel = self.persistence.kernel
        task = kernel.get_task(TaskId(root))
        if task is None:
            return False
        ready = [
            each.id
            for each in kernel.find_tasks(run=task.run, state=State.READY, limit=1000)
            if each.kind == "flow"
        ]
        advanced = [self._advance(task) for task in ready]
        return any(advanced)

    def _advance(self, task: TaskId) -> bool:
        claim = self.persistence.kernel.take(self._worker(), task)
        if claim is None:
            return False
        turn = self.evaluate(claim)
        self.commit(turn)
        while turn.goes_on:
            turn = self.go_on(turn)
            self.commit(turn)
        return True

    def commit(self, turn: Turn) -> None:
        """Commits one turn by itself."""
        self.persistence.kernel.commit(
            [turn.commit], writes=lambda transaction: self.write(transaction, turn)
        )
        self.accepted(turn)

    def _worker(self) -> WorkerId:
        """The worker as which this process advances runs that it drives itself."""
        kernel = self.persistence.kernel
        if self._driver is None:
            driver = WorkerId(f"driver-{self._ids.new_id()}")
            kernel.register(WorkerSpec(driver, "driver", service="evaluator", lease=_LEASE))
            self._driver = driver
        else:
            kernel.renew(self._driver)
        return self._driver


def _changed_mixins(context: ExecutionContext, root: StepDefinition) -> dict[str, Json]:
    """The records of mixins that a called run has yielded to, for the step that has called it."""
    if context.run.parent is None:
        return {}
    aliases = [str(mixin.alias) for mixin in context.plan.facet(root.facet_name).mixins]
    given = context.run.inputs
    return {
        alias: root.params[alias]
        for alias in aliases
        if alias in root.params and root.params[alias] != given.get(alias)
    }


def _without_calls(turn: Turn, then: Then) -> Turn:
    commit = Commit(turn.commit.fence, then, turn.commit.number, applied=turn.commit.applied)
    return Turn(turn.run, turn.task, commit, turn.changes, turn.end, turn.is_new, turn.context)


def _above(path: str) -> list[str]:
    """The paths of everything that a step stands in."""
    found = []
    while path != ROOT:
        path = parent_of(path)
        found.append(path)
    return found
