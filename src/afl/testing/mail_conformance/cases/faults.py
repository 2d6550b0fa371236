"""Answers that are lost, and processes that die."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from afl.messaging.models import FailureType
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import Driver, id_of, in_balance, message
from afl.testing.mail_conformance.harness import ClientDied, Harness

#: More than any operation needs.
_MANY_COMMANDS = 20


def _ack(driver: Driver, token: str) -> object:
    return driver.ack(token)


def _nack(driver: Driver, token: str) -> object:
    return driver.nack(token)


def _bury(driver: Driver, token: str) -> object:
    return driver.nack(token, FailureType.PERMANENT)


def _extend(driver: Driver, token: str) -> object:
    return driver.extend(token, 5000)


def _send(driver: Driver, _: str) -> object:
    return driver.deliver(message("the-same"))


def _receive(driver: Driver, _: str) -> object:
    return driver.receive(1000)


def _recover(driver: Driver, _: str) -> object:
    driver.advance(2000)
    return driver.recover()


def _redrive(driver: Driver, _: str) -> object:
    return driver.redrive()


def _purge(driver: Driver, _: str) -> object:
    return driver.purge()


class FaultCases(Cases):
    def test_a_sender_that_heard_nothing_has_sent_once(
        self, driver: Driver, harness: Harness
    ) -> None:
        harness.lose_answer(driver.coordinator)
        assert driver.deliver(message()).delivered
        assert driver.counts().sent == 1

    def test_a_receiver_that_heard_nothing_gets_the_same_message(
        self, driver: Driver, harness: Harness
    ) -> None:
        sent = [driver.send() for _ in range(2)]
        harness.lose_answer(driver.coordinator)
        received = driver.take()
        assert id_of(received) == sent[0]
        assert received.queue_message.delivery_attempts == 1
        assert driver.counts().reserved == 1
        assert driver.ack(received.token)

    def test_a_batch_that_was_not_heard_comes_again_whole(
        self, driver: Driver, harness: Harness
    ) -> None:
        sent = [driver.send() for _ in range(5)]
        harness.lose_answer(driver.coordinator)
        batch = driver.batch(3)
        assert [id_of(each) for each in batch] == sent[:3]
        assert {each.queue_message.delivery_attempts for each in batch} == {1}
        assert driver.counts().reserved == 3
        assert all(driver.ack(each.token) for each in batch)

    @pytest.mark.parametrize("settle", [_ack, _nack, _bury, _extend])
    def test_an_answer_that_was_not_heard_is_still_yes(
        self, driver: Driver, harness: Harness, settle: Callable[[Driver, str], object]
    ) -> None:
        driver.send()
        token = driver.take().token
        harness.lose_answer(driver.coordinator)
        assert settle(driver, token)

    @pytest.mark.parametrize(
        "operate",
        [_send, _receive, _ack, _nack, _bury, _extend, _recover, _redrive, _purge],
    )
    def test_wherever_a_process_dies_nothing_is_lost_or_doubled(
        self, driver: Driver, harness: Harness, operate: Callable[[Driver, str], object]
    ) -> None:
        driver.kill()
        for commands in range(_MANY_COMMANDS):
            mortal = driver.another()
            driver.send()
            token = mortal.take(1000).token
            driver.send()
            harness.die_after(mortal.coordinator, commands)
            try:
                operate(mortal, token)
            except ClientDied:
                survived = False
            else:
                survived = True
            counts = driver.counts()
            assert in_balance(counts)
            self._everything_left_is_received(driver)
            driver.kill()
            if survived:
                return
        pytest.fail("it never survived")

    def _everything_left_is_received(self, driver: Driver) -> None:
        """What is neither done nor dead can be had by somebody else, and once."""
        driver.advance(10_000)
        before = driver.counts()
        left = before.ready + before.delayed + before.reserved
        batch = driver.batch(100)
        assert len(batch) == left
        assert len({id_of(each) for each in batch}) == left
        assert all(driver.ack(each.token) for each in batch)
        after = driver.counts()
        assert after.acked == before.acked + left
        assert after.ready == after.delayed == after.reserved == 0
