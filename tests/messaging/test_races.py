"""Races of mailboxes whose operations are several commands, which ours must not have.

R1 two receive one message, R2 and R3 a receiver dies between commands, R4 a nack dies between
commands, R5 an ack meets a recovery, R6 senders overfill, R7 a crash loop is never dead, R8 nobody
recovers.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from afl.messaging.models import FailureType, MailboxCounts
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from afl.testing.mail_conformance.driver import Driver, id_of, in_balance, message
from afl.testing.mail_conformance.harness import ClientDied
from tests.messaging.redis_consumer import AGENT, SENDER, numbered
from tests.messaging.redis_mailboxes import URL, RedisHarness, needs_redis, new_prefix, remove

pytestmark = needs_redis

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 80.0


class Crowd:
    """Many processes on the mailboxes below one prefix."""

    def __init__(self, folder: Path) -> None:
        self.prefix = new_prefix()
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, do: str, clock: float = 0.0, **settings: object) -> subprocess.Popen[bytes]:
        given = {"url": URL, "prefix": self.prefix, "do": do, "clock": clock, **settings}
        command = [sys.executable, "-m", "tests.messaging.redis_consumer", json.dumps(given)]
        with (self._folder / f"{len(self._processes)}.txt").open("wb") as output:
            process = subprocess.Popen(command, cwd=_ROOT, stdout=output)
        self._processes.append(process)
        return process

    def finish(self) -> None:
        for process in self._processes:
            assert process.wait(_PATIENCE_SECONDS) in (0, -9)

    def received(self) -> Counter[int]:
        """How often each message was received by anybody, dead or alive."""
        found: Counter[int] = Counter()
        for path in self._folder.glob("*.txt"):
            found.update(int(line) for line in path.read_text().splitlines())
        return found

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        return asyncio.run(work)

    async def configure(self, **settings: Any) -> None:  # noqa: ANN401
        async with Redis.from_url(URL) as redis:
            await RedisMessageCoordinator(redis, self.prefix).configure(**settings)

    async def counts(self) -> MailboxCounts:
        async with Redis.from_url(URL) as redis:
            return await RedisMessageCoordinator(redis, self.prefix).counts(AGENT)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

        async def clear() -> None:
            async with Redis.from_url(URL) as redis:
                await remove(redis, self.prefix)

        asyncio.run(clear())


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    crowd = Crowd(tmp_path)
    yield crowd
    crowd.close()


@pytest.fixture
def harness() -> Iterator[RedisHarness]:
    harness = RedisHarness()
    yield harness
    harness.close()


@pytest.mark.slow
def test_R1_thirty_two_consumers_get_twenty_thousand_messages_once_each(crowd: Crowd) -> None:
    crowd.run(crowd.configure(queue_size=100_000))
    crowd.start("send", first=0, last=20_000, hands=16)
    for _ in range(2):
        crowd.start("consume", hands=16, batch=10, visibility=60, idle=4)
    crowd.finish()
    received = crowd.received()
    assert len(received) == 20_000
    assert set(received.values()) == {1}, "none was doubled"
    counts = crowd.run(crowd.counts())
    assert (counts.sent, counts.acked) == (20_000, 20_000)
    assert in_balance(counts)


def test_R1_eight_consumers_that_take_one_at_a_time_share_without_doubles(
    harness: RedisHarness,
) -> None:
    driver = Driver(harness)
    coordinators = [harness.coordinator() for _ in range(8)]

    async def consume(number: int) -> list[str]:
        found = []
        while received := await coordinators[number].receive(driver.agent, 60):
            found.append(id_of(received))
        return found

    async def play() -> Counter[str]:
        sends = [
            driver.coordinator.send_message(SENDER, AGENT, numbered(number))
            for number in range(400)
        ]
        await asyncio.gather(*sends)
        return Counter(
            each
            for found in await asyncio.gather(*(consume(number) for number in range(8)))
            for each in found
        )

    found = harness.run(play())
    assert len(found) == 400
    assert set(found.values()) == {1}


@pytest.mark.slow
def test_killed_consumers_lose_nothing(crowd: Crowd) -> None:
    total = 3000
    crowd.run(crowd.configure(queue_size=total, retry_attempts=1000))
    crowd.start("send", first=0, last=total, hands=8)
    consumers = [_consumer(crowd) for _ in range(4)]
    killed = 0
    end = time.monotonic() + _PATIENCE_SECONDS
    while crowd.run(crowd.counts()).acked < total:
        assert time.monotonic() < end
        time.sleep(0.3)
        if killed < 8:
            victim = consumers.pop(random.randrange(len(consumers)))
            victim.kill()  # -9: it can say nothing any more
            victim.wait()
            killed += 1
            consumers.append(_consumer(crowd))
    crowd.finish()
    assert killed >= 3
    assert set(crowd.received()) == set(range(total)), "none was lost"
    counts = crowd.run(crowd.counts())
    assert (counts.sent, counts.acked, counts.dead) == (total, total, 0)
    assert in_balance(counts)


def _consumer(crowd: Crowd) -> subprocess.Popen[bytes]:
    return crowd.start("consume", hands=8, batch=3, visibility=1, idle=4)


def test_clients_with_wrong_clocks_agree(crowd: Crowd) -> None:
    """Ten minutes too fast, and ten too slow."""
    crowd.start("send", first=0, last=200, hands=4, clock=600.0).wait()
    for clock in (-600.0, 600.0, 0.0):
        crowd.start("consume", hands=2, batch=5, visibility=60, idle=1.5, clock=clock)
    crowd.finish()
    received = crowd.received()
    assert len(received) == 200, "nobody takes a message for one of the future"
    assert set(received.values()) == {1}, "nobody takes a reservation for one that ran out"
    assert crowd.run(crowd.counts()).acked == 200


def test_R2_R3_a_receiver_that_dies_leaves_the_message_ready_or_reserved(
    harness: RedisHarness,
) -> None:
    driver = Driver(harness)
    driver.send()
    driver.counts()
    for commands, place in ((0, "ready"), (1, "reserved")):
        mortal = driver.another()
        harness.die_after(mortal.coordinator, commands)
        if commands:
            mortal.receive(1000)
        else:
            with pytest.raises(ClientDied):
                mortal.receive(1000)
        counts = driver.counts()
        assert getattr(counts, place) == 1
        assert in_balance(counts)
    harness.advance(2000)
    assert driver.ack(driver.take().token)


def test_R4_a_nack_that_dies_leaves_the_message_reserved_or_done(harness: RedisHarness) -> None:
    driver = Driver(harness)
    for failure, place in ((FailureType.TRANSIENT, "delayed"), (FailureType.PERMANENT, "dead")):
        driver.send()
        token = driver.take().token
        mortal = driver.another()
        harness.die_after(mortal.coordinator, 0)
        with pytest.raises(ClientDied):
            mortal.nack(token, failure)
        assert driver.counts().reserved == 1
        assert driver.nack(token, failure)
        assert getattr(driver.counts(), place) == 1


@pytest.mark.parametrize("settle", ["ack", "nack"])
def test_R5_an_answer_that_meets_a_recovery_is_told_the_truth(
    harness: RedisHarness, settle: str
) -> None:
    """Either it came in time and the message is settled, or the message is received again."""
    driver, other = Driver(harness), Driver(harness)
    driver.configure(retry_attempts=1000, backoff_base=10_000, backoff_max=10_000)

    async def race() -> Counter[bool]:
        answers: Counter[bool] = Counter()
        for _ in range(150):
            await driver.coordinator.send_message(SENDER, AGENT, message(recipient=AGENT))
            received = await driver.coordinator.receive(AGENT, 0.004)
            assert received is not None
            await asyncio.sleep(random.choice((0.0, 0.002, 0.003, 0.004)))
            answer = getattr(driver.coordinator, settle)(AGENT, received.token)
            settled, _, again = await asyncio.gather(
                answer,
                other.coordinator.recover_pending(AGENT),
                other.coordinator.receive(AGENT, 60),
            )
            answers[settled] += 1
            if again is None and not settled:
                await asyncio.sleep(0.01)
                again = await other.coordinator.receive(AGENT, 60)
            assert (again is None) is settled, "settled, or received again, and never both"
            if again is not None:
                assert id_of(again) == id_of(received)
                assert await other.coordinator.ack(AGENT, again.token)
        return answers

    answers = harness.run(race())
    assert answers[False] > 0, "some must lose, or nothing was raced"
    counts = driver.counts()
    assert counts.acked + counts.delayed == counts.sent == 150
    if settle == "nack":
        assert counts.delayed == answers[True], "one live copy each"


def test_R6_sixteen_senders_cannot_overfill(harness: RedisHarness) -> None:
    driver = Driver(harness)
    driver.configure(queue_size=10)
    senders = [harness.coordinator() for _ in range(16)]

    async def send_all() -> int:
        sends = (each.send_message(SENDER, AGENT, message(recipient=AGENT)) for each in senders)
        return sum(result.delivered for result in await asyncio.gather(*sends))

    assert harness.run(send_all()) == 10
    assert driver.counts().ready == 10


def test_R7_a_message_that_kills_its_consumers_is_dead_in_the_end(harness: RedisHarness) -> None:
    driver = Driver(harness)
    driver.configure(retry_attempts=1)
    driver.send()
    deliveries = 0
    for _ in range(10):
        victim = driver.another()
        if victim.receive(1000) is not None:
            deliveries += 1
        harness.die_after(victim.coordinator, 0)
        harness.advance(2000)
    assert deliveries == 2
    assert driver.counts().dead == 1


def test_R8_what_ran_out_is_received_although_nobody_recovers(harness: RedisHarness) -> None:
    driver = Driver(harness)
    sent = driver.send()
    driver.take(0.02)
    time.sleep(0.05)  # by the clock of the server, which nobody has moved
    assert id_of(driver.take()) == sent


def test_two_that_recover_count_each_message_once(harness: RedisHarness) -> None:
    driver = Driver(harness)
    for _ in range(300):
        driver.send()
    while driver.batch(100, 1000):
        pass
    harness.advance(2000)
    recoverers = [harness.coordinator() for _ in range(4)]

    async def recover() -> list[int]:
        return await asyncio.gather(*(each.recover_pending(AGENT) for each in recoverers))

    assert sum(harness.run(recover())) == 300
    assert driver.counts().ready == 300
