"""One iteration: answers in, changes out. Pure: it reads rows that were loaded, and writes copies.

Every step that something has happened to is walked through its states until it waits or ends. When
it ends, what waits for it hears of it: the block it stands in, which counts its parts, and blocks
elsewhere that have asked. So an iteration touches what has changed and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from afl.base.errors import AflError
from afl.ir import model as ir
from afl.kernel.model import CallStatus, Json
from afl.runtime.at_hand import note_answer, take_over
from afl.runtime.calls import SLEEP, UNTIL, Settings, runs_elsewhere
from afl.runtime.context import ExecutionContext, Search, count
from afl.runtime.handlers import handlers_of
from afl.runtime.handlers.base import StepFailure
from afl.runtime.handlers.blocks import CLAUSE, cause_of, defer, fails_fast, note_cause, start
from afl.runtime.handlers.completion import keep_result
from afl.runtime.pausing import is_pause, noted
from afl.runtime.persistence import Memo
from afl.runtime.plan import FACET_CATCH
from afl.runtime.replies import Reply, split_mixins
from afl.runtime.reuse import memo_key
from afl.runtime.routes import every_state, route_of
from afl.runtime.scope import Place
from afl.runtime.states import BLOCKS, TERMINAL, ObjectType, StepState
from afl.runtime.step import ROOT, StepDefinition, error_of, parent_of
from afl.runtime.telemetry import SILENT
from afl.runtime.timeouts import TAG, stop_below

_BEFORE_CATCH = (StepState.CREATED, StepState.FACET_INIT_BEGIN)


def advance(context: ExecutionContext, replies: Sequence[Reply]) -> None:
    """Takes the answers in and goes on until nothing moves."""
    if context.find(ROOT) is None:
        context.create(ROOT, ObjectType.WORKFLOW, context.run.workflow, context.run.workflow)
    elif context.row(ROOT).frame.get("more") and not context.winds_up:
        more = context.edit(ROOT).frame.pop("more")
        assert isinstance(more, list)
        for path in more:
            context.push(str(path))
    if context.takes_over:
        take_over(context)
    if context.row(ROOT).frame.get("inbox"):
        replies = [*noted(context.edit(ROOT)), *replies]
    context.require(reply.key.partition("#")[0] for reply in replies)
    search = Search()
    for reply in replies:
        search.through(receive, context, reply)
    while (path := context.pop()) is not None:
        if context.is_overfull:
            # a recursion may have no end, but an iteration has
            context.push(path)
            defer(context, *context.left_over())
            break
        search.through(_walk_at, context, path)
    search.end()


def _walk_at(context: ExecutionContext, path: str) -> None:
    walk(context, context.edit(path))


def walk(context: ExecutionContext, step: StepDefinition) -> None:
    """Goes from state to state until the step waits or has ended."""
    handlers = handlers_of(step.object_type)
    route = (
        route_of(context.plan, step)
        if context.telemetry is SILENT
        else every_state(step.object_type)
    )
    while (state := route.get(step.state, step.state)) not in TERMINAL:
        step.state = state
        result = handlers[state](step, context).process()
        if not result.success:
            assert result.error is not None
            fail(context, step, _stored(result.error, step.path))
        elif step.state == state:
            return
    step.state = state
    if context.first_end(step.path):
        _ended(context, step)


def fail(context: ExecutionContext, step: StepDefinition, error: dict[str, Json]) -> None:
    """Has the catch take over, if there is one that has not; else the step has failed."""
    part = _next_catch(context, step)
    if part is None:
        step.mark_error(error)
        return
    caught = step.frame.get("caught")
    step.frame["caught"] = [*(caught if isinstance(caught, list) else ()), part]
    step.frame["catch"] = part
    step.error = error
    step.state = StepState.STATEMENT_CATCH_BEGIN


def _next_catch(context: ExecutionContext, step: StepDefinition) -> str | None:
    """The innermost catch that guards a step or clause and has not run."""
    plan, caught = context.plan, step.frame.get("caught")
    done = caught if isinstance(caught, list) else ()
    if step.object_type in BLOCKS:
        is_clause = step.object_type != ObjectType.AND_CATCH and (
            step.object_type == ObjectType.AND_MAP or plan.map(step.statement_id) is None
        )
        return "catch" if is_clause and not done and plan.catch(step.statement_id) else None
    if step.object_type in (ObjectType.VARIABLE_ASSIGNMENT, ObjectType.WORKFLOW, ObjectType.MIXIN):
        inside = step.state not in _BEFORE_CATCH and "catch" not in done
        # a workflow that has run elsewhere has caught there what it catches
        known = plan.has_facet(step.facet_name)
        called = known and "called" in step.frame and runs_elsewhere(context, step)
        if (
            inside
            and known
            and not called
            and FACET_CATCH not in done
            and (plan.catch(step.facet_name))
        ):
            return FACET_CATCH
    if step.object_type == ObjectType.VARIABLE_ASSIGNMENT and "catch" not in done:
        return "catch" if plan.catch(step.statement_id) else None
    return None


def _ended(context: ExecutionContext, step: StepDefinition) -> None:
    """Tells those who wait for a step that it has ended."""
    plan = context.plan
    if step.object_type in (ObjectType.VARIABLE_ASSIGNMENT, ObjectType.SCHEMA_INSTANTIATION) and (
        plan.is_awaited(step.statement_id)
    ):
        waiting = context.waiting(step.path)
        context.require(waiting)
        for path in waiting:
            _settle(context, context.edit(path), step)
    if step.path == ROOT:
        return
    if step.state == StepState.STATEMENT_ERROR:
        halt(context, step)
    parent = context.edit(parent_of(step.path))
    if parent.is_terminal:
        return
    left = parent.frame["left"] = count(parent, "left") - 1
    if step.state == StepState.STATEMENT_ERROR:
        _note_failure(context, parent, step)
    elif step.state == StepState.STATEMENT_SKIPPED:
        _note_skip(context, parent, step)
    if "waits" in parent.frame:
        _settle(context, parent, step)
    if not left or parent.object_type == ObjectType.AND_MAP:
        context.push(parent.path)


def _settle(context: ExecutionContext, block: StepDefinition, step: StepDefinition) -> None:
    """A step that a block waits for has ended: what waited for it alone starts, or is skipped."""
    if block.is_terminal:
        return
    if count(block, "needs"):
        needs = context.plan.needs(block.statement_id)
        if step.statement_id not in needs:
            return
        if not step.is_complete:
            note_cause(block, CLAUSE, needs.index(step.statement_id), step)
        block.frame["needs"] = count(block, "needs") - 1
        if not block.frame["needs"]:
            because = cause_of(block, CLAUSE)
            if because is not None:
                block.mark_skipped(because)
            context.push(block.path)
        return
    plan, waits = context.plan.block(block.statement_id), block.frame.get("waits")
    if plan is None or not isinstance(waits, dict):
        return
    for name in plan.dependents.get(step.statement_id, ()):
        missing = waits.get(name)
        if not isinstance(missing, int):
            continue
        statement = plan.by_name[name]
        if not step.is_complete:
            note_cause(block, name, statement.node.needs.index(step.statement_id), step)
        if missing == 1:
            del waits[name]
            start(context, block, statement)
        else:
            waits[name] = missing - 1


def _note_failure(context: ExecutionContext, parent: StepDefinition, step: StepDefinition) -> None:
    """Keeps the failure of the part that is written first."""
    at = _position(context, parent, step)
    known = parent.frame.get("error_at")
    if isinstance(known, int) and known <= at and "error" in parent.frame:
        return
    parent.frame["error_at"] = at
    parent.frame["error"] = step.error


def _note_skip(context: ExecutionContext, parent: StepDefinition, step: StepDefinition) -> None:
    """Keeps why the part was skipped that is written first of those that were."""
    at = _position(context, parent, step)
    known = parent.frame.get("skipped_at")
    if not isinstance(known, int) or at < known:
        parent.frame["skipped_at"] = at
        parent.frame["skipped"] = step.skipped_because


def _position(context: ExecutionContext, parent: StepDefinition, step: StepDefinition) -> int:
    if step.name.isdigit():
        return int(step.name)
    if step.object_type in BLOCKS:
        return 0
    order = context.plan.spot(step.statement_id).order[-1]
    return 0 if order is None else order


def halt(context: ExecutionContext, step: StepDefinition) -> None:
    """Under `FailFast`, nothing more starts in what a failure brings down: in the whole
    declaration, or in what the next catch around it guards."""
    if not context.plan.has_fail_fast:
        return
    path, activation = step.path, Place.of(context, step).activation
    if not fails_fast(context, activation):
        return
    while path != activation:
        path = parent_of(path)
        row = context.row(path)
        if path == activation or _next_catch(context, row) is not None:
            if "halted" not in row.frame:
                context.edit(path).frame["halted"] = step.path
            return


def receive(context: ExecutionContext, reply: Reply) -> None:
    """Takes one answer in. One that nobody waits for any more changes nothing."""
    root = context.edit(ROOT)
    path, _, tag = reply.key.partition("#")
    if tag != TAG:
        root.frame["open"] = count(root, "open") - 1
    if is_pause(reply):
        root.frame.pop("paused", None)
        return
    found = context.find(path)
    if found is not None and not tag:
        note_answer(root, found)
    if found is None or found.is_terminal:
        return
    if tag == TAG:
        if reply.status is CallStatus.TIMEOUT:
            error = stop_below(context, found)
            fail(context, context.edit(path), error)
            context.push(path)
        return
    step = context.edit(path)
    try:
        _apply(context, step, tag, _answer(step, reply))
    except (AflError, StepFailure) as error:
        fail(context, step, _stored(error, step.path))
    context.push(path)


def _answer(step: StepDefinition, reply: Reply) -> Mapping[str, Json]:
    """What the work came to; a failure is raised."""
    slept = step.facet_name in (SLEEP, UNTIL) and reply.status is CallStatus.TIMEOUT
    if reply.status is CallStatus.OK or slept:
        return reply.body if isinstance(reply.body, dict) and not slept else {}
    body = reply.body if isinstance(reply.body, dict) else {}
    kinds = {CallStatus.TIMEOUT: "Timeout", CallStatus.CANCELED: "Canceled"}
    message = body.get("message") or (reply.body if isinstance(reply.body, str) else None)
    type_ = body.get("type") or kinds.get(reply.status, "Error")
    if reply.status is CallStatus.TIMEOUT:
        type_, message = "Timeout", message or "It took longer than its time."
    raise StepFailure({**body, "type": type_, "message": str(message or type_), "step": step.path})


def _apply(
    context: ExecutionContext, step: StepDefinition, tag: str, result: Mapping[str, Json]
) -> None:
    plan = context.plan
    if tag == "script":
        if step.state == StepState.FACET_SCRIPTS_CONTINUE:
            step.params = {**step.params, **result}
            step.frame["scripts"] = 0
    elif step.object_type == ObjectType.AND_SCRIPT:
        owner = plan.facet(step.facet_name).facet
        step.returns = plan.conversions.record(result, owner.returns, owner.name, complete=False)
        step.frame["left"] = 0
    elif step.state == StepState.EVENT_TRANSMIT:
        facet = plan.facet(step.facet_name)
        result, records = split_mixins(result)
        step.returns = plan.conversions.record(result, facet.facet.returns, facet.facet.name)
        if records and runs_elsewhere(context, step):
            # a fork has to know what the work was asked with
            step.frame["given"] = {alias: step.params.get(alias) for alias in records}
            step.params = {**step.params, **records}
        step.frame["answered"] = 1
        keep_result(plan, step, facet)
        step.request_state_change(True)
        _remember(context, step)


def _remember(context: ExecutionContext, step: StepDefinition) -> None:
    """Has the result of a cached facet kept."""
    facet = context.plan.facet(step.facet_name)
    key = memo_key(context, step, facet)
    if key is not None:
        given = Settings(context, step, facet).get("Cache") or {}
        ttl = given.get("ttl")
        span = timedelta(milliseconds=ttl) if isinstance(ttl, int) else None
        context.changes.memos.append(Memo(facet.facet.name, key, dict(step.returns), span))


def _stored(error: Exception, path: str) -> dict[str, Json]:
    return error.stored if isinstance(error, StepFailure) else error_of(error, path)


def unresolved(context: ExecutionContext, steps: Sequence[StepDefinition]) -> list[str]:
    """What steps of a run that cannot go on wait for, in words."""
    found = []
    changed = (*context.changes.created_steps, *context.changes.updated_steps)
    for step in ({each.path: each for each in (*steps, *changed)}).values():
        waits = step.frame.get("waits")
        for name in waits if isinstance(waits, dict) else ():
            block = context.plan.block(step.statement_id)
            node = block.by_name[name].node if block is not None else None
            needs = ", ".join(node.needs) if isinstance(node, ir.Step | ir.Yield) else ""
            found.append(f"`{step.path}/{name}` waits for {needs or 'nothing'}")
    return found
