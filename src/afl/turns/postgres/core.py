"""What every part of the PostgreSQL store of turns shares."""

from __future__ import annotations

from collections.abc import Mapping

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.store import PostgresStore
from afl.turns.postgres.statements import SQL


class PostgresCore:
    """Statements, each a transaction of its own, on the kernel's connections."""

    def __init__(self, kernel: PostgresStore) -> None:
        self._kernel = kernel

    def _rows(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        return self._kernel.database.rows(SQL[statement], parameters)

    def _row(self, statement: str, parameters: Mapping[str, object]) -> Row | None:
        return self._kernel.database.row(SQL[statement], parameters)

    def _execute(self, statement: str, parameters: Mapping[str, object]) -> None:
        self._kernel.database.run(lambda cursor: cursor.execute(SQL[statement], parameters))
