"""`why`: for everything in a run that is not going on, the reason, and what helps.

Nothing is noted for this while a run goes on: the answers are read from the rows, so they are true
when they are given and cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from afl.runtime.reasons import Answer, Why, WhyCode, worst_first
from afl.runtime.scope import Place
from afl.runtime.seen_facts import SeenFacts
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
        answers += worst_first(islice(rest, MAX_ANSWERS - len(answers)))
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
        answers = worst_first(islice(rest, MAX_ANSWERS))
        if row.state != StepState.EVENT_TRANSMIT:
            answers.append(_parts(run, row))
        if run.pause_requested:
            answers.insert(0, paused(run.id))
        elif not answers:
            answers = list(self.run(run).answers)
        return Why(run.id, path, row.state, tuple(answers), next(rest, None) is not None)

    def begun(self, run: Run, row: StepDefinition) -> Answer:
        """Why a step that has begun, and has no outside work of its own, has not ended: the one
        answer that says most, without a look at what is below it."""
        if run.pause_requested:
            return paused(run.id)
        if row.state == StepState.BLOCK_EXECUTION_BEGIN:
            return next(self.not_begun(run, row))
        return _limit(row) or _parts(run, row)

    def _open(self, run: Run, below: str) -> Iterator[Answer]:
        """What the parts below a path wait for: outside work first, then those not started."""
        for state, tag in _AT_WORK:
            yield from self._work(run, self._in_state(run, state, below), tag)
        for state in (StepState.BLOCK_EXECUTION_CONTINUE, StepState.BLOCK_EXECUTION_BEGIN):
            for block in self._in_state(run, state, below):
                if block.object_type == ObjectType.AND_SCRIPT:
                    yield from self._work(run, [block], "")
                else:
                    yield from self.not_begun(run, block)

    def _in_state(self, run: Run, state: str, below: str) -> list[StepDefinition]:
        rows = self._persistence.get_steps_by_state(run.id, state, limit=_ROWS_READ)
        return [row for row in rows if is_within(row.path, below)]

    def _work(self, run: Run, rows: Sequence[StepDefinition], tag: str) -> Iterator[Answer]:
        """Why the outside work of steps is not done: of as many as answers can be about."""
        kernel = self._persistence.kernel
        paths = [row.path for row in rows[: MAX_ANSWERS + 1]]
        found = kernel.find_calls(TaskId(run.id), [path + tag for path in paths]) if paths else []
        calls = {call.key: call for call in found}
        tasks = TaskReasons(SeenFacts(self._persistence, found))
        for path in paths:
            call = calls.get(path + tag)
            if call is None or call.status is not CallStatus.OPEN:
                sentence = f"The answer to `{path}` has come, and the run has yet to take it in."
                yield Answer(WhyCode.ANSWERED, sentence, path)
            else:
                yield tasks.of_call(run.id, call)

    def not_begun(self, run: Run, block: StepDefinition) -> Iterator[Answer]:
        """Why parts of a block, or all of it, have not started."""
        plan = self._plans.get(run.program)
        if block.state == StepState.BLOCK_EXECUTION_BEGIN:
            yield from self._upstream(run, block, {block.path: plan.needs(block.statement_id)})
            return
        statements = plan.block(block.statement_id)
        waits = block.frame.get("waits")
        if statements is not None and isinstance(waits, dict):
            needs = {join(block.path, each): statements.by_name[each].node.needs for each in waits}
            yield from self._upstream(run, block, needs)
        limited = _limit(block)
        if limited is not None:
            yield limited

    def _upstream(
        self, run: Run, block: StepDefinition, needs: Mapping[str, Sequence[str]]
    ) -> Iterator[Answer]:
        """Which of the needs of parts of a block, by path, are missing."""
        plan = self._plans.get(run.program)
        place = Place.of(ExecutionContext(run, plan, Memory(), _NEVER), block)
        needed = {path: [place.path(need) for need in each] for path, each in needs.items()}
        every = frozenset(path for each in needed.values() for path in each)
        rows = self._persistence.load(run.id, Needed(steps=every)).steps
        ended = {path for path, row in rows.items() if row.is_terminal}
        for path, paths in needed.items():
            missing = [each for each in paths if each not in ended]
            names = ", ".join(f"`{each}`" for each in missing) or "its turn"
            command = f"afl runs why {run.id} {missing[0]}" if missing else None
            detail: dict[str, Json] = {"needs": list(missing)}
            sentence = f"`{path}` has not started: it needs {names} first."
            yield Answer(WhyCode.UPSTREAM, sentence, path, command, detail=detail)

    def _not_started(self, run: Run, path: str) -> Answer:
        """Why a step that the program has is not there."""
        parent = self._persistence.get_step(step_id(run.id, parent_of(path))) if path else None
        name = path.rpartition("/")[2]
        if parent is not None:
            block = self._plans.get(run.program).block(parent.statement_id)
            if block is not None and name in block.by_name:
                return next(self._upstream(run, parent, {path: block.by_name[name].node.needs}))
        raise UnknownStep(
            f"Run {run.id} has no step `{path}`{self._near(run, path)} "
            f"`afl runs tree {run.id}` shows its steps."
        )

    def _near(self, run: Run, path: str) -> str:
        rows = self._persistence.get_steps_by_workflow(run.id, limit=_ROWS_READ)
        near = get_close_matches(path, [row.path for row in rows], n=1)
        return f"; did you mean `{near[0]}`?" if near else "."


def _limit(block: StepDefinition) -> Answer | None:
    """Why iterations of a foreach have not started; None if all have, or if it is none."""
    total, started = block.frame.get("total"), block.frame.get("started")
    if not isinstance(total, int) or not isinstance(started, int) or started >= total:
        return None
    limit = block.frame.get("limit")
    return Answer(
        WhyCode.LIMIT,
        f"{total - started} of {total} iterations of `{block.path}` have not started: "
        f"at most {limit} run at once.",
        block.path,
        detail={"started": started, "total": total, "limit": limit},
    )


def _parts(run: Run, row: StepDefinition) -> Answer:
    left = row.frame.get("left")
    parts = f"{left} of its parts" if isinstance(left, int) and left else "its parts"
    sentence = f"`{row.path or run.workflow}` goes on when {parts} have finished."
    return Answer(WhyCode.PARTS, sentence, row.path)


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
