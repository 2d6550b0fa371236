"""The rules of the breaker, played at random: as values, and as the script in Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pydantic import ValidationError
from redis.asyncio import Redis

from afl.base.system import SystemClock
from afl.messaging.breaker import (
    Breaker,
    BreakerState,
    CircuitBreakerConfig,
    admit,
    ms,
    release,
    reset,
    seen_at,
    settle,
)
from afl.messaging.shared_breaker import SharedBreaker
from tests.messaging.breaker_redis import URL, prefix, redis_is_there

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
#: Time moves by multiples of 5 s, and nothing here is due at one.
CONFIG = CircuitBreakerConfig(
    failure_threshold=3,
    timeout_seconds=62,
    recovery_timeout_seconds=152,
    half_open_max_calls=3,
    success_threshold=2,
    failure_window_seconds=47,
)


class BreakerMachine(RuleBasedStateMachine):
    """Calls that are admitted, end well or badly or never, in any order and at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.breaker = Breaker(since=self.now)
        #: calls under way: permit, epoch, state when admitted
        self.calls: list[tuple[str, int, BreakerState]] = []
        self.number = 0

    @rule()
    def call(self) -> None:
        self.number += 1
        permit = f"p{self.number}"
        before = seen_at(self.breaker, CONFIG, self.now)
        self.breaker, admission = admit(self.breaker, CONFIG, permit, self.now)
        if before.state is CLOSED:
            assert admission.admitted
        if before.state is OPEN:
            assert not admission.admitted
            assert 0 < admission.retry_after_ms <= ms(CONFIG.timeout_seconds)
        if before.state is HALF_OPEN:
            room = CONFIG.half_open_max_calls - len(before.permits) - before.successes
            assert admission.admitted == (room > 0)
        if admission.admitted:
            self.calls.append((permit, admission.epoch, admission.state))

    @rule(index=st.integers(0, 50), good=st.booleans())
    def end(self, index: int, good: bool) -> None:
        if not self.calls:
            return
        permit, epoch, state = self.calls.pop(index % len(self.calls))
        before = seen_at(self.breaker, CONFIG, self.now)
        self.breaker = settle(self.breaker, CONFIG, permit, epoch, good, self.now)
        if before.epoch != epoch:
            assert self.breaker == before, "results of an earlier state change nothing"
        elif state is HALF_OPEN and permit in dict(before.permits) and not good:
            assert self.breaker.state is OPEN
        elif state is CLOSED and good:
            assert self.breaker.failures == ()

    @rule(index=st.integers(0, 50))
    def cancel(self, index: int) -> None:
        if self.calls:
            permit, _, _ = self.calls.pop(index % len(self.calls))
            self.breaker = release(self.breaker, permit)
            assert permit not in dict(self.breaker.permits)

    @rule()
    def lose_a_process(self) -> None:
        self.calls.clear()

    @rule()
    def close_by_hand(self) -> None:
        self.breaker = reset(self.breaker, self.now)
        assert self.breaker.state is CLOSED

    @rule(seconds=st.sampled_from([5, 30, 50, 100, 200]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @invariant()
    def it_is_whole(self) -> None:
        now = seen_at(self.breaker, CONFIG, self.now)
        assert len(now.failures) < CONFIG.failure_threshold
        assert len(now.permits) + now.successes <= CONFIG.half_open_max_calls
        assert now.successes < CONFIG.success_threshold
        assert now.state is HALF_OPEN or not (now.permits or now.successes)
        assert now.state is CLOSED or not now.failures

    @invariant()
    def it_is_never_wedged(self) -> None:
        """Whatever happened, with time and successes it closes."""
        now = self.now + 1000 * 200
        breaker = self.breaker
        for number in range(CONFIG.success_threshold):
            breaker, admission = admit(breaker, CONFIG, f"last{number}", now)
            assert admission.admitted
            breaker = settle(breaker, CONFIG, f"last{number}", admission.epoch, True, now)
        assert breaker.state is CLOSED


TestBreakerGames = BreakerMachine.TestCase
TestBreakerGames.settings = settings(max_examples=100, deadline=None)


def failed(*seconds: float) -> Breaker:
    """A breaker after failures at these times."""
    breaker = Breaker()
    for at in seconds:
        breaker = settle(breaker, CONFIG, "", breaker.epoch, False, ms(at))
    return breaker


def test_failures_in_a_row_open_it() -> None:
    assert failed(1, 2).state is CLOSED
    assert failed(1, 2, 3).state is OPEN


def test_a_success_between_failures_starts_the_count_anew() -> None:
    breaker = settle(failed(1, 2), CONFIG, "", 0, True, ms(3))
    assert settle(breaker, CONFIG, "", 0, False, ms(4)).state is CLOSED


@given(gap=st.floats(24, 46))
def test_only_failures_of_one_window_count_together(gap: float) -> None:
    assert failed(0, gap, 2 * gap).state is CLOSED
    assert failed(0, gap, 2 * gap, 2 * gap + 0.5).state is OPEN


def test_open_it_refuses_until_the_time_is_over() -> None:
    breaker = failed(0, 0, 0)
    later, refused = admit(breaker, CONFIG, "a", ms(61.9))
    assert (later.state, refused.admitted, refused.retry_after_ms) == (OPEN, False, 100)
    later, admission = admit(breaker, CONFIG, "a", ms(62))
    assert (later.state, admission.admitted) == (HALF_OPEN, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"failure_threshold": 0}, "failure_threshold"),
        ({"failure_threshold": 101}, "failure_threshold"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": 3601}, "timeout_seconds"),
        ({"recovery_timeout_seconds": 7201}, "recovery_timeout_seconds"),
        ({"timeout_seconds": 60, "recovery_timeout_seconds": 60}, "longer than timeout_seconds"),
        ({"half_open_max_calls": 21}, "half_open_max_calls"),
        ({"success_threshold": 11}, "success_threshold"),
        ({"half_open_max_calls": 1, "success_threshold": 2}, "half_open_max_calls"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CircuitBreakerConfig.model_validate(settings)


def test_the_defaults_are_those_of_the_specification() -> None:
    config = CircuitBreakerConfig()
    assert (config.failure_threshold, config.timeout_seconds) == (5, 60)
    assert config.recovery_timeout_seconds == 300
    assert (config.half_open_max_calls, config.success_threshold) == (3, 2)


class ScriptMachine(RuleBasedStateMachine):
    """The same to the values and to the script, which must agree."""

    loop: asyncio.Runner
    client: Redis
    prefix: str
    games = 0

    def __init__(self) -> None:
        super().__init__()
        ScriptMachine.games += 1
        self.now = 1_800_000_000_000
        self.number = 0
        self.breaker = Breaker(since=self.now)
        self.calls: list[tuple[str, int]] = []
        # the server is on this machine, so its clock is ours
        self.shared = SharedBreaker(
            self.client,
            f"game{self.games}",
            CONFIG,
            self.prefix,
            "plain",
            SystemClock(),
            lambda: self.now / 1000 - time.time(),
        )

    @rule()
    def call(self) -> None:
        self.number += 1
        permit = f"p{self.number}"
        self.breaker, expected = admit(self.breaker, CONFIG, permit, self.now)
        found = self.loop.run(self.shared.admit(permit))
        assert (found.admitted, found.state, found.epoch) == (
            expected.admitted,
            expected.state,
            expected.epoch,
        )
        assert abs(found.retry_after_ms - expected.retry_after_ms) < 2000
        if found.admitted:
            self.calls.append((permit, found.epoch))

    @rule(index=st.integers(0, 50), good=st.booleans())
    def end(self, index: int, good: bool) -> None:
        if self.calls:
            permit, epoch = self.calls.pop(index % len(self.calls))
            self.breaker = settle(self.breaker, CONFIG, permit, epoch, good, self.now)
            self.loop.run(self.shared.settle(permit, epoch, good=good, slow=False))

    @rule(index=st.integers(0, 50))
    def cancel(self, index: int) -> None:
        if self.calls:
            permit, _ = self.calls.pop(index % len(self.calls))
            self.breaker = release(self.breaker, permit)
            self.loop.run(self.shared.release(permit))

    @rule()
    def close_by_hand(self) -> None:
        self.breaker = reset(seen_at(self.breaker, CONFIG, self.now), self.now)
        self.loop.run(self.shared.reset())

    @rule(seconds=st.sampled_from([5, 30, 50, 100, 200]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @invariant()
    def they_agree(self) -> None:
        self.breaker = seen_at(self.breaker, CONFIG, self.now)
        found, _ = self.loop.run(self.shared.look())
        assert _shape(found) == _shape(self.breaker)


def _shape(breaker: Breaker) -> tuple[object, ...]:
    permits = sorted(permit for permit, _ in breaker.permits)
    return breaker.state, breaker.epoch, len(breaker.failures), breaker.successes, permits


@pytest.fixture
def script_machine() -> Iterator[type[ScriptMachine]]:
    if not redis_is_there():
        pytest.skip("there is no Redis to test with")
    with prefix() as name, asyncio.Runner() as loop:
        ScriptMachine.loop, ScriptMachine.prefix = loop, name
        ScriptMachine.client = Redis.from_url(URL)
        yield ScriptMachine
        loop.run(ScriptMachine.client.aclose())


def test_the_script_plays_by_the_same_rules(script_machine: type[ScriptMachine]) -> None:
    run_state_machine_as_test(
        script_machine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None)
    )
