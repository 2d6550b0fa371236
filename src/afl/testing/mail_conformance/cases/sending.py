"""Putting messages into mailboxes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from afl.messaging.errors import MessageCoordinatorError
from afl.messaging.models import AgentId, MessagePriority, MessageType
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import AGENT, SENDER, Driver, id_of, message
from afl.testing.mail_conformance.harness import Harness


class SendCases(Cases):
    def test_a_message_arrives_as_it_was_sent(self, driver: Driver) -> None:
        sent = message(
            message_type=MessageType.EVENT,
            payload={"a": 1},
            priority=MessagePriority.HIGH,
            timestamp="2026-01-01T00:00:00Z",
            correlation_id="earlier",
            reply_to=AgentId(type="elsewhere"),
            ttl_seconds=3600,
            headers={"traceparent": "00-1-2-01"},
        )
        result = driver.deliver(sent)
        assert (result.message_id, result.delivered, result.error) == (sent.message_id, True, None)
        received = driver.take()
        assert received.queue_message.message == sent
        assert received.queue_message.priority is MessagePriority.HIGH
        assert received.queue_message.enqueued_at is not None
        assert received.queue_message.delivery_attempts == 1
        assert received.queue_message.last_error is None
        assert received.visibility_deadline is not None

    @pytest.mark.parametrize(
        "payload",
        [
            {},
            {"list": [], "object": {}, "nested": [[], {}, [{}]]},
            {"whole": 12345678901234567, "huge": 10**25, "negative": -(2**63)},
            {"float": 0.1234567890123456789, "small": 5e-324, "large": 1.7976931348623157e308},
            {"text": 'äöü 漢字 🙂 \u0000 \u2028 "quoted" \\ \n'},
            {"null": None, "true": True, "false": False, "": "empty key"},
            {"lone": "\ud800"},
        ],
        ids=["empty", "containers", "integers", "floats", "text", "constants", "surrogate"],
    )
    def test_payloads_are_kept_to_the_bit(self, driver: Driver, payload: dict[str, Any]) -> None:
        driver.send(payload=payload)
        first = driver.take()
        assert repr(first.queue_message.message.payload) == repr(payload)
        driver.nack(first.token, error="again")
        driver.advance(3600)
        assert repr(driver.take().queue_message.message.payload) == repr(payload)

    @pytest.mark.parametrize(
        "value", [object(), float("nan"), float("inf")], ids=["object", "nan", "inf"]
    )
    def test_what_json_has_not_is_refused(self, driver: Driver, value: object) -> None:
        with pytest.raises(MessageCoordinatorError, match="JSON") as refused:
            driver.deliver(message(payload={"value": value}))
        assert not refused.value.retryable
        assert driver.counts().sent == 0

    def test_sending_an_id_again_changes_nothing(self, driver: Driver) -> None:
        sent = message(payload={"n": 1})
        first = driver.deliver(sent)
        assert driver.another().deliver(sent) == first
        assert driver.counts().sent == 1
        driver.ack(driver.take().token)
        assert driver.deliver(sent) == first
        assert driver.receive() is None
        counts = driver.counts()
        assert (counts.sent, counts.acked) == (1, 1)

    def test_the_same_id_to_another_agent_is_another_message(self, driver: Driver) -> None:
        other = AgentId(type="worker", instance="2")
        driver.deliver(message("same-id"))
        driver.deliver(message("same-id", other))
        assert id_of(driver.take()) == "same-id"
        assert id_of(Driver(driver.harness, agent=other).take()) == "same-id"

    def test_an_id_is_forgotten_after_a_while(self, driver: Driver) -> None:
        driver.configure(dedupe_seconds=1000)
        sent = message()
        driver.deliver(sent)
        driver.ack(driver.take().token)
        driver.advance(2000)
        assert driver.deliver(sent).delivered
        assert id_of(driver.take()) == sent.message_id
        assert driver.counts().sent == 2

    def test_a_full_mailbox_refuses(self, driver: Driver) -> None:
        driver.configure(queue_size=2)
        driver.send()
        driver.send(delay_seconds=1000)
        refused = message()
        result = driver.deliver(refused)
        assert not result.delivered
        assert result.error is not None
        assert "full" in result.error
        assert driver.counts().sent == 2
        token = driver.take().token
        assert not driver.deliver(refused).delivered, "what is reserved takes room too"
        driver.ack(token)
        assert driver.deliver(refused).delivered, "an id that was refused is not remembered"

    def test_a_known_id_is_no_new_message_for_a_full_mailbox(self, driver: Driver) -> None:
        driver.configure(queue_size=1)
        sent = message()
        assert driver.deliver(sent).delivered
        assert driver.deliver(sent).delivered

    def test_many_senders_cannot_overfill_a_mailbox(self, driver: Driver, harness: Harness) -> None:
        driver.configure(queue_size=10)
        senders = [harness.coordinator() for _ in range(4)]

        async def send_all() -> list[bool]:
            sends = (
                senders[number % 4].send_message(SENDER, AGENT, message()) for number in range(32)
            )
            return [result.delivered for result in await asyncio.gather(*sends)]

        assert sum(harness.run(send_all())) == 10
        assert driver.counts().ready == 10

    def test_the_addresses_must_be_those_of_the_message(
        self, driver: Driver, harness: Harness
    ) -> None:
        stranger = AgentId(type="stranger")
        send = driver.coordinator.send_message
        with pytest.raises(MessageCoordinatorError, match="recipient"):
            harness.run(send(SENDER, stranger, message()))
        with pytest.raises(MessageCoordinatorError, match="sender"):
            harness.run(send(stranger, AGENT, message()))
        assert driver.counts().sent == 0

    def test_no_instance_is_the_default_instance(self, driver: Driver, harness: Harness) -> None:
        bare, named = AgentId(type="plain"), AgentId(type="plain", instance="default")
        Driver(harness, agent=bare).send("to-the-bare")
        assert id_of(Driver(harness, agent=named).take()) == "to-the-bare"

    def test_a_delayed_message_comes_later(self, driver: Driver) -> None:
        driver.send(delay_seconds=1000)
        assert driver.receive() is None
        counts = driver.counts()
        assert (counts.ready, counts.delayed) == (0, 1)
        driver.advance(2000)
        counts = driver.counts()
        assert (counts.ready, counts.delayed) == (1, 0)
        assert driver.receive() is not None

    def test_mailboxes_keep_apart(self, driver: Driver, harness: Harness) -> None:
        others = [AgentId(type="worker"), AgentId(type="worker", instance="11")]
        driver.send()
        for agent in others:
            other = Driver(harness, agent=agent)
            assert other.receive() is None
            assert other.counts().sent == 0


class BroadcastCases(Cases):
    def test_everybody_gets_a_copy_with_the_own_address(
        self, driver: Driver, harness: Harness
    ) -> None:
        agents = [AgentId(type="worker", instance=str(number)) for number in range(3)]
        sent = message(payload={"n": 1})
        results = harness.run(driver.coordinator.broadcast_message(SENDER, sent, agents))
        assert [result.message_id for result in results] == [sent.message_id] * 3
        assert all(result.delivered for result in results)
        for agent in agents:
            received = Driver(harness, agent=agent).take().queue_message.message
            assert received == sent.model_copy(update={"recipient": agent})

    def test_each_has_a_result_of_its_own(self, driver: Driver, harness: Harness) -> None:
        driver.configure(queue_size=1)
        driver.send()
        agents = [AgentId(type="first"), AGENT, AgentId(type="last")]
        broadcast = driver.coordinator.broadcast_message
        results = harness.run(broadcast(SENDER, message(), agents))
        assert [result.delivered for result in results] == [True, False, True]

    def test_a_repeated_broadcast_reaches_nobody_twice(
        self, driver: Driver, harness: Harness
    ) -> None:
        agents = [AGENT, AgentId(type="last")]
        sent = message()
        for _ in range(2):
            results = harness.run(driver.coordinator.broadcast_message(SENDER, sent, agents))
            assert all(result.delivered for result in results)
        for agent in agents:
            assert Driver(harness, agent=agent).counts().sent == 1

    def test_the_sender_must_be_the_messages(self, driver: Driver, harness: Harness) -> None:
        broadcast = driver.coordinator.broadcast_message
        with pytest.raises(MessageCoordinatorError, match="sender"):
            harness.run(broadcast(AgentId(type="stranger"), message(), [AGENT]))
