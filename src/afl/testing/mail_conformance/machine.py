"""Random games against a coordinator. Needs hypothesis.

Each step does the same to the reference and to the coordinators, of which there are two on one
mailbox, and compares: the answers, then the counts, which must add up. Tokens are stale on
purpose, ids come twice, answers are lost and repeated, time jumps.

    TestGames = mail_machine(MemoryHarness).TestCase
    TestGames.settings = settings(max_examples=100)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from afl.messaging.models import (
    AgentId,
    CoordinatorConfig,
    DeadLetter,
    FailureType,
    MessageSubscription,
    MessageType,
    ReceivedMessage,
)
from afl.testing.mail_conformance.driver import Driver, id_of, in_balance, message
from afl.testing.mail_conformance.harness import Harness
from afl.testing.mail_conformance.reference import Letter, Place, Reference

#: Time moves by thousands of seconds. Durations are halves of thousands and backoffs end between
#: 300 and 600 seconds, so that no moment is near another, where two clocks could disagree.
_STEP_SECONDS = 1000.0
_BACKOFF_SECONDS = 600.0

_durations = st.sampled_from([500.0, 1500.0, 4500.0])
_index = st.integers(0, 99)
_side = st.integers(0, 1)
_lost = st.sampled_from([False, False, True])
_hows = st.sampled_from(
    ["ack", "ack", "extend", "transient", "transient one", "timeout two", "permanent three"]
)
_examples = count()


@dataclass(frozen=True, slots=True)
class _Letter:
    """A message to be sent."""

    number: int
    type: MessageType
    priority: int
    delay: float
    ttl: float | None


_letters = st.builds(
    _Letter,
    number=st.integers(0, 30),
    type=st.sampled_from(MessageType),
    priority=st.sampled_from([1, 5, 5, 5, 9]),
    delay=st.sampled_from([0.0, 0.0, 0.0, 500.0, 2500.0]),
    ttl=st.sampled_from([None, None, 500.0, 1500.0]),
)


def _move(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(name), st.fixed_dictionaries(fields))


_receive = _move(
    "receive",
    side=_side,
    visibility=_durations,
    lost=_lost,
    hows=st.lists(st.none() | _hows, min_size=1, max_size=4),
)
_moves = st.one_of(
    _move("send", side=_side, letters=st.lists(_letters, min_size=1, max_size=4), lost=_lost),
    _receive,
    _receive,
    _move("settle", side=_side, index=_index, how=_hows, visibility=_durations, lost=_lost),
    _move("advance", steps=st.sampled_from([1, 1, 2, 5, 100])),
    _move("look_at_the_living", side=_side, recover=st.booleans()),
    _move("look_at_the_dead", side=_side, then=st.sampled_from(["redrive", "purge", "leave"])),
    _move(
        "subscribe",
        side=_side,
        types=st.lists(st.sampled_from(MessageType), min_size=1, unique=True),
    ),
)


class MailMachine(RuleBasedStateMachine):
    """One mailbox, two coordinators, one reference."""

    factory: ClassVar[Callable[[], Harness]]

    def __init__(self) -> None:
        super().__init__()
        self.harness = type(self).factory()
        agent = AgentId(type="game", instance=str(next(_examples)))
        self.sides = [Driver(self.harness, agent=agent) for _ in range(2)]
        self.tokens = ["res_unknown"]
        self.subscriptions: list[MessageSubscription] = []
        self.reference = Reference(CoordinatorConfig())

    @initialize(
        queue_size=st.sampled_from([2, 5, 100]),
        retry_attempts=st.integers(0, 2),
        dedupe_seconds=st.sampled_from([1500.0, 86_400.5]),
    )
    def settle_on(self, queue_size: int, retry_attempts: int, dedupe_seconds: float) -> None:
        config = CoordinatorConfig(
            queue_size=queue_size,
            retry_attempts=retry_attempts,
            dedupe_seconds=dedupe_seconds,
            backoff_base=_BACKOFF_SECONDS,
            backoff_factor=1.0,
            backoff_max=_BACKOFF_SECONDS,
        )
        self.sides[0].configure(**config.model_dump(exclude={"version"}))
        self.reference = Reference(config)

    @rule(move=_moves)
    def play(self, move: tuple[str, dict[str, Any]]) -> None:
        """One rule for all moves, or whole games would pass without some of them."""
        name, fields = move
        getattr(self, name)(**fields)

    def send(self, side: int, letters: list[_Letter], lost: bool) -> None:
        for letter in letters:
            message_id = f"number-{letter.number}"
            delivered = self.reference.send(
                message_id, letter.type, letter.priority, letter.delay, letter.ttl
            )
            sent = message(
                message_id,
                self.sides[side].agent,
                letter.type,
                priority=letter.priority,
                delay_seconds=letter.delay,
                ttl_seconds=letter.ttl,
                payload={"number": letter.number},
            )
            result = self._driver(side, lost).deliver(sent)
            assert (result.message_id, result.delivered) == (message_id, delivered)

    def receive(self, side: int, visibility: float, lost: bool, hows: list[str | None]) -> None:
        """Some, of which some are settled at once."""
        self.reference.sweep()
        limit = len(hows)
        batch = self._driver(side, lost).batch(limit, visibility)
        assert len(batch) == min(limit, len(self.reference.wanted()))
        for received in batch:
            assert received.token not in self.tokens
            letter = self._expected(received)
            self.reference.take(letter, received.token, visibility)
            self.tokens.append(received.token)
            number = int(letter.message_id.removeprefix("number-"))
            assert received.queue_message.message.payload == {"number": number}
        for received, how in zip(batch, hows, strict=False):
            if how is not None:
                self._settle(self._driver(side, lost), received.token, how, visibility)

    def settle(self, side: int, index: int, how: str, visibility: float, lost: bool) -> None:
        """One that was received lately, and maybe is lost."""
        token = self.tokens[-1 - index % min(len(self.tokens), 6)]
        self._settle(self._driver(side, lost), token, how, visibility)

    def advance(self, steps: int) -> None:
        self.harness.advance(steps * _STEP_SECONDS)
        self.reference.now += steps * _STEP_SECONDS

    def look_at_the_living(self, side: int, recover: bool) -> None:
        if recover:
            assert self.sides[side].recover() == self.reference.sweep()
        peeked = self.sides[side].peek(100)
        assert Counter(peeked) == Counter(each.message_id for each in self.reference.wanted())
        firsts = [each.message_id for each in self.reference.next_ones()]
        assert not peeked or peeked[0] in firsts

    def look_at_the_dead(self, side: int, then: str) -> None:
        dead = self.reference.at(Place.DEAD)
        assert Counter(_epitaph(letter) for letter in self.sides[side].dead()) == Counter(
            (each.message_id, each.attempts, each.last_error, each.reason) for each in dead
        )
        room = self.reference.config.queue_size - len(self.reference.living())
        if then == "purge":
            assert self.sides[side].purge() == self.reference.purge()
        elif then == "redrive" and len(dead) <= room:
            # which of them fit would depend on the order in which one sweep has buried them
            assert self.sides[side].redrive() == len(dead)
            self.reference.redrive()

    def subscribe(self, side: int, types: list[MessageType]) -> None:
        """Half of the time; else it takes all subscriptions back."""
        driver = self.sides[side]
        if self.subscriptions:
            for each in self.subscriptions:
                driver.coordinator.unsubscribe(each)
            self.subscriptions.clear()
            self.reference.subscriptions.clear()
        else:
            made = driver.coordinator.subscribe_to_messages(driver.agent, types)
            self.subscriptions.append(made)
            self.reference.subscriptions[made.subscription_id] = types
        driver.peek(1)  # it is known to everybody when its coordinator has done something

    @invariant()
    def every_message_is_somewhere_once(self) -> None:
        counts = self.sides[0].counts()
        assert counts == self.reference.counts()
        assert in_balance(counts)

    def teardown(self) -> None:
        self.harness.close()

    def _driver(self, side: int, lost: bool) -> Driver:
        if lost:
            self.harness.lose_answer(self.sides[side].coordinator)
        return self.sides[side]

    def _settle(self, driver: Driver, token: str, how: str, visibility: float) -> None:
        if how == "ack":
            assert driver.ack(token) == self.reference.ack(token)
        elif how == "extend":
            assert driver.extend(token, visibility) == self.reference.extend(token, visibility)
        else:
            failure, _, error = how.partition(" ")
            expected = self.reference.nack(token, failure == "permanent", error or None)
            assert driver.nack(token, FailureType(failure), error or None) == expected

    def _expected(self, received: ReceivedMessage) -> Letter:
        shown = received.queue_message
        candidates = [
            each
            for each in self.reference.next_ones()
            if (each.message_id, each.attempts + 1, each.last_error, each.priority)
            == (id_of(received), shown.delivery_attempts, shown.last_error, shown.priority)
        ]
        assert candidates, f"{shown} was not next: {self.reference.next_ones()}"
        return candidates[0]


def mail_machine(factory: Callable[[], Harness]) -> type[MailMachine]:
    """A machine that plays each game on the mailboxes of a new harness."""
    return type("MailMachine", (MailMachine,), {"factory": staticmethod(factory)})


def _epitaph(letter: DeadLetter) -> tuple[str, int, str | None, str]:
    shown = letter.queue_message
    return shown.message.message_id, shown.delivery_attempts, shown.last_error, letter.reason
