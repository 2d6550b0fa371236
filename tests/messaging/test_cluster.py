"""Mailboxes in a real Redis Cluster of three servers pass the suite too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis, RedisCluster

from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId
from afl.messaging.redis.keys import KeySpace
from afl.messaging.redis.scripts import SCRIPTS
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.testing.mail_conformance.driver import AGENT, SENDER, Driver, message
from afl.testing.mail_conformance.harness import Harness
from afl.testing.mail_conformance.machine import mail_machine
from afl.testing.mail_conformance.suite import MailSuite
from tests.messaging.redis_mailboxes import RedisHarness, new_prefix
from tests.messaging.redis_servers import cluster, needs_redis_server

pytestmark = [needs_redis_server, pytest.mark.slow]


class ClusterHarness(RedisHarness):
    """Tagged keys, spread over three servers."""

    key_style = "tagged"
    port = 0

    def connect(self) -> RedisCluster:
        return RedisCluster("127.0.0.1", type(self).port)


@pytest.fixture(scope="module", autouse=True)
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with cluster(Path(tmp_path_factory.mktemp("cluster"))) as port:
        ClusterHarness.port = port
        yield port


class TestCluster(MailSuite):
    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        harness = ClusterHarness()
        yield harness
        harness.close()

    def test_mailboxes_are_spread_and_share_their_settings(self, harness: Harness) -> None:
        drivers = [
            Driver(harness, agent=AgentId(type="worker", instance=str(number)))
            for number in range(12)
        ]
        for driver in drivers:
            driver.send()
            driver.take(1000)
        drivers[0].configure(queue_size=1)
        for driver in drivers:
            assert not driver.deliver(message(recipient=driver.agent)).delivered
        later = Driver(harness, agent=AgentId(type="worker", instance="later"))
        later.send()
        assert not later.deliver(message(recipient=later.agent)).delivered
        harness.advance(2000)
        assert harness.run(drivers[0].coordinator.recover_pending()) == 12, "on every server"

        async def slots() -> set[int]:
            assert isinstance(harness, ClusterHarness)
            redis = harness.redis
            assert isinstance(redis, RedisCluster)
            names = [f"{harness.prefix}:queue:{{{driver.agent}}}" for driver in drivers]
            return {redis.keyslot(name) * 3 // 16384 for name in names}

        assert len(harness.run(slots())) > 1


class TestClusterGames(mail_machine(ClusterHarness).TestCase):  # type: ignore[misc]
    settings = settings(
        max_examples=10,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def test_plain_keys_are_refused_at_once_and_by_the_server(port: int) -> None:
    async def try_both() -> None:
        together = RedisCluster("127.0.0.1", port)
        with pytest.raises(MessageRefused, match="tagged"):
            RedisMessageCoordinator(together)
        await together.aclose()
        alone = Redis(host="127.0.0.1", port=port)
        coordinator = RedisMessageCoordinator(alone, new_prefix())
        with pytest.raises(MessageCoordinatorError, match="tagged"):
            await coordinator.send_message(SENDER, AGENT, message())
        await alone.aclose()

    asyncio.run(try_both())


def test_all_keys_of_every_script_are_in_one_slot(port: int) -> None:
    async def slots() -> dict[str, int]:
        redis = RedisCluster("127.0.0.1", port)
        await redis.initialize()
        mailbox = KeySpace("ao", "tagged").mailbox(AGENT)
        found = {
            name: len({redis.keyslot(key) for key in mailbox.keys_of(name, script.keys)})
            for name, script in SCRIPTS.items()
        }
        await redis.aclose()
        return found

    assert set(asyncio.run(slots()).values()) == {1}
