"""What windows on steps cost on PostgreSQL: as little in large runs as in small ones."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest

from afl.kernel.port import Transaction
from afl.kernel.postgres.transactions import opened
from afl.runtime.postgres.statements import SQL
from afl.runtime.states import StepState
from afl.runtime.step import WorkflowId
from tests.runtime.kept import PostgresKept, begin, changes, save, step, write

_HOT = """
select pg_stat_get_xact_tuples_updated('afl.step'::regclass),
       pg_stat_get_xact_tuples_hot_updated('afl.step'::regclass)
"""


@pytest.fixture
def kept(postgres_kept: PostgresKept) -> PostgresKept:
    return postgres_kept


def _pages(kept: PostgresKept, statement: str, parameters: Mapping[str, object]) -> int:
    """How many pages of tables and indexes a statement reads."""
    with psycopg.connect(kept.url, autocommit=True) as connection:
        # what earlier tests have left behind is not what is measured
        connection.execute("vacuum (analyze) afl.step")
        connection.execute("vacuum (analyze) afl.step_tally")
        explain = b"explain (analyze, buffers, format json) " + SQL[statement]
        row = connection.execute(explain, parameters).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _foreach(kept: PostgresKept, items: int, below: int) -> WorkflowId:
    """A run with a foreach, in each of whose iterations there are so many steps."""
    run = begin(kept)
    paths = ["", "0"]
    for item in range(items):
        paths += [f"0/{item}", *(f"0/{item}/s{number}" for number in range(below))]
    save(kept, *(step(run, path, params={"text": "x" * 100}) for path in paths))
    return run


def test_children_cost_the_same_whatever_is_below_them(kept: PostgresKept) -> None:
    small, large = _foreach(kept, 20, 2), _foreach(kept, 20, 600)
    window = {"prefix": "0/", "start": "0/", "end": "00", "limit": 200}
    few = _pages(kept, "child_steps", {"run": small, **window})
    many = _pages(kept, "child_steps", {"run": large, **window})
    assert len(kept.store.child_steps(large, "0")) == 20
    # a level of the index more, perhaps, but no look at 12,000 steps
    assert many < 2 * few + 50


def test_problems_cost_what_they_are(kept: PostgresKept) -> None:
    run = _foreach(kept, 10, 600)
    error = {"type": "E", "message": "m"}
    save(kept, *(step(run, f"0/{item}/s7", error=error) for item in range(3)))
    pages = _pages(kept, "problem_steps", {"run": run, "start": "", "limit": 200})
    assert len(kept.store.problem_steps(run)) == 3
    assert pages < 50


def test_a_tally_costs_what_it_has(kept: PostgresKept) -> None:
    run = _foreach(kept, 10, 600)
    assert _pages(kept, "tallies", {"runs": [run]}) < 50


def test_steps_without_an_error_change_in_their_page(kept: PostgresKept) -> None:
    """The index of problems does not keep other changes from staying in their page."""
    run = begin(kept)
    paths = [f"0/{number}" for number in range(10)]
    save(kept, *(step(run, path) for path in paths))
    seen: list[object] = []

    def work(transaction: Transaction) -> None:
        for state in (StepState.EVENT_TRANSMIT, StepState.STATEMENT_COMPLETE):
            made = changes(*(step(run, path, state=state) for path in paths))
            kept.store.write_changes(transaction, run, made)
            seen.append(opened(transaction).cursor.execute(_HOT).fetchone())
        failed = step(run, paths[0], error={"type": "E", "message": "m"})
        kept.store.write_changes(transaction, run, changes(failed))
        seen.append(opened(transaction).cursor.execute(_HOT).fetchone())

    write(kept, work)
    assert seen == [(10, 10), (20, 20), (21, 20)]
