"""A crew on PostgreSQL: every task is closed exactly once, and so is every effect."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from afl.kernel.model import TaskId
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import PostgresTransaction
from afl.kernel.postgres.store import PostgresStore
from tests.kernel.crew import THREADS, Crew, work_off

FLOWS = 500


def _mark(transaction: Transaction, tasks: Sequence[TaskId]) -> None:
    assert isinstance(transaction, PostgresTransaction)
    transaction.cursor.executemany("insert into public.mark values (%s)", [[t] for t in tasks])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_task_is_closed_exactly_once(url: str) -> None:
    def is_unfinished() -> bool:
        with psycopg.connect(url) as connection:
            row = connection.execute("select exists (select from afl.task where state <> 'closed')")
            return bool(row.fetchall()[0][0])

    with PostgresStore.connect(url, max_size=THREADS) as store:
        work_off(Crew(store, _mark, is_unfinished), FLOWS)
        with psycopg.connect(url) as connection:
            doubles = connection.execute(
                "select name, count(*) from public.mark group by name having count(*) > 1"
            ).fetchall()
            missed = connection.execute(
                "select id from afl.task where outcome = 'success' and not exists "
                "(select from public.mark where name = id::text)"
            ).fetchall()
        assert (doubles, missed) == ([], [])
