"""Windows on the steps of a run: each is read by index, however many steps there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.kernel.postgres.rows import is_id, utc
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import step_of
from afl.runtime.step import ROOT, StepDefinition, WorkflowId
from afl.runtime.step_windows import StepMatch, StepTimes, below

#: So many of the tasks that a run waits for are looked at for its mark.
_MARKED_TASKS = 1000


class PostgresStepWindows(PostgresCore):
    """See `persistence.StepWindows` for what each method promises."""

    def child_steps(
        self, run: WorkflowId, parent: str, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        first, end = below(parent)
        parameters = {
            "run": run,
            "prefix": ROOT if parent == ROOT else f"{parent}/",
            "start": max(first, _behind(after)),
            "end": end,
            "limit": limit,
        }
        return self._window("child_steps", parameters)

    def have_children(self, run: WorkflowId, paths: Sequence[str]) -> set[str]:
        if not is_id(run):
            return set()
        stretches = [below(path) for path in paths]
        parameters = {
            "run": run,
            "paths": list(paths),
            "first": [first for first, _ in stretches],
            "end": [end for _, end in stretches],
        }
        return {row[0] for row in self._rows("have_children", parameters)}

    def problem_steps(
        self, run: WorkflowId, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        parameters = {"run": run, "start": _behind(after), "limit": limit}
        return self._window("problem_steps", parameters)

    def scan_steps(
        self,
        run: WorkflowId,
        match: StepMatch,
        *,
        after: str | None = None,
        limit: int = 200,
        most: int = 20_000,
    ) -> tuple[list[StepDefinition], str | None]:
        parameters = {
            "run": run,
            "states": None if match.states is None else list(match.states),
            "facet": match.facet,
            "statement": match.statement,
            "text": match.text.lower() if match.text else None,
            "start": _behind(after),
            "limit": limit,
            "most": most,
        }
        found = self._window("scan_steps", parameters)
        if len(found) == limit:
            return found, found[-1].path
        row = self._row("last_scanned", parameters) if is_id(run) else None
        return found, None if row is None else row[0]

    def step_times(self, run: WorkflowId, paths: Sequence[str]) -> Mapping[str, StepTimes]:
        rows = self._rows("step_times", {"run": run, "paths": list(paths)}) if is_id(run) else []
        return {
            path: StepTimes(utc(created), utc(changed), None if ended is None else utc(ended))
            for path, created, changed, ended in rows
        }

    def change_mark(self, run: WorkflowId) -> str:
        if not is_id(run):
            return ""
        row = self._row("change_mark", {"run": run, "most": _MARKED_TASKS})
        assert row is not None
        return str(row[0])

    def _window(self, statement: str, parameters: Mapping[str, object]) -> list[StepDefinition]:
        known = is_id(str(parameters["run"]))
        return [step_of(row) for row in self._rows(statement, parameters)] if known else []


def _behind(path: str | None) -> str:
    """The first text that comes after a path, or the first of all."""
    return "" if path is None else f"{path}\x01"
