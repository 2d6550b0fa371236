from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.base.system import SystemClock, SystemIds

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def _ms_of(text: str) -> int:
    return UUID(text).int >> 80


def test_the_clock_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    now = clock.now()
    assert now.utcoffset() == timedelta(0)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_monotonic_time_does_not_go_back() -> None:
    clock: Clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()


def test_an_id_is_a_version_7_uuid_of_the_present() -> None:
    ids: IdSource = SystemIds()
    text = ids.new_id()
    assert UUID7.fullmatch(text)
    assert UUID(text).version == 7
    assert UUID(text).variant == RFC_4122
    made = datetime.fromtimestamp(_ms_of(text) / 1000, UTC)
    assert abs(made - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_bits_stand_where_the_standard_puts_them() -> None:
    # The example of RFC 9562, appendix A.6, whose random parts are 0xCC3 and 0x18C4DC0C0C07398F.
    tail = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    ids = SystemIds(wall_ms=lambda: 0x017F22E279B0, random_bits=lambda _bits: tail)
    assert ids.new_id() == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(
    st.lists(st.integers(min_value=0, max_value=2**47), min_size=1, max_size=50),
    st.randoms(use_true_random=False),
)
def test_ids_increase_whatever_the_clock_does(times: list[int], random: Random) -> None:
    readings = iter(times)
    ids = SystemIds(wall_ms=lambda: next(readings), random_bits=random.getrandbits)
    made = [ids.new_id() for _ in times]
    assert made == sorted(set(made))
    assert all(UUID7.fullmatch(text) for text in made)
    assert all(_ms_of(text) >= ms for text, ms in zip(made, times, strict=True))


def test_a_full_millisecond_borrows_the_next_one() -> None:
    ids = SystemIds(wall_ms=lambda: 1_000, random_bits=lambda bits: 2**bits - 1)
    ids._tail = 2**74 - 1
    ids._last_ms = 1_000
    assert _ms_of(ids.new_id()) == 1_001


def test_threads_may_share_one_source() -> None:
    ids = SystemIds()
    made: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        mine.extend(ids.new_id() for _ in range(500))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [text for mine in made for text in mine]
    assert len(set(everything)) == 2_000
    assert all(mine == sorted(mine) for mine in made)
