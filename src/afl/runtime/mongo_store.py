"""`MongoStore`: everything that a run is made of, on MongoDB."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from afl.kernel.mongo import store as kernel_store
from afl.runtime.mongo.forgetting import MongoForgetting
from afl.runtime.mongo.history import MongoHistory
from afl.runtime.mongo.people import MongoPeople
from afl.runtime.mongo.rates import MongoRates
from afl.runtime.mongo.schedules import MongoSchedules
from afl.runtime.mongo.searching import MongoRunSearch
from afl.runtime.mongo.shelves import MongoMemos, MongoPrograms
from afl.runtime.mongo.signals import MongoSignals
from afl.runtime.mongo.sources import MongoSources
from afl.runtime.store_clock import StoreClock


class MongoStore(
    MongoPrograms,
    MongoSources,
    MongoRunSearch,
    MongoForgetting,
    MongoSignals,
    MongoMemos,
    MongoRates,
    MongoPeople,
    MongoSchedules,
    MongoHistory,
):
    """Everything that a run needs to be kept, on a database whose schema `migrate` has made.

    Documents of runs are written on the connections, and in the transactions, of the kernel's
    store. Threads may share one.
    """

    def __init__(self, kernel: kernel_store.MongoStore, *, clock_age_seconds: float = 1.0) -> None:
        """On the connections of a kernel store.

        Args:
            kernel: the store; it is closed with this one.
            clock_age_seconds: how long `now` counts on from a look at the server's clock.
        """
        super().__init__(kernel)
        self._clock = StoreClock(kernel.database.now, clock_age_seconds)

    def now(self) -> datetime:
        return self._clock.now()

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs that ended that long ago, slots that have been without effect since, and
        what became of fire times before."""
        self.forget_rates(older_than)
        self.forget_firings(older_than)
        return super().forget_runs(older_than, limit)

    @classmethod
    def connect(cls, url: str, *, max_size: int = 16) -> Self:
        """A store on the database at this URL; it owns its kernel store. For the options see
        `afl.kernel.mongo.database.Database`."""
        return cls(kernel_store.MongoStore.connect(url, max_size=max_size))
