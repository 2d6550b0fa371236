"""Runs: the part of `persistence.Runs` that is not about steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from afl.kernel.model import Json
from afl.kernel.port import Transaction
from afl.kernel.postgres.packing import array
from afl.kernel.postgres.rows import is_id
from afl.kernel.postgres.transactions import opened
from afl.runtime.entities import Run
from afl.runtime.persistence import StaleRuns
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import dumps, dumps_or_none, pack_run, run_of
from afl.runtime.postgres.statements import SQL, hot
from afl.runtime.run_values import map_in, run_in
from afl.runtime.step import WorkflowId

_WRITE_RUN, _START_RUN, _FINISH_RUN = hot("write_run"), hot("start_run"), hot("finish_run")
_GET_RUN, _GET_RUNS = hot("get_run"), hot("get_runs")
#: About how many steps one transaction removes.
_STEPS_PER_BATCH = 10_000
#: Comes before every id.
_FIRST = "00000000-0000-0000-0000-000000000000"


class PostgresRuns(PostgresCore):
    """See `persistence.Runs` for what each method promises."""

    def write_run(self, transaction: Transaction, run: Run) -> None:
        opened(transaction).send(_WRITE_RUN, pack_run(run_in(run)))

    def start_run(self, transaction: Transaction, run: WorkflowId) -> None:
        opened(transaction).send(_START_RUN, {"run": run})

    def finish_run(
        self,
        transaction: Transaction,
        run: WorkflowId,
        state: str,
        outputs: Mapping[str, Json] | None,
        error: Mapping[str, Json] | None,
    ) -> None:
        parameters = {
            "run": run,
            "state": state,
            "outputs": None if outputs is None else dumps(map_in(outputs, "the outputs")),
            "error": None if error is None else dumps(map_in(error, "the error")),
        }
        opened(transaction).send(_FINISH_RUN, parameters)

    def set_pause(self, run: WorkflowId, pause: bool) -> bool:
        return is_id(run) and self._row("set_pause", {"run": run, "pause": pause}) is not None

    def get_run(self, run: WorkflowId) -> Run | None:
        rows = self._kernel.database.call(_GET_RUN, {"run": run}) if is_id(run) else []
        return run_of(rows[0]) if rows else None

    def get_runs(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, Run]:
        known = array([run for run in runs if is_id(run)])
        rows = self._kernel.database.call(_GET_RUNS, {"runs": known})
        return {run.id: run for run in map(run_of, rows)}

    def find_runs(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: WorkflowId | None = None,
        before: WorkflowId | None = None,
        limit: int = 100,
    ) -> list[Run]:
        parameters = {
            "state": state,
            "workflow": workflow,
            "labels": dumps_or_none(labels) if labels else None,
            "parent": parent,
            "before": before,
            "limit": limit,
        }
        # not prepared: which index serves depends on what is asked
        rows = self._kernel.database.rows(SQL["find_runs"], parameters, prepare=False)
        return [run_of(row) for row in rows]

    def ended_runs(self, since: datetime, limit: int = 100) -> list[Run]:
        rows = self._rows("ended_runs", {"since": since, "limit": limit})
        return [run_of(row) for row in rows]

    def stale_runs(self, after: WorkflowId | None, limit: int) -> StaleRuns:
        rows = self._rows("stale_runs", {"after": after or _FIRST, "limit": limit})
        closed = [WorkflowId(run) for run, is_closed in rows if is_closed]
        return StaleRuns(closed, WorkflowId(rows[-1][0]) if len(rows) >= limit else None)

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs that ended that long ago, with their steps. Answers how many.

        A run stays as long as the run that called it, or a fork of it that has not ended, does.
        Events that were taken and memos that are no longer valid go at the same age. Each
        transaction removes some whole runs.
        """
        gone = 0
        while gone < limit:
            parameters = {
                "older_than": older_than,
                "limit": limit - gone,
                "steps": _STEPS_PER_BATCH,
            }
            row = self._row("forget_runs", parameters)
            assert row is not None
            if not row[0]:
                break
            gone += row[0]
        return gone
