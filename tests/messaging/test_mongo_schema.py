"""The collections of mailboxes: what they refuse, and that they are read by their indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo.errors import WriteError

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.values import to_micros
from afl.messaging.models import AgentId, FailureType, MessageType
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.testing.mail_conformance.driver import message
from tests.kernel.mongo.databases import server_is_there
from tests.kernel.mongo.profiling import profiled
from tests.messaging.mongo_harness import clear_mail, mail_database

AGENT = AgentId(type="worker", instance="7")
_HOUR = 3_600_000_000
_MANY = 20_000
_BODY = (
    '{"message_id": "filler", "sender": {"type": "s"}, "recipient": {"type": "r"}, '
    '"message_type": "event"}'
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    if not server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with mail_database() as url:
        database = Database(url)
        yield database
        database.close()


def _letter(number: int, now: int, **more: object) -> dict[str, Any]:
    return {
        "_id": f"{number:09}",
        "recipient": f"worker:{number % 50}",
        "message_id": f"id{number}",
        "type": "event",
        "priority": (1, 5, 9)[number % 3],
        "body": _BODY,
        "sent_at": now,
        "attempts": 0,
        "last_error": None,
        **more,
    }


def _waiting(number: int, now: int) -> dict[str, Any]:
    ready, expires = now + (number % 5 - 4) * _HOUR, now + (number % 7 + 1) * _HOUR
    return _letter(number, now, held=False, ready_at=ready, expires_at=expires)


def _held(number: int, now: int) -> dict[str, Any]:
    hold = {"receipt": f"r{number}", "place": 0, "deadline": now + _HOUR}
    return _letter(number, now, held=True, ready_at=now, **hold) | {"attempts": 1}


def _dead(number: int, now: int) -> dict[str, Any]:
    return _letter(number, now, reason="retries", died_at=now + number)


def _fill(database: Database) -> None:
    """Documents enough for an index to be worth its while."""
    clear_mail(database)
    now, numbers = to_micros(database.now()), range(_MANY)
    letters = [_waiting(n, now) if n % 4 else _held(n, now) for n in numbers]
    database.collection("mail").insert_many(letters)
    database.collection("mail_dead").insert_many(_dead(n, now) for n in numbers)
    seen = ({"_id": f"worker:{n % 50} id{n}", "until": now + _HOUR} for n in numbers)
    database.collection("mail_seen").insert_many(seen)
    slots = (
        {"_id": f"worker:{n} +{s}", "recipient": f"worker:{n}", "sent": 10, "living": 10}
        for n in range(1000)
        for s in range(16)
    )
    database.collection("mailbox").insert_many(slots)
    answers = ({"_id": f"answer{n}", "answer": "", "at": now} for n in numbers)
    database.collection("mail_answer").insert_many(answers)


async def _everything(coordinator: MongoMessageCoordinator) -> None:
    """Each question but those about all mailboxes."""
    sent = message(recipient=AGENT)
    assert (await coordinator.send_message(sent.sender, AGENT, sent)).delivered
    for failure in FailureType:
        received = await coordinator.receive(AGENT, 60)
        assert received is not None
        assert await coordinator.extend(AGENT, received.token, 60)
        assert await coordinator.nack(AGENT, received.token, failure)
    for received in await coordinator.receive_batch(AGENT, 3, 60):
        assert await coordinator.ack(AGENT, received.token)
    await coordinator.receive(AGENT, 0.0)
    assert await coordinator.recover_pending(AGENT) == 1
    assert len(await coordinator.peek(AGENT, 3)) == 3
    assert len(await coordinator.dead_letters(AGENT, 3)) == 3
    assert await coordinator.receive(AgentId(type="nobody")) is None
    assert await coordinator.redrive(AGENT, "id-nobody-has") == 0
    assert await coordinator.purge(AGENT, "id-nobody-has") == 0
    assert (await coordinator.counts(AGENT)).ready > 100
    subscription = coordinator.subscribe_to_messages(AGENT, [MessageType.RESPONSE])
    assert await coordinator.receive(AGENT) is None
    coordinator.unsubscribe(subscription)


def test_no_question_reads_a_whole_collection(database: Database) -> None:
    _fill(database)
    coordinator = MongoMessageCoordinator(database)
    with profiled(database) as profile:
        asyncio.run(_everything(coordinator))
        asyncio.run(coordinator.configure(fairness="weighted"))
        asyncio.run(_everything(coordinator))
        # a mailbox has 400 living and 400 dead letters
        assert len(profile.questions()) > 100
        assert profile.whole(1000) == []


def test_receiving_reads_no_more_than_it_takes(database: Database) -> None:
    """Neither what is delayed nor what others hold, however much there is of it."""
    _fill(database)
    coordinator = MongoMessageCoordinator(database)
    with profiled(database) as profile:
        assert asyncio.run(coordinator.receive(AGENT, 60)) is not None
        assert len(asyncio.run(coordinator.receive_batch(AGENT, 5, 60))) == 5
        assert len(profile.questions()) >= 4
        assert profile.whole(30) == []
        assert not any(each.get("hasSortStage") for each in profile.questions())


def test_all_mailboxes_are_recovered_by_reading_what_is_held(database: Database) -> None:
    _fill(database)
    coordinator = MongoMessageCoordinator(database)
    with profiled(database) as profile:
        assert asyncio.run(coordinator.recover_pending()) == 0
        assert all("COLLSCAN" not in each.get("planSummary", "") for each in profile.questions())


@pytest.mark.parametrize(
    ("collection", "document"),
    [
        ("mailbox", {"_id": "config", "recipient": "", "queue_size": 0}),
        ("mailbox", {"_id": "config", "recipient": "", "fairness": "random"}),
        ("mailbox", {"_id": "config", "recipient": "", "backoff_base": 0.0}),
        ("mailbox", {"_id": "a", "recipient": "a", "subscriptions": [{"id": "s", "types": []}]}),
        (
            "mailbox",
            {"_id": "a", "recipient": "a", "subscriptions": [{"id": "s", "types": ["gossip"]}]},
        ),
        ("mail", {**_waiting(1, 1), "priority": 7}),
        ("mail", {**_waiting(1, 1), "type": "gossip"}),
        ("mail", {**_waiting(1, 1), "deadline": 1}),
        ("mail", {**_waiting(1, 1), "held": True}),
        ("mail", {**_held(1, 1), "attempts": 0}),
        ("mail", {**_held(1, 1), "held": False}),
        ("mail_dead", {**_dead(1, 1), "reason": "bored"}),
        ("mail_seen", {"_id": "a b"}),
    ],
)
def test_the_collections_refuse_what_cannot_be(
    database: Database, collection: str, document: dict[str, Any]
) -> None:
    with pytest.raises(WriteError, match="failed validation"):
        database.collection(collection).insert_one(document)


def test_the_collections_take_what_can_be(database: Database) -> None:
    clear_mail(database)
    for collection, document in (
        ("mail", _waiting(1, 1)),
        ("mail", _held(2, 1)),
        ("mail_dead", _dead(1, 1)),
    ):
        database.collection(collection).insert_one(document)
    assert len(database.find("mail", {})) == 2
