"""What only the server's store in MongoDB has: indexes to go by, and rules of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from pymongo.errors import BulkWriteError, WriteError

from afl.kernel.errors import BadRequest
from afl.kernel.model import Json
from afl.server.mongo_store import MongoServerStore
from afl.server.store import AuditEntry
from tests.kernel.mongo.databases import empty_database, server_is_there
from tests.server.test_store import JOB, NOW, TOKEN

DAY = 24 * 3600 * 1_000_000


def test_answers_are_forgotten_after_a_day(mongo_store: MongoServerStore) -> None:
    answers = mongo_store._database.collection("server_answer")
    mongo_store.remember("old", 1)
    answers.update_many({}, {"$inc": {"kept_at": -DAY}})
    assert mongo_store.recall("old") is None
    assert mongo_store.remember("old", 2) == 2
    mongo_store.remember("other", 3)
    assert sorted(each["_id"] for each in answers.find()) == ["old", "other"]
    answers.update_many({"_id": "old"}, {"$inc": {"kept_at": -DAY}})
    mongo_store.remember("third", 4)
    assert sorted(each["_id"] for each in answers.find()) == ["other", "third"]


def test_what_json_may_have_comes_back(mongo_store: MongoServerStore) -> None:
    odd: dict[str, Json] = {"$set": {"a.b": 10**30, "\0": "\ud800"}, "": [None, 1.5]}
    assert mongo_store.remember("odd", odd) == odd
    assert mongo_store.recall("odd") == odd
    first = mongo_store.begin_audit(AuditEntry("a", "admin", "*", "POST /x", "", 0, odd))
    mongo_store.end_audit(first, 200, {"$inc": 1})
    assert mongo_store.audit()[0].detail == {**odd, "$inc": 1}
    mongo_store.put_job(replace(JOB, form=odd, failures=[odd]))
    assert mongo_store.job("j1") == replace(JOB, form=odd, failures=[odd])


def test_of_many_servers_one_takes_a_job(mongo_store: MongoServerStore) -> None:
    for number in range(3):
        mongo_store.put_job(replace(JOB, id=f"j{number}"))
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda n: mongo_store.take_job(f"s{n}", 60), range(8)))
    assert sorted(job.id for job in taken if job is not None) == ["j0", "j1", "j2"]


def test_entries_that_are_written_at_once_have_ids_of_their_own(
    mongo_store: MongoServerStore,
) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = list(
            pool.map(
                lambda n: mongo_store.begin_audit(AuditEntry(str(n), "admin", "*", "x", "")),
                range(40),
            )
        )
    assert len(set(ids)) == 40
    found: list[int] = []
    while page := mongo_store.audit(before=found[-1] if found else None, limit=7):
        found += [each.id for each in page]
    assert found == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("collection", "where", "sort"),
    [
        ("server_token", {"digest": b"x"}, {}),
        ("server_token", {}, {"created_at": 1, "_id": 1}),
        ("server_audit", {"_id": {"$lt": 9}}, {"_id": -1}),
        ("server_audit", {"tenant": "a", "_id": {"$lt": 9}}, {"_id": -1}),
        (
            "server_view",
            {"tenant": "a", "$or": [{"owner": "b"}, {"shared": True}]},
            {"name": 1, "_id": 1},
        ),
        ("server_job", {"_id": {"$lt": "j"}}, {"_id": -1}),
        (
            "server_job",
            {"state": "running", "$or": [{"taken_until": None}, {"taken_until": {"$lte": 1}}]},
            {"_id": 1},
        ),
        ("server_answer", {"kept_at": {"$lte": 1}}, {}),
    ],
)
def test_what_is_asked_for_has_an_index(
    mongo_store: MongoServerStore, collection: str, where: dict[str, Any], sort: dict[str, int]
) -> None:
    find = {"find": collection, "filter": where, "sort": sort}
    told = mongo_store._database.command("explain", find, verbosity="queryPlanner")
    plan = str(told["queryPlanner"]["winningPlan"])
    assert "IXSCAN" in plan
    assert "COLLSCAN" not in plan
    assert "'SORT'" not in plan


def test_the_schema_refuses_what_is_no_token_or_job(mongo_store: MongoServerStore) -> None:
    with pytest.raises(BulkWriteError, match="failed validation"):
        mongo_store.add_token(replace(TOKEN, role="king"))
    mongo_store.put_job(JOB)
    jobs = mongo_store._database.collection("server_job")
    for changes in ({"state": "lost"}, {"taken_by": "me"}, {"taken_until": 1}):
        with pytest.raises(WriteError, match="failed validation"):
            jobs.update_one({"_id": "j1"}, {"$set": changes})


def test_a_digest_that_is_there_already_is_no_matter_of_names(
    mongo_store: MongoServerStore,
) -> None:
    assert mongo_store.add_token(TOKEN)
    with pytest.raises(BulkWriteError, match="digest"):
        mongo_store.add_token(replace(TOKEN, id="t2", name="bob"))
    assert mongo_store.tokens() == [TOKEN]
    assert TOKEN.created_at == NOW


@pytest.mark.skipif(not server_is_there(), reason="no MongoDB to test with")
def test_a_database_without_the_schema_says_what_to_do() -> None:
    with (
        empty_database() as url,
        MongoServerStore.connect(url) as store,
        pytest.raises(BadRequest, match="afl db migrate"),
    ):
        store.tokens()
