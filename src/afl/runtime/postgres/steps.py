"""Steps: the part of `persistence.Runs` that grows with the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import array
from afl.kernel.postgres.rows import is_id
from afl.kernel.postgres.transactions import opened
from afl.runtime.persistence import IterationChanges, Loaded, LogLine, Needed
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import pack_changes, step_of
from afl.runtime.postgres.statements import hot
from afl.runtime.step import StepDefinition, StepId, WorkflowId, split_step_id

_WRITE = hot("write_changes")
_LOAD, _LOAD_STEPS = hot("load"), hot("load_steps")


class PostgresSteps(PostgresCore):
    """See `persistence.Runs` for what each method promises."""

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        # those of many runs in one transaction are one statement
        opened(transaction).gather(_WRITE, pack_changes, (run, changes))

    def write_many(
        self, transaction: Transaction, changes: Iterable[tuple[WorkflowId, IterationChanges]]
    ) -> None:
        """`write_changes` for several runs."""
        for run, each in changes:
            self.write_changes(transaction, run, each)

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        if not is_id(run):
            return Loaded()
        parameters = {"run": run, "steps": array(needed.steps)}
        if needed.yields or needed.waits:
            parameters["yields"] = array(needed.yields)
            parameters["waits"] = array(needed.waits)
            return _loaded(self._kernel.database.call(_LOAD, parameters))
        rows = self._kernel.database.call(_LOAD_STEPS, parameters) if needed.steps else []
        return Loaded({row[1]: step_of(row) for row in rows})

    def get_step(self, step: StepId) -> StepDefinition | None:
        run, path = split_step_id(step)
        return self.load(run, Needed(steps=frozenset((path,)))).steps.get(path)

    def get_steps_by_workflow(
        self, run: WorkflowId, *, after: str | None = None, limit: int | None = None
    ) -> list[StepDefinition]:
        statement = "steps_of" if after is None else "steps_after"
        return self._steps(statement, {"run": run, "after": after, "limit": limit})

    def get_steps_by_state(
        self, run: WorkflowId, state: str, limit: int = 100
    ) -> list[StepDefinition]:
        return self._steps("steps_in_state", {"run": run, "state": state, "limit": limit})

    def get_unended_steps(self, run: WorkflowId, below: str) -> list[StepDefinition]:
        # the letter after the slash ends the paths that begin with it
        first, end = (f"{below}/", f"{below}0") if below else ("\x01", "\U0010ffff")
        return self._steps("unended_steps", {"run": run, "first": first, "end": end})

    def count_steps(self, run: WorkflowId) -> Mapping[str, int]:
        return dict(self._rows("count_steps", {"run": run})) if is_id(run) else {}

    def get_logs(self, run: WorkflowId, limit: int = 1000) -> list[LogLine]:
        rows = self._rows("get_logs", {"run": run, "limit": limit}) if is_id(run) else []
        return [LogLine(path, line, at) for path, line, at in rows]

    def _steps(self, statement: str, parameters: Mapping[str, object]) -> list[StepDefinition]:
        known = is_id(str(parameters["run"]))
        return [step_of(row) for row in self._rows(statement, parameters)] if known else []


def _loaded(rows: Iterable[Row]) -> Loaded:
    """What the rows of `load` say, in the order of paths."""
    steps: dict[str, StepDefinition] = {}
    yields: dict[str, list[StepDefinition]] = {}
    waits: dict[str, list[str]] = {}
    for kind, on, block, *columns in rows:
        if kind == "wait":
            waits.setdefault(on, []).append(block)
            continue
        step = step_of(columns)
        if kind == "step":
            steps[step.path] = step
        elif step.yields_to is not None:
            yields.setdefault(step.yields_to, []).append(step)
    for found in yields.values():
        found.sort(key=_path)
    for blocks in waits.values():
        blocks.sort()
    return Loaded(steps, yields, waits)


def _path(step: StepDefinition) -> str:
    return step.path
