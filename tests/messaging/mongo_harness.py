"""A MongoDB for mailboxes: its clock is moved by hand, its answers get lost, its clients die."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pymongo.results import BulkWriteResult

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import StoreUnavailable
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import read_migrations
from afl.kernel.mongo.transaction import Document, MongoTransaction, Operation
from afl.messaging.coordinator import MessageCoordinator, MessageMetrics
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.testing.clock import VirtualClock
from afl.testing.mail_conformance.harness import ClientDied, LoopHarness
from tests.kernel.mongo.databases import migrated_database

T = TypeVar("T")
_COLLECTIONS = "mailbox mail mail_dead mail_seen mail_answer"


@contextmanager
def mail_database() -> Iterator[str]:
    """The URL of a database with mailboxes, which is dropped afterwards."""
    with migrated_database(read_migrations("afl.messaging.mongo")) as url:
        yield url


def clear_mail(database: Database) -> None:
    """Removes every document; the settings are those of a new database."""
    for collection in _COLLECTIONS.split():
        database.collection(collection).delete_many({})


class Server:
    """A database on a virtual clock, with connections that every client of a test borrows."""

    def __init__(self, url: str) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.database = Database(url, clock=self.clock.now)


class FaultyDatabase(Database):
    """A client's view of the server, which loses answers, and dies, when it is told to."""

    def __init__(self, server: Server) -> None:
        # without connections of its own: thousands of clients come and go in these tests
        self._real = server.database
        self.loses_the_next = False
        self.dies_after: int | None = None

    def now(self) -> datetime:
        return self._real.now()

    def find(
        self,
        collection: str,
        where: Mapping[str, Any],
        **more: Any,  # noqa: ANN401
    ) -> list[Document]:
        return self._do(lambda: self._real.find(collection, where, **more))

    def aggregate(self, collection: str, pipeline: Sequence[Mapping[str, Any]]) -> list[Document]:
        return self._do(lambda: self._real.aggregate(collection, pipeline))

    def write(
        self, collection: str, operations: Sequence[Operation], *, ordered: bool = True
    ) -> BulkWriteResult:
        return self._heard(
            self._do(lambda: self._real.write(collection, operations, ordered=ordered))
        )

    def change_one(
        self,
        collection: str,
        where: Mapping[str, Any],
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        sort: Sequence[tuple[str, int]] | None = None,
    ) -> Document | None:
        return self._heard(
            self._do(lambda: self._real.change_one(collection, where, change, sort=sort))
        )

    def transact(self, work: Callable[[MongoTransaction], T], *, tries: int = 40) -> T:
        return self._heard(self._do(lambda: self._real.transact(work, tries=tries)))

    def _do(self, work: Callable[[], T]) -> T:
        if self.dies_after == 0:
            raise ClientDied
        answer = work()
        if self.dies_after is not None:
            self.dies_after -= 1
            if self.dies_after == 0:
                raise ClientDied
        return answer

    def _heard(self, answer: T) -> T:
        """Only what changes something is lost: what was read is read again."""
        if self.loses_the_next:
            self.loses_the_next = False
            raise StoreUnavailable("the answer was lost")
        return answer


class MongoMailHarness(LoopHarness):
    """Empty mailboxes on a server."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        clear_mail(server.database)
        self._server = server
        self._doorbell = LocalDoorbell()
        self._clients: dict[int, FaultyDatabase] = {}

    def coordinator(self, metrics: MessageMetrics | None = None) -> MessageCoordinator:
        client = FaultyDatabase(self._server)
        made = MongoMessageCoordinator(client, self._doorbell, metrics)
        self._clients[id(made)] = client
        return self.keep(made)

    def advance(self, seconds: float) -> None:
        self._server.clock.advance(timedelta(seconds=seconds))

    def lose_answer(self, coordinator: MessageCoordinator) -> None:
        self._clients[id(coordinator)].loses_the_next = True

    def die_after(self, coordinator: MessageCoordinator, commands: int) -> None:
        self._clients[id(coordinator)].dies_after = commands
