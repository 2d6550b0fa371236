"""The transaction that `writes` is handed, as the PostgreSQL store knows it."""

from __future__ import annotations

from afl.kernel.port import Transaction
from afl.kernel.postgres.database import PostgresTransaction


def opened(transaction: Transaction) -> PostgresTransaction:
    """The transaction, which must be one of the PostgreSQL store."""
    if not isinstance(transaction, PostgresTransaction):
        raise TypeError("the transaction is not one of the PostgreSQL store")
    return transaction
