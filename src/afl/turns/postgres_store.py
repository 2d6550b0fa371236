"""`PostgresTurnStore`: everything that turns keep beside the kernel's rows, on PostgreSQL."""

from __future__ import annotations

from afl.kernel.postgres.store import PostgresStore
from afl.turns.postgres.budgets import PostgresBudgets
from afl.turns.postgres.shelves import (
    PostgresAccounts,
    PostgresAgentTurns,
    PostgresPins,
    PostgresRoster,
)


class PostgresTurnStore(
    PostgresRoster, PostgresAgentTurns, PostgresBudgets, PostgresAccounts, PostgresPins
):
    """Everything that turns keep, on a database whose schema `afl.app.migrating` has made: see
    `ports.TurnStore`.

    Rows are written on the connections, and in the transactions, of the kernel's store. Threads may
    share one.
    """

    def __init__(self, kernel: PostgresStore) -> None:
        """On the connections of a kernel store, which stays its owner's to close."""
        super().__init__(kernel)

    @property
    def kernel(self) -> PostgresStore:
        return self._kernel
