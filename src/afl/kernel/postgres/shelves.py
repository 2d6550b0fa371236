"""Cards and boxes, workers, the outbox, and locks for users."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from psycopg import Cursor

from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.model import (
    Announcement,
    CallId,
    Card,
    CardHash,
    Json,
    Lock,
    OutboxEntry,
    Worker,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.port import Transaction
from afl.kernel.postgres.core import Core
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import json_text
from afl.kernel.postgres.rows import is_id, utc, worker_of
from afl.kernel.postgres.statements import SQL, hot
from afl.kernel.postgres.transactions import opened
from afl.kernel.requests import check_announcement, check_cards, check_lock, check_worker

_ANNOUNCE, _KEEP_ANSWER = hot("announce"), hot("keep_answer")


class PostgresCards(Core):
    """See `port.Cards` for what each method promises."""

    def put_cards(self, cards: Sequence[Card]) -> None:
        check_cards(cards)
        parameters = {
            "hashes": [card.hash for card in cards],
            "kinds": [card.kind for card in cards],
            "contents": [json_text(card.content, "a card") for card in cards],
        }
        self._database.run(lambda cursor: cursor.execute(SQL["put_cards"], parameters))

    def get_cards(self, hashes: Sequence[CardHash]) -> list[Card]:
        return [_card(row) for row in self._rows("get_cards", {"hashes": list(hashes)})]

    def append_box(self, box: str, hashes: Sequence[CardHash], at: int) -> int:
        end = at + len(hashes)
        place: dict[str, object] = {"box": box, "hashes": list(hashes), "at": at, "end": end}

        def work(cursor: Cursor[Row]) -> int:
            if is_id(box) and _flag(cursor, "is_task", {"task": box}):
                raise BadRequest(f"box {box} belongs to a task; it grows by the task's commits")
            for row in cursor.execute(SQL["get_cards"], place).fetchall():
                _card(row)
            cursor.execute(SQL["lock_box"], place)
            found = cursor.execute(SQL["look_at_box"], place).fetchone()
            assert found is not None
            length, there = found
            if at == length:
                cursor.execute(SQL["append_box"], place)  # I8
            elif not 0 <= at < length:
                raise BadRequest(
                    f"box {box} has {length} cards; nothing can be put at {at}: read it again"
                )
            elif there != list(hashes):
                raise BadRequest(
                    f"box {box} has other cards at {at}; somebody was faster: read it again"
                )
            return end

        return self._database.run(work, transaction=True)

    def read_box(self, box: str, start: int = 0) -> list[Card]:
        rows = self._rows("read_box", {"box": box, "start": start})
        return [Card(CardHash(hash_), kind, content) for hash_, kind, content in rows]

    def keep_answer(self, transaction: Transaction, call: CallId, card: CardHash) -> None:
        if is_id(call):
            opened(transaction).send(_KEEP_ANSWER, {"call": call, "card": card})


def _card(row: Row) -> Card:
    asked, found, kind, content = row
    if found is None:
        raise NotFound(f"there is no card {asked}; put it before it is used")
    return Card(CardHash(found), kind, content)


def _flag(cursor: Cursor[Row], statement: str, parameters: dict[str, object]) -> bool:
    row = cursor.execute(SQL[statement], parameters).fetchone()
    return row is not None and bool(row[0])


class PostgresWorkers(Core):
    """See `port.Workers` for what each method promises."""

    def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        parameters = {
            "id": spec.id,
            "name": spec.name,
            "group": spec.group,
            "service": spec.service,
            "lists": list(spec.lists),
            "handlers": list(spec.handlers),
            "slots": spec.slots,
            "lease": spec.lease,
        }
        row = self._row("register", parameters)
        assert row is not None
        return worker_of(row)

    def set_worker_state(self, worker: WorkerId, state: WorkerState) -> None:
        if self._row("set_worker_state", {"worker": worker, "state": state.value}) is None:
            raise NotFound(f"there is no worker {worker}; register it first")

    def get_worker(self, worker: WorkerId) -> Worker | None:
        row = self._row("get_worker", {"worker": worker})
        return None if row is None else worker_of(row)

    def live_workers(self) -> list[Worker]:
        return [worker_of(row) for row in self._rows("live_workers", {})]

    def workers_seen(self, within: timedelta, limit: int = 1000) -> list[Worker]:
        parameters = {"within": within, "limit": limit}
        return [worker_of(row) for row in self._rows("workers_seen", parameters)]


class PostgresOutbox(Core):
    """See `port.Outbox` for what each method promises."""

    def announce(self, transaction: Transaction, entry: Announcement) -> None:
        body = json_text(check_announcement(entry), "the body")
        opened(transaction).send(
            _ANNOUNCE,
            {"topic": entry.topic, "task": entry.task, "run": entry.run, "body": body},
        )

    def read_outbox(self, after: int = 0, limit: int = 100) -> list[OutboxEntry]:
        parameters = {"after": after, "limit": limit}

        def work(cursor: Cursor[Row]) -> list[Row]:
            cursor.execute(SQL["number_outbox"], parameters)
            return cursor.execute(SQL["read_outbox"], parameters).fetchall()

        rows = self._database.run(work)
        return [
            OutboxEntry(id_, topic, task, run, body, utc(created_at))
            for id_, topic, task, run, body, created_at in rows
        ]

    def trim_outbox(self, up_to: int) -> int:
        statement = SQL["trim_outbox"]
        return self._database.run(
            lambda cursor: cursor.execute(statement, {"up_to": up_to}).rowcount
        )


class PostgresLocks(Core):
    """See `port.Locks` for what each method promises."""

    def acquire_lock(
        self, key: str, token: str, duration: timedelta, meta: Json = None
    ) -> Lock | None:
        check_lock(key, token, duration)
        parameters = {
            "key": key,
            "token": token,
            "duration": duration,
            "meta": json_text(meta, "the meta"),
        }
        return _lock(self._row("acquire_lock", parameters))

    def extend_lock(self, key: str, token: str, duration: timedelta) -> bool:
        check_lock(key, token, duration)
        parameters = {"key": key, "token": token, "duration": duration}
        return self._row("extend_lock", parameters) is not None

    def release_lock(self, key: str, token: str) -> bool:
        return self._row("release_lock", {"key": key, "token": token}) is not None

    def get_lock(self, key: str) -> Lock | None:
        return _lock(self._row("get_lock", {"key": key}))


def _lock(row: Row | None) -> Lock | None:
    return None if row is None else Lock(row[0], row[1], utc(row[2]), row[3])
