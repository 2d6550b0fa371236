"""Programs that are made ready before they are needed."""

from __future__ import annotations

from collections.abc import Mapping

from afl.ir import model as ir
from afl.runtime.evaluator import Evaluator
from afl.runtime.step import WorkflowId

#: A program as callers have it: compiled, as text, or as the specification's data.
WorkflowAst = ir.Program | str | Mapping[str, object]


def make_ready(evaluator: Evaluator, workflow_id: str, ast: WorkflowAst) -> None:
    """Has the program of a run stored, and its plan made before the run goes on.

    A run is pinned to the program it was started with, and finds it by itself. So data in another
    form is let pass: nothing depends on it.
    """
    if isinstance(ast, ir.Program | str):
        evaluator.plans.add(ast)
    run = evaluator.persistence.get_run(WorkflowId(workflow_id))
    if run is not None:
        evaluator.plans.get(run.program)
