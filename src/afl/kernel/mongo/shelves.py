"""Cards and boxes, workers, the outbox, and locks for users."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pymongo import InsertOne, ReplaceOne, UpdateOne

from afl.kernel import rules
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
from afl.kernel.mongo.core import Core
from afl.kernel.mongo.rows import box_in, worker_in, worker_out
from afl.kernel.mongo.transaction import Document, MongoTransaction, opened
from afl.kernel.mongo.values import to_micros
from afl.kernel.mongo.working_set import WorkingSet
from afl.kernel.port import Transaction
from afl.kernel.requests import (
    check_announcement,
    check_cards,
    check_lock,
    check_worker,
    json_copy,
)

#: How many entries of the outbox get their numbers at once.
_AT_ONCE = 1000


class MongoCards(Core):
    """See `port.Cards` for what each method promises."""

    def put_cards(self, cards: Sequence[Card]) -> None:
        check_cards(cards)

        def work(rows: WorkingSet) -> None:
            for card in cards:
                rows.put_card(card)

        self._work(work)

    def get_cards(self, hashes: Sequence[CardHash]) -> list[Card]:
        found = self._find_cards(hashes)
        for card in hashes:
            if card not in found:
                raise _no_card(card)
        return [found[card] for card in hashes]

    def append_box(self, box: str, hashes: Sequence[CardHash], at: int) -> int:
        def work(rows: WorkingSet) -> int:
            return self._append(rows.transaction, box, list(hashes), at)

        return self._work(work)

    def read_box(self, box: str, start: int = 0) -> list[Card]:
        rows = self._database.find(
            "box_card", {"box": box, "at": {"$gte": max(start, 0)}}, sort=[("at", 1)]
        )
        hashes = [CardHash(row["card"]) for row in rows]
        found = self._find_cards(hashes)
        return [found[card] for card in hashes]

    def keep_answer(self, transaction: Transaction, call: CallId, card: CardHash) -> None:
        """Keeps both: they are packed by themselves."""
        if opened(transaction).is_over:
            raise BadRequest("the transaction is over; `writes` must not keep it")

    def _append(
        self, transaction: MongoTransaction, box: str, hashes: list[CardHash], at: int
    ) -> int:
        if transaction.find_one("task", {"_id": box}, fields={"_id": 1}) is not None:
            raise BadRequest(f"box {box} belongs to a task; it grows by the task's commits")
        known = transaction.find("card", {"_id": {"$in": hashes}}, fields={"_id": 1})
        for card in sorted(set(hashes) - {row["_id"] for row in known}):
            raise _no_card(card)
        last = transaction.find_one("box_card", {"box": box}, sort=[("at", -1)])
        length = 0 if last is None else last["at"] + 1
        end = at + len(hashes)
        if at == length:
            # the place is unique: of two that write it, one tries again  # I8
            transaction.write("box_card", *map(InsertOne, box_in(box, at, hashes)))
            return end
        if at > length or at < 0:
            raise BadRequest(
                f"box {box} has {length} cards; nothing can be put at {at}: read it again"
            )
        there = transaction.find(
            "box_card", {"box": box, "at": {"$gte": at, "$lt": end}}, sort=[("at", 1)]
        )
        if [row["card"] for row in there] != hashes:
            raise BadRequest(
                f"box {box} has other cards at {at}; somebody was faster: read it again"
            )
        return end

    def _find_cards(self, hashes: Sequence[CardHash]) -> dict[CardHash, Card]:
        rows = self._database.find("card", {"_id": {"$in": list(set(hashes))}})
        return {
            CardHash(row["_id"]): Card(
                CardHash(row["_id"]), row["kind"], self._values.unpack(row["content"])
            )
            for row in rows
        }


class MongoWorkers(Core):
    """See `port.Workers` for what each method promises."""

    def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        now = self._database.now()
        worker = Worker(
            id=spec.id,
            name=spec.name,
            group=spec.group,
            service=spec.service,
            lists=tuple(spec.lists),
            handlers=tuple(spec.handlers),
            slots=spec.slots,
            lease=spec.lease,
            state=WorkerState.STARTUP,
            started_at=now,
            seen_at=now,
            expires_at=now + spec.lease,
        )
        described = ReplaceOne({"_id": worker.id}, worker_in(worker), upsert=True)
        self._database.write("worker", [described])
        return worker

    def set_worker_state(self, worker: WorkerId, state: WorkerState) -> None:
        change = UpdateOne({"_id": worker}, {"$set": {"state": state.value}})
        if not self._database.write("worker", [change]).matched_count:
            raise NotFound(f"there is no worker {worker}; register it first")

    def get_worker(self, worker: WorkerId) -> Worker | None:
        row = self._database.find_one("worker", {"_id": worker})
        return None if row is None else worker_out(row)

    def live_workers(self) -> list[Worker]:
        now = self._database.now()
        rows = self._database.find("worker", {"expires_at": {"$gt": to_micros(now)}})
        live = (worker for worker in map(worker_out, rows) if rules.is_live(worker, now))
        return sorted(live, key=lambda worker: worker.id)

    def workers_seen(self, within: timedelta, limit: int = 1000) -> list[Worker]:
        since = to_micros(self._database.now() - within)
        rows = self._database.find(
            "worker", {"seen_at": {"$gt": since}}, sort=[("seen_at", -1), ("_id", 1)], limit=limit
        )
        return [worker_out(row) for row in rows]


class MongoOutbox(Core):
    """See `port.Outbox` for what each method promises.

    Entries get their numbers when they are first read: whoever reads sees them in the order of
    their numbers, and none comes later with a smaller one. Writers need not wait for each other.
    """

    def announce(self, transaction: Transaction, entry: Announcement) -> None:
        body = check_announcement(entry)
        open_ = opened(transaction)
        row = self._documents.entry_in(entry.topic, entry.task, entry.run, body, open_.now)
        open_.write("outbox", InsertOne(row))

    def read_outbox(self, after: int = 0, limit: int = 100) -> list[OutboxEntry]:
        if limit <= 0:
            return []
        while self._database.find_one("outbox", {"numbered": False}, {"_id": 1}) is not None:
            self._database.transact(_number)
        rows = self._database.find(
            "outbox",
            {"numbered": True, "number": {"$gt": after}},
            sort=[("number", 1)],
            limit=limit,
        )
        return [self._documents.entry_out(row) for row in rows]

    def trim_outbox(self, up_to: int) -> int:
        return self._database.delete("outbox", {"numbered": True, "number": {"$lte": up_to}})


class MongoLocks(Core):
    """See `port.Locks` for what each method promises."""

    def acquire_lock(
        self, key: str, token: str, duration: timedelta, meta: Json = None
    ) -> Lock | None:
        check_lock(key, token, duration)
        packed = self._values.pack(json_copy(meta, "the meta"))

        def work(transaction: MongoTransaction) -> Lock | None:
            held = _held(transaction, key)
            if held is not None and held["token"] != token:
                return None
            expires_at = to_micros(transaction.now + duration)
            row = {"_id": key, "token": token, "expires_at": expires_at, "meta": packed}
            transaction.write("lock", ReplaceOne({"_id": key}, row, upsert=True))
            return self._documents.lock_out(row)

        return self._database.transact(work)

    def extend_lock(self, key: str, token: str, duration: timedelta) -> bool:
        check_lock(key, token, duration)
        now = self._database.now()
        later = {"$set": {"expires_at": to_micros(now + duration)}}
        mine = UpdateOne(_mine(key, token, to_micros(now)), later)
        return bool(self._database.write("lock", [mine]).matched_count)

    def release_lock(self, key: str, token: str) -> bool:
        return bool(
            self._database.delete("lock", _mine(key, token, to_micros(self._database.now())))
        )

    def get_lock(self, key: str) -> Lock | None:
        now = to_micros(self._database.now())
        row = self._database.find_one("lock", {"_id": key, "expires_at": {"$gt": now}})
        return None if row is None else self._documents.lock_out(row)


def _mine(key: str, token: str, now: int) -> Document:
    return {"_id": key, "token": token, "expires_at": {"$gt": now}}


def _held(transaction: MongoTransaction, key: str) -> Document | None:
    now = to_micros(transaction.now)
    return transaction.find_one("lock", {"_id": key, "expires_at": {"$gt": now}})


def _number(transaction: MongoTransaction) -> None:
    """Gives numbers to entries that have none, in the order in which they were written."""
    rows = transaction.find(
        "outbox",
        {"numbered": False},
        fields={"_id": 1},
        sort=[("created_at", 1), ("_id", 1)],
        limit=_AT_ONCE,
    )
    if not rows:
        return
    # in the transaction: of two that number at once, one tries again
    counter = transaction.find_one("counter", {"_id": "outbox"})
    last = 0 if counter is None else int(counter["last"])
    transaction.write(
        "counter",
        UpdateOne({"_id": "outbox"}, {"$set": {"last": last + len(rows)}}, upsert=True),
    )
    transaction.write(
        "outbox",
        *(
            UpdateOne({"_id": row["_id"]}, {"$set": {"numbered": True, "number": number}})
            for number, row in enumerate(rows, last + 1)
        ),
    )


def _no_card(card: CardHash) -> NotFound:
    return NotFound(f"there is no card {card}; put it before it is used")
