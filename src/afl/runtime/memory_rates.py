"""Slots in time, for `RateLimit`, in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

from afl.kernel.memory.transaction import MemoryTransaction, Tables
from afl.runtime.memory_tables import MemoryTables
from afl.runtime.persistence import RateWish

#: By facet and key: the number of the last slot, how many before it may matter, and when the last
#: one has no effect any more.
_RATES = "rate"


class MemoryRates(MemoryTables):
    """See `persistence.Rates` for what each method promises."""

    def reserve_slots(self, wish: RateWish, count: int = 1) -> list[timedelta]:
        def work(transaction: MemoryTransaction) -> list[timedelta]:
            tables, now = transaction.tables, transaction.now
            last, most, ends_at = tables[_RATES].get(_rate(wish), (0, 0, now))
            most = max(most, wish.max)
            slots = tables[_slots(_rate(wish))]
            delays = []
            for number in range(last + 1, last + count + 1):
                before = slots.get(_number(number - wish.max))
                start = now if before is None else max(now, before + wish.per)
                slots[_number(number)] = start
                slots.pop(_number(number - most), None)
                ends_at = max(ends_at, start + wish.per)
                delays.append(start - now)
            tables[_RATES][_rate(wish)] = (last + count, most, ends_at)
            return delays

        return self._write(work)


def forget_rates(tables: Tables, before: datetime) -> None:
    """Removes slots that have been without effect since then."""
    for rate, (_, _, ends_at) in list(tables[_RATES].items()):
        if ends_at <= before:
            del tables[_RATES][rate]
            tables.drop(_slots(rate))


def _rate(wish: RateWish) -> str:
    return f"{wish.facet}\0{wish.key}"


def _slots(rate: str) -> str:
    """Slots by number: when they start."""
    return f"rate-slot:{rate}"


def _number(number: int) -> str:
    return f"{number:016}"
