"""A store's clock, asked for now and then: its time in between is counted here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic

from afl.kernel.errors import StoreUnavailable


class StoreClock:
    """Goes on while the store is away, as the store's own does."""

    def __init__(self, look: Callable[[], datetime], age_seconds: float) -> None:
        """`look` asks the store; `age_seconds` is how long its answer is counted on from."""
        self._look = look
        self._age_seconds = age_seconds
        self._looked: tuple[float, datetime] | None = None

    def now(self) -> datetime:
        looked, here = self._looked, monotonic()
        if looked is None or here - looked[0] >= self._age_seconds:
            looked = self._looked = (here, self._time_at(looked, here))
        return looked[1] + timedelta(seconds=here - looked[0])

    def _time_at(self, looked: tuple[float, datetime] | None, here: float) -> datetime:
        try:
            return self._look()
        except StoreUnavailable:
            if looked is None:
                raise
            return looked[1] + timedelta(seconds=here - looked[0])
