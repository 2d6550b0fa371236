"""Results that came too late."""

from __future__ import annotations

from collections.abc import Sequence

from afl.kernel.model import CallStatus
from afl.kernel.postgres.packing import json_text
from afl.kernel.postgres.rows import is_id, utc
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded


class PostgresSuperseded(PostgresCore):
    """See `persistence.LateResults` for what each method promises."""

    def note_superseded(self, results: Sequence[Superseded]) -> None:
        known = [each for each in results if is_id(each.run)]
        self._execute(
            "note_superseded",
            {
                "run": [each.run for each in known],
                "path": [each.path for each in known],
                "worker": [each.worker for each in known],
                "status": [each.status.value for each in known],
                "body": [json_text(each.body, "the result") for each in known],
            },
        )

    def get_superseded(self, run: WorkflowId, limit: int = 100) -> list[Superseded]:
        if not is_id(run):
            return []
        return [
            Superseded(run, path, worker, CallStatus(status), body, utc(noted_at))
            for path, worker, status, body, noted_at in self._rows(
                "get_superseded", {"run": run, "limit": limit}
            )
        ]
