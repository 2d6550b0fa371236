"""Windows of the rows of a run: what is right below a path, or what matches anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from afl.runtime.entities import Run
from afl.runtime.errors import UnknownStep
from afl.runtime.history import WORK
from afl.runtime.persistence import Needed
from afl.runtime.reasons import Answer
from afl.runtime.states import TERMINAL, ObjectType, RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, join, step_id
from afl.runtime.step_windows import StepMatch
from afl.server.backend import Backend
from afl.server.errors import BadForm
from afl.server.models.runs import RowPage, StepRow, StepWord
from afl.server.run_views.row import RowMaker

#: How many times more is read when little of what was read matches.
_ROUNDS = 10
#: The raw states of steps that have not ended.
_OPEN = frozenset(
    value
    for name, value in vars(StepState).items()
    if name.isupper() and isinstance(value, str) and value not in TERMINAL
)
_RAW: Mapping[StepWord, frozenset[str]] = {
    "done": frozenset((StepState.STATEMENT_COMPLETE,)),
    "skipped": frozenset((StepState.STATEMENT_SKIPPED,)),
    "failed": frozenset((StepState.STATEMENT_ERROR,)),
    "dead_letter": frozenset((StepState.STATEMENT_ERROR,)),
}
_FAILED = frozenset(("failed", "dead_letter"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for, anywhere in a run."""

    states: frozenset[StepWord] | None
    facet: str | None = None
    text: str | None = None
    #: the id of a statement
    statement: str | None = None

    @property
    def is_set(self) -> bool:
        return bool(self.states or self.facet or self.text or self.statement)

    @property
    def match(self) -> StepMatch:
        """What a store can tell of it."""
        raw = None
        if self.states:
            raw = frozenset(state for word in self.states for state in _RAW.get(word, _OPEN))
        return StepMatch(
            states=raw,
            facet=self.facet or None,
            statement=self.statement or None,
            text=self.text or None,
        )

    def fits(self, step: StepDefinition) -> bool:
        """Whether a step does work, or is where something failed first, and not just around it. Of
        one statement everything is wanted: those of a foreach are its iterations."""
        if self.statement:
            return True
        if step.error is not None and step.state == StepState.STATEMENT_ERROR:
            return step.error.get("step", step.path) == step.path
        return step.object_type in WORK


class Windows:
    """Windows of one run."""

    def __init__(self, backend: Backend, run: Run) -> None:
        self._persistence = backend.services.persistence
        self._plan = backend.services.evaluator.plans.get(run.program)
        self._run = run
        self._made: dict[str, datetime] = {}
        self._id = WorkflowId(run.id)
        self._maker = RowMaker(backend, run)
        # read before the rest, so that a change in between is seen again
        self._mark = self._persistence.change_mark(self._id)

    def below(self, parent: str, offset: int | None, cursor: str | None, limit: int) -> RowPage:
        """The rows right below a path."""
        above = self._persistence.get_step(step_id(self._id, parent))
        if above is None:
            if parent == ROOT:
                return self._page([], None, 0)  # it has not begun
            raise UnknownStep(
                f"Run {self._id} has no step `{parent}`. "
                f"`afl runs tree {self._id}` shows its steps."
            )
        total = above.frame.get("total")
        if above.object_type == ObjectType.AND_MAP and isinstance(total, int):
            return self._iterations(above, total, _number(offset, cursor), limit)
        found = self._persistence.child_steps(self._id, parent, after=cursor, limit=limit + 1)
        if cursor is not None or len(found) > limit:
            rows = self._maker.rows(found[:limit])
            return self._page(rows, found[limit - 1].path if len(found) > limit else None, None)
        rows = [*self._maker.rows(found), *self._not_begun(above)]
        rows.sort(key=self._order_in(above))
        return self._page(rows[offset or 0 :], None, len(rows))

    def _iterations(self, above: StepDefinition, total: int, offset: int, limit: int) -> RowPage:
        """Iterations by their numbers, those that have not started too."""
        numbers = range(offset, min(offset + limit, total))
        paths = [join(above.path, number) for number in numbers]
        steps = self._persistence.load(self._id, Needed(steps=frozenset(paths))).steps
        begun = {row.path: row for row in self._maker.rows([steps[p] for p in paths if p in steps])}
        missing = [path for path in paths if path not in begun]
        never = dict(zip(missing, self._unbegun_iterations(above, missing), strict=True))
        rows = [begun.get(path) or never[path] for path in paths]
        return self._page(rows, str(numbers.stop) if numbers.stop < total else None, total)

    def _unbegun_iterations(self, above: StepDefinition, paths: Sequence[str]) -> Iterable[StepRow]:
        if not paths:
            return []
        halted = above.frame.get("skipped")
        if above.is_terminal or RunState.is_terminal(self._run.state) or halted:
            because = str(halted or above.skipped_because or "") or None
            state: StepWord = "skipped" if because else "canceled"
            return [self._unbegun(above, path, state, None, because) for path in paths]
        answer = self._maker.explainer.begun(self._run, above)
        return [self._unbegun(above, path, "waiting", answer) for path in paths]

    def _not_begun(self, above: StepDefinition) -> list[StepRow]:
        """The statements of a block that wait for others, each with what it waits for."""
        if above.is_terminal or above.state == StepState.BLOCK_EXECUTION_BEGIN:
            return []
        if RunState.is_terminal(self._run.state) or not isinstance(above.frame.get("waits"), dict):
            return []
        return [
            self._unbegun(above, answer.step or "", "waiting", answer)
            for answer in self._maker.explainer.not_begun(self._run, above)
        ]

    def _unbegun(
        self,
        above: StepDefinition,
        path: str,
        state: StepWord,
        answer: Answer | None,
        because: str | None = None,
    ) -> StepRow:
        name = path.rpartition("/")[2]
        block = self._plan.block(above.statement_id)
        statement = None if block is None else block.by_name.get(name)
        facet = "" if statement is None else str(getattr(statement.node, "facet", ""))
        kind = ObjectType.BLOCK if statement is None else ObjectType.VARIABLE_ASSIGNMENT
        if above.path not in self._made:
            times = self._persistence.step_times(self._id, [above.path])
            self._made[above.path] = times[above.path].created_at
        return StepRow(
            path=path,
            name=name,
            depth=path.count("/"),
            kind=kind,
            facet=facet,
            statement=above.statement_id if statement is None else statement.id,
            state=state,
            has_children=False,
            tally={},
            created_at=self._made[above.path],
            started_at=None,
            ended_at=None,
            parts=[],
            attempts=0,
            error=None,
            skipped_because=because,
            reused=None,
            why=None if answer is None else answer.sentence,
            why_code=None if answer is None else answer.code.value,
        )

    def _order_in(self, above: StepDefinition) -> Callable[[StepRow], tuple[int, int, str]]:
        """The order in which the parts of a step are written."""
        block = self._plan.block(above.statement_id)
        names = {} if block is None else {each.id: n for n, each in enumerate(block.statements)}

        def key(row: StepRow) -> tuple[int, int, str]:
            number = int(row.name) if row.name.isdigit() else len(names)
            return names.get(row.statement, len(names)), number, row.path

        return key

    def matching(self, wanted: Wanted, cursor: str | None, limit: int) -> RowPage:
        """The rows that match, in the order of their paths. A page may have fewer than there are:
        only so many steps are looked at for one."""
        found: list[StepRow] = []
        after = cursor
        for _ in range(_ROUNDS):
            # blocks are looked at and left out: about as many as there are steps in them
            steps, after = self._look(wanted, after, 2 * limit)
            pending = [step for step in steps if wanted.fits(step)]
            while pending and len(found) < limit:
                chunk = pending[: limit - len(found)]
                del pending[: len(chunk)]
                rows = self._maker.rows(chunk)
                found += [row for row in rows if not wanted.states or row.state in wanted.states]
                if pending and len(found) == limit:
                    return self._page(found, chunk[-1].path, None)
            if after is None or len(found) == limit:
                break
        return self._page(found, after, None)

    def _look(
        self, wanted: Wanted, after: str | None, limit: int
    ) -> tuple[list[StepDefinition], str | None]:
        if wanted.states and wanted.states <= _FAILED:
            steps = self._persistence.problem_steps(self._id, after=after, limit=limit)
            rest = steps[-1].path if len(steps) == limit else None
            return [step for step in steps if wanted.match.fits(step)], rest
        return self._persistence.scan_steps(self._id, wanted.match, after=after, limit=limit)

    def _page(self, rows: Sequence[StepRow], next: str | None, total: int | None) -> RowPage:
        return RowPage(items=list(rows), next=next, total=total, mark=self._mark)


def _number(offset: int | None, cursor: str | None) -> int:
    """Where a window on a foreach begins."""
    if cursor is None:
        return offset or 0
    if not cursor.isdigit():
        raise BadForm(f"`{cursor}` is no cursor of this list. Use what `next` of a page says.")
    return int(cursor)
