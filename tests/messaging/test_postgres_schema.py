"""The tables of mailboxes: made by migrations, described by schema.sql, read by their indexes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from importlib.resources import files

import psycopg
import pytest

from afl.app import migrating
from afl.kernel.postgres import migrate as kernel_migrate
from afl.kernel.postgres.database import Database
from afl.messaging.models import AgentId, FailureType
from afl.messaging.postgres.statements import SQL
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.testing.mail_conformance.driver import message
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.kernel.postgres.test_migrate import catalogue
from tests.kernel.postgres.test_plans import Plans
from tests.messaging.postgres_harness import clear_mail, mail_database

_BODY = (
    '{"message_id": "filler", "sender": {"type": "s"}, "recipient": {"type": "r"}, '
    '"message_type": "event"}'
)
#: Rows enough for an index to be worth its while.
_FILL = f"""
insert into afl.mail (recipient, message_id, type, priority, body, sent_at, ready_at, expires_at)
select 'worker:' || n % 50, 'id' || n, 'event', (array[1, 5, 9])[1 + n % 3], '{_BODY}', now(),
    now() + (n % 5 - 4) * interval '1 hour', now() + (n % 7 + 1) * interval '1 hour'
from generate_series(1, 20000) n;
update afl.mail set receipt = 'r' || id, place = 1, attempts = 1,
    deadline = now() + interval '1 hour' where id % 4 = 0;
insert into afl.mail_dead (recipient, message_id, type, priority, body, sent_at, attempts, reason,
    died_at)
select 'worker:' || n % 50, 'id' || n, 'event', 5, '{_BODY}', now(), 1, 'retries', now()
from generate_series(1, 20000) n;
insert into afl.mail_seen select 'worker:' || n % 50, 'id' || n, now() + interval '1 day'
from generate_series(1, 20000) n;
insert into afl.mail_count select 'worker:' || n, s, 10, 0, 0, 10
from generate_series(1, 2000) n, generate_series(0, 15) s;
insert into afl.mail_subscription select 'sub' || n, 'other:' || n, '{{event}}'
from generate_series(1, 20000) n;
insert into afl.mail_answer select gen_random_uuid(), '' from generate_series(1, 20000) n;
insert into afl.mail_turn select 'other:' || n, 1 from generate_series(1, 20000) n;
analyze;
"""
_WHOLE = re.compile(r"Seq Scan on mail(?!_config)\w*")
AGENT = AgentId(type="worker", instance="7")


@pytest.fixture
def empty() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url:
        yield url


def test_the_migrations_come_to_what_schema_sql_says(empty: str) -> None:
    kernel_migrate.migrate(empty, kernel_migrate.read_migrations("afl.messaging.postgres"))
    with empty_database() as other:
        kernel_migrate.migrate(other)
        with psycopg.connect(other) as connection:
            connection.execute(files("afl.messaging.postgres").joinpath("schema.sql").read_bytes())
        migrated, described = catalogue(empty), catalogue(other)
    assert migrated == described
    assert any("afl.mail_ready" in row[1] for row in migrated)


def test_the_numbers_have_no_gaps() -> None:
    own = [each.number for each in migrating.migrations() if 300 < each.number <= 400]
    assert own == [*range(301, 301 + len(own))]


@pytest.mark.parametrize("name", SQL)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    assert re.match(r"-- [A-Z][^\n]+[.;:,\w]\n", SQL[name])


@pytest.fixture(scope="module")
def mail_url() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with mail_database() as url:
        yield url


@pytest.mark.parametrize(
    "change",
    [
        "insert into afl.mail_config (one) values (false)",
        "update afl.mail_config set queue_size = 0",
        "update afl.mail_config set fairness = 'random'",
        "insert into afl.mail (recipient, message_id, type, priority, body, sent_at, ready_at) "
        "values ('a', 'b', 'event', 7, '', now(), now())",
        "insert into afl.mail (recipient, message_id, type, priority, body, sent_at, ready_at, "
        "deadline) values ('a', 'b', 'event', 5, '', now(), now(), now())",
        "insert into afl.mail_dead (recipient, message_id, type, priority, body, sent_at, attempts,"
        " reason, died_at) values ('a', 'b', 'event', 5, '', now(), 1, 'bored', now())",
        "insert into afl.mail_subscription values ('s', 'a', '{}')",
        "insert into afl.mail_subscription values ('s', 'a', '{gossip}')",
    ],
)
def test_the_tables_refuse_what_cannot_be(mail_url: str, change: str) -> None:
    with psycopg.connect(mail_url) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(change.encode())


async def _everything(coordinator: PostgresMessageCoordinator) -> None:
    """Each statement but those that look at all mailboxes."""
    sent = message(recipient=AGENT)
    assert (await coordinator.send_message(sent.sender, AGENT, sent)).delivered
    for failure in FailureType:
        received = await coordinator.receive(AGENT, 60)
        assert received is not None
        assert await coordinator.extend(AGENT, received.token, 60)
        assert await coordinator.nack(AGENT, received.token, failure)
    received = await coordinator.receive(AGENT, 60)
    assert received is not None
    assert await coordinator.ack(AGENT, received.token)
    assert await coordinator.recover_pending(AGENT) == 0
    assert len(await coordinator.peek(AGENT, 3)) == 3
    assert len(await coordinator.dead_letters(AGENT, 3)) == 3
    assert await coordinator.receive(AgentId(type="nobody")) is None
    assert await coordinator.redrive(AGENT, "id-nobody-has") == 0
    assert await coordinator.purge(AGENT, "id-nobody-has") == 0
    assert (await coordinator.counts(AGENT)).ready > 100


def test_no_statement_reads_a_whole_table(mail_url: str) -> None:
    plans = Plans()
    clear_mail(mail_url)
    with psycopg.connect(mail_url, autocommit=True) as admin:
        row = admin.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
        if row != (True,):
            pytest.skip("looking at plans needs a superuser")
        admin.execute(_FILL.encode())
    database = Database(mail_url, max_size=1, prepare=plans.watch)
    coordinator = PostgresMessageCoordinator(database)

    async def main() -> None:
        for _ in range(8):  # often enough for plans that serve any parameters
            await _everything(coordinator)
        await coordinator.configure(fairness="weighted")
        await _everything(coordinator)

    asyncio.run(main())
    database.close()
    assert len(plans.seen) > 100
    assert [plan for plan in plans.seen if _WHOLE.search(plan)] == []
