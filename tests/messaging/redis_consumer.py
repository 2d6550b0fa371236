"""A process of its own that sends or consumes, for tests that kill it: SETTINGS as JSON.

`send` sends the messages from `first` to `last`. `consume` writes the number of every message that
it receives to its output, then acknowledges it, until it has waited for a while in vain.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from redis.asyncio import Redis

from afl.messaging.models import AgentId, AgentMessage, MessageType
from afl.messaging.redis_coordinator import RedisMessageCoordinator

SENDER = AgentId(type="sender")
AGENT = AgentId(type="worker", instance="1")


def numbered(number: int) -> AgentMessage:
    return AgentMessage(
        message_id=f"number-{number}",
        sender=SENDER,
        recipient=AGENT,
        message_type=MessageType.REQUEST,
        payload={"number": number},
    )


def shift_clocks(seconds: float) -> None:
    """As on a machine whose clock is wrong."""
    right = time.time
    time.time = lambda: right() + seconds
    time.time_ns = lambda: int((right() + seconds) * 1e9)


async def send(coordinator: RedisMessageCoordinator, numbers: range, hands: int) -> None:
    left = iter(numbers)

    async def send_some() -> None:
        for number in left:
            result = await coordinator.send_message(SENDER, AGENT, numbered(number))
            assert result.delivered

    await asyncio.gather(*(send_some() for _ in range(hands)))


async def consume(
    coordinator: RedisMessageCoordinator, hands: int, batch: int, visibility: float, idle: float
) -> None:
    async def consume_some() -> None:
        while received := await coordinator.receive_batch(
            AGENT, batch, visibility, wait_seconds=idle
        ):
            for each in received:
                number = each.queue_message.message.payload["number"]
                # one write, so that nothing is lost when the process is killed
                os.write(1, f"{number}\n".encode())
                await coordinator.ack(AGENT, each.token)

    await asyncio.gather(*(consume_some() for _ in range(hands)))


async def run(settings: dict[str, Any]) -> None:
    async with Redis.from_url(settings["url"], socket_timeout=None) as redis:
        coordinator = RedisMessageCoordinator(redis, settings["prefix"])
        hands = settings["hands"]
        if settings["do"] == "send":
            await send(coordinator, range(settings["first"], settings["last"]), hands)
        else:
            batch, visibility = settings["batch"], settings["visibility"]
            await consume(coordinator, hands, batch, visibility, settings["idle"])
        await coordinator.close()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    shift_clocks(given["clock"])
    asyncio.run(run(given))
