"""A process that consumes a mailbox: `python -m tests.messaging.postgres_consumer URL VISIBILITY`.

Two consumers at once. Says what it has received and what it has acknowledged, until there was
nothing for a while.
"""

from __future__ import annotations

import asyncio
import sys

from afl.kernel.postgres.database import Database
from afl.messaging.models import AgentId
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator

AGENT = AgentId(type="worker", instance="shared")
_PATIENCE_SECONDS = 4.0


async def consume(coordinator: PostgresMessageCoordinator, visibility: float) -> None:
    while batch := await coordinator.receive_batch(
        AGENT, 3, visibility, wait_seconds=_PATIENCE_SECONDS
    ):
        for received in batch:
            name = received.queue_message.message.message_id
            print("received", name, flush=True)
            if await coordinator.ack(AGENT, received.token):
                print("acked", name, flush=True)


async def main(url: str, visibility: str) -> None:
    coordinator = PostgresMessageCoordinator(Database(url, max_size=2))
    await asyncio.gather(*(consume(coordinator, float(visibility)) for _ in range(2)))
    await coordinator.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
