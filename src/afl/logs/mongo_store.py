"""Log lines in MongoDB. Needs the extra `mongo`.

One transaction takes any number of slices: it sees which of them come next in their spools, adds
their chunks and moves the positions. Whoever else appends to one of these spools or streams at the
same time writes to the same documents, so one of the two starts again and sees what the other did.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from bson.binary import Binary
from pymongo import DeleteMany, UpdateMany, UpdateOne

from afl.kernel.mongo.migrated import MigratedStore
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.logs.applying import Addition, Fit, fit
from afl.logs.merging import order_of
from afl.logs.model import FIRST, Chunk, ChunkHead, Closed, Kind, Opened, Slice, StreamKey
from afl.logs.store import Stream

_MICROSECOND = timedelta(microseconds=1)
_HEAD = ("stream", "first", "count", "kind", "level", "first_us", "last_us")
#: So many chunks go in one transaction when old streams are removed, and so many streams.
_MOST_CHUNKS = 2000
_MOST_STREAMS = 200
#: So many places in streams are looked for with one question.
_AT_ONCE = 200


class MongoLogStore(MigratedStore):
    """The log lines of one database. See `LogStore` for what each method promises."""

    _MIGRATION = 401
    _MISSING = "the database has no log lines yet; `afl db migrate` makes room for them"

    def home(self) -> str:
        found = self._database.find_one("log_home", {})
        if found is None:
            made = {"$setOnInsert": {"id": str(uuid.uuid4())}}
            self._database.write("log_home", [UpdateOne({"_id": "home"}, made, upsert=True)])
            found = self._database.find_one("log_home", {})  # another may have been first
            assert found is not None
        return str(found["id"])

    def position(self, spool: str) -> int:
        found = self._database.find_one("log_spool", {"_id": spool}, {"position": 1})
        return 0 if found is None else int(found["position"])

    def heard(self, spool: str, worker: str) -> None:
        now_us = to_micros(self._database.now())
        self._database.write("log_spool", [_spool_write(spool, worker, None, now_us)])

    def append(self, slices: Sequence[Slice]) -> dict[str, int]:
        return self._database.transact(lambda transaction: _append(transaction, slices))

    def streams(self, run: str) -> list[Stream]:
        order = [("opened_us", 1), ("_id", 1)]
        found = self._database.find("log_stream", {"run": run}, sort=order)
        spools = {"_id": {"$in": list({each["spool"] for each in found})}}
        return _streams(found, self._database.find("log_spool", spools))

    def latest_streams(self, limit: int) -> list[Stream]:
        # in one snapshot: a stream that grows changes its place in the order
        def work(transaction: MongoTransaction) -> list[Stream]:
            order = [("last_us", -1)]
            found = transaction.find("log_stream", {}, sort=order, limit=limit)
            spools = {"_id": {"$in": list({each["spool"] for each in found})}}
            return _streams(found, transaction.find("log_spool", spools))

        latest = self._database.transact(work)
        return sorted(latest, key=lambda stream: (stream.opened_us, stream.id))

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        together: dict[int, list[str]] = defaultdict(list)
        for stream, first in since.items():
            together[first].append(stream)
        wanted = [
            {"stream": {"$in": streams}, "first": {"$gte": first}}
            for first, streams in together.items()
        ]
        fields = {"_id": 0, **dict.fromkeys(_HEAD, 1)}

        # in one snapshot: a reader goes on behind the last chunk that it is shown, so none may come
        # before those that are found while they are looked for
        def work(transaction: MongoTransaction) -> list[Document]:
            return [
                each
                for place in range(0, len(wanted), _AT_ONCE)
                for each in transaction.find(
                    "log_chunk", {"$or": wanted[place : place + _AT_ONCE]}, fields=fields
                )
            ]

        heads = [_head(each) for each in self._database.transact(work)]
        return sorted(heads, key=order_of)

    def bodies(self, heads: Sequence[ChunkHead]) -> Iterable[Chunk]:
        wanted = {"_id": {"$in": [_chunk_id(head) for head in heads]}}
        found = {
            each["_id"]: bytes(each["body"])
            for each in self._database.find("log_chunk", wanted, fields={"body": 1})
        }
        for head in heads:
            body = found.get(_chunk_id(head))
            if body is not None:  # else it was rotated away in this moment
                yield Chunk(head, body)

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        before_us = self.now_us() - older_than // _MICROSECOND
        gone, is_rest = 0, True
        while is_rest and gone < limit:
            most = min(limit - gone, _MOST_STREAMS)
            work = partial(_rotate, before_us=before_us, most=most)
            count, is_rest = self._database.transact(work)
            gone += count
        self._database.write("log_spool", [DeleteMany({"heard_us": {"$lte": before_us}})])
        return gone

    def now_us(self) -> int:
        return to_micros(self._database.now())


def _append(transaction: MongoTransaction, slices: Sequence[Slice]) -> dict[str, int]:
    workers = {part.spool: part.worker for part in slices}
    positions = dict.fromkeys(workers, 0)
    for each in transaction.find("log_spool", {"_id": {"$in": list(workers)}}):
        positions[each["_id"]] = each["position"]
    taken = []
    for part in slices:
        if fit(part, positions[part.spool]) is Fit.NEXT:
            taken.append(part)
            positions[part.spool] = part.end
    now_us = to_micros(transaction.now)
    for spool, worker in workers.items():
        transaction.write("log_spool", _spool_write(spool, worker, positions[spool], now_us))
    if taken:
        _add(transaction, taken)
    return positions


def _spool_write(spool: str, worker: str, position: int | None, now_us: int) -> UpdateOne:
    """Notes that a worker is alive, and up to where its spool is stored."""
    at_first = {"worker": _storable(worker)}
    if position is None:
        changes = {"$max": {"heard_us": now_us}, "$setOnInsert": {**at_first, "position": 0}}
    else:
        changes = {"$max": {"heard_us": now_us, "position": position}, "$setOnInsert": at_first}
    return UpdateOne({"_id": spool}, changes, upsert=True)


def _add(transaction: MongoTransaction, slices: Sequence[Slice]) -> None:
    opened = {each.stream: (each, part.spool) for part in slices for each in part.opened}
    wanted = {"_id": {"$in": list(opened)}}
    fields = {"next_seq": 1, "closed_us": 1}
    known = {each["_id"]: each for each in transaction.find("log_stream", wanted, fields=fields)}
    addition = Addition()
    for part in slices:
        addition.add(part, {id_: each["next_seq"] for id_, each in known.items()})
    for id_, (stream, spool) in opened.items():
        stored = known.get(id_)
        closed = None if stored and "closed_us" in stored else addition.closed.get(id_)
        grown = addition.grown.get(id_)
        if stored is None or grown or closed:
            transaction.write("log_stream", _stream_write(stream, spool, grown, closed))
    transaction.write("log_chunk", *(_chunk_write(chunk) for chunk in addition.chunks))


def _stream_write(
    opened: Opened, spool: str, grown: tuple[int, int] | None, closed: Closed | None
) -> UpdateOne:
    """A stream, new or as it was, with what has come to it."""
    next_seq, last_us = grown or (FIRST, opened.time_us)
    changes: dict[str, dict[str, object]] = {
        "$max": {"next_seq": next_seq, "last_us": max(last_us, opened.time_us)},
        "$setOnInsert": {
            "run": _storable(opened.key.run),
            "path": _storable(opened.key.path),
            "attempt": opened.key.attempt,
            "name": _storable(opened.key.name),
            "spool": spool,
            "opened_us": opened.time_us,
        },
    }
    if closed is not None:
        lost = {} if closed.lost is None else {"lost": closed.lost}
        changes["$set"] = {"closed_us": closed.time_us, **lost}
    return UpdateOne({"_id": opened.stream}, changes, upsert=True)


def _storable(text: str) -> str:
    """The text without what is no text: one odd name must not keep all lines back."""
    return text.encode(errors="replace").decode()


def _chunk_write(chunk: Chunk) -> UpdateOne:
    head = chunk.head
    lines = {
        "count": head.count,
        "kind": head.kind.value,
        "level": head.level,
        "first_us": head.first_us,
        "last_us": head.last_us,
        "body": Binary(chunk.body),
    }
    # a sharded collection is asked by its key
    place = {"_id": _chunk_id(head), "stream": head.stream, "first": head.first}
    return UpdateOne(place, {"$setOnInsert": lines}, upsert=True)


def _chunk_id(head: ChunkHead) -> str:
    return f"{head.stream}:{head.first}"


def _head(found: Document) -> ChunkHead:
    return ChunkHead(
        found["stream"],
        found["first"],
        found["count"],
        Kind(found["kind"]),
        found["level"],
        found["first_us"],
        found["last_us"],
    )


def _streams(found: Sequence[Document], spools: Sequence[Document]) -> list[Stream]:
    heard = {each["_id"]: int(each["heard_us"]) for each in spools}
    return [
        Stream(
            each["_id"],
            StreamKey(each["run"], each["path"], each["attempt"], each["name"]),
            each["next_seq"],
            each["opened_us"],
            each["last_us"],
            each.get("closed_us"),
            each.get("lost"),
            heard.get(each["spool"], 0),
        )
        for each in found
    ]


def _rotate(transaction: MongoTransaction, before_us: int, most: int) -> tuple[int, bool]:
    """Removes old streams with their chunks, as many as one transaction should.

    Answers how many streams have gone, and whether there may be more. Of a stream with more chunks
    than that only the first ones go; it is written to, so that it cannot grow meanwhile.
    """
    old = {"last_us": {"$lte": before_us}}
    found = transaction.find(
        "log_stream", old, fields={"_id": 1}, sort=[("last_us", 1)], limit=most
    )
    streams = sorted(each["_id"] for each in found)
    chunks = transaction.find(
        "log_chunk",
        {"stream": {"$in": streams}},
        fields={"_id": 0, "stream": 1, "first": 1},
        sort=[("stream", 1), ("first", 1)],
        limit=_MOST_CHUNKS,
    )
    is_cut = len(chunks) == _MOST_CHUNKS
    last = chunks[-1] if is_cut else None
    whole = [each for each in streams if last is None or each < last["stream"]]
    transaction.write("log_chunk", DeleteMany({"stream": {"$in": whole}}))
    transaction.write("log_stream", DeleteMany({"_id": {"$in": whole}}))
    if last is not None:
        part = {"stream": last["stream"], "first": {"$lte": last["first"]}}
        transaction.write("log_chunk", DeleteMany(part))
        touched = UpdateMany({"_id": last["stream"]}, {"$inc": {"rotations": 1}})
        transaction.write("log_stream", touched)
    return len(whole), is_cut or len(found) == most
