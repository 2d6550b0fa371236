"""Mailboxes in a real Redis for tests: a prefix of their own, which is removed afterwards."""

from __future__ import annotations

import secrets
import socket
from functools import cache

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from afl.messaging.coordinator import MessageCoordinator, MessageMetrics
from afl.messaging.redis.keys import KeyStyle
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.testing.mail_conformance.harness import ClientDied, LoopHarness

HOST, PORT = "127.0.0.1", 6379
URL = f"redis://{HOST}:{PORT}/0"


@cache
def redis_is_there() -> bool:
    try:
        socket.create_connection((HOST, PORT), timeout=1).close()
    except OSError:
        return False
    return True


needs_redis = pytest.mark.skipif(not redis_is_there(), reason="there is no Redis to test with")


def new_prefix() -> str:
    return f"afl-test-{secrets.token_hex(6)}"


async def remove(redis: Redis | RedisCluster, prefix: str) -> None:
    """Every key below the prefix."""
    async for key in redis.scan_iter(match=f"{prefix}:*", count=1000):
        await redis.delete(key)


class FaultyClient:
    """A client whose answers can be lost, and whose process can die between two commands."""

    def __init__(self, redis: Redis | RedisCluster) -> None:
        self._redis = redis
        self.lose_next = False
        self.commands_left: int | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._redis, name)

    async def execute_command(self, *args: str | bytes | int | float) -> object:
        if self.commands_left is not None:
            if self.commands_left == 0:
                raise ClientDied
            self.commands_left -= 1
        answer: object = await self._redis.execute_command(*args)
        if self.lose_next:
            self.lose_next = False
            raise RedisConnectionError("the connection broke before the answer came")
        return answer


class RedisHarness(LoopHarness):
    """Mailboxes below a new prefix; the clock of the scripts is moved by an offset."""

    key_style: KeyStyle = "plain"

    def __init__(self) -> None:
        super().__init__()
        self.prefix = new_prefix()
        self._offset = 0.0
        self._clients: dict[MessageCoordinator, FaultyClient] = {}
        self.redis = self.connect()

    def connect(self) -> Redis | RedisCluster:
        return Redis(host=HOST, port=PORT)

    def coordinator(self, metrics: MessageMetrics | None = None) -> MessageCoordinator:
        client = FaultyClient(self.redis)
        made = RedisMessageCoordinator(
            client,  # type: ignore[arg-type]
            self.prefix,
            metrics,
            self.key_style,
            _clock_offset=lambda: self._offset,
        )
        self._clients[made] = client
        return self.keep(made)

    def advance(self, seconds: float) -> None:
        self._offset += seconds

    def lose_answer(self, coordinator: MessageCoordinator) -> None:
        self._clients[coordinator].lose_next = True

    def die_after(self, coordinator: MessageCoordinator, commands: int) -> None:
        self._clients[coordinator].commands_left = commands

    def close(self) -> None:
        async def clear() -> None:
            for coordinator in self._made:
                await coordinator.close()
            await remove(self.redis, self.prefix)
            await self.redis.aclose()

        self.run(clear())
        self._made.clear()
        super().close()
