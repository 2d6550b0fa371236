"""How many steps runs have, by statement and state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.kernel.postgres.rows import is_id
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.step import WorkflowId
from afl.runtime.tallies import Tally


class PostgresTallies(PostgresCore):
    """The part of `persistence.StepWindows` that does not read steps."""

    def tally(self, run: WorkflowId) -> list[Tally]:
        return self.tallies([run]).get(run, [])

    def tallies(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, list[Tally]]:
        found: dict[WorkflowId, list[Tally]] = {}
        for run, *counted in self._rows("tallies", {"runs": [run for run in runs if is_id(run)]}):
            found.setdefault(WorkflowId(run), []).append(Tally(*counted))
        return found
