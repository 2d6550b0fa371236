"""Messages that were given up."""

from __future__ import annotations

from afl.messaging.models import FailureType
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import Driver, id_of, message


class DeadLetterCases(Cases):
    def test_dead_letters_are_listed_oldest_first(self, driver: Driver) -> None:
        killed = [driver.kill() for _ in range(3)]
        letters = driver.dead()
        assert [each.queue_message.message.message_id for each in letters] == killed
        assert [each.at for each in letters] == sorted(each.at for each in letters)
        listed = driver.harness.run(driver.coordinator.dead_letters(driver.agent, 2))
        assert [each.queue_message.message.message_id for each in listed] == killed[:2]

    def test_a_redriven_letter_starts_anew(self, driver: Driver) -> None:
        killed = [driver.kill() for _ in range(3)]
        assert driver.redrive(killed[1]) == 1
        received = driver.take()
        assert id_of(received) == killed[1]
        assert received.queue_message.delivery_attempts == 1
        assert driver.ack(received.token)
        assert driver.redrive(killed[1]) == 0
        counts = driver.counts()
        assert (counts.sent, counts.acked, counts.dead) == (3, 1, 2)

    def test_all_are_redriven_in_order(self, driver: Driver) -> None:
        killed = [driver.kill() for _ in range(3)]
        assert driver.redrive() == 3
        assert driver.redrive() == 0
        assert driver.drain() == killed

    def test_a_redriven_letter_queues_behind_the_others(self, driver: Driver) -> None:
        killed = driver.kill()
        sent = driver.send()
        driver.redrive()
        assert driver.drain() == [sent, killed]

    def test_a_redrive_does_not_overfill_the_mailbox(self, driver: Driver) -> None:
        driver.configure(queue_size=2)
        killed = [driver.kill() for _ in range(3)]
        sent = driver.send()
        assert driver.redrive() == 1
        assert not driver.deliver(message()).delivered
        assert driver.redrive(killed[1]) == 0
        assert driver.drain() == [sent, killed[0]]
        assert driver.counts().dead == 2

    def test_a_redriven_letter_does_not_expire_again(self, driver: Driver) -> None:
        sent = driver.send(ttl_seconds=1000)
        driver.advance(2000)
        assert driver.receive() is None
        assert driver.redrive() == 1
        driver.advance(5000)
        assert driver.drain() == [sent]

    def test_purged_letters_are_gone(self, driver: Driver) -> None:
        killed = [driver.kill() for _ in range(3)]
        assert driver.purge(killed[0]) == 1
        assert driver.purge(killed[0]) == 0
        assert driver.redrive(killed[0]) == 0
        assert driver.purge() == 2
        assert driver.dead() == []
        counts = driver.counts()
        assert (counts.sent, counts.purged, counts.dead) == (3, 3, 0)

    def test_living_messages_are_neither_redriven_nor_purged(self, driver: Driver) -> None:
        reserved = driver.send()
        token = driver.take().token
        ready = driver.send()
        for living in (reserved, ready):
            assert driver.redrive(living) == 0
            assert driver.purge(living) == 0
        assert driver.redrive() == driver.purge() == 0
        assert driver.ack(token)

    def test_dead_letters_take_no_room(self, driver: Driver) -> None:
        driver.configure(queue_size=1)
        driver.kill()
        driver.send()
        assert driver.counts().dead == 1

    def test_a_purged_id_is_still_remembered(self, driver: Driver) -> None:
        sent = message()
        driver.deliver(sent)
        driver.nack(driver.take().token, FailureType.PERMANENT)
        driver.purge()
        assert driver.deliver(sent).delivered
        assert driver.receive() is None
