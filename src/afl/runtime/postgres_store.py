"""`PostgresPersistence`: everything that a run is made of, on PostgreSQL."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from afl.kernel.postgres.rows import utc
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.postgres.history import PostgresHistory
from afl.runtime.postgres.people import PostgresPeople
from afl.runtime.postgres.rates import PostgresRates
from afl.runtime.postgres.runs import PostgresRuns
from afl.runtime.postgres.schedules import PostgresSchedules
from afl.runtime.postgres.searching import PostgresRunSearch
from afl.runtime.postgres.shelves import PostgresMemos, PostgresPrograms, PostgresSignals
from afl.runtime.postgres.sources import PostgresSources
from afl.runtime.postgres.steps import PostgresSteps
from afl.runtime.postgres.superseded import PostgresSuperseded
from afl.runtime.postgres.tallying import PostgresTallies
from afl.runtime.postgres.windows import PostgresStepWindows
from afl.runtime.store_clock import StoreClock


class PostgresPersistence(
    PostgresPrograms,
    PostgresSources,
    PostgresRuns,
    PostgresSteps,
    PostgresSignals,
    PostgresMemos,
    PostgresRates,
    PostgresPeople,
    PostgresSchedules,
    PostgresSuperseded,
    PostgresRunSearch,
    PostgresTallies,
    PostgresStepWindows,
    PostgresHistory,
):
    """Everything that a run needs to be kept, on a database whose schema `migrate` has made.

    Rows of runs are written on the connections, and in the transactions, of the kernel's store.
    Threads may share one.
    """

    def __init__(self, kernel: PostgresStore, *, clock_age_seconds: float = 1.0) -> None:
        """On the connections of a kernel store.

        Args:
            kernel: the store; it is closed with this one.
            clock_age_seconds: how long `now` counts on from a look at the database's clock.
        """
        super().__init__(kernel)
        self._clock = StoreClock(self._look_at_clock, clock_age_seconds)

    def now(self) -> datetime:
        return self._clock.now()

    def _look_at_clock(self) -> datetime:
        row = self._row("now", {})
        assert row is not None
        return utc(row[0])

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs that ended that long ago, slots that have been without effect since, and
        what became of fire times before."""
        self.forget_rates(older_than)
        self.forget_firings(older_than)
        return super().forget_runs(older_than, limit)

    @classmethod
    def connect(cls, url: str, *, max_size: int = 16, prepare_threshold: int | None = 1) -> Self:
        """A store on the database at this URL; it owns its kernel store. For the options see
        `afl.kernel.postgres.database.Database`."""
        return cls(
            PostgresStore.connect(url, max_size=max_size, prepare_threshold=prepare_threshold)
        )
