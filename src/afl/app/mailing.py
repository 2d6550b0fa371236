"""The mailboxes and the Redis that settings name. Needs the extra `redis`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Literal
from weakref import WeakKeyDictionary

from redis import RedisCluster as BlockingCluster
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import RedisError

from afl.app.errors import BadDatabase
from afl.app.services import Services
from afl.base.settings import MailPlace, Settings
from afl.kernel import memory
from afl.kernel.kinds import is_on_mongo, is_on_postgres
from afl.kernel.port import Store
from afl.kernel.waiting import PollPolicy
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.memory_coordinator import MemoryMailboxes, MemoryMessageCoordinator
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.messaging.redis_registry import RedisAgentRegistry

KEY_PREFIX = "ao"
#: Who waits at a mailbox in the database is rung for, so it need not look often.
_POLL = PollPolicy(min_seconds=0.05, max_seconds=10.0)

#: Mailboxes in memory live as long as the store beside them.
_in_memory: WeakKeyDictionary[Store, MemoryMailboxes] = WeakKeyDictionary()


@asynccontextmanager
async def mailboxes(services: Services, settings: Settings) -> AsyncIterator[MessageCoordinator]:
    """Where agents get their mail: in Redis, or in the database of these services.

    Raises:
        BadDatabase: there is no Redis at the URL of the settings.
    """
    if settings.mail is MailPlace.REDIS:
        async with redis_mailboxes(settings) as coordinator:
            yield coordinator
        return
    coordinator = _in_database(services)
    try:
        yield coordinator
    finally:
        await coordinator.close()


@asynccontextmanager
async def redis_mailboxes(settings: Settings) -> AsyncIterator[MessageCoordinator]:
    """Mailboxes in Redis, whatever the database is.

    Raises:
        BadDatabase: there is no Redis at the URL of the settings.
    """
    async with redis_client(settings) as redis:
        coordinator = RedisMessageCoordinator(redis, KEY_PREFIX, key_style=key_style(redis))
        try:
            yield coordinator
        finally:
            await coordinator.close()


@asynccontextmanager
async def registry(settings: Settings) -> AsyncIterator[RedisAgentRegistry]:
    """The list of agents that all processes with this Redis share.

    Raises:
        BadDatabase: there is no Redis at the URL of the settings.
    """
    async with redis_client(settings) as redis:
        with ExitStack() as stack:
            found = RedisAgentRegistry(
                redis if isinstance(redis, Redis) else stack.enter_context(_blocking(settings)),
                KEY_PREFIX,
                key_style=key_style(redis),
            )
            stack.callback(found.close)
            yield found


@asynccontextmanager
async def redis_client(settings: Settings) -> AsyncIterator[Redis | RedisCluster]:
    """A client of the Redis of the settings, or of the cluster that it belongs to.

    Raises:
        BadDatabase: there is none, or it does not answer.
    """
    url = settings.redis_url
    if url is None:
        raise BadDatabase("There is no Redis. Set AFL_REDIS_URL, such as redis://host.")
    try:
        client = Redis.from_url(url)
    except ValueError as error:
        raise BadDatabase(f"AFL_REDIS_URL is not the URL of a Redis: {error}.") from error
    async with client:
        try:
            about = await client.info("cluster")
        except RedisError as error:
            reason = str(error).rstrip(".")
            raise BadDatabase(
                f"The Redis of AFL_REDIS_URL does not answer: {reason}. Start it, or set another."
            ) from error
        if not about["cluster_enabled"]:
            yield client
            return
    async with RedisCluster.from_url(url) as cluster:
        yield cluster


def key_style(redis: Redis | RedisCluster) -> Literal["plain", "tagged"]:
    """How keys are written: in a cluster, those of one mailbox must be in one slot."""
    return "tagged" if isinstance(redis, RedisCluster) else "plain"


def _blocking(settings: Settings) -> BlockingCluster:
    """A client of the cluster for what is not async."""
    assert settings.redis_url is not None
    return BlockingCluster.from_url(settings.redis_url)


def _in_database(services: Services) -> MessageCoordinator:
    kernel = services.persistence.kernel
    if isinstance(kernel, memory.MemoryStore):
        return MemoryMessageCoordinator(_in_memory.setdefault(kernel, MemoryMailboxes()))
    # each driver is an extra of its own
    if is_on_mongo(kernel):
        from afl.messaging.mongo_coordinator import MongoMessageCoordinator  # noqa: PLC0415

        return MongoMessageCoordinator(kernel.database, services.doorbell, poll=_POLL)
    from afl.messaging.postgres_coordinator import PostgresMessageCoordinator  # noqa: PLC0415

    assert is_on_postgres(kernel)
    return PostgresMessageCoordinator(kernel.database, services.doorbell, poll=_POLL)
