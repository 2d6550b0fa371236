"""One agent's mailbox as plain data. The caller tells it the time, and keeps others away."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from afl.messaging.models import CoordinatorConfig, FailureType, MailboxCounts
from afl.messaging.rules import (
    EXPIRED,
    HELD_TOO_LONG,
    LEVELS,
    backoff_seconds,
    deal,
    verdict,
    wanted_types,
)


@dataclass(slots=True)
class Letter:
    """A message and all that is known of it."""

    message_id: str
    text: str
    type: str
    priority: int
    order: int
    sent_at: float
    ready_at: float
    expires_at: float | None
    attempts: int = 0
    last_error: str | None = None
    token: str = ""
    deadline: float = 0.0
    reason: str = ""
    died_at: float = 0.0

    def place(self) -> tuple[float, int]:
        """Where it stands in its level."""
        return self.ready_at, self.order


@dataclass(frozen=True, slots=True)
class Nacked:
    """What became of a message that was not processed: the wait before it comes again, or the
    reason why it is dead."""

    backoff_seconds: float = 0.0
    reason: str | None = None


class MemoryMailbox:
    """What was sent to one agent: waiting, in somebody's hands, or dead."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, frozenset[str]] = {}
        self._waiting: dict[int, list[Letter]] = {level: [] for level in LEVELS}
        self._held: dict[str, Letter] = {}
        self._dead: dict[int, Letter] = {}
        self._expiring: list[tuple[float, int, Letter]] = []
        self._known: dict[str, float] = {}
        self._orders = count()
        self._deaths = count()
        self._turn = 0
        self._sent = self._acked = self._purged = 0

    def send(self, letter: Letter, config: CoordinatorConfig, now: float) -> bool | None:
        """Whether it is in the mailbox now; None if it has been sent before."""
        self._forget(now)
        if letter.message_id in self._known:
            return None
        if self._room(config) < 1:
            return False
        self._known[letter.message_id] = now + config.dedupe_seconds
        self._sent += 1
        letter.order = next(self._orders)
        if letter.expires_at is not None:
            heapq.heappush(self._expiring, (letter.expires_at, letter.order, letter))
        self._put(letter)
        return True

    def sweep(self, config: CoordinatorConfig, now: float) -> tuple[int, int]:
        """Takes back what is held too long, buries what nobody came for in time; tells how many
        were held too long and how many are dead now."""
        late = [each for each in self._held.values() if each.deadline <= now]
        before = len(self._dead)
        for letter in sorted(late, key=lambda each: each.deadline):
            del self._held[letter.token]
            letter.last_error = HELD_TOO_LONG
            reason = verdict(letter.attempts, config.retry_attempts, None)
            self._put(letter) if reason is None else self._bury(letter, reason, now)
        while self._expiring and self._expiring[0][0] <= now:
            letter = heapq.heappop(self._expiring)[2]
            # whoever was received, or redriven, waits as long as it takes
            if letter.expires_at is not None:
                self._waiting[letter.priority].remove(letter)
                self._bury(letter, EXPIRED, now)
        return len(late), len(self._dead) - before

    def receive(
        self, tokens: Iterator[str], limit: int, deadline: float, fairness: str, now: float
    ) -> list[Letter]:
        """The next ones, now in the hands of whoever has the tokens."""
        taken = list(islice(self._in_order(limit, fairness, now), limit))
        for letter in taken:
            self._waiting[letter.priority].remove(letter)
            letter.attempts += 1
            letter.expires_at = None
            letter.token, letter.deadline = next(tokens), deadline
            self._held[letter.token] = letter
        self._turn += len(taken)
        return taken

    def peek(self, limit: int, fairness: str, now: float) -> list[Letter]:
        return list(islice(self._in_order(limit, fairness, now), limit))

    def ack(self, token: str, now: float) -> bool:
        letter = self._taken_back(token, now)
        self._acked += letter is not None
        return letter is not None

    def nack(
        self,
        token: str,
        failure: FailureType,
        error: str | None,
        config: CoordinatorConfig,
        chance: Callable[[], float],
        now: float,
    ) -> Nacked | None:
        """What became of it; None if the token has lost it."""
        letter = self._taken_back(token, now)
        if letter is None:
            return None
        letter.last_error = error
        reason = verdict(letter.attempts, config.retry_attempts, failure)
        if reason is not None:
            self._bury(letter, reason, now)
            return Nacked(reason=reason)
        backoff = backoff_seconds(config, letter.attempts, chance())
        letter.ready_at = now + backoff
        self._put(letter)
        return Nacked(backoff)

    def extend(self, token: str, deadline: float, now: float) -> bool:
        letter = self._held.get(token)
        if letter is None or letter.deadline <= now:
            return False
        letter.deadline = deadline
        return True

    def redrive(self, message_id: str | None, config: CoordinatorConfig, now: float) -> int:
        redriven = self._dead_ones(message_id)[: max(0, self._room(config))]
        for number in redriven:
            letter = self._dead.pop(number)
            letter.attempts, letter.last_error, letter.expires_at = 0, None, None
            letter.ready_at, letter.order = now, next(self._orders)
            self._put(letter)
        return len(redriven)

    def purge(self, message_id: str | None) -> int:
        purged = self._dead_ones(message_id)
        for number in purged:
            del self._dead[number]
        self._purged += len(purged)
        return len(purged)

    def dead(self, limit: int) -> list[Letter]:
        return list(islice(self._dead.values(), limit))

    def counts(self, now: float) -> MailboxCounts:
        waiting = sum(map(len, self._waiting.values()))
        ready = sum(each.ready_at <= now for letters in self._waiting.values() for each in letters)
        return MailboxCounts(
            sent=self._sent,
            ready=ready,
            delayed=waiting - ready,
            reserved=len(self._held),
            acked=self._acked,
            dead=len(self._dead),
            purged=self._purged,
        )

    def _in_order(self, limit: int, fairness: str, now: float) -> Iterator[Letter]:
        wanted = wanted_types(list(self.subscriptions.values()))
        queues: dict[int, list[Letter]] = {
            level: list(islice(self._ready(level, wanted, now), limit)) for level in LEVELS
        }
        return deal(queues, fairness, self._turn)

    def _ready(self, level: int, wanted: frozenset[str] | None, now: float) -> Iterator[Letter]:
        for letter in self._waiting[level]:
            if letter.ready_at > now:
                return
            if wanted is None or letter.type in wanted:
                yield letter

    def _put(self, letter: Letter) -> None:
        letter.token = ""
        insort(self._waiting[letter.priority], letter, key=Letter.place)

    def _bury(self, letter: Letter, reason: str, now: float) -> None:
        letter.token, letter.reason, letter.died_at = "", reason, now
        self._dead[next(self._deaths)] = letter

    def _taken_back(self, token: str, now: float) -> Letter | None:
        """The letter that this token still has, out of its hands."""
        letter = self._held.get(token)
        if letter is None or letter.deadline <= now:
            return None
        return self._held.pop(token)

    def _dead_ones(self, message_id: str | None) -> list[int]:
        return [
            number
            for number, letter in self._dead.items()
            if message_id is None or letter.message_id == message_id
        ]

    def _room(self, config: CoordinatorConfig) -> int:
        living = len(self._held) + sum(map(len, self._waiting.values()))
        return config.queue_size - living

    def _forget(self, now: float) -> None:
        # in the order of sending, so nearly in that of their ends
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest] > now:
                return
            del self._known[oldest]
