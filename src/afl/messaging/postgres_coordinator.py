"""`PostgresMessageCoordinator`: mailboxes in the database that keeps the runs.

What is sent is as safe as a run, and `send_in` makes a message part of a commit: it is there
exactly if the commit is.
"""

from __future__ import annotations

from afl.base.clock import Clock
from afl.kernel.doorbell import Doorbell
from afl.kernel.postgres.database import Database
from afl.kernel.waiting import PollPolicy
from afl.messaging.coordinator import MessageMetrics
from afl.messaging.database_coordinator import POLL, DatabaseMessageCoordinator
from afl.messaging.postgres.mail import PostgresMail


class PostgresMessageCoordinator(DatabaseMessageCoordinator):
    """See `MessageCoordinator` for what each method promises."""

    def __init__(
        self,
        database: Database,
        doorbell: Doorbell | None = None,
        metrics: MessageMetrics | None = None,
        clock: Clock | None = None,
        poll: PollPolicy = POLL,
    ) -> None:
        """`database`: such as `PostgresStore.database`, with the schema of `afl db migrate`."""
        super().__init__(PostgresMail(database), doorbell, metrics, clock, poll)
