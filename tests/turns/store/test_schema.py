"""The tables of turns: made by migrations, described by schema.sql, read by their indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files

import psycopg
import pytest

from afl.app import migrating
from afl.kernel.model import RunId, TaskId, TaskSpec
from afl.kernel.port import Transaction
from afl.kernel.postgres import migrate as kernel_migrate
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.postgres import migrate as runtime_migrate
from afl.turns.model import Agent, AgentId, BudgetKey, Hold, Price, Spending, Usage, UsageEntry
from afl.turns.ports import BudgetWait
from afl.turns.postgres.statements import SQL
from afl.turns.postgres_store import PostgresTurnStore
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.kernel.postgres.test_migrate import catalogue
from tests.kernel.postgres.test_plans import Plans
from tests.turns.store.kept import clear_turns

#: Rows enough for an index to be worth its while: budgets of which some are full and waited for,
#: and requests of many runs over many days.
_FILL = """
insert into afl.budget (tenant, scope, key, limit_usd)
select 'default', 'run', 'r' || n, 1 from generate_series(1, 20000) n;
update afl.budget set spent_usd = 1 where key in (select 'r' || n from generate_series(1, 50) n);
insert into afl.budget_wait (task, call_key, tenants, scopes, keys, usd, tokens, model_calls,
    tool_calls, blocked_tenant, blocked_scope, blocked_key)
select gen_random_uuid(), 'budget:0', '{default}', '{run}', array['r' || n % 50 + 1], 0.07, 0, 1, 0,
    'default', 'run', 'r' || n % 50 + 1
from generate_series(1, 20000) n;
insert into afl.budget_hold (task, tenant, scope, key, number, usd, tokens, model_calls, tool_calls)
select gen_random_uuid(), 'default', 'run', 'r' || n, 0, 0, 0, 0, 0
from generate_series(100, 20000) n;
insert into afl.agent select 'default', 'a' || n, 'model', 'default', '', '{}', '{}', '{}', '{}', 1,
    null, now() from generate_series(1, 5000) n;
insert into afl.usage
select gen_random_uuid(), 0, 'r' || n % 1000, 'default', null, null, null, 'm', 1, 1, 0, 0, 0, 'v',
    0, now() - n * interval '1 minute', now() - n * interval '1 minute'
from generate_series(1, 50000) n;
analyze;
"""
_WHOLE = re.compile(r"Seq Scan on (agent|budget\w*|usage|mcp_pin|task)\b")
TURN = TaskId("00000000-0000-7000-8000-000000000001")
KEY = BudgetKey("run", "r77")


@pytest.fixture
def empty() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url:
        yield url


def test_the_migrations_come_to_what_schema_sql_says(empty: str) -> None:
    own = kernel_migrate.read_migrations("afl.turns.postgres")
    kernel_migrate.migrate(empty, [*kernel_migrate.read_migrations("afl.runtime.postgres"), *own])
    with empty_database() as other:
        runtime_migrate.migrate(other)
        with psycopg.connect(other) as connection:
            connection.execute(files("afl.turns.postgres").joinpath("schema.sql").read_bytes())
        migrated, described = catalogue(empty), catalogue(other)
    assert migrated == described
    assert any("afl.budget_wait_behind" in row[1] for row in migrated)


def test_the_history_of_all_packages_is_one(empty: str) -> None:
    numbers = [each.number for each in migrating.migrations()]
    own = [number for number in numbers if 200 < number <= 300]
    assert numbers == sorted(set(numbers))
    assert own == [*range(201, 201 + len(own))]
    assert [number for number in numbers if number <= 200] == [
        each.number for each in runtime_migrate.migrations()
    ]
    kernel_migrate.migrate(empty)
    with ThreadPoolExecutor(3) as pool:
        applied = [
            each.number for done in pool.map(migrating.migrate, [empty] * 3) for each in done
        ]
    assert sorted(applied) == [number for number in numbers if number > 100]
    assert [step.migration.number for step in migrating.status(empty)] == numbers
    assert all(step.applied_at for step in migrating.status(empty))
    assert migrating.migrate(empty) == []


@pytest.mark.parametrize("name", SQL)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    assert re.match(rb"-- [A-Z][^\n]+[.;:,\w]\n", SQL[name])
    assert not re.search(rb"\{\w+\}", SQL[name])


@pytest.mark.parametrize(
    "change",
    [
        "insert into afl.budget (tenant, scope, key) values ('t', 'planet', 'k')",
        "insert into afl.budget (tenant, scope, key, limit_usd) values ('t', 'run', 'k', -1)",
        "insert into afl.budget (tenant, scope, key, reserved_usd) values ('t', 'run', 'k', -1)",
        "insert into afl.budget (tenant, scope, key, spent_tokens) values ('t', 'run', 'k', -1)",
        "insert into afl.budget_hold values (gen_random_uuid(), 't', 'run', 'k', -1, 0, 0, 0, 0)",
        "insert into afl.budget_hold values (gen_random_uuid(), 't', 'run', 'k', 0, -1, 0, 0, 0)",
        "insert into afl.agent values ('t', 'a', 'robot', '', '', '{}', '{}', '{}', '{}', 1, null, "
        "now())",
        "insert into afl.usage values (gen_random_uuid(), 0, 'r', 't', null, null, null, 'm', -1, "
        "0, 0, 0, 0, 'v', 0, now(), now())",
    ],
)
def test_the_tables_refuse_what_cannot_be(turns_url: str, change: str) -> None:
    with psycopg.connect(turns_url) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(change.encode())


def entry(task: TaskId) -> UsageEntry:
    now = datetime.now(UTC)
    price = Price(Decimal(1), "v")
    return UsageEntry(
        task, 0, RunId("r1"), "default", None, None, None, "m", Usage(), price, 0, now, now
    )


def everything(store: PostgresTurnStore) -> None:
    """Each statement but those that look at all that is reserved, or at all waits."""
    amount = Spending(usd=Decimal("0.01"))

    def ask(transaction: Transaction) -> None:
        store.reserve(transaction, Hold(TURN, 0, (KEY,), amount))
        store.settle(transaction, TURN, 0, amount)
        store.spend(transaction, (KEY,), amount)
        store.await_budget(transaction, BudgetWait(TURN, "budget:0", (KEY,), amount))
        store.record_usage(transaction, entry(TURN))

    store.kernel.commit((), writes=ask)
    assert store.ready_waits() == []  # there is no such turn
    store.end_wait(TURN, "budget:0")
    assert store.get_budget(KEY) is not None
    assert len(store.list_budgets(limit=3)) == 3
    assert len(store.usage("model", run="r1")) == 1
    assert store.usage("day", since=datetime.now(UTC)) == []
    store.save_agent(Agent(AgentId("a7")))
    assert store.get_agent(AgentId("a7")) is not None
    assert len(store.list_agents(after=AgentId("a7"), limit=2)) == 2
    store.delete_agent(AgentId("a7"))
    assert len(store.turns_of(AgentId("lane7"), limit=1)) == 1
    assert store.active_turn(AgentId("lane7")) is not None
    assert len(store.usage("task", tasks=[TURN])) == 1


def test_no_statement_reads_a_whole_table(turns_url: str) -> None:
    plans = Plans()
    with (
        psycopg.connect(turns_url, autocommit=True) as admin,
        PostgresStore(Database(turns_url, max_size=1, prepare=plans.watch)) as kernel,
    ):
        row = admin.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
        if row != (True,):
            pytest.skip("looking at plans needs a superuser")
        kernel.enqueue(
            [TaskSpec("turn", "agent:default", lane=f"lane{n % 200}") for n in range(2000)]
        )
        admin.execute(_FILL)
        store = PostgresTurnStore(kernel)
        for _ in range(8):  # often enough for plans that serve any parameters
            everything(store)
    clear_turns(turns_url)
    assert len(plans.seen) > 100
    assert [plan for plan in plans.seen if _WHOLE.search(plan)] == []
