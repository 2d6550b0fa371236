"""A doorbell wakes who waits for mail in another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from afl.kernel.postgres.doorbell import PostgresDoorbell
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.waiting import PollPolicy
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.testing.mail_conformance.driver import AGENT, message
from tests.kernel.postgres.databases import server_is_there
from tests.messaging.postgres_harness import mail_database

_PATIENCE_SECONDS = 20.0


@pytest.fixture
def url() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with mail_database() as url:
        yield url


def test_a_doorbell_wakes_who_waits_in_another_process(url: str) -> None:
    store = PostgresStore.connect(url, max_size=4)
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
    store.close()
