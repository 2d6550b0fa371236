"""Slots in time, for `RateLimit`."""

from __future__ import annotations

from datetime import timedelta

from afl.runtime.persistence import RateWish
from afl.runtime.postgres.core import PostgresCore


class PostgresRates(PostgresCore):
    """See `persistence.Rates` for what each method promises."""

    def reserve_slots(self, wish: RateWish, count: int = 1) -> list[timedelta]:
        parameters = {
            "facet": wish.facet,
            "key": wish.key,
            "max": wish.max,
            "per": wish.per,
            "count": count,
        }
        return [delay for (delay,) in self._rows("reserve_slots", parameters)]

    def forget_rates(self, older_than: timedelta) -> None:
        """Removes slots that have been without effect for that long."""
        self._execute("forget_rates", {"older_than": older_than})
