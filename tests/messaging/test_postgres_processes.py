"""Mailboxes in PostgreSQL among real processes, and as part of a commit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database, PostgresTransaction, Row
from afl.kernel.postgres.doorbell import PostgresDoorbell
from afl.kernel.postgres.statements import Hot, Parameters
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.waiting import PollPolicy
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId, AgentMessage, MailboxCounts
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.testing.mail_conformance.driver import AGENT, message
from tests.kernel.postgres.databases import empty_database, server_is_there, url_of
from tests.messaging.postgres_consumer import AGENT as SHARED
from tests.messaging.postgres_harness import clear_mail, mail_database

_PATIENCE_SECONDS = 20.0


@pytest.fixture(scope="module")
def shared_url() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with mail_database() as url:
        yield url


@pytest.fixture
def url(shared_url: str) -> str:
    clear_mail(shared_url)
    return shared_url


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=4) as store:
        yield store


async def _send_all(coordinator: PostgresMessageCoordinator, number: int) -> list[str]:
    sent = [message(recipient=SHARED) for _ in range(number)]
    results = await asyncio.gather(
        *(coordinator.send_message(each.sender, SHARED, each) for each in sent)
    )
    assert all(result.delivered for result in results)
    return [each.message_id for each in sent]


def _consumer(url: str, visibility: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.messaging.postgres_consumer", url, str(visibility)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _told(outputs: list[str], verb: str) -> Counter[str]:
    lines = (line.split() for output in outputs for line in output.splitlines())
    return Counter(words[1] for words in lines if len(words) == 2 and words[0] == verb)


def _counts(coordinator: PostgresMessageCoordinator) -> MailboxCounts:
    return asyncio.run(coordinator.counts(SHARED))


@pytest.mark.slow
def test_eight_consumers_of_four_processes_receive_everything_once(
    store: PostgresStore, url: str
) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    sent = asyncio.run(_send_all(coordinator, 600))
    processes = [_consumer(url, 60) for _ in range(4)]
    outputs = [each.communicate()[0] for each in processes]
    assert _told(outputs, "received") == Counter(sent), "each once"
    assert _told(outputs, "acked") == Counter(sent)
    assert _counts(coordinator) == MailboxCounts(sent=600, acked=600)


@pytest.mark.slow
def test_killed_consumers_lose_nothing(store: PostgresStore, url: str) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    sent = asyncio.run(_send_all(coordinator, 600))
    processes = [_consumer(url, 2) for _ in range(4)]
    outputs = []
    for victim in processes[:2]:
        assert victim.stdout is not None
        # in the middle of its work
        heard = "".join(victim.stdout.readline() for _ in range(20))
        os.kill(victim.pid, signal.SIGKILL)
        outputs.append(heard + victim.communicate()[0])
    outputs += [each.communicate()[0] for each in processes[2:]]
    counts = _counts(coordinator)
    assert counts == MailboxCounts(sent=600, acked=600)
    acked = _told(outputs, "acked")
    assert max(acked.values()) == 1, "nobody acks what somebody else has acked"
    # each of the two consumers in a process may have died between its ack and saying so
    assert len(set(sent) - set(acked)) <= 4
    assert set(_told(outputs, "received")) | set(acked) <= set(sent)


def _commit(
    store: PostgresStore,
    coordinator: PostgresMessageCoordinator,
    *sent: AgentMessage,
    fails: bool = False,
) -> None:
    def write(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        transaction.cursor.execute("insert into public.mark values ('written')")
        for each in sent:
            coordinator.send_in(transaction, each)
        if fails:
            raise RuntimeError("not after all")

    store.commit((), writes=write)


def _marks(store: PostgresStore) -> int:
    (row,) = store.database.rows(b"select count(*) from public.mark", {})
    store.database.run(lambda cursor: cursor.execute("delete from public.mark"))
    return int(row[0])


def test_a_message_of_a_commit_is_there_exactly_if_the_commit_is(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    two = message(recipient=SHARED), message(recipient=SHARED)
    with pytest.raises(RuntimeError, match="not after all"):
        _commit(store, coordinator, *two, fails=True)
    assert (_counts(coordinator).sent, _marks(store)) == (0, 0)
    _commit(store, coordinator, *two)
    assert (_counts(coordinator).ready, _marks(store)) == (2, 1)
    _commit(store, coordinator, two[0])
    assert (_counts(coordinator).ready, _marks(store)) == (2, 1), "it was sent before"


def test_a_full_mailbox_refuses_the_whole_commit(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    asyncio.run(coordinator.configure(queue_size=1))
    with pytest.raises(StoreUnavailable, match="worker:shared is full"):
        _commit(store, coordinator, message(recipient=SHARED), message(recipient=SHARED))
    assert (_counts(coordinator).sent, _marks(store)) == (0, 0)
    _commit(store, coordinator, message(recipient=SHARED))
    assert (_counts(coordinator).sent, _marks(store)) == (1, 1)


def test_a_message_that_cannot_be_written_refuses_before_the_commit(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    with pytest.raises(MessageRefused, match="JSON"):
        _commit(store, coordinator, message(recipient=SHARED, payload={"set": {1}}))
    with pytest.raises(MessageRefused, match="message id"):
        _commit(store, coordinator, message("zero\0byte", recipient=SHARED))
    assert _marks(store) == 0


def test_a_doorbell_wakes_who_waits_in_another_process(url: str, store: PostgresStore) -> None:
    bells = [PostgresDoorbell(url) for _ in range(2)]
    assert all(bell.wait_until_listening(_PATIENCE_SECONDS) for bell in bells)
    rarely = PollPolicy(min_seconds=_PATIENCE_SECONDS, max_seconds=_PATIENCE_SECONDS)
    waiter = PostgresMessageCoordinator(store.database, bells[0], poll=rarely)
    sender = PostgresMessageCoordinator(store.database, bells[1])

    async def main() -> None:
        waiting = asyncio.create_task(
            waiter.receive_batch(AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS)
        )
        await asyncio.sleep(0.2)
        sent = message()
        await sender.send_message(sent.sender, AGENT, sent)
        assert len(await waiting) == 1

    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < _PATIENCE_SECONDS / 2
    for bell in bells:
        bell.close()


class _SlowDatabase(Database):
    """Hears the answer to a receipt late."""

    def __init__(self, database: Database) -> None:
        self._real = database
        self.has_received = threading.Event()
        self.may_answer = threading.Event()

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        rows = self._real.call(statement, parameters)
        if statement.name == b"afl_mail_receive":
            self.has_received.set()
            self.may_answer.wait(_PATIENCE_SECONDS)
        return rows


def test_a_cancelled_receipt_gives_back_what_it_got(store: PostgresStore) -> None:
    slow = _SlowDatabase(store.database)
    waiter = PostgresMessageCoordinator(slow)
    other = PostgresMessageCoordinator(store.database)

    async def main() -> None:
        sent = message(ttl_seconds=3600)
        await other.send_message(sent.sender, AGENT, sent)
        waiting = asyncio.create_task(waiter.receive_batch(AGENT, 1, 600, wait_seconds=60))
        assert await asyncio.to_thread(slow.has_received.wait, _PATIENCE_SECONDS)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        slow.may_answer.set()
        (received,) = await other.receive_batch(AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS)
        assert received.queue_message.delivery_attempts == 1

    asyncio.run(main())


def test_many_may_wait_and_others_still_work(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)

    async def main() -> None:
        agents = [AgentId(type="many", instance=str(number)) for number in range(40)]
        waits = [
            asyncio.create_task(coordinator.receive_batch(each, 1, 60, wait_seconds=60))
            for each in agents
        ]
        await asyncio.sleep(0.1)
        sent = message()
        await coordinator.broadcast_message(sent.sender, sent, agents)
        assert [len(each) for each in await asyncio.gather(*waits)] == [1] * 40
        await coordinator.close()

    asyncio.run(main())


def test_closing_ends_waiting(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)

    async def main() -> None:
        waiting = asyncio.create_task(coordinator.receive_batch(AGENT, 1, 60, wait_seconds=60))
        await asyncio.sleep(0.1)
        await coordinator.close()
        assert await waiting == []

    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < _PATIENCE_SECONDS


def test_errors_of_consumers_are_kept_whatever_they_contain(store: PostgresStore) -> None:
    coordinator = PostgresMessageCoordinator(store.database)

    async def main() -> None:
        sent = message()
        await coordinator.send_message(sent.sender, AGENT, sent)
        received = await coordinator.receive(AGENT)
        assert received is not None
        await coordinator.configure(retry_attempts=0)
        assert await coordinator.nack(AGENT, received.token, error="zero \0 half \ud800")
        (letter,) = await coordinator.dead_letters(AGENT)
        assert letter.queue_message.last_error == "zero \ufffd half ?"

    asyncio.run(main())


def test_what_is_over_is_forgotten(store: PostgresStore, url: str) -> None:
    coordinator = PostgresMessageCoordinator(store.database)
    asyncio.run(coordinator.configure(dedupe_seconds=0.001))
    asyncio.run(_send_all(coordinator, 20))
    time.sleep(0.01)
    asyncio.run(coordinator.recover_pending())
    with psycopg.connect(url) as connection:
        row = connection.execute("select count(*) from afl.mail_seen").fetchone()
    assert row == (0,)


def test_a_database_without_mailboxes_says_what_to_do() -> None:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url, PostgresStore.connect(url) as store:
        coordinator = PostgresMessageCoordinator(store.database)
        sent = message()
        with pytest.raises(MessageCoordinatorError, match="afl db migrate"):
            asyncio.run(coordinator.send_message(sent.sender, AGENT, sent))
        with pytest.raises(MessageCoordinatorError, match="afl db migrate"):
            asyncio.run(coordinator.config())


def test_a_database_that_is_away_says_so() -> None:
    database = Database(f"{url_of('postgres')} port=1", timeout_seconds=0.2)
    coordinator = PostgresMessageCoordinator(database)
    with pytest.raises(MessageCoordinatorError, match="cannot be reached"):
        asyncio.run(coordinator.counts(AGENT))
    database.close()
