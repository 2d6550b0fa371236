"""`why`: for everything in a run that is not going on, the reason, and what helps.

Nothing is noted for this while a run goes on: the answers are read from the rows, so they are true
when they are given and cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice

from afl.kernel.model import CallStatus, Json, State, TaskId
from afl.runtime.context import ExecutionContext, Memory
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownStep
from afl.runtime.forking import is_within
from afl.runtime.persistence import Needed, PersistenceAPI
from afl.runtime.programs import Plans
from afl.runtime.reasons import Answer, Why, WhyCode
from afl.runtime.scope import Place
from afl.runtime.states import ObjectType, RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, join, parent_of, step_id
from afl.runtime.task_reasons import TaskReasons, paused

#: How many answers are given at most; more of them help nobody.
MAX_ANSWERS = 50
_ROWS_READ = 1000
#: The states in which a step waits for outside work, and the tag of its call.
_AT_WORK = ((StepState.EVENT_TRANSMIT, ""), (StepState.FACET_SCRIPTS_CONTINUE, "#script"))
_NEVER = datetime.min.replace(tzinfo=UTC)


class Explainer:
    """Answers about runs and their steps."""

    def __init__(self, persistence: PersistenceAPI, plans: Plans) -> None:
        self._persistence = persistence
        self._plans = plans
        self._tasks = TaskReasons(persistence)

    def run(self, run: Run) -> Why:
        """Why a run is where it is."""
        if RunState.is_terminal(run.state):
            return Why(run.id, None, run.state, (_ended(run),))
        answers: list[Answer] = []
        if run.pause_requested:
            answers.append(paused(run.id))
        flow = self._persistence.kernel.get_task(TaskId(run.id))
        if flow is not None and flow.state is not State.WAITING:
            answers.append(self._tasks.of_task(flow))
        rest = self._open(run, ROOT)
        answers += islice(rest, MAX_ANSWERS - len(answers))
        if not answers:
            sentence = "The run was taken away by retention, or has not been written yet."
            answers.append(Answer(WhyCode.QUEUED, sentence))
        return Why(run.id, None, run.state, tuple(answers), next(rest, None) is not None)

    def step(self, run: Run, path: str) -> Why:
        """Why a step is where it is; also one that has not started."""
        row = self._persistence.get_step(step_id(run.id, path))
        if row is None:
            return Why(run.id, path, "not started", (self._not_started(run, path),))
        if row.is_terminal:
            return Why(run.id, path, row.state, (_step_ended(run, row),))
        rest = self._open(run, path)
        answers = list(islice(rest, MAX_ANSWERS))
        if row.state != StepState.EVENT_TRANSMIT:
            left = row.frame.get("left")
            parts = f"{left} of its parts" if isinstance(left, int) and left else "its parts"
            sentence = f"`{path or run.workflow}` goes on when {parts} have finished."
            answers.append(Answer(WhyCode.PARTS, sentence, path))
        if run.pause_requested:
            answers.insert(0, paused(run.id))
        elif not answers:
            answers = list(self.run(run).answers)
        return Why(run.id, path, row.state, tuple(answers), next(rest, None) is not None)

    def _open(self, run: Run, below: str) -> Iterator[Answer]:
        """What the parts below a path wait for: outside work first, then those not started."""
        for state, tag in _AT_WORK:
            for row in self._in_state(run, state, below):
                yield self._work(run, row.path, tag)
        for state in (StepState.BLOCK_EXECUTION_CONTINUE, StepState.BLOCK_EXECUTION_BEGIN):
            for block in self._in_state(run, state, below):
                if block.object_type == ObjectType.AND_SCRIPT:
                    yield self._work(run, block.path, "")
                else:
                    yield from self._waits(run, block)

    def _in_state(self, run: Run, state: str, below: str) -> list[StepDefinition]:
        rows = self._persistence.get_steps_by_state(run.id, state, limit=_ROWS_READ)
        return [row for row in rows if is_within(row.path, below)]

    def _work(self, run: Run, path: str, tag: str) -> Answer:
        """Why the outside work of a step is not done."""
        call = self._persistence.kernel.find_call(TaskId(run.id), path + tag)
        if call is None or call.status is not CallStatus.OPEN:
            sentence = f"The answer to `{path}` has come, and the run has yet to take it in."
            return Answer(WhyCode.ANSWERED, sentence, path)
        return self._tasks.of_call(run.id, call)

    def _waits(self, run: Run, block: StepDefinition) -> Iterator[Answer]:
        """The parts of a block that have not started."""
        plan = self._plans.get(run.program)
        if block.state == StepState.BLOCK_EXECUTION_BEGIN:
            yield self._upstream(run, block, block.path, plan.needs(block.statement_id))
            return
        statements = plan.block(block.statement_id)
        waits = block.frame.get("waits")
        if statements is not None and isinstance(waits, dict):
            for name in waits:
                needs = statements.by_name[name].node.needs
                yield self._upstream(run, block, join(block.path, name), needs)
        total, started = block.frame.get("total"), block.frame.get("started")
        if isinstance(total, int) and isinstance(started, int) and started < total:
            limit = block.frame.get("limit")
            yield Answer(
                WhyCode.LIMIT,
                f"{total - started} of {total} iterations of `{block.path}` have not started: "
                f"at most {limit} run at once.",
                block.path,
                detail={"started": started, "total": total, "limit": limit},
            )

    def _upstream(self, run: Run, block: StepDefinition, path: str, needs: Sequence[str]) -> Answer:
        plan = self._plans.get(run.program)
        place = Place.of(ExecutionContext(run, plan, Memory(), _NEVER), block)
        paths = [place.path(need) for need in needs]
        rows = self._persistence.load(run.id, Needed(steps=frozenset(paths))).steps
        missing = [each for each in paths if (row := rows.get(each)) is None or not row.is_terminal]
        names = ", ".join(f"`{each}`" for each in missing) or "its turn"
        command = f"afl runs why {run.id} {missing[0]}" if missing else None
        detail: dict[str, Json] = {"needs": list(missing)}
        sentence = f"`{path}` has not started: it needs {names} first."
        return Answer(WhyCode.UPSTREAM, sentence, path, command, detail=detail)

    def _not_started(self, run: Run, path: str) -> Answer:
        """Why a step that the program has is not there."""
        parent = self._persistence.get_step(step_id(run.id, parent_of(path))) if path else None
        name = path.rpartition("/")[2]
        if parent is not None:
            block = self._plans.get(run.program).block(parent.statement_id)
            if block is not None and name in block.by_name:
                return self._upstream(run, parent, path, block.by_name[name].node.needs)
        raise UnknownStep(
            f"Run {run.id} has no step `{path}`{self._near(run, path)} "
            f"`afl runs tree {run.id}` shows its steps."
        )

    def _near(self, run: Run, path: str) -> str:
        rows = self._persistence.get_steps_by_workflow(run.id, limit=_ROWS_READ)
        near = get_close_matches(path, [row.path for row in rows], n=1)
        return f"; did you mean `{near[0]}`?" if near else "."


def _ended(run: Run) -> Answer:
    error = dict(run.error or {})
    match run.state:
        case RunState.COMPLETED:
            return Answer(
                WhyCode.DONE, "The run has completed.", command=f"afl runs result {run.id}"
            )
        case RunState.CANCELED:
            told = error.get("message") or "Somebody stopped it."
            return Answer(
                WhyCode.CANCELED,
                f"The run was canceled: {told}",
                command=f"afl runs rerun {run.id}",
                detail=error,
            )
    step = error.get("step")
    at = f" at `{step}`" if step else ""
    return Answer(
        WhyCode.FAILED,
        f"The run failed{at}: {error.get('type')}: {error.get('message')}",
        str(step) if step else None,
        command=f"afl runs retry {run.id}",
        detail=error,
    )


def _step_ended(run: Run, row: StepDefinition) -> Answer:
    if row.is_complete:
        origin = row.frame.get("reused")
        told = f" (its result was taken from {origin})" if origin else ""
        return Answer(WhyCode.DONE, f"`{row.path}` is done{told}.", row.path)
    if row.state == StepState.STATEMENT_SKIPPED:
        because = row.skipped_because
        return Answer(
            WhyCode.SKIPPED,
            f"`{row.path}` was skipped, because `{because}` failed.",
            row.path,
            command=f"afl runs why {run.id} {because}",
            detail={"because": because},
        )
    error = dict(row.error or {})
    return Answer(
        WhyCode.FAILED,
        f"`{row.path}` failed: {error.get('type')}: {error.get('message')}",
        row.path,
        command=f"afl runs retry {run.id}",
        detail=error,
    )
