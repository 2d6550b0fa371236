"""What only the store in MongoDB has: indexes to go by, and removal in pieces."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import read_migrations
from afl.logs import mongo_store as module
from afl.logs.model import StreamKey
from afl.logs.mongo_store import MongoLogStore
from afl.logs.spool import WhenFull
from tests.kernel.mongo.databases import empty_database, server_is_there
from tests.logs.records import ERRORS, KEY, RUN, gaps_of, lines_of, read, slices_of, spool_in


def _fill(store: MongoLogStore, folder: Path, *, streams: int, batches: int) -> list[str]:
    """Several chunks of several streams; answers the ids of these."""
    spool = spool_in(folder)
    writers = [spool.open(StreamKey(RUN, f"0/{number}", 1, "stdout")) for number in range(streams)]
    for batch in range(batches):
        for writer in writers:
            writer.line(b"%d" % batch)
        store.append(slices_of(spool, store))
    for writer in writers:
        writer.close()
    spool.close()
    store.append(slices_of(spool, store))
    spool.release()
    return [writer.opened.stream for writer in writers]


def _stages(plan: dict[str, Any]) -> set[str]:
    inner = plan.get("inputStages", [plan["inputStage"]] if "inputStage" in plan else [])
    return {plan["stage"]}.union(*map(_stages, inner))


def _explained(store: MongoLogStore, find: dict[str, Any]) -> set[str]:
    told = store._database.command("explain", find, verbosity="queryPlanner")
    plan = told["queryPlanner"]["winningPlan"]
    return _stages(plan.get("queryPlan", plan))


def test_whoever_looks_for_chunks_reads_no_lines(
    mongo_store: MongoLogStore, tmp_path: Path
) -> None:
    ids = _fill(mongo_store, tmp_path, streams=5, batches=20)
    head = {"_id": 0, **dict.fromkeys(module._HEAD, 1)}
    for firsts in ([3] * 5, [1, 2, 3, 4, 5]):
        since = dict(zip(ids, firsts, strict=True))
        where = {
            "$or": [
                {"stream": {"$in": [id_]}, "first": {"$gte": first}} for id_, first in since.items()
            ]
        }
        find = {"find": "log_chunk", "filter": where, "projection": head}
        stages = _explained(mongo_store, find)
        assert "IXSCAN" in stages
        assert not stages & {"COLLSCAN", "FETCH"}
        assert len(mongo_store.heads(since)) == sum(21 - first for first in firsts)


@pytest.mark.parametrize(
    ("collection", "where", "sort"),
    [
        ("log_stream", {"run": RUN}, {"opened_us": 1, "_id": 1}),
        ("log_stream", {}, {"last_us": -1}),
        ("log_stream", {"last_us": {"$lte": 1}}, {"last_us": 1}),
        ("log_spool", {"heard_us": {"$lte": 1}}, {}),
        ("log_chunk", {"kind": 2, "stream": "x"}, {}),
    ],
)
def test_what_is_asked_for_has_an_index(
    mongo_store: MongoLogStore, collection: str, where: dict[str, object], sort: dict[str, int]
) -> None:
    stages = _explained(mongo_store, {"find": collection, "filter": where, "sort": sort})
    assert "IXSCAN" in stages
    assert not stages & {"COLLSCAN", "SORT"}


def test_a_stream_is_removed_in_pieces(
    mongo_store: MongoLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_CHUNKS", 7)
    monkeypatch.setattr(module, "_MOST_STREAMS", 2)
    _fill(mongo_store, tmp_path, streams=5, batches=10)
    assert mongo_store.rotate(timedelta(days=-1), limit=3) == 3
    assert len(mongo_store.streams(RUN)) == 2
    assert mongo_store.rotate(timedelta(days=-1)) == 2
    assert mongo_store.rotate(timedelta(days=-1)) == 0
    assert mongo_store._database.find("log_chunk", {}) == []
    assert mongo_store._database.find("log_spool", {}) == []


def test_lines_that_come_to_a_stream_that_is_gone_are_kept(
    mongo_store: MongoLogStore, tmp_path: Path
) -> None:
    spool = spool_in(tmp_path)
    stream = spool.open(KEY)
    stream.line(b"old")
    mongo_store.append(slices_of(spool, mongo_store))
    position = mongo_store.position(spool.id)
    mongo_store._database.collection("log_stream").delete_many({})
    stream.line(b"new")
    mongo_store.append(slices_of(spool, mongo_store))
    assert mongo_store.position(spool.id) > position
    assert lines_of(read(mongo_store))[-1] == b"new"
    spool.close()
    spool.release()


def test_gaps_can_be_asked_for(mongo_store: MongoLogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path, most_bytes=3_000)
    stream = spool.open(KEY, WhenFull.DROP)
    for _ in range(60):
        stream.line(b"x" * 100)
    stream.close()
    lost = spool.open(ERRORS)
    spool.declare_lost([lost.opened])
    mongo_store.append(slices_of(spool, mongo_store))
    spool.close()
    spool.release()
    database = mongo_store._database
    (gap,) = database.find("log_chunk", {"kind": 2})
    assert gap["first"] + gap["count"] - 1 == 60
    assert gap["body"] == b"the spool of the worker was full"
    (cut,) = database.find("log_stream", {"lost": {"$exists": True}})
    assert (cut["name"], cut["lost"]) == ("stderr", "the worker died")
    assert len(gaps_of(read(mongo_store))) == 2


@pytest.mark.skipif(not server_is_there(), reason="no MongoDB to test with")
def test_a_database_without_the_schema_says_what_to_do() -> None:
    with (
        empty_database() as url,
        MongoLogStore.connect(url) as store,
        pytest.raises(BadRequest, match="afl db migrate"),
    ):
        store.position("spool")


def test_the_home_is_one(mongo_store: MongoLogStore, mongo_url: str) -> None:
    with MongoLogStore.connect(mongo_url) as other:
        assert other.home() == mongo_store.home()


def test_the_schema_refuses_what_is_no_chunk(mongo_store: MongoLogStore) -> None:
    rules = {each.number for each in read_migrations("afl.logs.mongo")}
    assert rules == {401}
    database: Database = mongo_store._database
    with pytest.raises(Exception, match="failed validation"):
        database.collection("log_chunk").insert_one({"_id": "x:1", "stream": "x", "first": 0})
