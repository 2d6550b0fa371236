"""Agents that want some messages only."""

from __future__ import annotations

import pytest

from afl.messaging.errors import MessageCoordinatorError
from afl.messaging.models import MessageType
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import Driver, id_of
from afl.testing.mail_conformance.harness import Harness

REQUEST, RESPONSE, EVENT = MessageType.REQUEST, MessageType.RESPONSE, MessageType.EVENT


class SubscriptionCases(Cases):
    def test_only_what_was_subscribed_to_is_received(self, driver: Driver) -> None:
        request = driver.send(message_type=REQUEST, priority=9)
        event = driver.send(message_type=EVENT)
        with driver.subscribed(EVENT):
            assert driver.peek() == [event]
            assert id_of(driver.take()) == event
            assert driver.receive() is None
            assert driver.counts().ready == 1, "what else came is still there"
        assert id_of(driver.take()) == request

    def test_others_obey_a_subscription_too(self, driver: Driver) -> None:
        driver.send(message_type=REQUEST)
        with driver.subscribed(EVENT, RESPONSE):
            assert driver.receive() is None
            assert driver.another().receive() is None

    def test_subscriptions_add_up(self, driver: Driver) -> None:
        sent = [driver.send(message_type=each) for each in (REQUEST, EVENT, RESPONSE)]
        with driver.subscribed(REQUEST):
            with driver.subscribed(EVENT, REQUEST):
                assert driver.peek() == sent[:2]
            assert driver.peek() == sent[:1]
        assert driver.drain() == sent

    def test_many_unwanted_messages_hide_none(self, driver: Driver) -> None:
        for _ in range(150):
            driver.send(message_type=EVENT)
        request = driver.send(message_type=REQUEST)
        with driver.subscribed(REQUEST):
            assert driver.drain() == [request]

    def test_a_subscription_is_of_its_agent(self, driver: Driver, harness: Harness) -> None:
        other = Driver(harness, agent=driver.agent.model_copy(update={"instance": "2"}))
        sent = other.send(message_type=REQUEST)
        with driver.subscribed(EVENT):
            assert other.drain() == [sent]

    def test_a_handle_tells_what_it_is_for(self, driver: Driver) -> None:
        subscribe = driver.coordinator.subscribe_to_messages
        first, second = (subscribe(driver.agent, [EVENT]) for _ in range(2))
        assert first.subscription_id != second.subscription_id
        assert (first.agent_id, first.message_types) == (driver.agent, [EVENT])
        driver.send(message_type=REQUEST)
        driver.coordinator.unsubscribe(first)
        driver.coordinator.unsubscribe(first)
        assert driver.receive() is None, "the second still stands"
        driver.coordinator.unsubscribe(second)
        assert driver.receive() is not None

    def test_an_empty_subscription_is_refused(self, driver: Driver) -> None:
        with pytest.raises(MessageCoordinatorError, match="type"):
            driver.coordinator.subscribe_to_messages(driver.agent, [])
