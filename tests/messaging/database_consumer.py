"""A process that consumes a mailbox:
`python -m tests.messaging.database_consumer KIND URL VISIBILITY`.

Two consumers at once. Says what it has received and what it has acknowledged, until there was
nothing for a while.
"""

from __future__ import annotations

import asyncio
import sys

from afl.kernel.mongo.database import Database as MongoDatabase
from afl.kernel.postgres.database import Database as PostgresDatabase
from afl.messaging.database_coordinator import DatabaseMessageCoordinator
from afl.messaging.models import AgentId
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator

AGENT = AgentId(type="worker", instance="shared")
_PATIENCE_SECONDS = 4.0


async def consume(coordinator: DatabaseMessageCoordinator, visibility: float) -> None:
    while batch := await coordinator.receive_batch(
        AGENT, 3, visibility, wait_seconds=_PATIENCE_SECONDS
    ):
        for received in batch:
            name = received.queue_message.message.message_id
            print("received", name, flush=True)
            if await coordinator.ack(AGENT, received.token):
                print("acked", name, flush=True)


async def main(kind: str, url: str, visibility: str) -> None:
    coordinator: DatabaseMessageCoordinator
    if kind == "postgres":
        coordinator = PostgresMessageCoordinator(PostgresDatabase(url, max_size=2))
    else:
        coordinator = MongoMessageCoordinator(MongoDatabase(url, max_size=2))
    await asyncio.gather(*(consume(coordinator, float(visibility)) for _ in range(2)))
    await coordinator.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
