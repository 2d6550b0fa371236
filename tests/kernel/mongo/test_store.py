"""What only a MongoDB can get wrong: rules of documents, long values, races, and its absence."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from pymongo import InsertOne, UpdateOne
from pymongo.errors import BulkWriteError

from afl.kernel.errors import BadRequest, StoreUnavailable
from afl.kernel.model import (
    CallSpec,
    Card,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.mongo import values
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.rules import card_hash
from tests.kernel.round_trip import check_round_trip

HOUR = timedelta(hours=1)
WORKER = WorkerId("w")


@pytest.fixture
def store(url: str) -> Iterator[MongoStore]:
    with MongoStore.connect(url) as store:
        store.register(WorkerSpec(WORKER, "w", handlers=("work", "tool"), lease=HOUR))
        yield store


def enqueue(store: MongoStore, **more: Any) -> Task:  # noqa: ANN401
    return store.enqueue([TaskSpec("event", "work", **more)])[0]


def take(store: MongoStore) -> Claim:
    (claim,) = store.claim(ClaimRequest(WORKER, ("work",)))
    return claim


def call(key: str) -> CallSpec:
    return CallSpec(key, TaskSpec("tool", "tool"), HOUR)


class TestRules:
    """A mistake in the code hits one of these before it reaches a user."""

    @pytest.mark.parametrize(
        "change",
        [
            {"state": "paused"},
            {"state": "running"},
            {"fence": 1},
            {"worker": "w"},
            {"state": "closed"},
            {"outcome": "success"},
            {"outcome": "fine"},
            {"closed_at": 1},
            {"alive": False},
            {"dead": True},
            {"state": "queued"},
            {"state": "waiting"},
            {"depth": 21},
            {"seq": -1},
            {"open_calls": -1},
        ],
        ids=str,
    )
    def test_of_a_task(self, store: MongoStore, change: dict[str, object]) -> None:
        task = enqueue(store)
        with pytest.raises(BulkWriteError, match="failed validation"):
            store.database.write("task", [UpdateOne({"_id": task.id}, {"$set": change})])

    @pytest.mark.parametrize(
        "change", [{"status": "ok"}, {"status": "well"}, {"applied": True}], ids=str
    )
    def test_of_a_call(self, store: MongoStore, change: dict[str, object]) -> None:
        enqueue(store)
        calls = store.commit([Commit(take(store).fence, Suspend(), calls=(call("k"),))])[0].calls
        with pytest.raises(BulkWriteError, match="failed validation"):
            store.database.write("call", [UpdateOne({"_id": calls["k"]}, {"$set": change})])

    def test_what_there_is_only_once(self, store: MongoStore) -> None:
        first, second = enqueue(store, lane="one"), enqueue(store, lane="two")
        lane = UpdateOne({"_id": second.id}, {"$set": {"lane": "one"}})  # I2
        with pytest.raises(BulkWriteError, match="lane_holder"):
            store.database.write("task", [lane])
        run = {"state": "running", "worker": "w", "fence": 10**9, "last_fence": 10**9}  # I1
        store.database.write("task", [UpdateOne({"_id": first.id}, {"$set": run})])
        with pytest.raises(BulkWriteError, match="fence"):
            store.database.write("task", [UpdateOne({"_id": second.id}, {"$set": run})])


def test_every_field_of_a_spec_comes_back(store: MongoStore) -> None:
    check_round_trip(store)


@pytest.mark.parametrize("key", ["$where", "$set", "a.b", "", "_id", "\u2028"])
def test_keys_that_mean_something_to_the_database_mean_nothing(store: MongoStore, key: str) -> None:
    value: Json = {key: {"$gt": ""}, "deep": [{key: 1}]}
    task = enqueue(store, input=value)
    done = store.commit([Commit(take(store).fence, Close(Outcome.SUCCESS, value))])[0]
    assert done.task.input == done.task.result == value
    assert store.get_task(task.id) == done.task


class TestLongValues:
    def test_they_stand_beside_the_document(self, store: MongoStore) -> None:
        """Longer than a document of MongoDB may be."""
        text = "é" * (9 * 1024 * 1024)
        task = enqueue(store, input={"text": text})
        assert task.input == {"text": text}
        assert store.get_task(task.id) == task
        row = store.database.find_one("task", {"_id": task.id})
        assert row is not None
        assert set(row["input"]) == {"blob", "pieces"}
        claim = take(store)
        assert claim.task.input == task.input
        card = Card(card_hash("k", [text]), "k", [text])
        store.put_cards([card])
        assert store.get_cards([card.hash]) == [card]

    def test_the_same_value_is_kept_once(self, store: MongoStore) -> None:
        for _ in range(3):
            enqueue(store, input="x" * values.MAX_INLINE)
        assert len(store.database.find("blob", {})) == 1

    def test_there_is_a_limit(self, store: MongoStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(values, "MAX_VALUE", values.MAX_INLINE + 100)
        with pytest.raises(BadRequest, match="keep it as a file"):
            enqueue(store, input="x" * (values.MAX_INLINE + 200))
        assert store.find_tasks() == []


class TestRaces:
    def test_work_that_lost_a_race_is_done_again_whole(self, store: MongoStore) -> None:
        database, tries = store.database, 0

        def work(transaction: MongoTransaction) -> int:
            nonlocal tries
            tries += 1
            row = transaction.find_one("mark", {"_id": "count"})
            if tries == 1:
                database.write("mark", [InsertOne({"_id": "count", "n": 41})])
            n = 0 if row is None else row["n"]
            new = UpdateOne({"_id": "count"}, {"$set": {"n": n + 1}}, upsert=True)
            transaction.write("mark", new)
            return int(n) + 1

        assert database.transact(work) == 42
        assert tries == 2

    def test_many_at_once_make_one_task_of_an_idem(self, store: MongoStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = set(pool.map(lambda _: enqueue(store, idem="once").id, range(16)))
        assert len(made) == 1
        assert len(store.find_tasks()) == 1

    def test_of_many_answers_at_once_the_last_wakes_the_caller(self, store: MongoStore) -> None:
        """Each sees the others' calls open in its own snapshot; none may rely on that."""
        enqueue(store)
        keys = [f"k{number}" for number in range(8)]
        store.commit([Commit(take(store).fence, Suspend(), calls=tuple(map(call, keys)))])
        claims = store.claim(ClaimRequest(WORKER, ("tool",), n=8))
        done = Close(Outcome.SUCCESS)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda claim: store.commit([Commit(claim.fence, done)]), claims))
        assert len(take(store).replies) == 8

    def test_a_lane_has_one_holder_and_forgets_nobody(self, store: MongoStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: enqueue(store, lane="l"), range(12)))
        ended = 0
        while claims := store.claim(ClaimRequest(WORKER, ("work",), n=12)):
            assert len(claims) == 1  # I2
            store.commit([Commit(claims[0].fence, Close(Outcome.SUCCESS))])
            ended += 1
        assert ended == 12  # I7
        assert store.database.find("lane", {}) == []


def test_an_outbox_reader_misses_nothing(store: MongoStore) -> None:
    """An entry that was written first but committed last comes last."""

    def slow(transaction: MongoTransaction) -> None:
        entry = {"topic": "slow", "task": "t", "run": "r", "body": None, "created_at": 0}
        transaction.update("outbox", InsertOne({**entry, "numbered": False}))
        if not seen:
            store.stop(enqueue(store).id)
            seen.extend(store.read_outbox())

    seen: list[Any] = []
    store.database.transact(slow)
    assert [entry.topic for entry in seen] == ["closed"]
    (late,) = store.read_outbox(after=seen[0].id)
    assert late.topic == "slow"
    assert store.trim_outbox(late.id) == 2
    assert store.read_outbox() == []


def test_a_server_that_is_not_there_is_unavailable() -> None:
    database = Database("mongodb://127.0.0.1:1/afl", timeout_seconds=0.3)
    store = MongoStore(database)
    with pytest.raises(StoreUnavailable):
        store.enqueue([TaskSpec("event", "work")])
    with pytest.raises(StoreUnavailable):
        store.get_task(TaskId("t"))
    store.close()


@pytest.mark.parametrize(
    "url", ["mongodb://", "mongodb://a:b:c@x", "mongodb://h/?w=yes&replicaSet"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="no URL of a MongoDB"):
        Database(url)
