"""The list of agents and a breaker on a cluster, where every step must stay in one slot."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator

import pytest
from redis import RedisCluster
from redis.asyncio import RedisCluster as AsyncRedisCluster

from afl.messaging.breaker import BreakerState
from afl.messaging.errors import CircuitBreakerOpenError
from afl.messaging.models import AgentId
from afl.messaging.redis_breaker import CircuitBreaker, list_breakers
from afl.messaging.redis_registry import RedisAgentRegistry
from afl.messaging.registry import Agent, Capability
from tests.messaging.redis_servers import cluster


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server to start")
    with cluster(tmp_path_factory.mktemp("cluster")) as port:
        yield port


def test_agents_of_all_slots_are_listed_found_and_removed(port: int) -> None:
    client = RedisCluster(host="127.0.0.1", port=port)
    registry = RedisAgentRegistry(client, "here", enable_events=True, key_style="tagged")
    agents = [AgentId(type="worker", instance=str(number)) for number in range(20)]
    for agent_id in agents:
        capabilities = (Capability(name="review"),)
        registry.register(Agent(name="Worker", agent_id=agent_id, capabilities=capabilities))
    assert len(asyncio.run(registry.list_registered())) == 20
    assert len(asyncio.run(registry.find("review", "^1"))) == 20
    client.delete("here:agents:{worker:3}")
    assert len(asyncio.run(registry.list_registered())) == 19
    for agent_id in agents:
        registry.deregister(agent_id)
    assert asyncio.run(registry.list_registered()) == []
    client.close()


def test_a_breaker_opens_and_closes(port: int) -> None:
    async def main() -> None:
        def broken() -> None:
            raise OSError("broken")

        async with AsyncRedisCluster(host="127.0.0.1", port=port) as client:
            breaker = CircuitBreaker(client, "service", key_prefix="here", key_style="tagged")
            for _ in range(5):
                with pytest.raises(OSError, match="broken"):
                    await breaker.call(broken)
            with pytest.raises(CircuitBreakerOpenError, match="service is open"):
                await breaker.call(broken)
            await breaker.reset()
            assert await breaker.state() is BreakerState.CLOSED
            assert await list_breakers(client, "here") == ["service"]

    asyncio.run(main())


def test_plain_keys_are_refused_at_once(port: int) -> None:
    client = RedisCluster(host="127.0.0.1", port=port)
    with pytest.raises(ValueError, match="tagged"):
        RedisAgentRegistry(client)
    client.close()
