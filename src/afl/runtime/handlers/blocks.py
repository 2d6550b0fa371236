"""Blocks: clauses, iterations, cases and catches, and the statements in them.

A block counts. `left` is how many of its parts have not ended, `waits` says for each statement that
has not started how many of its needs are still missing. So what it costs when a part ends does not
depend on how many there are.
"""

from __future__ import annotations

from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.calls import script_call
from afl.runtime.context import ExecutionContext, count
from afl.runtime.expressions import EvaluationError
from afl.runtime.handlers.base import StateChangeResult, StateHandler, StepFailure
from afl.runtime.plan import Statement
from afl.runtime.scope import Place
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition, is_below, join, parent_of

#: How many iterations of a foreach without a limit are under way at any time. All of them may
#: be, as far as the program can tell; more would only be rows that wait.
MAX_ITERATIONS_AT_ONCE = 10_000


class BlockExecutionBeginHandler(StateHandler):
    """Starts a block once the steps are complete that its list or its conditions read."""

    state_name = StepState.BLOCK_EXECUTION_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step = self.step
        if step.object_type != ObjectType.BLOCK and "waits" not in step.frame:
            because = self._wait_for_needs()
            if because is not None:
                step.mark_skipped(because)
                return StateChangeResult(step)
        if count(step, "needs"):
            return self.stay()
        plan = self.context.plan
        match step.object_type:
            case ObjectType.AND_MAP:
                self._begin_map()
            case ObjectType.AND_SCRIPT:
                self._begin_script()
            case _:
                if plan.when(step.statement_id) is not None and self._is_choice:
                    self._begin_when()
                else:
                    self._begin_statements()
        return self.transition()

    @property
    def _is_choice(self) -> bool:
        return self.step.object_type in (ObjectType.AND_WHEN, ObjectType.AND_CATCH)

    def _wait_for_needs(self) -> str | None:
        """Counts the needs of the clause or catch that are missing; if none is, answers the first
        of them that failed."""
        step, context = self.step, self.context
        needs = context.plan.needs(step.statement_id)
        if not needs or _is_iteration(context, step):
            return None
        place = self.place
        paths = [place.path(need) for need in needs]
        context.require(paths)
        missing = 0
        step.frame["waits"] = {}
        for number, path in enumerate(paths):
            row = context.find(path)
            if row is None or not row.is_terminal:
                missing += 1
                context.wait(path, step.path)
            elif not row.is_complete:
                note_cause(step, CLAUSE, number, row)
        step.frame["needs"] = missing
        return None if missing else cause_of(step, CLAUSE)

    def _begin_statements(self) -> None:
        step, context = self.step, self.context
        block = context.plan.block(step.statement_id)
        assert block is not None
        place = self.place
        outer = {need: place.path(need) for need in block.outer}
        context.require(outer.values())
        waits: dict[str, Json] = {}
        step.frame.update(left=len(block.statements), waits=waits)
        for statement in block.statements:
            missing = len(statement.inner)
            for need in statement.outer:
                row = context.find(outer[need])
                if row is None or not row.is_terminal:
                    missing += 1
                    context.wait(outer[need], step.path)
                elif not row.is_complete:
                    note_cause(step, statement.name, statement.node.needs.index(need), row)
            if missing:
                waits[statement.name] = missing
            else:
                start(context, step, statement)

    def _begin_when(self) -> None:
        step, context = self.step, self.context
        when = context.plan.when(step.statement_id)
        assert when is not None
        place = self.place
        step.frame["left"] = 1
        for case in when.cases:
            chosen = True if case.condition is None else case.condition(place)
            if not isinstance(chosen, bool):
                raise EvaluationError(f"the condition of `{case.id}` is not a Boolean")
            if chosen:
                path = join(step.path, case.id.rpartition("/")[2])
                context.create(path, ObjectType.BLOCK, case.id)
                return
        step.frame["left"] = 0

    def _begin_map(self) -> None:
        step, context = self.step, self.context
        place = self.place
        items = _items(context, step, place)
        plan = context.plan.map(step.statement_id)
        assert plan is not None
        limit = MAX_ITERATIONS_AT_ONCE
        if plan.limit is not None:
            value = plan.limit(place)
            if not isinstance(value, int) or value < 1:
                raise EvaluationError(f"the limit of a foreach must be at least 1, not {value}")
            limit = value
        step.frame.update(left=len(items), started=0, total=len(items), limit=limit)
        start_iterations(context, step)

    def _begin_script(self) -> None:
        step, context = self.step, self.context
        step.frame["left"] = 1
        script = context.plan.script(step.statement_id)
        params = context.row(self.place.activation).params
        context.call(script_call(context, step, script, params))


class BlockExecutionContinueHandler(StateHandler):
    """Waits for the parts of a block; then it has ended as they have."""

    state_name = StepState.BLOCK_EXECUTION_CONTINUE
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step = self.step
        if step.object_type == ObjectType.AND_MAP:
            start_iterations(self.context, step)
        if count(step, "left"):
            return self.stay()
        return ended_as_parts(self)


def ended_as_parts(handler: StateHandler) -> StateChangeResult:
    """Goes on if all parts succeeded; else fails, or is skipped, as the first of them that did.

    What was skipped because of a failure inside, which a catch has dealt with, is a failure here.
    """
    step = handler.step
    failed = step.frame.pop("error", None)
    if isinstance(failed, dict):
        raise StepFailure(failed)
    because = step.frame.pop("skipped", None)
    if isinstance(because, str):
        if is_below(because, step.path):
            raise StepFailure(handler.context.row(because).error or {})
        step.mark_skipped(because)
        return StateChangeResult(step)
    return handler.transition()


#: Under which a clause keeps why it is skipped; its statements do so under their names.
CLAUSE = ""


def note_cause(block: StepDefinition, name: str, number: int, need: StepDefinition) -> None:
    """Keeps that a need has failed. Of several, the one that is written first counts, whichever
    came first: so the outcome of a run does not depend on who was faster."""
    causes = block.frame.setdefault("causes", {})
    assert isinstance(causes, dict)
    known = causes.get(name)
    if not isinstance(known, list) or int(str(known[0])) > number:
        causes[name] = [number, need.skipped_because or need.path]


def cause_of(block: StepDefinition, name: str) -> str | None:
    """The failed step because of which a statement, or the clause itself, never runs."""
    causes = block.frame.get("causes")
    known = causes.get(name) if isinstance(causes, dict) else None
    return str(known[1]) if isinstance(known, list) else None


def start(context: ExecutionContext, block: StepDefinition, statement: Statement) -> None:
    """Makes the step of a statement whose needs have ended, or skips it if one of them failed."""
    halted = cause_of(block, statement.name) or halted_by(context, block)
    if halted is not None:
        skip(context, block, statement, halted)
        return
    path = join(block.path, statement.name)
    match statement.node:
        case ir.Step(kind="schema", facet=facet):
            context.create(path, ObjectType.SCHEMA_INSTANTIATION, statement.id, facet)
        case ir.Step(facet=facet):
            context.create(path, ObjectType.VARIABLE_ASSIGNMENT, statement.id, facet)
        case ir.Log():
            context.create(path, ObjectType.SYS_LOG, statement.id)
        case ir.Assert():
            context.create(path, ObjectType.SYS_ASSERT, statement.id)
        case ir.Yield():
            place = _place_below(context, block, path, statement)
            first, *others = statement.targets
            for number, target in enumerate(others, 1):
                # one row for each owner, so that each finds what was yielded to it
                _yield(context, f"{path}+{number}", statement, target.owner, place)
                block.frame["left"] = count(block, "left") + 1
            _yield(context, path, statement, first.owner, place)


def _yield(
    context: ExecutionContext, path: str, statement: Statement, owner: str, place: Place
) -> None:
    context.create(
        path, ObjectType.YIELD_ASSIGNMENT, statement.id, owner, yields_to=place.owner(owner)
    )


def _place_below(
    context: ExecutionContext, block: StepDefinition, path: str, statement: Statement
) -> Place:
    depth = len(context.plan.spot(statement.id).parts)
    parts = path.split("/")
    return Place(context, "/".join(parts[:-depth]), tuple(parts[-depth:]))


def skip(
    context: ExecutionContext, block: StepDefinition, statement: Statement, because: str
) -> None:
    """Makes the step of a statement that will never have what it needs."""
    facet = ""
    match statement.node:
        case ir.Step(kind="schema", facet=facet):
            kind = ObjectType.SCHEMA_INSTANTIATION
        case ir.Step(facet=facet):
            kind = ObjectType.VARIABLE_ASSIGNMENT
        case ir.Log():
            kind = ObjectType.SYS_LOG
        case ir.Assert():
            kind = ObjectType.SYS_ASSERT
        case ir.Yield():
            kind = ObjectType.YIELD_ASSIGNMENT
    path = join(block.path, statement.name)
    context.create(path, kind, statement.id, facet, skipped_because=because)


def start_iterations(context: ExecutionContext, map_step: StepDefinition) -> None:
    """Makes as many iterations as the limit and the size of a commit allow."""
    frame = map_step.frame
    started, total = count(map_step, "started"), count(map_step, "total")
    running = count(map_step, "left") - (total - started)
    if started == total:
        return
    halted = halted_by(context, map_step)
    if halted is not None:
        # those that never start are neither waited for nor reported one by one
        frame.update(left=running, started=total, total=total)
        frame.setdefault("skipped", halted)
        return
    place = Place.of(context, map_step)
    items = _items(context, map_step, place)
    plan = context.plan.map(map_step.statement_id)
    assert plan is not None
    kind = (
        ObjectType.BLOCK
        if context.plan.when(map_step.statement_id) is None
        else ObjectType.AND_WHEN
    )
    limit = count(map_step, "limit")
    while started < total and running < limit:
        if context.is_full:
            defer(context, map_step.path)
            break
        context.create(
            join(map_step.path, started),
            kind,
            map_step.statement_id,
            params={plan.variable: items[started]},
        )
        started += 1
        running += 1
    frame["started"] = started


def defer(context: ExecutionContext, *paths: str) -> None:
    """Leaves the rest of the work of steps to the next iteration."""
    more = context.row("").frame.get("more")
    known: dict[Json, None] = dict.fromkeys(more if isinstance(more, list) else ())
    if not known.keys() >= set(paths):
        context.edit("").frame["more"] = list(known | dict.fromkeys(paths))


def halted_by(context: ExecutionContext, step: StepDefinition) -> str | None:
    """The failure because of which nothing more starts here: see `machine.halt`."""
    if not context.plan.has_fail_fast:
        return None
    path, activation = step.path, Place.of(context, step).activation
    if not fails_fast(context, activation):
        return None
    while True:
        halted = context.row(path).frame.get("halted")
        if isinstance(halted, str):
            return halted
        if path == activation:
            return None
        path = parent_of(path)


def fails_fast(context: ExecutionContext, activation: str) -> bool:
    """Whether the declaration that a step calls starts nothing more after a failure."""
    return "FailFast" in context.plan.facet(context.row(activation).facet_name).policies


def _items(context: ExecutionContext, step: StepDefinition, place: Place) -> list[Json]:
    """The list that a foreach goes over. It is computed from what can no longer change."""

    def compute() -> list[Json]:
        plan = context.plan.map(step.statement_id)
        assert plan is not None
        value = plan.iterable(place)
        if not isinstance(value, list):
            raise EvaluationError(f"a foreach needs a list, and `{step.statement_id}` has none")
        return value

    return context.items(step.path, compute)


def _is_iteration(context: ExecutionContext, step: StepDefinition) -> bool:
    return step.object_type != ObjectType.AND_MAP and (
        context.plan.map(step.statement_id) is not None
    )
