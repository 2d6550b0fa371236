"""Mailboxes in databases among real processes, and as part of a commit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.mongo.database import Database as MongoDatabase
from afl.kernel.postgres.database import Database as PostgresDatabase
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId, MailboxCounts
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.testing.mail_conformance.driver import AGENT, message
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres import databases as postgres
from tests.messaging import mongo_harness, postgres_harness
from tests.messaging.database_consumer import AGENT as SHARED
from tests.messaging.database_grounds import (
    PATIENCE_SECONDS,
    Coordinator,
    Ground,
    MongoGround,
    PostgresGround,
    Slow,
    commit,
)


def _databases(kind: str) -> ModuleType:
    """Where the databases of a kind come from, if there is a server."""
    databases = postgres if kind == "postgres" else mongo
    if not databases.server_is_there():
        pytest.skip(f"there is no {kind} to test with")
    return databases


@pytest.fixture(scope="module", params=["postgres", "mongo"])
def kind_and_url(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    _databases(request.param)
    harness = postgres_harness if request.param == "postgres" else mongo_harness
    with harness.mail_database() as url:
        yield request.param, url


@pytest.fixture
def ground(kind_and_url: tuple[str, str]) -> Iterator[Ground]:
    kind, url = kind_and_url
    ground: Ground = PostgresGround(url) if kind == "postgres" else MongoGround(url)
    yield ground
    ground.close()


async def _send_all(coordinator: Coordinator, number: int) -> list[str]:
    sent = [message(recipient=SHARED) for _ in range(number)]
    results = await asyncio.gather(
        *(coordinator.send_message(each.sender, SHARED, each) for each in sent)
    )
    assert all(result.delivered for result in results)
    return [each.message_id for each in sent]


def _consumer(ground: Ground, visibility: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.messaging.database_consumer", ground.kind, ground.url]
    return subprocess.Popen([*words, str(visibility)], stdout=subprocess.PIPE, text=True)


def _told(outputs: list[str], verb: str) -> Counter[str]:
    lines = (line.split() for output in outputs for line in output.splitlines())
    return Counter(words[1] for words in lines if len(words) == 2 and words[0] == verb)


def _counts(coordinator: Coordinator) -> MailboxCounts:
    return asyncio.run(coordinator.counts(SHARED))


@pytest.mark.slow
def test_eight_consumers_of_four_processes_receive_everything_once(
    ground: Ground,
) -> None:
    coordinator = ground.coordinator()
    sent = asyncio.run(_send_all(coordinator, 600))
    processes = [_consumer(ground, 60) for _ in range(4)]
    outputs = [each.communicate()[0] for each in processes]
    assert _told(outputs, "received") == Counter(sent), "each once"
    assert _told(outputs, "acked") == Counter(sent)
    assert _counts(coordinator) == MailboxCounts(sent=600, acked=600)


async def _consume_the_rest(coordinator: Coordinator) -> str:
    """Takes what nobody could have so far, and tells of it as a consumer does.

    On MongoDB the transaction of a process that was killed is ended some seconds later, and nobody
    has what it was about to change before that.
    """
    told = []
    end = time.monotonic() + 120
    while (counts := await coordinator.counts(SHARED)).ready + counts.reserved:
        assert time.monotonic() < end, counts
        for each in await coordinator.receive_batch(SHARED, 10, 60, wait_seconds=1):
            name = each.queue_message.message.message_id
            told.append(f"received {name}")
            if await coordinator.ack(SHARED, each.token):
                told.append(f"acked {name}")
    return "\n".join(told)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_consumers_lose_nothing(ground: Ground) -> None:
    coordinator = ground.coordinator()
    sent = asyncio.run(_send_all(coordinator, 600))
    processes = [_consumer(ground, 2) for _ in range(4)]
    outputs = []
    for victim in processes[:2]:
        assert victim.stdout is not None
        # in the middle of its work
        heard = "".join(victim.stdout.readline() for _ in range(20))
        os.kill(victim.pid, signal.SIGKILL)
        outputs.append(heard + victim.communicate()[0])
    outputs += [each.communicate()[0] for each in processes[2:]]
    outputs.append(asyncio.run(_consume_the_rest(coordinator)))
    counts = _counts(coordinator)
    assert counts == MailboxCounts(sent=600, acked=600)
    acked = _told(outputs, "acked")
    assert max(acked.values()) == 1, "nobody acks what somebody else has acked"
    # each of the two consumers in a process may have died between its ack and saying so
    assert len(set(sent) - set(acked)) <= 4
    assert set(_told(outputs, "received")) | set(acked) <= set(sent)


def test_a_message_of_a_commit_is_there_exactly_if_the_commit_is(ground: Ground) -> None:
    coordinator = ground.coordinator()
    two = message(recipient=SHARED), message(recipient=SHARED)
    with pytest.raises(RuntimeError, match="not after all"):
        commit(ground, coordinator, *two, fails=True)
    assert (_counts(coordinator).sent, ground.marks()) == (0, 0)
    commit(ground, coordinator, *two)
    assert (_counts(coordinator).ready, ground.marks()) == (2, 1)
    commit(ground, coordinator, two[0])
    assert (_counts(coordinator).ready, ground.marks()) == (2, 1), "it was sent before"


def test_a_full_mailbox_refuses_the_whole_commit(ground: Ground) -> None:
    coordinator = ground.coordinator()
    asyncio.run(coordinator.configure(queue_size=1))
    with pytest.raises(StoreUnavailable, match="worker:shared is full"):
        commit(ground, coordinator, message(recipient=SHARED), message(recipient=SHARED))
    assert (_counts(coordinator).sent, ground.marks()) == (0, 0)
    commit(ground, coordinator, message(recipient=SHARED))
    assert (_counts(coordinator).sent, ground.marks()) == (1, 1)


def test_a_message_that_cannot_be_written_refuses_before_the_commit(ground: Ground) -> None:
    coordinator = ground.coordinator()
    with pytest.raises(MessageRefused, match="JSON"):
        commit(ground, coordinator, message(recipient=SHARED, payload={"set": {1}}))
    with pytest.raises(MessageRefused, match="message id"):
        commit(ground, coordinator, message("zero\0byte", recipient=SHARED))
    assert ground.marks() == 0


def test_a_cancelled_receipt_gives_back_what_it_got(ground: Ground) -> None:
    slow = Slow()
    waiter = ground.slow_coordinator(slow)
    other = ground.coordinator()

    async def main() -> None:
        sent = message(ttl_seconds=3600)
        await other.send_message(sent.sender, AGENT, sent)
        waiting = asyncio.create_task(waiter.receive_batch(AGENT, 1, 600, wait_seconds=60))
        assert await asyncio.to_thread(slow.has_received.wait, PATIENCE_SECONDS)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        slow.may_answer.set()
        (received,) = await other.receive_batch(AGENT, 1, 60, wait_seconds=PATIENCE_SECONDS)
        assert received.queue_message.delivery_attempts == 1

    asyncio.run(main())


def test_many_may_wait_and_others_still_work(ground: Ground) -> None:
    coordinator = ground.coordinator()

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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_senders_at_once_fill_a_mailbox_to_the_brim_and_no_further(ground: Ground) -> None:
    """From where there is room for all, to where each has to know what the others do."""
    coordinators = [ground.coordinator() for _ in range(8)]
    asyncio.run(coordinators[0].configure(queue_size=540))

    async def send(coordinator: Coordinator) -> int:
        delivered = 0
        for _ in range(70):
            sent = message(recipient=SHARED)
            result = await coordinator.send_message(sent.sender, SHARED, sent)
            delivered += result.delivered
        return delivered

    async def main() -> list[int]:
        return await asyncio.gather(*(send(each) for each in coordinators))

    assert sum(asyncio.run(main())) == 540
    assert _counts(coordinators[0]) == MailboxCounts(sent=540, ready=540)


def test_those_that_recover_at_once_count_each_message_once(ground: Ground) -> None:
    coordinators = [ground.coordinator() for _ in range(4)]

    async def recover() -> list[int]:
        return await asyncio.gather(*(each.recover_pending(SHARED) for each in coordinators))

    asyncio.run(coordinators[0].configure(retry_attempts=1))
    asyncio.run(_send_all(coordinators[0], 150))
    assert len(asyncio.run(coordinators[0].receive_batch(SHARED, 150, 0.0))) == 150
    assert sum(asyncio.run(recover())) == 150
    assert _counts(coordinators[0]) == MailboxCounts(sent=150, ready=150)
    # and once more: now they are dead, each once
    assert len(asyncio.run(coordinators[0].receive_batch(SHARED, 150, 0.0))) == 150
    assert sum(asyncio.run(recover())) == 150
    assert _counts(coordinators[0]) == MailboxCounts(sent=150, dead=150)


def test_closing_ends_waiting(ground: Ground) -> None:
    coordinator = ground.coordinator()

    async def main() -> None:
        waiting = asyncio.create_task(coordinator.receive_batch(AGENT, 1, 60, wait_seconds=60))
        await asyncio.sleep(0.1)
        await coordinator.close()
        assert await waiting == []

    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < PATIENCE_SECONDS


def test_errors_of_consumers_are_kept_whatever_they_contain(ground: Ground) -> None:
    coordinator = ground.coordinator()

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


def test_what_is_over_is_forgotten(ground: Ground) -> None:
    coordinator = ground.coordinator()
    asyncio.run(coordinator.configure(dedupe_seconds=0.001))
    asyncio.run(_send_all(coordinator, 20))
    time.sleep(0.01)
    asyncio.run(coordinator.recover_pending())
    assert ground.remembered() == 0


@contextmanager
def _coordinator(kind: str, url: str, timeout_seconds: float = 10.0) -> Iterator[Coordinator]:
    """One on a database, whatever it is like."""
    if kind == "postgres":
        database = PostgresDatabase(url, timeout_seconds=timeout_seconds)
        yield PostgresMessageCoordinator(database)
        database.close()
    else:
        other = MongoDatabase(url, timeout_seconds=timeout_seconds)
        yield MongoMessageCoordinator(other)
        other.close()


@pytest.mark.parametrize("kind", ["postgres", "mongo"])
def test_a_database_without_mailboxes_says_what_to_do(kind: str) -> None:
    with _databases(kind).empty_database() as url, _coordinator(kind, url) as coordinator:
        sent = message()
        with pytest.raises(MessageCoordinatorError, match="afl db migrate"):
            asyncio.run(coordinator.send_message(sent.sender, AGENT, sent))
        with pytest.raises(MessageCoordinatorError, match="afl db migrate"):
            asyncio.run(coordinator.config())


@pytest.mark.parametrize("kind", ["postgres", "mongo"])
def test_a_database_that_is_away_says_so(kind: str) -> None:
    away = {
        "postgres": f"{postgres.url_of('postgres')} port=1",
        "mongo": "mongodb://127.0.0.1:1/away",
    }
    with (
        _coordinator(kind, away[kind], timeout_seconds=0.2) as coordinator,
        pytest.raises(MessageCoordinatorError, match="cannot be reached"),
    ):
        asyncio.run(coordinator.counts(AGENT))


@pytest.mark.parametrize("size", [1_000_000, 17_000_000])
def test_a_message_has_to_fit_a_document(size: int) -> None:
    _databases("mongo")
    with mongo_harness.mail_database() as url, _coordinator("mongo", url) as coordinator:
        sent = message(payload={"long": "x" * size})
        if size > 15 * 1024 * 1024:
            with pytest.raises(MessageRefused, match="MongoDB keeps at most"):
                asyncio.run(coordinator.send_message(sent.sender, AGENT, sent))
            assert asyncio.run(coordinator.counts(AGENT)).sent == 0
        else:
            asyncio.run(coordinator.send_message(sent.sender, AGENT, sent))
            received = asyncio.run(coordinator.receive(AGENT))
            assert received is not None
            assert received.queue_message.message == sent
