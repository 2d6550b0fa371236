"""What mailboxes in Redis promise beyond the suite: their keys, one command each, lost servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio.retry
from redis.asyncio import Redis
from redis.backoff import NoBackoff

from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId, FailureType, MessageType
from afl.messaging.redis.keys import KeySpace
from afl.messaging.redis.packing import text_of
from afl.messaging.redis.scripts import SCRIPTS
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.testing.mail_conformance.driver import AGENT, SENDER, Driver, id_of, message
from tests.messaging.redis_mailboxes import HOST, PORT, RedisHarness, needs_redis, new_prefix
from tests.messaging.redis_servers import Server, needs_redis_server, server

_Operation = Callable[[MessageCoordinator], Coroutine[Any, Any, object]]


@pytest.fixture
def harness() -> Iterator[RedisHarness]:
    harness = RedisHarness()
    yield harness
    harness.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path) as made:
        yield made


@asynccontextmanager
async def client_of(own: Server) -> AsyncIterator[Redis]:
    """One that does not try again by itself."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    async with Redis(host="127.0.0.1", port=own.port, retry=retry) as client:
        yield client


@needs_redis
def test_the_keys_are_the_documented_ones(harness: RedisHarness) -> None:
    driver = Driver(harness)
    driver.kill()
    for level in (9, 5, 1):
        driver.send(priority=level)
    driver.take()
    driver.send(priority=9)
    driver.coordinator.subscribe_to_messages(AGENT, [MessageType.EVENT])
    driver.peek()

    async def types() -> dict[str, str]:
        found = {}
        for name in (
            "queue:worker:1",
            "sched:worker:1:prio:9",
            "sched:worker:1:prio:5",
            "sched:worker:1:prio:1",
            "reserved:worker:1",
            "reserved_deadlines:worker:1",
            "dlq:worker:1",
            "subs:worker:1",
        ):
            found[name] = text_of(await harness.redis.type(f"{harness.prefix}:{name}"))
        assert await harness.redis.llen(f"{harness.prefix}:queue:worker:1") == 4
        assert await harness.redis.smembers(f"{harness.prefix}:subs:worker:1") == {b"event"}
        return found

    kinds = ["list", "zset", "zset", "zset", "hash", "zset", "list", "set"]
    assert list(harness.run(types()).values()) == kinds


@needs_redis
def test_an_empty_mailbox_keeps_no_letters(harness: RedisHarness) -> None:
    driver = Driver(harness)
    for _ in range(3):
        driver.send(ttl_seconds=100)
    for each in driver.batch(3):
        driver.nack(each.token, error="once")
    driver.advance(3600)
    for each in driver.batch(3):
        driver.ack(each.token)
    driver.kill()
    driver.purge()
    driver.kill()
    driver.redrive()
    driver.ack(driver.take().token)

    async def names() -> set[str]:
        found = harness.redis.scan_iter(match=f"{harness.prefix}:*")
        return {key.decode().split(":")[1] async for key in found}

    # settings, counters, ids to be known again, answers to be given again
    assert harness.run(names()) == {"config", "meta", "dedup", "settled"}


@needs_redis
@pytest.mark.parametrize(
    "operate",
    [
        lambda c: c.send_message(SENDER, AGENT, message()),
        lambda c: c.receive(AGENT),
        lambda c: c.receive_batch(AGENT, 10),
        lambda c: c.ack(AGENT, "res_unknown"),
        lambda c: c.nack(AGENT, "res_unknown", FailureType.PERMANENT),
        lambda c: c.extend(AGENT, "res_unknown", 5),
        lambda c: c.peek(AGENT),
        lambda c: c.counts(AGENT),
        lambda c: c.dead_letters(AGENT),
        lambda c: c.redrive(AGENT),
        lambda c: c.purge(AGENT),
        lambda c: c.recover_pending(AGENT),
        lambda c: c.config(),
    ],
    ids=[
        "send",
        "receive",
        "batch",
        "ack",
        "nack",
        "extend",
        "peek",
        "counts",
        "dead_letters",
        "redrive",
        "purge",
        "recover",
        "config",
    ],
)
def test_every_operation_is_one_command(harness: RedisHarness, operate: _Operation) -> None:
    Driver(harness).send()
    harness.run(operate(harness.coordinator()))  # the server knows the script from here on
    coordinator = harness.coordinator()
    harness.die_after(coordinator, 1)
    harness.run(operate(coordinator))


@needs_redis
def test_a_client_that_decodes_does_as_well(harness: RedisHarness) -> None:
    async def play() -> None:
        async with Redis(decode_responses=True) as client:
            coordinator = RedisMessageCoordinator(client, f"{harness.prefix}:")
            await coordinator.send_message(SENDER, AGENT, message("decoded", payload={"a": "ä"}))
            received = await coordinator.receive(AGENT)
            assert received is not None
            assert received.queue_message.message.payload == {"a": "ä"}
            assert await coordinator.nack(AGENT, received.token, FailureType.PERMANENT, "ö")
            (letter,) = await coordinator.dead_letters(AGENT)
            assert letter.queue_message.last_error == "ö"
            assert await coordinator.recover_pending() == 0
            waiting = coordinator.receive_batch(AGENT, 1, wait_seconds=0.1)
            assert await waiting == []
            await coordinator.close()

    harness.run(play())


@needs_redis
def test_waiting_is_by_ring_and_not_by_looking(harness: RedisHarness) -> None:
    driver = Driver(harness)
    sender = harness.coordinator()
    loop_times = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        for number in range(5):
            waiting = asyncio.create_task(
                driver.coordinator.receive_batch(AGENT, 1, 60, wait_seconds=10)
            )
            await asyncio.sleep(0.15)
            begun = loop.time()
            await sender.send_message(SENDER, AGENT, message(f"ring-{number}"))
            (received,) = await waiting
            loop_times.append(loop.time() - begun)
            assert id_of(received) == f"ring-{number}"

    harness.run(play())
    # who only looks once a second would need half of one on the average
    assert sorted(loop_times)[2] < 0.3


def test_impossible_coordinators_are_refused() -> None:
    client = Redis()
    with pytest.raises(MessageRefused, match="key_prefix"):
        RedisMessageCoordinator(client, "{x}")
    with pytest.raises(MessageRefused, match="key_style"):
        RedisMessageCoordinator(client, key_style="other")  # type: ignore[arg-type]


@pytest.mark.parametrize("style", ["plain", "tagged"])
def test_a_mailbox_is_found_again_from_its_key(style: Any) -> None:  # noqa: ANN401
    space = KeySpace("my:app*", style)
    mailbox = space.mailbox(AgentId(type="worker", instance="a-b.c"))
    found = space.mailbox_of(mailbox.named["deadlines"].decode())
    assert found.named == mailbox.named
    assert space.every("deadlines") == r"my:app\*:reserved_deadlines:*"


def test_scripts_use_the_keys_they_name_and_no_others() -> None:
    assert len(SCRIPTS) == 15
    for script in SCRIPTS.values():
        text = script.text.decode()
        assert "KEYS[" not in text.split("-- keys:")[1], f"{script.name}: a key by its number"
        for key in script.keys:
            assert text.count(key.upper()) > 1, f"{script.name} names {key} and does not use it"


@needs_redis_server
def test_a_server_that_forgot_its_scripts_is_told_them_again(own_server: Server) -> None:
    async def play() -> None:
        async with client_of(own_server) as client:
            coordinator = RedisMessageCoordinator(client, new_prefix())
            for number in range(2):
                await coordinator.send_message(SENDER, AGENT, message(f"number-{number}"))
                await client.script_flush()
            assert (await coordinator.counts(AGENT)).ready == 2

    asyncio.run(play())


@needs_redis_server
def test_an_outage_is_an_error_that_says_what_to_do_and_passes(own_server: Server) -> None:
    async def play() -> None:
        async with client_of(own_server) as client:
            coordinator = RedisMessageCoordinator(client, new_prefix())
            await coordinator.send_message(SENDER, AGENT, message())
            own_server.stop()
            with pytest.raises(MessageCoordinatorError, match="do it again") as failed:
                await coordinator.send_message(SENDER, AGENT, message("important"))
            assert failed.value.retryable
            with pytest.raises(MessageCoordinatorError, match="cannot be reached"):
                await coordinator.receive(AGENT)
            (result,) = await coordinator.broadcast_message(SENDER, message(), [AGENT])
            assert not result.delivered
            assert "cannot be reached" in (result.error or "")
            own_server.start()
            assert (await coordinator.send_message(SENDER, AGENT, message("important"))).delivered
            received = await coordinator.receive(AGENT)
            assert received is not None
            assert id_of(received) == "important", "this server has no memory of its past"

    asyncio.run(play())


@needs_redis_server
def test_who_waits_through_an_outage_is_told_and_hears_again_afterwards(
    own_server: Server,
) -> None:
    async def play() -> None:
        async with client_of(own_server) as client:
            coordinator = RedisMessageCoordinator(client, new_prefix())
            waiting = asyncio.create_task(coordinator.receive_batch(AGENT, 1, wait_seconds=20))
            await asyncio.sleep(0.2)
            own_server.stop()
            with pytest.raises(MessageCoordinatorError, match="cannot be reached"):
                await waiting
            own_server.start()
            waiting = asyncio.create_task(coordinator.receive_batch(AGENT, 1, wait_seconds=20))
            await asyncio.sleep(0.2)
            await coordinator.send_message(SENDER, AGENT, message("after-all"))
            (received,) = await waiting
            assert id_of(received) == "after-all"
            await coordinator.close()

    asyncio.run(play())


@needs_redis_server
def test_a_subscription_that_could_not_be_made_is_made_before_anything_else(
    own_server: Server,
) -> None:
    async def play() -> None:
        async with client_of(own_server) as client:
            coordinator = RedisMessageCoordinator(client, new_prefix())
            own_server.stop()
            coordinator.subscribe_to_messages(AGENT, [MessageType.EVENT])
            await asyncio.sleep(0.05)
            with pytest.raises(MessageCoordinatorError):
                await coordinator.receive(AGENT)
            own_server.start()
            await coordinator.send_message(SENDER, AGENT, message())
            assert await coordinator.receive(AGENT) is None
            await coordinator.close()

    asyncio.run(play())


@needs_redis
def test_a_cancelled_receiver_stops(harness: RedisHarness) -> None:
    coordinator = harness.coordinator()

    async def play() -> None:
        for pause in range(100):
            waiting = asyncio.create_task(coordinator.receive_batch(AGENT, 1, wait_seconds=60))
            await asyncio.sleep(pause / 20_000)
            waiting.cancel()
            done, _ = await asyncio.wait([waiting], timeout=5)
            assert done, "the cancellation was swallowed"
            assert waiting.cancelled()

    harness.run(play())


FORGETFUL = f"""
import asyncio
from redis.asyncio import Redis
from afl.messaging.models import AgentId
from afl.messaging.redis_coordinator import RedisMessageCoordinator

async def work():
    # the client is closed and the listener cancelled at the same moment
    async with Redis(host={HOST!r}, port={PORT}) as redis:
        coordinator = RedisMessageCoordinator(redis, "{{prefix}}")
        await coordinator.receive_batch(AgentId(type="nobody"), 1, wait_seconds=0.05)

asyncio.run(work())
"""


@needs_redis
def test_a_program_ends_although_it_forgot_to_close(harness: RedisHarness) -> None:
    code = FORGETFUL.format(prefix=harness.prefix)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
