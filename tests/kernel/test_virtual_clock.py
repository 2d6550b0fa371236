from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from afl.base import Clock, IdSource
from afl.testing import SequentialIds, VirtualClock
from afl.testing.clock import START

SECOND = timedelta(seconds=1)


def test_time_stands_still_until_it_is_moved() -> None:
    clock: VirtualClock = VirtualClock()
    port: Clock = clock
    assert (port.now(), port.now(), port.monotonic()) == (START, START, 0.0)
    clock.advance(90 * SECOND)
    assert (port.now(), port.monotonic()) == (START + 90 * SECOND, 90.0)


def test_a_ticking_clock_never_shows_the_same_time_twice() -> None:
    clock = VirtualClock(tick=SECOND)
    assert [clock.now() - START for _ in range(3)] == [SECOND, 2 * SECOND, 3 * SECOND]
    assert clock.monotonic() == 3.0


def test_time_does_not_go_back_and_has_a_zone() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        VirtualClock().advance(-SECOND)
    with pytest.raises(ValueError, match="time zone"):
        VirtualClock(datetime(2030, 1, 1))  # noqa: DTZ001 - the mistake under test


def test_ids_count_up_in_the_form_of_real_ones() -> None:
    ids: IdSource = SequentialIds()
    made = [ids.new_id() for _ in range(300)]
    assert made == sorted(set(made))
    assert all(len(each) == 36 and each[14] == "7" for each in made)
    assert made[0] == SequentialIds().new_id()
