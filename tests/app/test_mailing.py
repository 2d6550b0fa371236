"""Where mailboxes are, as settings say."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import RedisCluster

from afl.app.errors import BadDatabase
from afl.app.mailing import key_style, mailboxes, redis_client
from afl.app.services import Services, connect
from afl.base.settings import MailPlace, Settings
from afl.messaging.memory_coordinator import MemoryMessageCoordinator
from afl.messaging.models import AgentId
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from tests.app.mailing import message
from tests.messaging.redis_servers import cluster, needs_redis_server

CLERK = AgentId(type="clerk")


def in_redis(url: str) -> Settings:
    return replace(Settings(), redis_url=url, mail=MailPlace.REDIS)


def send_and_receive(services: Services, settings: Settings) -> str:
    """Sends with one coordinator and receives with another; the kind of both."""

    async def send() -> None:
        async with mailboxes(services, settings) as mail:
            sent = message("clerk", {"n": 1})
            await mail.send_message(sent.sender, sent.recipient, sent)

    async def receive() -> str:
        async with mailboxes(services, settings) as mail:
            (found,) = await mail.receive_batch(CLERK, 5, wait_seconds=20)
            assert found.queue_message.message.payload == {"n": 1}
            assert await mail.ack(CLERK, found.token)
            return type(mail).__name__

    asyncio.run(send())
    return asyncio.run(receive())


@pytest.mark.parametrize(
    ("mail_place", "kind"),
    [
        ("memory", MemoryMessageCoordinator),
        ("postgres", PostgresMessageCoordinator),
        ("mongo", MongoMessageCoordinator),
        ("redis", RedisMessageCoordinator),
    ],
    indirect=["mail_place"],
)
def test_mailboxes_are_where_the_settings_say(mail_place: str, kind: type[object]) -> None:
    with connect(mail_place) as services:
        assert send_and_receive(services, Settings.load()) == kind.__name__


def test_stores_in_memory_have_mailboxes_of_their_own() -> None:
    async def count(services: Services) -> int:
        async with mailboxes(services, Settings()) as mail:
            return (await mail.counts(CLERK)).sent

    with connect("memory:") as one, connect("memory:") as other:
        send_and_receive(one, Settings())
        assert (asyncio.run(count(one)), asyncio.run(count(other))) == (1, 0)


@needs_redis_server
def test_a_cluster_is_found_behind_any_of_its_servers(tmp_path: Path) -> None:
    with cluster(tmp_path) as port, connect("memory:") as services:
        settings = in_redis(f"redis://127.0.0.1:{port}")

        async def style() -> str:
            async with redis_client(settings) as redis:
                assert isinstance(redis, RedisCluster)
                return key_style(redis)

        assert asyncio.run(style()) == "tagged"
        assert send_and_receive(services, settings) == RedisMessageCoordinator.__name__


def test_a_redis_that_is_away_says_what_to_do() -> None:
    async def enter(settings: Settings) -> None:
        async with redis_client(settings):
            raise AssertionError

    # nobody listens at port 1
    with pytest.raises(BadDatabase, match=r"does not answer.*Start it, or set another"):
        asyncio.run(enter(in_redis("redis://127.0.0.1:1")))
    with pytest.raises(BadDatabase, match="Set AFL_REDIS_URL"):
        asyncio.run(enter(Settings()))
