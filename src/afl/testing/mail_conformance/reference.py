"""A mailbox too simple to be wrong: a list of letters, and a clock that others move.

The backoff of a retry is between two bounds that the reference cannot know better, so a letter is
ready at some time of an interval, and what comes next may be any letter that no other surely
precedes. Times are chosen so that nothing else is in doubt (see `machine`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from afl.messaging.models import CoordinatorConfig, MailboxCounts, MessageType

VISIBILITY_ERROR = "visibility timeout"


class Place(Enum):
    """Where a letter lies. Waiting is ready or delayed, as the clock says."""

    WAITING = "waiting"
    RESERVED = "reserved"
    ACKED = "acked"
    DEAD = "dead"
    PURGED = "purged"


@dataclass(slots=True)
class Letter:
    """One message and all that the mailbox knows of it."""

    message_id: str
    type: MessageType
    priority: int
    order: int
    #: it is ready at some time from the first to the second
    ready_at: tuple[float, float]
    expires_at: float | None
    place: Place = Place.WAITING
    attempts: int = 0
    last_error: str | None = None
    token: str = ""
    deadline: float = 0.0
    reason: str = ""
    #: the how manieth it died; letters of one sweep die in any order
    died: int = 0

    def surely_precedes(self, other: Letter) -> bool:
        if self.ready_at == other.ready_at and self.ready_at[0] == self.ready_at[1]:
            return self.order < other.order
        return self.ready_at[1] < other.ready_at[0]


@dataclass(slots=True)
class Reference:
    """One mailbox."""

    config: CoordinatorConfig
    now: float = 0.0
    letters: list[Letter] = field(default_factory=list)
    remembered: dict[str, float] = field(default_factory=dict)
    subscriptions: dict[str, list[MessageType]] = field(default_factory=dict)
    _orders: int = 0
    _sweeps: int = 0

    def send(
        self,
        message_id: str,
        message_type: MessageType,
        priority: int,
        delay: float,
        ttl: float | None,
    ) -> bool:
        """Whether it is delivered."""
        if self.remembered.get(message_id, self.now) > self.now:
            return True
        if len(self.living()) >= self.config.queue_size:
            return False
        self.remembered[message_id] = self.now + self.config.dedupe_seconds
        due = self.now + delay
        expires_at = None if ttl is None else self.now + ttl
        self._orders += 1
        self.letters.append(
            Letter(message_id, message_type, priority, self._orders, (due, due), expires_at)
        )
        return True

    def sweep(self) -> int:
        """What every receipt does first; answers how many were held too long."""
        held = [each for each in self.at(Place.RESERVED) if each.deadline <= self.now]
        self._sweeps += 1
        for each in held:
            each.place, each.last_error = Place.WAITING, VISIBILITY_ERROR
            if each.attempts > self.config.retry_attempts:
                self._bury(each, "retries")
        for each in self.at(Place.WAITING):
            if each.expires_at is not None and each.expires_at <= self.now and not each.attempts:
                self._bury(each, "expired")
        return len(held)

    def next_ones(self) -> list[Letter]:
        """Those of which one is received next; more than one only if backoffs leave it open."""
        ready = self.wanted()
        if not ready:
            return []
        level = max(each.priority for each in ready)
        ready = [each for each in ready if each.priority == level]
        return [each for each in ready if not any(other.surely_precedes(each) for other in ready)]

    def wanted(self) -> list[Letter]:
        """What is ready and not filtered out."""
        wanted = {each for types in self.subscriptions.values() for each in types}
        return [each for each in self.ready() if not self.subscriptions or each.type in wanted]

    def take(self, letter: Letter, token: str, visibility: float) -> None:
        letter.place, letter.token = Place.RESERVED, token
        letter.deadline = self.now + visibility
        letter.attempts += 1

    def ack(self, token: str) -> bool:
        letter = self._held(token)
        if letter is not None:
            letter.place = Place.ACKED
        return letter is not None

    def nack(self, token: str, permanent: bool, error: str | None) -> bool:
        letter = self._held(token)
        if letter is None:
            return False
        self._sweeps += 1
        letter.last_error = error
        config = self.config
        if permanent or letter.attempts > config.retry_attempts:
            self._bury(letter, "permanent" if permanent else "retries")
            return True
        backoff = config.backoff_base * config.backoff_factor ** (letter.attempts - 1)
        backoff = min(backoff, config.backoff_max)
        letter.place = Place.WAITING
        letter.ready_at = self.now + backoff / 2, self.now + backoff
        return True

    def extend(self, token: str, visibility: float) -> bool:
        letter = self._held(token)
        if letter is not None:
            letter.deadline = self.now + visibility
        return letter is not None

    def redrive(self) -> None:
        """All of them, for which there must be room; those of one sweep in any order."""
        before = 0
        for each in sorted(self.at(Place.DEAD), key=lambda each: each.died):
            # behind everything that was ever sent
            self._orders += each.died != before
            before = each.died
            each.place, each.attempts, each.last_error = Place.WAITING, 0, None
            each.expires_at, each.order, each.ready_at = None, self._orders, (self.now, self.now)

    def purge(self) -> int:
        dead = self.at(Place.DEAD)
        for each in dead:
            each.place = Place.PURGED
        return len(dead)

    def at(self, *places: Place) -> list[Letter]:
        return [each for each in self.letters if each.place in places]

    def living(self) -> list[Letter]:
        return self.at(Place.WAITING, Place.RESERVED)

    def ready(self) -> list[Letter]:
        return [each for each in self.at(Place.WAITING) if each.ready_at[1] <= self.now]

    def counts(self) -> MailboxCounts:
        ready = len(self.ready())
        return MailboxCounts(
            sent=len(self.letters),
            ready=ready,
            delayed=len(self.at(Place.WAITING)) - ready,
            reserved=len(self.at(Place.RESERVED)),
            acked=len(self.at(Place.ACKED)),
            dead=len(self.at(Place.DEAD)),
            purged=len(self.at(Place.PURGED)),
        )

    def _held(self, token: str) -> Letter | None:
        for each in self.at(Place.RESERVED):
            if each.token == token and each.deadline > self.now:
                return each
        return None

    def _bury(self, letter: Letter, reason: str) -> None:
        letter.place, letter.reason, letter.died = Place.DEAD, reason, self._sweeps
