"""Runs made from runs that have ended: which steps are done again, and whether that is allowed.

A fork takes over what the other run has finished with the same arguments. What is done again: the
steps that are named, those that had failed or never ran, and those whose arguments come out
differently. A finished step whose effect cannot be taken back is never among them unseen: if it
might be, the fork is refused, with the step by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.context import ExecutionContext, Memory
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Run
from afl.runtime.errors import BadInputs, NotForkable, RunEnded, StillRunning, UnknownStep
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.runtime.scope import Place
from afl.runtime.states import BLOCKS, ObjectType, RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, parent_of, step_id

_PAGE = 1000
_NEVER = datetime.min.replace(tzinfo=UTC)
_CALLS = (ObjectType.VARIABLE_ASSIGNMENT, ObjectType.MIXIN)


class Forks:
    """What a fork of an ended run comes to."""

    def __init__(self, persistence: PersistenceAPI, plans: Plans) -> None:
        self._persistence = persistence
        self._plans = plans

    def failed_steps(self, run: Run) -> list[str]:
        """The steps of a run where its failures began, its own or those of runs it called."""
        rows = self._persistence.get_steps_by_state(
            run.id, StepState.STATEMENT_ERROR, limit=100_000
        )
        return [
            row.path
            for row in rows
            if row.path != ROOT and (row.error is None or row.error.get("step") == row.path)
        ]

    def check_retry(self, run: Run, step: str | None, *, force: bool) -> tuple[str, ...]:
        """The steps that a retry does again; refuses one that must not or need not be."""
        refuse_unended(run, "retry")
        if run.parent is not None:
            raise NotForkable(
                f"Run {run.id} is the step `{run.parent_path}` of run {run.parent}. Retry that "
                f"run: `afl runs retry {run.parent}`."
            )
        failed = self.failed_steps(run)
        if step is None:
            if run.state == RunState.COMPLETED:
                raise RunEnded(f"Run {run.id} has completed: there is nothing to retry.")
            redo = tuple(failed)
        else:
            row = self._row(run, step)
            if row.state != StepState.STATEMENT_ERROR:
                raise RunEnded(
                    f"Step `{step}` has not failed, so there is nothing to retry. To do it again, "
                    f"use `afl runs fork {run.id} --from {step}`."
                )
            redo = (step,)
        self.check(run, redo, force=force)
        return redo

    def check_fork(
        self, run: Run, step: str, edited: Mapping[str, Json], *, force: bool
    ) -> Mapping[str, Json]:
        """The edited arguments of a step in their normal form; refuses a fork that must not be."""
        refuse_unended(run, "fork")
        row = self._row(run, step)
        given: Mapping[str, Json] = {}
        if edited:
            given = self._edited(run, row, edited)
        self.check(run, (step,), force=force)
        return given

    def check(self, run: Run, redo: Sequence[str], *, force: bool) -> None:
        """Refuses to do again what cannot be taken back, unless it is forced."""
        if force:
            return
        found = self._repeated(run, redo)
        if found:
            steps = ", ".join(f"`{path}` ({facet})" for path, facet in found[:5])
            raise NotForkable(
                f"This might do again what cannot be taken back: {steps}. Look at what it has "
                "done; to do it again all the same, use force."
            )

    def _row(self, run: Run, step: str) -> StepDefinition:
        row = self._persistence.get_step(step_id(run.id, step))
        if row is None:
            raise UnknownStep(
                f"Run {run.id} has no step `{step}`. `afl runs tree {run.id}` shows its steps."
            )
        return row

    def _edited(
        self, run: Run, row: StepDefinition, edited: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if row.object_type not in (ObjectType.VARIABLE_ASSIGNMENT, ObjectType.WORKFLOW):
            raise BadInputs(f"Step `{row.path}` calls no facet, so it has no inputs to edit.")
        plan = self._plans.get(run.program)
        facet = plan.facet(row.facet_name).facet
        try:
            return plan.conversions.record(edited, facet.params, facet.name, complete=False)
        except WrongValue as error:
            raise BadInputs(f"Step `{row.path}` cannot take these inputs: {error}") from error

    def _repeated(self, run: Run, redo: Sequence[str]) -> list[tuple[str, str]]:
        """Steps with an effect that cannot be taken back which a fork may do again."""
        plan = self._plans.get(run.program)
        rows = {row.path: row for row in self._rows(run)}
        # a failure is never taken over, caught or not; and what has failed, or was stopped, may
        # have done its work all the same
        unanswered = [row.path for row in rows.values() if _has_no_result(row)]
        changes = _Changes(run, plan, rows, (*redo, *unanswered))
        found = []
        for path, row in rows.items():
            if row.object_type not in _CALLS or not plan.has_facet(row.facet_name):
                continue
            if not _has_begun(row) or not changes.touch(path):
                continue
            facet = plan.facet(row.facet_name).facet
            if is_irreversible(facet):
                found.append((path, facet.name))
            elif facet.kind == "workflow":
                found += self._below(run, path)
        return found

    def _below(self, run: Run, path: str) -> list[tuple[str, str]]:
        """The same for all that a called workflow has done: its run would be a new one."""
        found = []
        for child in self._persistence.find_runs(parent=run.id, limit=100_000):
            if child.parent_path == path:
                inner = self._repeated(child, (ROOT,))
                found += [(f"{path}:{step}", facet) for step, facet in inner]
        return found

    def _rows(self, run: Run) -> Iterable[StepDefinition]:
        after: str | None = None
        while True:
            page = self._persistence.get_steps_by_workflow(run.id, after=after, limit=_PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].path


class _Changes:
    """Which steps of a run may come out differently when some are done again."""

    def __init__(
        self, run: Run, plan: Plan, rows: Mapping[str, StepDefinition], redo: Sequence[str]
    ) -> None:
        self._plan = plan
        self._rows = rows
        self._redo = tuple(redo)
        self._context = ExecutionContext(run, plan, Memory(), run.created_at or _NEVER)
        self.touch = cache(self._touched)

    def _touched(self, path: str) -> bool:
        """Whether a step is done again, or may get other arguments than it had."""
        if any(is_within(path, each) for each in self._redo):
            return True
        row = self._rows.get(path)
        if row is None:
            return False
        if any(self._result_changes(need) for need in self._needs(row)):
            return True
        if row.object_type == ObjectType.AND_CATCH and self._guarded_changes(path):
            return True
        return path != ROOT and self.touch(parent_of(path))

    def _result_changes(self, path: str) -> bool:
        return self.touch(path) or any(is_within(each, path) for each in self._redo)

    def _guarded_changes(self, catch: str) -> bool:
        guarded = parent_of(catch)
        return any(is_within(each, guarded) and not is_within(each, catch) for each in self._redo)

    def _needs(self, row: StepDefinition) -> list[str]:
        if row.object_type in (ObjectType.WORKFLOW, ObjectType.MIXIN):
            return []
        if row.object_type in BLOCKS:
            needs = self._plan.needs(row.statement_id)
        else:
            needs = self._plan.statement(row.statement_id).node.needs
        place = Place.of(self._context, row)
        return [place.path(need) for need in needs]


def _has_begun(row: StepDefinition) -> bool:
    """Whether the outside work of a step was asked for, here or in the run that it came from."""
    return "called" in row.frame or "reused" in row.frame


def _has_no_result(row: StepDefinition) -> bool:
    """Whether the outside work of a step was asked for and has no result that a fork can use."""
    return "called" in row.frame and "answered" not in row.frame


def is_within(path: str, of: str) -> bool:
    """Whether a path is another one, or stands below it."""
    return of == ROOT or path == of or path.startswith(f"{of}/")


def is_irreversible(facet: ir.Facet) -> bool:
    """Whether nothing can take back what a facet does."""
    for policy in facet.policies:
        if policy.name.rpartition(".")[2] == "Effect":
            for arg in policy.args:
                if arg.name == "kind" and isinstance(arg.value, ir.Literal):
                    return arg.value.value == "irreversible"
    return False


def refuse_unended(run: Run, verb: str) -> None:
    """A run that still runs may yet do what a fork of it would do too."""
    if not RunState.is_terminal(run.state):
        raise StillRunning(
            f"Run {run.id} has not ended, so its open steps would be done twice. Cancel it with "
            f"`afl runs cancel {run.id}`, or wait for it, before you {verb} it."
        )
