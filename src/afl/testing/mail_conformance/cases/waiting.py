"""Waiting for messages, and for answers to them."""

from __future__ import annotations

import asyncio
import time

import pytest

from afl.messaging.errors import MessageCoordinatorError
from afl.messaging.models import AgentId, MessageType, ReceivedMessage
from afl.messaging.requesting import request, response_to
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import AGENT, SENDER, Driver, id_of, message
from afl.testing.mail_conformance.harness import Harness

#: Long enough for any machine; nothing here waits so long unless it fails.
_PATIENCE_SECONDS = 20.0
#: A waiter should be asleep by then. If it is not, the test proves less but does not fail.
_ASLEEP_SECONDS = 0.1


class WaitCases(Cases):
    def test_waiting_ends_when_a_message_comes(self, driver: Driver, harness: Harness) -> None:
        sender = harness.coordinator()

        async def wait_and_send() -> list[ReceivedMessage]:
            waiting = asyncio.create_task(
                driver.coordinator.receive_batch(AGENT, 5, 60, wait_seconds=_PATIENCE_SECONDS)
            )
            await asyncio.sleep(_ASLEEP_SECONDS)
            assert not waiting.done()
            await sender.send_message(SENDER, AGENT, message("long-awaited"))
            return await waiting

        begun = time.monotonic()
        (received,) = harness.run(wait_and_send())
        assert id_of(received) == "long-awaited"
        assert time.monotonic() - begun < _PATIENCE_SECONDS / 2

    def test_waiting_in_vain_ends(self, driver: Driver, harness: Harness) -> None:
        wait = driver.coordinator.receive_batch
        assert harness.run(wait(AGENT, 5, 60, wait_seconds=0.2)) == []

    def test_nobody_waits_for_what_is_there(self, driver: Driver, harness: Harness) -> None:
        driver.send()
        wait = driver.coordinator.receive_batch
        begun = time.monotonic()
        assert len(harness.run(wait(AGENT, 5, 60, wait_seconds=_PATIENCE_SECONDS))) == 1
        assert time.monotonic() - begun < _PATIENCE_SECONDS / 2

    def test_waiting_hears_of_a_delayed_message(self, driver: Driver, harness: Harness) -> None:
        driver.send(delay_seconds=1000)

        async def wait_and_advance() -> list[ReceivedMessage]:
            waiting = asyncio.create_task(
                driver.coordinator.receive_batch(AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS)
            )
            await asyncio.sleep(_ASLEEP_SECONDS)
            assert not waiting.done()
            harness.advance(2000)
            return await waiting

        assert len(harness.run(wait_and_advance())) == 1

    def test_many_that_wait_get_one_each(self, driver: Driver, harness: Harness) -> None:
        waiters = [harness.coordinator() for _ in range(2)] * 3

        async def wait_and_send() -> list[str]:
            tasks = [
                asyncio.create_task(
                    each.receive_batch(AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS)
                )
                for each in waiters
            ]
            await asyncio.sleep(_ASLEEP_SECONDS)
            for number in range(len(waiters)):
                await driver.coordinator.send_message(SENDER, AGENT, message(f"share-{number}"))
            return [id_of(each) for batch in await asyncio.gather(*tasks) for each in batch]

        assert sorted(harness.run(wait_and_send())) == [f"share-{n}" for n in range(6)]


class RequestCases(Cases):
    def test_a_request_is_answered(self, driver: Driver, harness: Harness) -> None:
        server = harness.coordinator()

        async def serve() -> None:
            (asked,) = await server.receive_batch(AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS)
            question = asked.queue_message.message
            answer = response_to(question, {"twice": question.payload["n"] * 2})
            await server.send_message(answer.sender, answer.recipient, answer)
            await server.send_message(answer.sender, answer.recipient, answer)
            await server.ack(AGENT, asked.token)

        async def ask(number: int) -> int:
            question = message(payload={"n": number})
            answer = await request(driver.coordinator, question, _PATIENCE_SECONDS)
            assert answer.message_type is MessageType.RESPONSE
            assert answer.correlation_id == question.message_id
            assert answer.sender == AGENT
            twice = answer.payload["twice"]
            assert isinstance(twice, int)
            return twice

        async def ask_all() -> list[int]:
            answers = await asyncio.gather(
                *(ask(number) for number in range(5)), *(serve() for _ in range(5))
            )
            return [each for each in answers if each is not None]

        assert harness.run(ask_all()) == [0, 2, 4, 6, 8]

    def test_an_answer_may_be_wanted_elsewhere(self, driver: Driver, harness: Harness) -> None:
        replies = AgentId(type="replies", instance="7")
        question = message(reply_to=replies)

        async def ask() -> str:
            asking = asyncio.create_task(request(driver.coordinator, question, _PATIENCE_SECONDS))
            (asked,) = await driver.coordinator.receive_batch(
                AGENT, 1, 60, wait_seconds=_PATIENCE_SECONDS
            )
            answer = response_to(asked.queue_message.message, {})
            assert answer.recipient == replies
            stray = message(recipient=replies, correlation_id="another")
            await driver.coordinator.send_message(SENDER, replies, stray)
            await driver.coordinator.send_message(answer.sender, replies, answer)
            return (await asking).message_id

        assert harness.run(ask())

    def test_a_request_without_an_answer_says_so(self, driver: Driver, harness: Harness) -> None:
        driver.kill()  # so that everything is connected
        with pytest.raises(MessageCoordinatorError, match="no answer"):
            harness.run(request(driver.coordinator, message(), 0.5))
        assert driver.counts().ready == 1

    def test_a_request_to_a_full_mailbox_says_so(self, driver: Driver, harness: Harness) -> None:
        driver.configure(queue_size=1)
        driver.send()
        with pytest.raises(MessageCoordinatorError, match="full"):
            harness.run(request(driver.coordinator, message(), _PATIENCE_SECONDS))
