"""What happened in runs, and where their open work is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from afl.kernel.model import State
from afl.kernel.postgres.rows import is_id, utc
from afl.runtime.entities import Run
from afl.runtime.history import WORK, Happening, Moment, OpenWork
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import run_of
from afl.runtime.step import WorkflowId


class PostgresHistory(PostgresCore):
    """See `history.History` for what each method promises."""

    def open_work(self, run: WorkflowId, limit: int = 2000) -> list[OpenWork]:
        rows = self._rows("open_work", {"run": run, "limit": limit}) if is_id(run) else []
        return [
            OpenWork(statement, facet, type_, state, kind, State(at), due, lost, count)
            for statement, facet, type_, state, kind, at, due, lost, count in rows
        ]

    def dead_work(self, run: WorkflowId, limit: int = 2000) -> Mapping[str, int]:
        rows = self._rows("dead_work", {"run": run, "limit": limit}) if is_id(run) else []
        return dict(rows)

    def history(
        self,
        run: WorkflowId,
        *,
        before: Moment | None = None,
        problems_only: bool = False,
        limit: int = 100,
    ) -> list[Happening]:
        if not is_id(run):
            return []
        parameters = {
            "run": run,
            "types": sorted(WORK),
            "problems_only": problems_only,
            "at": None if before is None else before.at,
            "path": None if before is None else before.path,
            "what": None if before is None else before.what,
            "limit": limit,
        }
        return [_happening(*row) for row in self._rows("history", parameters)]

    def forks_of(self, run: WorkflowId, limit: int = 100) -> list[Run]:
        rows = self._rows("forks_of", {"run": run, "limit": limit}) if is_id(run) else []
        return [run_of(row) for row in rows]


def _happening(
    at: Any,  # noqa: ANN401 - columns of a row
    path: str,
    what: str,
    *rest: Any,  # noqa: ANN401
) -> Happening:
    return Happening(Moment(utc(at), path, what), *rest)
