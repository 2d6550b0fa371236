"""Cards and boxes, workers, and locks for users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from afl.kernel import rules
from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.machine.copies import card_out, lock_out
from afl.kernel.memory.core import Core
from afl.kernel.model import (
    CallId,
    Card,
    CardHash,
    Json,
    Lock,
    TaskId,
    Worker,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.port import Transaction
from afl.kernel.requests import check_cards, check_lock, check_worker, json_copy


class MemoryCards(Core):
    """See `port.Cards` for what each method promises."""

    def put_cards(self, cards: Sequence[Card]) -> None:
        check_cards(cards)
        with self._transaction as rows:
            for card in cards:
                rows.put_card(card_out(card))

    def get_cards(self, hashes: Sequence[CardHash]) -> list[Card]:
        with self._lock:
            return [card_out(self._card(card)) for card in hashes]

    def append_box(self, box: str, hashes: Sequence[CardHash], at: int) -> int:
        with self._transaction as rows:
            if TaskId(box) in rows.tasks:
                raise BadRequest(f"box {box} belongs to a task; it grows by the task's commits")
            for card in hashes:
                self._card(card)
            cards = rows.boxes.get(box, [])
            end = at + len(hashes)
            if at == len(cards):
                rows.extend_box(box, list(hashes))  # I8
            elif at > len(cards) or at < 0:
                raise BadRequest(
                    f"box {box} has {len(cards)} cards; nothing can be put at {at}: read it again"
                )
            elif cards[at:end] != list(hashes):
                raise BadRequest(
                    f"box {box} has other cards at {at}; somebody was faster: read it again"
                )
            return end

    def read_box(self, box: str, start: int = 0) -> list[Card]:
        with self._lock:
            return [card_out(self._card(card)) for card in self._rows.boxes.get(box, [])[start:]]

    def keep_answer(self, transaction: Transaction, call: CallId, card: CardHash) -> None:
        """Does nothing: what is kept twice here is one value."""
        if not self._rows.journal.is_open:
            raise BadRequest("the transaction is over; `writes` must not keep it")

    def _card(self, card: CardHash) -> Card:
        found = self._rows.cards.get(card)
        if found is None:
            raise NotFound(f"there is no card {card}; put it before it is used")
        return found


class MemoryWorkers(Core):
    """See `port.Workers` for what each method promises."""

    def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        with self._transaction as rows:
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
                started_at=rows.now,
                seen_at=rows.now,
                expires_at=rows.now + spec.lease,
            )
            rows.put_worker(worker)
            return worker

    def set_worker_state(self, worker: WorkerId, state: WorkerState) -> None:
        with self._transaction as rows:
            row = rows.workers.get(worker)
            if row is None:
                raise NotFound(f"there is no worker {worker}; register it first")
            rows.put_worker(replace(row, state=state))

    def get_worker(self, worker: WorkerId) -> Worker | None:
        with self._lock:
            return self._rows.workers.get(worker)

    def live_workers(self) -> list[Worker]:
        with self._lock:
            now = self._clock.now()
            live = (row for row in self._rows.workers.values() if rules.is_live(row, now))
            return sorted(live, key=lambda row: row.id)

    def workers_seen(self, within: timedelta, limit: int = 1000) -> list[Worker]:
        with self._lock:
            since = self._clock.now() - within
            seen = [row for row in self._rows.workers.values() if row.seen_at > since]
            seen.sort(key=lambda row: row.id)
            return sorted(seen, key=lambda row: row.seen_at, reverse=True)[:limit]


class MemoryLocks(Core):
    """See `port.Locks` for what each method promises."""

    def acquire_lock(
        self, key: str, token: str, duration: timedelta, meta: Json = None
    ) -> Lock | None:
        check_lock(key, token, duration)
        with self._transaction as rows:
            held = self._held(key)
            if held is not None and held.token != token:
                return None
            lock = Lock(key, token, rows.now + duration, json_copy(meta, "the meta"))
            rows.put_lock(key, lock)
            return lock_out(lock)

    def extend_lock(self, key: str, token: str, duration: timedelta) -> bool:
        check_lock(key, token, duration)
        with self._transaction as rows:
            held = self._held(key)
            if held is None or held.token != token:
                return False
            rows.put_lock(key, replace(held, expires_at=rows.now + duration))
            return True

    def release_lock(self, key: str, token: str) -> bool:
        with self._transaction as rows:
            held = self._held(key)
            if held is None or held.token != token:
                return False
            rows.put_lock(key, None)
            return True

    def get_lock(self, key: str) -> Lock | None:
        with self._transaction:
            held = self._held(key)
            return None if held is None else lock_out(held)

    def _held(self, key: str) -> Lock | None:
        """The lock, if somebody holds it. One that has expired goes."""
        lock = self._rows.locks.get(key)
        if lock is not None and lock.expires_at <= self._rows.now:
            self._rows.put_lock(key, None)
            return None
        return lock
