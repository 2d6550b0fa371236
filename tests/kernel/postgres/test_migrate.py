"""Migrations: applied once, in order, by any number of processes; and equal to schema.sql."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import psycopg
import pytest

from afl.app import migrating as whole
from afl.cli import exit_codes
from afl.kernel.errors import StoreUnavailable
from afl.kernel.postgres.migrate import MigrationError, migrate, migrations, status
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import empty_database, server_is_there

#: Everything that the schemas consist of, as text, whatever way it was made.
CATALOGUE = """
select 'column', c.table_schema || '.' || c.table_name || '.' || c.column_name,
       concat_ws(' ', c.ordinal_position, c.data_type, c.udt_name, c.is_nullable,
                 c.column_default, c.is_identity, c.generation_expression)
from information_schema.columns c where c.table_schema in ('afl', 'state')
union all
select 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
from pg_constraint where connamespace in ('afl'::regnamespace, 'state'::regnamespace)
union all
select 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
from pg_trigger where not tgisinternal and tgrelid in (
    select oid from pg_class where relnamespace = 'afl'::regnamespace)
union all
select 'type', a.attrelid::regclass || '.' || a.attname,
       concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod))
from pg_attribute a join pg_class c on c.oid = a.attrelid
where c.relkind = 'c' and c.relnamespace = 'afl'::regnamespace
union all
select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid)
from pg_index join pg_class on pg_class.oid = indexrelid
where relnamespace = 'afl'::regnamespace
union all
select 'function', oid::regprocedure::text, pg_get_functiondef(oid)
from pg_proc where pronamespace in ('afl'::regnamespace, 'state'::regnamespace)
union all
select 'view', oid::regclass::text, pg_get_viewdef(oid)
from pg_class where relkind = 'v' and relnamespace = 'state'::regnamespace
union all
select 'storage', oid::regclass::text, concat_ws(' ', relkind, array_to_string(reloptions, ','))
from pg_class where relnamespace = 'afl'::regnamespace and relkind in ('r', 'S')
order by 1, 2, 3
"""


@pytest.fixture
def empty() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url:
        yield url


def catalogue(url: str) -> set[tuple[str, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute(CATALOGUE).fetchall())


def test_the_numbers_have_no_gaps() -> None:
    assert [each.number for each in migrations()] == [*range(1, len(migrations()) + 1)]


def test_the_migrations_come_to_what_schema_sql_says(empty: str) -> None:
    migrate(empty)
    schema = files("afl.kernel.postgres").joinpath("schema.sql").read_bytes()
    with empty_database() as other:
        with psycopg.connect(other) as connection:
            connection.execute(schema)
        migrated = {row for row in catalogue(empty) if "afl.migration" not in row[1]}
        assert migrated == catalogue(other)
    assert len(migrated) > 100


def test_each_is_applied_once(empty: str) -> None:
    assert [step.applied_at for step in status(empty)] == [None] * len(migrations())
    assert migrate(empty) == migrations()
    assert migrate(empty) == []
    assert all(step.applied_at for step in status(empty))


def test_several_at_once_take_turns(empty: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = [each for done in pool.map(migrate, [empty] * 4) for each in done]
    assert sorted(each.number for each in applied) == [each.number for each in migrations()]


def test_a_changed_migration_is_noticed(empty: str) -> None:
    migrate(empty)
    with psycopg.connect(empty) as connection:
        connection.execute("update afl.migration set checksum = 'other' where number = 2")
    with pytest.raises(MigrationError, match="0002 was applied as 'transactions' with other"):
        status(empty)
    with pytest.raises(MigrationError, match="0002"):
        migrate(empty)


def test_a_newer_schema_is_refused(empty: str) -> None:
    migrate(empty)
    with psycopg.connect(empty) as connection:
        connection.execute("insert into afl.migration values (9999, 'later', 'x')")
    with pytest.raises(MigrationError, match="has migration 9999"):
        migrate(empty)


def test_a_migration_that_fails_leaves_nothing(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [migrations()[0].__class__(1, "broken", "create table public.half (); select 1/0")]
    monkeypatch.setattr("afl.kernel.postgres.migrate.migrations", lambda: broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty)
    with psycopg.connect(empty) as connection:
        row = connection.execute("select to_regclass('public.half')").fetchone()
    assert row == (None,)


def test_no_server_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        status("postgresql://127.0.0.1:1/nothing")
    assert caught.value.retryable


def test_the_command_line(empty: str) -> None:
    before = run("db", "status", "--database", empty)
    assert before.exit_code == exit_codes.FAILED
    assert before.stdout.count("pending") == len(whole.migrations())
    done = process("db", "migrate", variables={"AFL_DATABASE_URL": empty})
    assert done.returncode == exit_codes.OK
    assert f"{len(whole.migrations())} migrations applied" in done.stderr.decode()
    again = run("db", "migrate", "--database", empty)
    assert "nothing to do: up to date" in again.stderr
    validate(run("db", "migrate", "--json", "--database", empty).stdout, "db")
    listed = run("db", "status", "--json", "--database", empty).stdout
    validate(listed, "db")
    after = json.loads(listed)
    assert after["pending"] == 0
    assert all(each["applied_at"] for each in after["migrations"])
