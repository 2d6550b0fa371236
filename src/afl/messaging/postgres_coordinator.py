"""`PostgresMessageCoordinator`: mailboxes in the database that keeps the runs.

What is sent is as safe as a run, and `send_in` makes a message part of a commit: it is there
exactly if the commit is.
"""

from __future__ import annotations

from afl.base.clock import Clock
from afl.kernel.doorbell import Doorbell
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.transactions import opened
from afl.kernel.waiting import PollPolicy
from afl.messaging.coordinator import MessageMetrics
from afl.messaging.database_coordinator import POLL, DatabaseMessageCoordinator
from afl.messaging.models import AgentMessage
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
        """The database and the doorbell stay the caller's.

        Args:
            database: such as `PostgresStore.database`; its schema is that of `afl db migrate`.
            doorbell: tells who waits that something came; without one, only what this object
                sends is heard at once, and everything else at the next look.
            clock: measures how long somebody has waited.
            poll: how often who waits looks when nothing rings.
        """
        self._postgres = PostgresMail(database)
        super().__init__(self._postgres, doorbell, metrics, clock, poll)

    def send_in(self, transaction: Transaction, message: AgentMessage) -> None:
        """Has a message sent by a transaction of the kernel's store, such as a commit's writes.

        It is sent exactly if the transaction is committed. A mailbox that is full makes it fail
        with `StoreUnavailable`, so that it is tried again later. Who waits hears of it when
        `ring` is called after the commit, or at its next look.

        Raises:
            MessageRefused: the message cannot be written as JSON.
        """
        self._postgres.send_in(opened(transaction), message)
