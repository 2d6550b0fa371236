"""Where the names of an expression lead: from the place where it is written to the rows of the run.

`$.x` is the parameter of the declaration in which the expression is written, so it is found at the
step that called the declaration; a step is found from there by the way to it, in which the indexes
of iterations are those of the place itself.
"""

from __future__ import annotations

from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.context import ExecutionContext
from afl.runtime.states import ObjectType
from afl.runtime.step import StepDefinition, join


class Place:
    """A place in a run from which names are looked up."""

    __slots__ = ("_below", "_context", "activation")

    def __init__(
        self, context: ExecutionContext, activation: str, below: tuple[str, ...] = ()
    ) -> None:
        self._context = context
        #: the path of the step that called the declaration
        self.activation = activation
        self._below = below

    @classmethod
    def of(cls, context: ExecutionContext, step: StepDefinition) -> Place:
        """The place where the statement, clause, case or catch of a step stands."""
        plan = context.plan
        if step.object_type == ObjectType.WORKFLOW:
            return cls(context, step.path)
        depth = len(plan.spot(step.statement_id).parts)
        # an iteration has the id of its clause, and its index behind it
        if step.object_type in (ObjectType.BLOCK, ObjectType.AND_WHEN) and (
            plan.map(step.statement_id) is not None
        ):
            depth += 1
        parts = step.path.split("/")
        return cls(context, "/".join(parts[:-depth]), tuple(parts[-depth:]))

    def path(self, id: str) -> str:
        """The path of something that can be seen from here."""
        below = self._below
        parts = [
            below[position] if part is None else part
            for position, part in enumerate(self._context.plan.spot(id).parts)
        ]
        return join(self.activation, *parts) if parts else self.activation

    def owner(self, id: str) -> str:
        """The path of what a yield gives to: the call of the declaration, or a step."""
        return self.path(id) if "/" in id and "/with/" not in id else self.activation

    # What expressions ask

    def input(self, name: str) -> Json:
        return self._context.row(self.activation).params.get(name)

    def variable(self, clause: str, name: str) -> Json:
        position = len(self._context.plan.spot(clause).parts)
        return self._context.row(join(self.path(clause), self._below[position])).params[name]

    def step(self, ref: ir.StepValue) -> Json:
        row = self._context.row(self.path(ref.step))
        if ref.source == "return":
            return row.returns.get(ref.name)
        if ref.source == "step":
            return {**row.params, **row.returns}
        return row.params.get(ref.name)

    def error(self, ref: ir.ErrorValue) -> Json:
        error = self._context.row(self.path(ref.catch)).params
        return error.get(ref.field) if ref.field else dict(error)
