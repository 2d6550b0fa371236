"""What becomes of a message in somebody's hands."""

from __future__ import annotations

from afl.messaging.models import FailureType
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import Driver, id_of, message
from afl.testing.mail_conformance.harness import Harness


class DeadlineCases(Cases):
    def test_an_ack_ends_it(self, driver: Driver) -> None:
        driver.send()
        token = driver.take().token
        assert driver.ack(token)
        counts = driver.counts()
        assert (counts.acked, counts.reserved, counts.sent) == (1, 0, 1)
        driver.advance(10_000)
        assert driver.receive() is None

    def test_a_token_is_good_for_one_answer(self, driver: Driver) -> None:
        driver.send()
        token = driver.take().token
        assert driver.ack(token)
        assert not driver.ack(token)
        assert not driver.nack(token)
        assert not driver.extend(token, 60)
        assert not driver.ack("res_unknown")
        assert driver.counts().acked == 1

    def test_a_token_is_of_its_mailbox(self, driver: Driver, harness: Harness) -> None:
        driver.send()
        token = driver.take().token
        other = Driver(harness, agent=driver.agent.model_copy(update={"instance": "2"}))
        assert not other.ack(token)
        assert driver.ack(token)

    def test_any_process_may_ack(self, driver: Driver) -> None:
        driver.send()
        assert driver.another().ack(driver.take().token)

    def test_held_too_long_is_received_again(self, driver: Driver) -> None:
        sent = driver.send()
        first = driver.take(1000)
        driver.advance(500)
        assert driver.receive() is None
        driver.advance(1000)
        assert driver.counts().reserved == 1, "looking moves nothing"
        second = driver.another().take(1000)
        assert id_of(second) == sent
        assert second.token != first.token
        assert second.queue_message.delivery_attempts == 2
        assert second.queue_message.last_error == "visibility timeout"
        assert not driver.ack(first.token)
        assert driver.ack(second.token)

    def test_a_token_is_lost_at_its_deadline_before_anybody_recovers(self, driver: Driver) -> None:
        driver.send()
        token = driver.take(1000).token
        driver.advance(2000)
        assert not driver.ack(token)
        assert not driver.nack(token, FailureType.PERMANENT)
        assert not driver.extend(token, 1000)
        counts = driver.counts()
        assert (counts.reserved, counts.acked, counts.dead) == (1, 0, 0)
        assert driver.receive() is not None

    def test_extending_moves_the_deadline_from_now(self, driver: Driver) -> None:
        driver.send()
        token = driver.take(1000).token
        driver.advance(500)
        assert driver.extend(token, 1000)
        driver.advance(750)
        assert driver.receive() is None
        assert driver.extend(token, 100)
        driver.advance(250)
        assert not driver.ack(token)
        assert driver.receive() is not None

    def test_recovery_tells_how_many(self, driver: Driver, harness: Harness) -> None:
        for _ in range(3):
            driver.send()
        other = Driver(harness, agent=driver.agent.model_copy(update={"type": "other"}))
        other.send()
        other.take(1000)
        first, _, _ = driver.batch(3, 1000)
        assert driver.recover() == 0
        driver.ack(first.token)
        driver.advance(2000)
        assert driver.recover() == 2
        assert driver.recover() == 0
        assert driver.counts().ready == 2
        assert harness.run(driver.coordinator.recover_pending()) == 1, "of all agents"
        assert other.counts().ready == 1

    def test_unreceived_messages_outlive_their_time(self, driver: Driver) -> None:
        sent = driver.send(ttl_seconds=1000)
        driver.send(ttl_seconds=5000)
        driver.advance(2000)
        assert driver.counts().ready == 2, "looking moves nothing"
        driver.take()
        assert driver.receive() is None
        (letter,) = driver.dead()
        assert letter.queue_message.message.message_id == sent
        assert letter.reason == "expired"
        assert letter.queue_message.delivery_attempts == 0

    def test_a_received_message_no_longer_outlives_its_time(self, driver: Driver) -> None:
        driver.send(ttl_seconds=1000)
        assert driver.nack(driver.take().token)
        driver.advance(2000)
        assert driver.receive() is not None

    def test_recovery_buries_what_outlived_its_time_but_does_not_count_it(
        self, driver: Driver
    ) -> None:
        driver.send(ttl_seconds=1000)
        driver.advance(2000)
        assert driver.recover() == 0
        assert driver.counts().dead == 1


class RetryCases(Cases):
    def test_a_nack_comes_again_after_a_backoff(self, driver: Driver) -> None:
        driver.configure(backoff_base=1000, backoff_factor=2, backoff_max=3000)
        driver.send()
        # whole backoffs of 1000, 2000 and 3000, not 4000, and at least half of them
        for attempt, (shortest, rest) in enumerate([(450, 600), (950, 1100), (1450, 1600)], 1):
            received = driver.take()
            assert received.queue_message.delivery_attempts == attempt
            assert driver.nack(received.token, error=f"failure {attempt}")
            assert driver.counts().delayed == 1
            driver.advance(shortest)
            assert driver.receive() is None
            driver.advance(rest)
        last = driver.take().queue_message
        assert (last.delivery_attempts, last.last_error) == (4, "failure 3")

    def test_backoffs_differ(self, driver: Driver) -> None:
        driver.configure(backoff_base=1000, backoff_max=1000)
        for _ in range(50):
            driver.send()
        for each in driver.batch(50):
            driver.nack(each.token)
        driver.advance(750)
        assert 0 < driver.counts().ready < 50, "about half of them"
        driver.advance(300)
        assert driver.counts().ready == 50

    def test_after_the_last_retry_it_is_dead(self, driver: Driver) -> None:
        driver.configure(retry_attempts=2)
        sent = driver.send()
        for failure in (FailureType.TRANSIENT, FailureType.TIMEOUT, FailureType.TRANSIENT):
            assert driver.nack(driver.take().token, failure, f"no: {failure}")
            driver.advance(3600)
        assert driver.receive() is None
        (letter,) = driver.dead()
        assert letter.queue_message.message.message_id == sent
        assert letter.queue_message.delivery_attempts == 3
        assert letter.queue_message.last_error == "no: transient"
        assert letter.reason == "retries"
        assert driver.counts().dead == 1

    def test_a_permanent_failure_is_dead_at_once(self, driver: Driver) -> None:
        driver.send()
        assert driver.nack(driver.take().token, FailureType.PERMANENT, "wrong format")
        (letter,) = driver.dead()
        assert letter.reason == "permanent"
        assert letter.queue_message.last_error == "wrong format"
        driver.advance(10_000)
        assert driver.receive() is None

    def test_consumers_that_die_wear_a_message_out(self, driver: Driver) -> None:
        driver.configure(retry_attempts=1)
        driver.send()
        for attempt in (1, 2):
            assert driver.take(1000).queue_message.delivery_attempts == attempt
            driver.advance(2000)
        assert driver.receive() is None
        (letter,) = driver.dead()
        assert letter.reason == "retries"
        assert letter.queue_message.last_error == "visibility timeout"
        assert letter.queue_message.delivery_attempts == 2

    def test_no_retries_means_one_attempt(self, driver: Driver) -> None:
        driver.configure(retry_attempts=0)
        driver.send()
        assert driver.nack(driver.take().token)
        assert driver.counts().dead == 1

    def test_the_last_error_is_of_the_last_failure(self, driver: Driver) -> None:
        driver.send()
        for error in ("first", None):
            assert driver.nack(driver.take().token, error=error)
            driver.advance(3600)
        assert driver.take().queue_message.last_error is None

    def test_a_retry_keeps_its_priority(self, driver: Driver) -> None:
        high = driver.send(priority=9)
        driver.nack(driver.take().token)
        normal = driver.send()
        driver.advance(3600)
        assert driver.drain() == [high, normal]


class _Heard:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.backoffs: list[float] = []

    def inc_delivered_ok(self, count: int) -> None:
        self.heard.append(("ok", count))

    def inc_delivered_error(self, count: int) -> None:
        self.heard.append(("error", count))

    def inc_retries_scheduled(self, count: int, last_backoff_seconds: float) -> None:
        self.heard.append(("retry", count))
        self.backoffs.append(last_backoff_seconds)

    def inc_nacks(self, count: int) -> None:
        self.heard.append(("nack", count))

    def inc_permanent(self, count: int) -> None:
        self.heard.append(("permanent", count))


class MetricCases(Cases):
    def test_metrics_hear_of_it_all(self, harness: Harness) -> None:
        heard = _Heard()
        driver = Driver(harness, harness.coordinator(heard))
        driver.configure(queue_size=1, backoff_base=10, backoff_max=10)
        driver.send()
        assert not driver.deliver(message()).delivered
        assert heard.heard == [("ok", 1), ("error", 1)]
        heard.heard.clear()
        driver.nack(driver.take().token)
        assert sorted(heard.heard) == [("nack", 1), ("retry", 1)]
        assert 5 <= heard.backoffs[0] <= 10
        heard.heard.clear()
        driver.advance(100)
        driver.nack(driver.take().token, FailureType.PERMANENT)
        assert sorted(heard.heard) == [("nack", 1), ("permanent", 1)]

    def test_metrics_do_not_count_repeats_and_lost_tokens(self, harness: Harness) -> None:
        heard = _Heard()
        driver = Driver(harness, harness.coordinator(heard))
        sent = message()
        driver.deliver(sent)
        driver.deliver(sent)
        driver.nack("res_unknown")
        assert heard.heard == [("ok", 1)]
