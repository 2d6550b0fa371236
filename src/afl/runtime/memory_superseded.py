"""Results that came too late, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from afl.kernel.machine.copies import json_out
from afl.kernel.memory.transaction import MemoryTransaction, Tables
from afl.runtime.memory_tables import MemoryTables
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded

_RUNS = "run"
#: In the order in which they came, whatever the run.
_numbers = count()


class MemorySuperseded(MemoryTables):
    """See `persistence.LateResults` for what each method promises."""

    def note_superseded(self, results: Sequence[Superseded]) -> None:
        def work(transaction: MemoryTransaction) -> None:
            tables = transaction.tables
            for each in results:
                if each.run in tables[_RUNS]:
                    noted = replace(each, body=json_out(each.body), noted_at=transaction.now)
                    tables[_of(each.run)][f"{next(_numbers):020}"] = noted

        self._write(work)

    def get_superseded(self, run: WorkflowId, limit: int = 100) -> list[Superseded]:
        noted = self._read(lambda tables: sorted(tables[_of(run)].items()))
        return [replace(each, body=json_out(each.body)) for _, each in noted[:limit]]


def forget_superseded(tables: Tables, run: str) -> None:
    """With its run."""
    tables.drop(_of(run))


def _of(run: str) -> str:
    return f"superseded:{run}"
