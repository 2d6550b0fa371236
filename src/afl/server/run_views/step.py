"""A step with everything about it."""

from __future__ import annotations

from datetime import datetime

from afl.ir.model import SourceSpan
from afl.kernel.model import Json
from afl.runtime.calls import NO_TIMEOUT
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownStep
from afl.runtime.states import RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, parent_of, step_id
from afl.runtime.views import task_json
from afl.server.access import Caller, Role
from afl.server.backend import Backend
from afl.server.models.base import JsonMap
from afl.server.models.runs import Attempt, Payload, StepRow, StepView, WhyView
from afl.server.run_views.attempts import attempts_at_hand, attempts_of
from afl.server.run_views.payloads import payload, short
from afl.server.run_views.row import Beheld, RowMaker
from afl.server.run_views.rows import Windows
from afl.server.run_views.whys import of_answers, why_view
from afl.server.run_views.work import StepWork, Works

#: How many rows are looked through for a step that has not started.
_SIBLINGS = 1000


def step_view(backend: Backend, caller: Caller, run: Run, path: str) -> StepView:
    """A step; also one that has not started, if it is known what it waits for.

    Raises:
        UnknownStep: the run has no such step.
    """
    found = backend.services.persistence.get_step(step_id(run.id, path))
    if found is None:
        return _unbegun(backend, run, path)
    maker = RowMaker(backend, run)
    (beheld,) = maker.behold([found])
    work = beheld.work
    works = maker.works(found)
    worker = None if work is None else works.worker_of(work)
    task = None if work is None else work.task
    span = _span(backend, run, found.statement_id)
    return StepView(
        run=run.id,
        row=beheld.row,
        input=payload(found.params),
        output=_output(found, whole=False),
        error=None if found.error is None else dict(found.error),
        source_line=None if span is None else span.line,
        source_file=None if span is None else span.file,
        attempts=_attempts(run, beheld, works),
        worker=None if worker is None else worker.id,
        lease_until=None if worker is None else worker.expires_at,
        idempotency_key=f"{run.id}:{path}" if work or beheld.row.attempts else None,
        deadline=_deadline(work),
        child_run=task.id if task is not None and task.kind == "flow" else None,
        turn=task.id if task is not None and task.kind == "turn" else None,
        why=_why(backend, run, beheld),
        actions=_actions(run, caller, beheld),
        raw=_raw(beheld),
    )


def _attempts(run: Run, beheld: Beheld, works: Works) -> list[Attempt]:
    if beheld.work is not None:
        return attempts_of(works, beheld.work)
    return attempts_at_hand(beheld.row, run.id) if beheld.row.attempts else []


def step_payload(backend: Backend, run: Run, path: str, *, output: bool) -> Payload:
    """The whole input or output of a step.

    Raises:
        UnknownStep: the run has no such step, or it has no output yet.
    """
    found = backend.services.persistence.get_step(step_id(run.id, path))
    if found is None:
        raise UnknownStep(
            f"Run {run.id} has no step `{path}`. `afl runs tree {run.id}` shows its steps."
        )
    if not output:
        return payload(found.params, None)
    value = _output(found, whole=True)
    if value is None:
        raise UnknownStep(f"Step `{path}` of run {run.id} has no output yet.")
    return value


def _output(step: StepDefinition, *, whole: bool) -> Payload | None:
    if not step.returns and not step.is_complete:
        return None
    return payload(step.returns, None) if whole else payload(step.returns)


def _deadline(work: StepWork | None) -> datetime | None:
    if work is None or work.task is None:
        return None
    # every call has a deadline; one that nobody has asked for lies far ahead
    far = work.call.deadline - work.task.created_at >= NO_TIMEOUT
    return None if far else work.call.deadline


def _why(backend: Backend, run: Run, beheld: Beheld) -> WhyView:
    step = beheld.step
    if beheld.answer is not None and beheld.work is not None and beheld.work.is_open:
        return of_answers(run.id, step.path, step.state, [beheld.answer])
    return why_view(backend.client.operations.why(run.id, step.path))


def _actions(run: Run, caller: Caller, beheld: Beheld) -> list[str]:
    """What a caller may do with a step as it is."""
    if caller.role < Role.OPERATOR:
        return []
    step = beheld.step
    if RunState.is_terminal(run.state):
        can_retry = step.state == StepState.STATEMENT_ERROR and run.parent is None
        return ["retry", "fork"] if can_retry else ["fork"]
    is_open = beheld.work is not None and beheld.work.is_open and step.facet_name != ""
    return ["skip", "continue", "fail"] if is_open else []


def _span(backend: Backend, run: Run, statement: str) -> SourceSpan | None:
    return backend.services.evaluator.plans.get(run.program).program.spans.get(statement)


def _raw(beheld: Beheld) -> JsonMap:
    """The rows themselves, for those who know them; what is shown elsewhere is left out."""
    step, work = beheld.step, beheld.work
    raw: JsonMap = {
        "state": step.state,
        "object_type": step.object_type,
        "statement_id": step.statement_id,
        "yields_to": step.yields_to,
        "frame": short(step.frame),
    }
    if work is not None:
        call = work.call
        raw["call"] = {
            "id": call.id,
            "key": call.key,
            "status": call.status.value,
            "deadline": call.deadline.isoformat(),
            "applied": call.applied,
        }
        if work.task is not None:
            task = task_json(work.task)
            told: dict[str, Json] = {
                name: value for name, value in task.items() if name not in ("input", "result")
            }
            raw["task"] = short(told)
            raw["losses"] = [
                {"worker": loss.worker, "fence": loss.fence, "at": loss.at.isoformat()}
                for loss in work.losses
            ]
    return raw


def _unbegun(backend: Backend, run: Run, path: str) -> StepView:
    """A step that waits for others, or was never reached."""
    why = backend.client.operations.why(run.id, path)
    page = Windows(backend, run).below(parent_of(path) if path else ROOT, None, None, _SIBLINGS)
    row = next((each for each in page.items if each.path == path), None)
    if row is None:
        raise UnknownStep(f"Step `{path}` of run {run.id} never started. {why.sentence}")
    return _without_rows(backend, run, row, why_view(why))


def _without_rows(backend: Backend, run: Run, row: StepRow, why: WhyView) -> StepView:
    span = _span(backend, run, row.statement)
    return StepView(
        run=run.id,
        row=row,
        input=payload({}),
        output=None,
        error=None,
        source_line=None if span is None else span.line,
        source_file=None if span is None else span.file,
        attempts=[],
        worker=None,
        lease_until=None,
        idempotency_key=f"{run.id}:{row.path}",
        deadline=None,
        child_run=None,
        turn=None,
        why=why,
        actions=[],
        raw={},
    )
