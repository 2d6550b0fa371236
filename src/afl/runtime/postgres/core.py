"""What every part of the PostgreSQL store shares."""

from __future__ import annotations

from collections.abc import Mapping

from afl.base.closable import Closable
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.kernel_queue import KernelQueue
from afl.runtime.postgres.statements import SQL


class PostgresCore(KernelQueue[PostgresStore], Closable):
    """Statements, each a transaction of its own, on the kernel's connections."""

    def _rows(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        return self._kernel.database.rows(SQL[statement], parameters)

    def _row(self, statement: str, parameters: Mapping[str, object]) -> Row | None:
        return self._kernel.database.row(SQL[statement], parameters)

    def _execute(self, statement: str, parameters: Mapping[str, object]) -> None:
        self._kernel.database.run(lambda cursor: cursor.execute(SQL[statement], parameters))

    def close(self) -> None:
        """Gives all connections back, those of the kernel's store too."""
        self._kernel.close()
