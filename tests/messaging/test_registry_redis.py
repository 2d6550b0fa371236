"""The list of agents in Redis."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis import asyncio as async_redis

from afl.messaging.errors import AgentRegistryError, NotTheOwner
from afl.messaging.models import AgentId
from afl.messaging.redis_registry import RedisAgentRegistry
from afl.messaging.registry import Agent, Capability
from tests.messaging.breaker_redis import URL, prefix, redis_is_there

ONE = AgentId(type="worker", instance="1")
_PATIENCE_SECONDS = 20.0


class Office:
    """A Redis, a prefix, and registries on it, as processes would have."""

    def __init__(self, name: str) -> None:
        self.prefix = name
        self.client: redis.Redis = redis.Redis.from_url(URL, decode_responses=True)
        self._made: list[RedisAgentRegistry] = []

    def registry(self, **more: Any) -> RedisAgentRegistry:  # noqa: ANN401 - of RedisAgentRegistry
        client = async_redis.Redis.from_url(URL)
        made = RedisAgentRegistry(client, self.prefix, **more)
        self._made.append(made)
        return made

    def pass_time(self, seconds: float, agent: AgentId = ONE) -> None:
        """Takes this much from what an agent's keys have to live."""
        for kind in ("agents", "capabilities"):
            key = f"{self.prefix}:{kind}:{agent}"
            left = int(self.client.pttl(key))
            if left > 0:
                self.client.pexpire(key, max(1, left - round(seconds * 1000)))

    def close(self) -> None:
        for registry in self._made:
            registry.close()
        self.client.close()


@pytest.fixture
def office() -> Iterator[Office]:
    if not redis_is_there():
        pytest.skip("there is no Redis to test with")
    with prefix() as name:
        office = Office(name)
        yield office
        office.close()


def agent(
    agent_id: AgentId = ONE, status: str = "idle", *capabilities: Capability, name: str = "Worker"
) -> Agent:
    return Agent(name=name, agent_id=agent_id, status=status, capabilities=capabilities)


def listed(registry: RedisAgentRegistry) -> list[dict[str, Any]]:
    return asyncio.run(registry.list_registered())


def eventually(happens: Any) -> bool:  # noqa: ANN401 - a condition
    end = time.monotonic() + _PATIENCE_SECONDS
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_registered_agent_is_listed_everywhere(office: Office) -> None:
    office.registry().register(
        Agent(
            name="Reviewer",
            agent_id=ONE,
            status="busy",
            capabilities=(Capability(name="review", version="1.2.0", tags=("code",)),),
            metadata={"host": "a", "list": []},
        )
    )
    (found,) = listed(office.registry())
    heard = found.pop("last_heartbeat")
    assert found == {
        "name": "Reviewer",
        "agent_id": {"type": "worker", "instance": "1"},
        "status": "busy",
        "alive": True,
        "capabilities": [
            {"name": "review", "version": "1.2.0", "tags": ["code"], "description": ""}
        ],
        "metadata": {"host": "a", "list": []},
    }
    assert abs(heard - time.time()) < 60


def test_the_keys_are_those_of_the_specification(office: Office) -> None:
    registry = office.registry()
    registry.register(agent(AgentId(type="writer"), "idle", Capability(name="write")))
    own, index = f"{office.prefix}:agents:writer:default", f"{office.prefix}:agents:index"
    assert json.loads(str(office.client.get(own)))["name"] == "Worker"
    assert office.client.smembers(index) == {own}
    offered = f"{office.prefix}:capabilities:writer:default"
    assert json.loads(str(office.client.get(offered)))[0]["name"] == "write"
    assert office.client.smembers(f"{office.prefix}:capabilities:index") == {offered}
    registry.deregister(AgentId(type="writer"))
    assert list(office.client.scan_iter(f"{office.prefix}:*")) == []


def test_it_works_within_a_running_loop_and_without(office: Office) -> None:
    registry = office.registry()

    async def main() -> list[dict[str, Any]]:
        registry.register(agent())
        return await registry.list_registered()

    assert len(asyncio.run(main())) == 1
    assert len(asyncio.run(main())) == 1, "another loop"
    registry.deregister(ONE)
    assert listed(registry) == []


def test_nobody_else_can_take_or_remove_a_live_agent(office: Office) -> None:
    mine, other = office.registry(), office.registry()
    mine.register(agent(name="Mine"))
    with pytest.raises(NotTheOwner, match="alive"):
        other.register(agent(name="Other"))
    with pytest.raises(NotTheOwner, match="somebody else"):
        other.deregister(ONE)
    assert [each["name"] for each in listed(other)] == ["Mine"]
    mine.register(agent(status="busy", name="Mine"))
    assert listed(other)[0]["status"] == "busy"
    mine.deregister(ONE)
    other.register(agent(name="Other"))
    assert [each["name"] for each in listed(mine)] == ["Other"]


def test_who_is_dead_can_be_replaced_and_does_not_come_back(office: Office) -> None:
    mine, other = office.registry(heartbeat_ttl_s=1, heartbeat_interval_s=0.05), office.registry()
    mine.register(agent(name="Mine"))
    office.pass_time(1)
    assert [each["alive"] for each in listed(other)] == [False]
    other.register(agent(name="Other"))
    mine.start_heartbeats()
    time.sleep(0.2)
    mine.stop_heartbeats()
    assert [each["name"] for each in listed(mine)] == ["Other"]
    with pytest.raises(NotTheOwner):
        mine.deregister(ONE)


def test_a_dead_agent_is_listed_for_a_while_and_then_forgotten(office: Office) -> None:
    registry = office.registry(heartbeat_ttl_s=30, grace_s=100)
    registry.register(agent(ONE, "idle", Capability(name="review")))
    office.pass_time(29)
    assert [each["alive"] for each in listed(registry)] == [True]
    office.pass_time(1.5)
    assert [each["alive"] for each in listed(registry)] == [False]
    office.pass_time(98)
    assert [each["alive"] for each in listed(registry)] == [False]
    office.pass_time(2)
    # its keys end one after the other, and whoever lists it next tidies the indexes
    assert eventually(
        lambda: (listed(registry), list(office.client.scan_iter(f"{office.prefix}:*"))) == ([], [])
    ), "not even in an index"


def test_heartbeats_keep_agents_alive(office: Office) -> None:
    registry = office.registry(heartbeat_ttl_s=60, heartbeat_interval_s=0.05)
    registry.register(agent(ONE, "idle", Capability(name="review")))
    registry.start_heartbeats()
    registry.start_heartbeats()
    key = f"{office.prefix}:agents:{ONE}"
    office.pass_time(350)
    assert eventually(lambda: int(office.client.pttl(key)) > 350_000)
    office.client.delete(f"{office.prefix}:agents:index")
    assert eventually(lambda: len(listed(registry)) == 1), "a lost index is put right"
    registry.stop_heartbeats()
    office.pass_time(350)
    time.sleep(0.2)
    assert int(office.client.pttl(key)) < 20_000
    registry.stop_heartbeats()


def test_a_heartbeat_does_not_bring_back_what_was_taken_off(office: Office) -> None:
    registry = office.registry(heartbeat_interval_s=0.001)
    registry.start_heartbeats()
    for _ in range(50):
        registry.register(agent())
        registry.deregister(ONE)
    time.sleep(0.05)
    assert listed(registry) == []


def test_agents_are_found_by_what_they_can_do(office: Office) -> None:
    registry = office.registry()
    for instance, version, tags in (
        ("a", "1.9.0", ()),
        ("b", "1.10.0", ("fast",)),
        ("c", "2.0.0", ()),
    ):
        capability = Capability(name="review", version=version, tags=tags)
        registry.register(agent(AgentId(type="r", instance=instance), "idle", capability))
    registry.register(agent())

    def found(*question: str, **more: Any) -> list[str]:  # noqa: ANN401 - of find
        answer = asyncio.run(registry.find(*question, **more))
        return [each["agent_id"]["instance"] for each in answer]

    assert found("review") == ["a", "b", "c"]
    assert found("review", ">=1.10,<2") == ["b"]
    assert found("review", "^1.2") == ["a", "b"]
    assert found("review", tags=("fast",)) == ["b"]
    assert found("write") == []
    office.pass_time(31, AgentId(type="r", instance="a"))
    assert found("review", "<2") == ["b"]
    assert found("review", "<2", alive=False) == ["a", "b"]
    with pytest.raises(ValueError, match="range of versions"):
        found("review", "newest")


def test_events_tell_changes_and_nothing_else(office: Office) -> None:
    registry = office.registry(enable_events=True, heartbeat_interval_s=0.02)
    watcher = office.registry(enable_events=True)
    channel = office.client.pubsub(  # type: ignore[no-untyped-call]
        ignore_subscribe_messages=True
    )
    channel.subscribe(f"{office.prefix}:events:all", f"{office.prefix}:events:died")
    registry.register(agent())
    registry.register(agent())
    registry.start_heartbeats()
    time.sleep(0.1)
    registry.stop_heartbeats()
    registry.register(agent(status="busy"))
    office.pass_time(31)
    for reader in (watcher, registry, watcher):
        listed(reader)
    registry.register(agent(status="busy"))
    registry.deregister(ONE)
    registry.deregister(ONE)
    office.client.publish(f"{office.prefix}:events:all", '{"event":"end"}')
    heard: list[tuple[str, dict[str, Any]]] = []
    while ("all", {"event": "end"}) not in heard:
        message = channel.get_message(timeout=_PATIENCE_SECONDS)
        if message is not None:  # or it is the answer to a subscription
            where = str(message["channel"]).rpartition(":")[2]
            heard.append((where, json.loads(message["data"])))
    channel.close()
    events = [event["event"] for where, event in heard if where == "all"]
    assert events == ["registered", "status_changed", "died", "registered", "deregistered", "end"]
    assert [event["event"] for where, event in heard if where == "died"] == ["died"]
    died = next(event for _, event in heard if event["event"] == "died")
    assert died["agent_id"] == {"type": "worker", "instance": "1"}
    assert (died["name"], died["status"]) == ("Worker", "busy")


def test_without_events_nobody_is_told(office: Office) -> None:
    registry = office.registry()
    channel = office.client.pubsub(  # type: ignore[no-untyped-call]
        ignore_subscribe_messages=True
    )
    channel.subscribe(f"{office.prefix}:events:all")
    channel.get_message(timeout=1)
    registry.register(agent())
    assert channel.get_message(timeout=0.2) is None
    channel.close()


def test_an_outage_is_not_an_empty_list() -> None:
    registry = RedisAgentRegistry(async_redis.Redis(host="127.0.0.1", port=1))
    with pytest.raises(AgentRegistryError, match="cannot be reached"):
        listed(registry)
    with pytest.raises(AgentRegistryError):
        asyncio.run(registry.find("review"))
    with pytest.raises(AgentRegistryError):
        registry.register(agent())
    with pytest.raises(AgentRegistryError):
        registry.deregister(ONE)
    registry.close()


def test_heartbeats_survive_an_outage(office: Office) -> None:
    registry = office.registry(heartbeat_interval_s=0.02)
    registry.register(agent())
    registry.start_heartbeats()
    office.client.delete(f"{office.prefix}:agents:{ONE}")
    office.client.set(f"{office.prefix}:agents:index", "not a set")
    time.sleep(0.1)
    office.client.delete(f"{office.prefix}:agents:index")
    assert eventually(lambda: [each["alive"] for each in listed(registry)] == [True])


def test_tagged_keys_are_of_one_slot(office: Office) -> None:
    registry = office.registry(key_style="tagged")
    registry.register(agent(ONE, "idle", Capability(name="review")))
    assert office.client.exists(f"{office.prefix}:agents:{{{ONE}}}")
    (found,) = listed(registry)
    assert found["capabilities"][0]["name"] == "review"


def test_a_client_that_blocks_is_used_as_it_is(office: Office) -> None:
    registry = RedisAgentRegistry(office.client, office.prefix)
    registry.register(agent())
    registry.close()
    assert [each["alive"] for each in listed(office.registry())] == [True]


def test_an_interval_as_long_as_the_life_is_refused() -> None:
    with pytest.raises(ValueError, match="heartbeat_interval_s"):
        RedisAgentRegistry(redis.Redis(), heartbeat_ttl_s=10, heartbeat_interval_s=10)
