"""Getting messages, and in which order."""

from __future__ import annotations

import asyncio
from collections import Counter

from afl.messaging.models import MessagePriority
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import AGENT, Driver, id_of
from afl.testing.mail_conformance.harness import Harness

HIGH, NORMAL, LOW = MessagePriority.HIGH, MessagePriority.NORMAL, MessagePriority.LOW


class ReceiveCases(Cases):
    def test_an_empty_mailbox_has_nothing(self, driver: Driver) -> None:
        assert driver.receive() is None
        assert driver.batch(5) == []
        assert driver.peek() == []
        assert driver.counts().sent == 0

    def test_nobody_else_has_what_was_received(self, driver: Driver) -> None:
        driver.send()
        driver.take()
        assert driver.another().receive() is None
        counts = driver.counts()
        assert (counts.ready, counts.reserved) == (0, 1)

    def test_a_batch_has_no_more_than_asked_for(self, driver: Driver) -> None:
        sent = [driver.send() for _ in range(3)]
        batch = driver.batch(2)
        assert [id_of(each) for each in batch] == sent[:2]
        assert driver.batch(0) == []
        assert [id_of(each) for each in driver.batch(5)] == sent[2:]
        assert len({each.token for each in batch}) == 2

    def test_each_of_a_batch_is_settled_by_itself(self, driver: Driver) -> None:
        for _ in range(3):
            driver.send()
        first, second, third = driver.batch(3)
        assert driver.ack(second.token)
        assert driver.nack(third.token)
        counts = driver.counts()
        assert (counts.acked, counts.delayed, counts.reserved) == (1, 1, 1)
        assert driver.ack(first.token)

    def test_peeking_takes_nothing(self, driver: Driver) -> None:
        low = driver.send(priority=LOW)
        normal = [driver.send() for _ in range(2)]
        driver.send(delay_seconds=1000)
        assert driver.peek() == [*normal, low]
        assert driver.peek(1) == normal[:1]
        assert driver.counts().ready == 3
        assert driver.drain() == [*normal, low]

    def test_consumers_at_the_same_time_share_without_doubles(
        self, driver: Driver, harness: Harness
    ) -> None:
        sent = [driver.send() for _ in range(40)]
        consumers = [harness.coordinator() for _ in range(8)]

        async def consume(number: int) -> list[str]:
            found = []
            while received := await consumers[number].receive(AGENT, 60):
                found.append(id_of(received))
                assert await consumers[number].ack(AGENT, received.token)
            return found

        async def consume_all() -> list[list[str]]:
            return await asyncio.gather(*(consume(number) for number in range(8)))

        found = [each for share in harness.run(consume_all()) for each in share]
        assert Counter(found) == Counter(sent)
        assert driver.counts().acked == 40


class OrderCases(Cases):
    def test_the_order_is_priority_then_sending(self, driver: Driver) -> None:
        levels = (LOW, NORMAL, HIGH, NORMAL, HIGH, LOW)
        sent = [(driver.send(priority=level), level) for level in levels]
        expected = [each for level in (HIGH, NORMAL, LOW) for each, its in sent if its is level]
        assert driver.drain() == expected

    def test_senders_that_take_turns_keep_the_order(self, driver: Driver) -> None:
        others = [driver, driver.another(), driver.another()]
        sent = [others[number % 3].send() for number in range(30)]
        assert driver.drain() == sent

    def test_a_delayed_message_queues_when_it_is_due(self, driver: Driver) -> None:
        late = driver.send(delay_seconds=3000)
        soon = driver.send(delay_seconds=1000)
        first = driver.send()
        driver.advance(2000)
        between = driver.send()
        driver.advance(2000)
        assert driver.drain() == [first, soon, between, late]

    def test_what_ran_out_keeps_its_place(self, driver: Driver) -> None:
        sent = [driver.send() for _ in range(3)]
        assert [id_of(each) for each in driver.batch(2, 1000)] == sent[:2]
        driver.advance(2000)
        assert driver.drain() == sent

    def test_a_strict_mailbox_starves_the_low(self, driver: Driver) -> None:
        low = driver.send(priority=LOW)
        high = [driver.send(priority=HIGH) for _ in range(20)]
        assert driver.drain() == [*high, low]

    def test_a_weighted_mailbox_shares_nine_to_five_to_one(self, driver: Driver) -> None:
        driver.configure(fairness="weighted")
        for level in (LOW, NORMAL, HIGH):
            for _ in range(30):
                driver.send(priority=level)
        for turn in (1, 2):
            singles = [driver.take() for _ in range(5)]
            taken = Counter(each.queue_message.priority for each in singles + driver.batch(10))
            assert taken == {HIGH: 9, NORMAL: 5, LOW: 1}, f"in turn {turn}"

    def test_a_weighted_mailbox_keeps_the_order_within_a_level(self, driver: Driver) -> None:
        driver.configure(fairness="weighted")
        sent = {level: [driver.send(priority=level) for _ in range(9)] for level in (LOW, HIGH)}
        found = driver.drain()
        for level in (LOW, HIGH):
            assert [each for each in found if each in sent[level]] == sent[level]

    def test_a_weighted_mailbox_wastes_no_turn(self, driver: Driver) -> None:
        driver.configure(fairness="weighted")
        low = [driver.send(priority=LOW) for _ in range(5)]
        assert [id_of(driver.take()) for _ in range(5)] == low
