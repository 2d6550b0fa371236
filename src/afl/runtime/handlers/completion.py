"""From the work of a step to its end: outside work, bodies, catches, what was yielded."""

from __future__ import annotations

from collections.abc import Sequence

from afl.ir import model as ir
from afl.ir.types import ListOf
from afl.kernel.model import MAX_DEPTH, Json
from afl.runtime.calls import event_call, flow_call, runs_elsewhere
from afl.runtime.context import count
from afl.runtime.handlers.base import StateChangeResult, StateHandler, StepFailure
from afl.runtime.handlers.blocks import ended_as_parts
from afl.runtime.plan import FACET_CATCH, FacetPlan, Plan
from afl.runtime.reuse import reused_returns
from afl.runtime.scope import Place
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition, is_below, join

#: What a frame holds of parts that have failed, and that a catch takes the place of.
_OF_PARTS = ("error", "error_at", "skipped", "skipped_at", "halted")
#: How deep the task of a run may be: what it calls, which is one deeper, can always be called.
MAX_RUN_DEPTH = MAX_DEPTH - 2


class EventTransmitHandler(StateHandler):
    """Has outside work done, and waits for it. A facet that is not work passes through."""

    state_name = StepState.EVENT_TRANSMIT
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, context = self.step, self.context
        facet = context.plan.facet(step.facet_name)
        if not facet.is_event and not runs_elsewhere(context, step):
            return self.transition()
        if "called" in step.frame:
            return self.stay()
        returns = reused_returns(context, step, facet)
        if returns is not None:
            step.returns = dict(returns)
            keep_result(context.plan, step, facet)
            return self.transition()
        step.frame["called"] = 1
        if facet.is_event:
            context.call(event_call(context, step, facet))
        else:
            self._refuse()
            context.call(flow_call(context, step, facet))
        return self.stay()

    def _refuse(self) -> None:
        """Fails a call of a workflow that the kernel would not take."""
        step, context = self.step, self.context
        if context.depth + 1 > MAX_RUN_DEPTH:
            message = (
                f"Workflows may call each other {MAX_RUN_DEPTH} deep, and `{step.facet_name}` "
                "would be one more. Look for one that calls itself without an end."
            )
            raise StepFailure({"type": "TooDeep", "message": message, "step": step.path})
        refused = context.refused.get(step.path)
        if refused is not None:
            raise StepFailure(refused)


def keep_result(plan: Plan, step: StepDefinition, facet: FacetPlan) -> None:
    """The body may yield something else; a fork has to know what the work itself came to."""
    if facet.facet.clauses or plan.has_body(step.statement_id):
        step.frame["result"] = dict(step.returns)


class StatementBlocksBeginHandler(StateHandler):
    """Starts the body: that of the step, else that of its facet."""

    state_name = StepState.STATEMENT_BLOCKS_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step = self.step
        clauses = self._clauses()
        step.frame["left"] = len(clauses)
        for position, clause in enumerate(clauses):
            kind = _kind_of(clause)
            path = join(step.path, position)
            if kind == ObjectType.AND_SCRIPT:
                # what a script sets counts like a yield
                facet = step.facet_name
                self.context.create(path, kind, clause.id, facet, yields_to=step.path)
            else:
                self.context.create(path, kind, clause.id)
        return self.transition()

    def _clauses(self) -> Sequence[ir.Clause]:
        step, plan = self.step, self.context.plan
        if runs_elsewhere(self.context, step):
            return ()
        if step.object_type == ObjectType.VARIABLE_ASSIGNMENT:
            node = plan.statement(step.statement_id).node
            assert isinstance(node, ir.Step)
            if node.clauses:
                return node.clauses
        return plan.facet(step.facet_name).facet.clauses


def _kind_of(clause: ir.Clause) -> str:
    if clause.foreach is not None:
        return ObjectType.AND_MAP
    match clause.body:
        case ir.Block():
            return ObjectType.AND_THEN
        case ir.When():
            return ObjectType.AND_WHEN
        case ir.Script():
            return ObjectType.AND_SCRIPT


class StatementBlocksContinueHandler(StateHandler):
    """Waits for the body."""

    state_name = StepState.STATEMENT_BLOCKS_CONTINUE
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        return self.stay() if count(self.step, "left") else ended_as_parts(self)


class StatementCatchBeginHandler(StateHandler):
    """Starts the catch that takes the place of what failed."""

    state_name = StepState.STATEMENT_CATCH_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, plan = self.step, self.context.plan
        part = step.frame["catch"]
        guarded = step.facet_name if part == FACET_CATCH else step.statement_id
        catch = plan.catch(guarded)
        assert catch is not None
        assert step.error is not None
        step.returns = {}
        for name in _OF_PARTS:
            step.frame.pop(name, None)
        step.frame["left"] = 1
        path = join(step.path, str(part))
        self.context.create(path, ObjectType.AND_CATCH, catch.id, params=step.error)
        step.error = None
        return self.transition()


class StatementCatchContinueHandler(StateHandler):
    """Waits for the catch."""

    state_name = StepState.STATEMENT_CATCH_CONTINUE
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        return self.stay() if count(self.step, "left") else ended_as_parts(self)


class StatementCaptureBeginHandler(StateHandler):
    """Collects what was yielded to the step."""

    state_name = StepState.STATEMENT_CAPTURE_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, plan = self.step, self.context.plan
        facet = plan.facet(step.facet_name)
        if not self._has_body(facet):
            self._complete(facet)
            return self.transition()
        collected: dict[str, dict[str, Json]] = {}
        for row in self._counted(self.context.yields(step.path)):
            record = collected.setdefault(row.facet_name, {})
            for name, value in row.returns.items():
                before = record.get(name)
                # several lists are one, in the order in which they are written
                if isinstance(before, list) and isinstance(value, list):
                    before.extend(value)
                else:
                    record[name] = list(value) if isinstance(value, list) else value
        for owner, record in collected.items():
            if "/with/" in owner:
                alias = owner.rpartition("/")[2]
                given = step.params.get(alias)
                step.params[alias] = {**(given if isinstance(given, dict) else {}), **record}
            else:
                step.returns.update(record)
        self._complete(facet)
        return self.transition()

    def _has_body(self, facet: FacetPlan) -> bool:
        step = self.step
        return (
            bool(facet.facet.clauses)
            or bool(step.frame.get("caught"))
            or self.context.plan.has_body(step.statement_id)
        )

    def _counted(self, rows: list[StepDefinition]) -> list[StepDefinition]:
        """The yields that count, as they are written: not those of a part whose catch has run."""
        context, plan = self.context, self.context.plan
        catch = self.step.frame.get("catch")
        # the catch of a step or of its facet takes the place of all that was done before
        part = self.step.path if catch is None else join(self.step.path, str(catch))
        guarded = {
            row.path: [Place.of(context, row).path(id) for id in plan.guards(row.statement_id)]
            for row in rows
            if row.is_complete and is_below(row.path, part)
        }
        context.require(path for paths in guarded.values() for path in paths)
        counted = [
            row
            for row in rows
            if row.path in guarded and all(context.find(path) is None for path in guarded[row.path])
        ]
        return sorted(counted, key=lambda row: _order(self, row))

    def _complete(self, facet: FacetPlan) -> None:
        returns = self.step.returns
        for name in facet.returns:
            if name not in returns:
                returns[name] = facet.return_defaults.get(name, self._empty(facet, name))

    def _empty(self, facet: FacetPlan, name: str) -> Json:
        """A list to which nothing was yielded is empty; what a catch did not yield is null."""
        caught = self.step.frame.get("caught")
        if isinstance(caught, list) and "catch" in caught:
            return None
        return [] if isinstance(facet.returns[name], ListOf) else None


def _order(handler: StateHandler, row: StepDefinition) -> tuple[int, ...]:
    """Where a yield is written, with the indexes of its iterations."""
    spot = handler.context.plan.spot(row.statement_id)
    parts = row.path.split("/")[-len(spot.order) :]
    return tuple(
        int(part) if position is None else position
        for position, part in zip(spot.order, parts, strict=True)
    )


class StatementCompleteHandler(StateHandler):
    """Ends the step."""

    state_name = StepState.STATEMENT_END
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        self.step.mark_completed()
        return StateChangeResult(self.step, continue_processing=False)
