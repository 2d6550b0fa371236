"""`MongoMessageCoordinator`: mailboxes in the MongoDB that keeps the runs.

What is sent is as safe as a run, and `send_in` makes a message part of a commit: it is there
exactly if the commit is. A message has to fit a document, 15 MiB of JSON at most.
"""

from __future__ import annotations

from afl.base.clock import Clock
from afl.kernel.doorbell import Doorbell
from afl.kernel.mongo.database import Database
from afl.kernel.waiting import PollPolicy
from afl.messaging.coordinator import MessageMetrics
from afl.messaging.database_coordinator import POLL, DatabaseMessageCoordinator
from afl.messaging.mongo.mail import MongoMail


class MongoMessageCoordinator(DatabaseMessageCoordinator):
    """See `MessageCoordinator` for what each method promises."""

    def __init__(
        self,
        database: Database,
        doorbell: Doorbell | None = None,
        metrics: MessageMetrics | None = None,
        clock: Clock | None = None,
        poll: PollPolicy = POLL,
    ) -> None:
        """`database`: such as `MongoStore.database`, with the schema of `afl db migrate`."""
        super().__init__(MongoMail(database), doorbell, metrics, clock, poll)
