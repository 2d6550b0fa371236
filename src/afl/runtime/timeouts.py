"""The time of a whole: of a facet that is made of steps, and of a mixin that runs as one.

A timer is a call that nobody serves and nobody waits for. When it comes back before the step has
ended, all that is below the step ends, and the step fails.
"""

from __future__ import annotations

from afl.kernel.model import CallSpec, Json, TaskSpec
from afl.runtime.calls import TIMERS, Settings, runs_elsewhere
from afl.runtime.context import ExecutionContext, count
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition

#: The name of the tasks of timers, and the tag of their calls.
TIMER = "afl:timeout"
TAG = "timeout"


def set_timer(context: ExecutionContext, step: StepDefinition) -> None:
    """Starts the time of a step, if it has one as a whole.

    Outside work has its time from its task, and so has a run.
    """
    if step.object_type == ObjectType.WORKFLOW or not _has_timeout(context, step):
        return
    facet = context.plan.facet(step.facet_name)
    span = None
    if not facet.is_event and not runs_elsewhere(context, step):
        span = Settings(context, step, facet).timeout()
    if span is not None:
        given: Json = {"facet": step.facet_name, "run": context.run.id, "step": step.path}
        task = TaskSpec("timer", TIMER, list=TIMERS, input=given, tenant=context.run.tenant)
        context.set_timer(CallSpec(f"{step.path}#{TAG}", task, span))


def _has_timeout(context: ExecutionContext, step: StepDefinition) -> bool:
    plan = context.plan
    if "Timeout" in plan.facet(step.facet_name).policies:
        return True
    is_call = step.object_type == ObjectType.VARIABLE_ASSIGNMENT
    return is_call and "Timeout" in plan.statement(step.statement_id).policies


def stop_below(context: ExecutionContext, step: StepDefinition) -> dict[str, Json]:
    """Ends all that a step has begun and that has not ended; answers the error of the step."""
    unended = context.unended_below(step.path)
    _cancel_work(context, step)
    for path in unended:
        row = context.edit(path)
        _cancel_work(context, row)
        message = f"`{step.path}` took longer than its time."
        row.mark_error({"type": "Canceled", "message": message, "step": step.path})
        # what it stands in has ended too, and need not hear of it
        context.first_end(path)
    message = f"`{step.facet_name}` took longer than its time."
    return {"type": "Timeout", "message": message, "step": step.path}


def _cancel_work(context: ExecutionContext, step: StepDefinition) -> None:
    """Has the outside work stopped that a step waits for."""
    match step.state:
        case StepState.EVENT_TRANSMIT if "called" in step.frame:
            context.changes.cancels.append(step.path)
        case StepState.FACET_SCRIPTS_CONTINUE if count(step, "scripts"):
            context.changes.cancels.append(f"{step.path}#script")
        case StepState.BLOCK_EXECUTION_CONTINUE if step.object_type == ObjectType.AND_SCRIPT:
            context.changes.cancels.append(step.path)
