"""Waiting for work: how long at most, what ends it early, and what must not make it spin."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from afl.base.system import SystemClock
from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.waiting import Lookout, PollPolicy
from afl.testing import VirtualClock

LONG = 60.0
NEVER = PollPolicy(min_seconds=LONG, max_seconds=LONG)


class SilentDoorbell:
    """Never rings, and lets virtual time pass instead of waiting."""

    def __init__(self, clock: VirtualClock) -> None:
        self.waits: list[float] = []
        self._clock = clock

    def ring(self, lists: Iterable[str]) -> None: ...

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        self.waits.append(timeout_seconds)
        self._clock.advance(timedelta(seconds=timeout_seconds))
        return False

    def close(self) -> None: ...


def test_the_wait_grows_with_every_look_up_to_the_longest() -> None:
    policy = PollPolicy(min_seconds=0.1, max_seconds=1.0, backoff=3.0)
    waits = [policy.wait_seconds(looks, chance=0.0) for looks in range(1, 6)]
    assert waits == pytest.approx([0.1, 0.3, 0.9, 1.0, 1.0])


def test_a_worker_that_was_idle_for_years_still_gets_a_wait() -> None:
    policy = PollPolicy(min_seconds=0.1, max_seconds=2.0)
    assert policy.wait_seconds(10**12, chance=0.0) == 2.0


def test_without_a_backoff_the_wait_stays() -> None:
    policy = PollPolicy(min_seconds=0.5, max_seconds=2.0, backoff=1.0)
    assert {policy.wait_seconds(looks, chance=0.0) for looks in (1, 2, 1000)} == {0.5}


def test_jitter_only_ever_shortens_the_wait() -> None:
    policy = PollPolicy(min_seconds=1.0, max_seconds=2.0, jitter=0.25)
    assert policy.wait_seconds(9, chance=0.0) == 2.0
    assert policy.wait_seconds(9, chance=0.5) == pytest.approx(1.75)
    assert policy.wait_seconds(9, chance=1.0) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "words",
    [
        {"min_seconds": 0.0},
        {"min_seconds": 2.0, "max_seconds": 1.0},
        {"backoff": 0.9},
        {"jitter": 1.0},
        {"jitter": -0.1},
    ],
    ids=str,
)
def test_a_policy_that_would_spin_is_refused(words: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        PollPolicy(**words)


def test_a_lookout_backs_off_and_begins_anew_after_work() -> None:
    clock = VirtualClock()
    bell = SilentDoorbell(clock)
    policy = PollPolicy(min_seconds=1.0, max_seconds=4.0, backoff=2.0, jitter=0.5)
    lookout = Lookout(bell, ["l"], clock, policy, chance=lambda: 0.0)
    answers = iter([[], [], [], [], ["first"], [], ["second"]])
    assert lookout.find(lambda: next(answers)) == ["first"]
    assert bell.waits == [1.0, 2.0, 4.0, 4.0]
    assert lookout.find(lambda: next(answers)) == ["second"]
    assert bell.waits[4:] == [1.0]


def test_the_chance_decides_the_jitter() -> None:
    clock = VirtualClock()
    bell = SilentDoorbell(clock)
    policy = PollPolicy(min_seconds=1.0, max_seconds=1.0, jitter=0.5)
    chances = iter([0.0, 1.0])
    lookout = Lookout(bell, ["l"], clock, policy, chance=lambda: next(chances))
    answers = iter([[], [], ["work"]])
    assert lookout.find(lambda: next(answers)) == ["work"]
    assert bell.waits == [1.0, 0.5]


def test_what_is_there_is_taken_without_waiting() -> None:
    clock = VirtualClock()
    bell = SilentDoorbell(clock)
    assert Lookout(bell, ["l"], clock).find(lambda: ["work"]) == ["work"]
    assert bell.waits == []


def test_a_ring_ends_the_wait() -> None:
    bell = LocalDoorbell()
    lookout = Lookout(bell, ["l"], SystemClock(), NEVER)
    looked, there = threading.Event(), threading.Event()

    def look() -> list[str]:
        looked.set()
        return ["work"] if there.is_set() else []

    with ThreadPoolExecutor(1) as pool:
        finding = pool.submit(lookout.find, look)
        assert looked.wait(LONG)
        there.set()
        bell.ring(["l"])
        assert finding.result(LONG / 2) == ["work"]


def test_a_lookout_that_is_stopped_finds_nothing_and_looks_no_more() -> None:
    lookout = Lookout(LocalDoorbell(), ["l"], SystemClock(), NEVER)
    lookout.stop()
    assert lookout.find(lambda: ["work"]) == ()


@pytest.mark.parametrize("order", ["stop, close", "close, stop"])
def test_stopping_and_closing_the_doorbell_ends_the_wait_at_once(order: str) -> None:
    bell = LocalDoorbell()
    lookout = Lookout(bell, ["l"], SystemClock(), NEVER)
    looked = threading.Event()

    def look() -> list[str]:
        looked.set()
        return []

    with ThreadPoolExecutor(1) as pool:
        finding = pool.submit(lookout.find, look)
        assert looked.wait(LONG)
        for act in order.split(", "):
            lookout.stop() if act == "stop" else bell.close()
        assert finding.result(LONG / 2) == ()


def test_a_closed_doorbell_leaves_polling_and_no_spinning() -> None:
    bell = LocalDoorbell()
    bell.close()
    clock = SystemClock()
    pause = 0.02
    policy = PollPolicy(min_seconds=pause, max_seconds=pause, jitter=0.0)
    answers = iter([[], [], ["work"]])
    begun = clock.monotonic()
    assert Lookout(bell, ["l"], clock, policy).find(lambda: next(answers)) == ["work"]
    assert clock.monotonic() - begun >= 2 * pause


def test_an_error_of_the_look_reaches_the_caller_and_the_lookout_goes_on() -> None:
    lookout = Lookout(LocalDoorbell(), ["l"], SystemClock(), NEVER)

    def fail() -> list[str]:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        lookout.find(fail)
    assert lookout.find(lambda: ["work"]) == ["work"]
