"""`MongoTurnStore`: everything that turns keep beside the kernel's rows, on MongoDB."""

from __future__ import annotations

from afl.kernel.mongo.store import MongoStore
from afl.turns.mongo.shelves import MongoAccounts, MongoAgentTurns, MongoPins, MongoRoster
from afl.turns.mongo.waits import MongoWaits


class MongoTurnStore(MongoRoster, MongoAgentTurns, MongoWaits, MongoAccounts, MongoPins):
    """Everything that turns keep, on a database whose schema `afl db migrate` has made: see
    `ports.TurnStore`.

    Documents are written on the connections, and in the transactions, of the kernel's store.
    Threads may share one.
    """

    def __init__(self, kernel: MongoStore) -> None:
        """On the connections of a kernel store, which stays its owner's to close."""
        super().__init__(kernel)

    @property
    def kernel(self) -> MongoStore:
        return self._kernel
