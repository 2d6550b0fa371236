"""One process of `bench.mail`: SIDE URL PREFIX CONSUMERS, then `run SECONDS` in lines of its input.

Each consumer sends a message to the one mailbox, receives one and acknowledges it, over and over.
`ours` does so through the coordinator, `bare` by calling the same scripts with the same client and
looking at nothing but the token.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count

from redis.asyncio import Redis

from afl.messaging.letters import written
from afl.messaging.models import AgentId, AgentMessage, MessageType
from afl.messaging.redis.keys import KeySpace
from afl.messaging.redis.scripts import SCRIPTS
from afl.messaging.redis_coordinator import RedisMessageCoordinator

SENDER = AgentId(type="producer")
AGENT = AgentId(type="consumer")
PAYLOAD = {"n": 42, "path": "in/part-0001"}
_VISIBILITY_SECONDS = 60

Cycle = Callable[[str], Awaitable[None]]


def message(message_id: str) -> AgentMessage:
    return AgentMessage(
        message_id=message_id,
        sender=SENDER,
        recipient=AGENT,
        message_type=MessageType.REQUEST,
        payload=PAYLOAD,
    )


def ours(redis: Redis, prefix: str) -> Cycle:
    coordinator = RedisMessageCoordinator(redis, prefix)

    async def cycle(name: str) -> None:
        await coordinator.send_message(SENDER, AGENT, message(name))
        received = await coordinator.receive(AGENT, _VISIBILITY_SECONDS)
        assert received is not None
        assert await coordinator.ack(AGENT, received.token)

    return cycle


def bare(redis: Redis, prefix: str) -> Cycle:
    mailbox = KeySpace(prefix, "plain").mailbox(AGENT)
    body = written(message("always-the-same"))
    calls = {
        name: (
            SCRIPTS[name].sha,
            len(SCRIPTS[name].keys),
            *mailbox.keys_of(name, SCRIPTS[name].keys),
        )
        for name in ("send", "receive", "ack")
    }

    async def cycle(name: str) -> None:
        await redis.evalsha(*calls["send"], 0, name, "request", 5, 0, "", mailbox.bell, body)
        _, _, _, _, token, *_ = await redis.evalsha(*calls["receive"], 0, name, 1, 60_000_000)
        assert await redis.evalsha(*calls["ack"], 0, token, name) == 1

    return cycle


async def run(side: str, url: str, prefix: str, consumers: int) -> None:
    names = (f"{os.getpid()}-{number}" for number in count())
    async with Redis.from_url(url) as redis:
        # whichever side it is, the server must know the scripts and the settings
        await ours(redis, prefix)(f"first-{os.getpid()}")
        cycle = {"ours": ours, "bare": bare}[side](redis, prefix)

        async def consume(end: float) -> int:
            done = 0
            while time.monotonic() < end:
                await cycle(next(names))
                done += 1
            return done

        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            end = time.monotonic() + float(line.removeprefix("run "))
            done = await asyncio.gather(*(consume(end) for _ in range(consumers)))
            print(sum(done), flush=True)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
