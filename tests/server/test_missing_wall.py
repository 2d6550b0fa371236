"""Databases without the second wall between tenants, and how they get it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from starlette.testclient import TestClient

from afl.app.migrating import migrate
from afl.base.settings import Settings
from afl.kernel.confining import confined
from afl.server.application import API, create_app
from afl.server.postgres_store import PostgresServerStore
from afl.server.serving import open_backend, warn_of_missing_wall
from tests.kernel.postgres.databases import server_is_there, url_of
from tests.server.calling import token_for
from tests.server.house import House
from tests.server.run_stage import FLOW

pytestmark = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL to test with")

OWNER = "afl_wall_owner"
HOST = os.environ.get("PGHOST", "127.0.0.1")


def made(name: str, attributes: str = "") -> bytes:
    """The statement that makes a user who can connect as we do."""
    password = os.environ.get("PGPASSWORD", "unused")
    return f"create role {name} login {attributes} password '{password}'".encode()


@contextmanager
def owned_databases(count: int, attributes: str) -> Iterator[list[str]]:
    """The URLs of empty databases of an owner that is no superuser; they and its roles are gone
    afterwards."""
    name = f"{OWNER}_{secrets.token_hex(4)}"
    names = [f"{name}_{number}" for number in range(count)]
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        admin.execute(made(name, attributes))
        try:
            for each in names:
                admin.execute(f"create database {each} owner {name}".encode())
            yield [f"postgresql://{name}@{HOST}/{each}" for each in names]
        finally:
            for each in names:
                admin.execute(f"drop database if exists {each} with (force)".encode())
            admin.execute(f"drop role if exists afl_tenant_of_{name}".encode())
            admin.execute(f"drop role {name}".encode())


class TestMissing:
    def test_a_database_that_lets_nobody_make_roles_is_migrated_all_the_same(self) -> None:
        with owned_databases(1, "nocreaterole") as (url,):
            migrate(url)
            with open_backend(url, Settings()) as backend:
                assert backend.store.missing_wall() == "select afl.part_tenants_v1()"
                backend.client.deploy(FLOW)
                submit = backend.client.operations.submit
                run = submit("shop.Hello", {"name": "A"}, tenant="amber")
                viewer = TestClient(create_app(backend), headers=token_for(backend, "viewer", "b"))
                # the first wall holds alone
                assert viewer.get(f"{API}/runs/{run.id}").status_code == 404
                assert viewer.get(f"{API}/runs").json()["items"] == []

    def test_one_statement_of_an_administrator_builds_it(self) -> None:
        with owned_databases(1, "nocreaterole") as (url,):
            migrate(url)
            name = url.rpartition("/")[2]
            with psycopg.connect(url_of(name)) as admin:
                admin.execute("select afl.part_tenants_v1()")
            with open_backend(url, Settings()) as backend:
                assert backend.store.missing_wall() is None
                assert len(House(backend).runs) == 2
                with confined("amber"):
                    found = backend.services.persistence.find_runs()
                assert [run.tenant for run in found] == ["amber"]

    def test_who_does_not_own_the_tables_is_told_what_is_missing(self) -> None:
        with other_user() as user, owned_databases(1, "createrole") as (url,):
            migrate(url)
            owner = url.partition("//")[2].partition("@")[0]
            with psycopg.connect(url) as connection:
                for what in ("usage on schema afl", "all on all tables in schema afl"):
                    connection.execute(f"grant {what} to {user}".encode())
            with open_backend(url.replace(owner, user, 1), Settings()) as backend:
                statement = backend.store.missing_wall()
                assert statement == f'grant "afl_tenant_of_{owner}" to "{user}"'
                backend.client.deploy(FLOW)
                backend.client.operations.submit("shop.Hello", {"name": "A"}, tenant="amber")
                with psycopg.connect(url) as connection:
                    connection.execute(statement.encode())
                assert backend.store.missing_wall() is None
                # it has the rights of the role now, and is not held by it
                assert len(backend.services.persistence.find_runs()) == 1
                with confined("blue"):
                    assert backend.services.persistence.find_runs() == []

    def test_many_databases_are_migrated_at_once(self) -> None:
        with owned_databases(4, "createrole") as urls:
            with ThreadPoolExecutor(len(urls)) as pool:
                list(pool.map(migrate, urls))
            for url in urls:
                with PostgresServerStore.connect(url) as store:
                    assert store.missing_wall() is None

    def test_the_server_says_so_when_it_starts(self, caplog: pytest.LogCaptureFixture) -> None:
        with owned_databases(1, "nocreaterole") as (url,):
            migrate(url)
            with open_backend(url, Settings()) as backend:
                warn_of_missing_wall(backend)
        assert "run `select afl.part_tenants_v1();`" in caplog.text


@contextmanager
def other_user() -> Iterator[str]:
    """A user that owns nothing."""
    name = f"{OWNER}_other_{secrets.token_hex(4)}"
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        admin.execute(made(name))
        yield name
        admin.execute(f"drop role {name}".encode())
