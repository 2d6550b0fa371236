"""JSON values and times as they stand in documents.

A value is its JSON text: numbers of any size, any key and any depth come back as they were, and no
part of it can be taken for an operator. A text too long for a document stands in `blob` by its
hash, in pieces; the document has the hash instead. Times are microseconds since 1970: the times of
MongoDB know milliseconds only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, overload

from bson.binary import Binary
from pymongo import UpdateOne

from afl.kernel.errors import BadRequest, KernelError
from afl.kernel.model import Json
from afl.kernel.mongo.database import Database

#: What a document has of a value: its text, where its text is, or nothing for null.
Packed = str | Mapping[str, Any] | None

#: Longer texts stand beside the document, which may have several and must stay below 16 MiB.
MAX_INLINE = 256 * 1024
MAX_VALUE = 128 * 1024 * 1024
_PIECE = 4 * 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Values:
    """Packs values for documents of a database, and unpacks them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pack(self, value: Json) -> Packed:
        """What a document has of a value. A long one is stored at once, whatever becomes of the
        transaction: nothing names it then, and the same value finds it there."""
        if value is None:
            return None
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if len(text) * 4 <= MAX_INLINE or len(text.encode()) <= MAX_INLINE:
            return text
        return self._keep(text.encode())

    def unpack(self, packed: Packed) -> Json:
        if packed is None:
            return None
        text = packed if isinstance(packed, str) else self._fetch(packed)
        value: Json = json.loads(text)
        return value

    def _keep(self, data: bytes) -> Packed:
        if len(data) > MAX_VALUE:
            raise BadRequest(
                f"a value has {len(data):,} bytes, and at most {MAX_VALUE:,} can be stored; keep "
                "it as a file and pass where it is"
            )
        digest = hashlib.sha256(data).hexdigest()
        count = -(-len(data) // _PIECE)
        self._database.write(
            "blob",
            [
                UpdateOne(
                    {"_id": f"{digest}:{number:04}"},
                    {"$setOnInsert": {"data": Binary(data[number * _PIECE :][:_PIECE])}},
                    upsert=True,
                )
                for number in range(count)
            ],
            ordered=False,
        )
        return {"blob": digest, "pieces": count}

    def _fetch(self, packed: Mapping[str, Any]) -> bytes:
        names = [f"{packed['blob']}:{number:04}" for number in range(packed["pieces"])]
        found = self._database.find("blob", {"_id": {"$in": names}}, sort=[("_id", 1)])
        if len(found) != len(names):
            raise KernelError(f"the long value {packed['blob']} is not in the database any more")
        return b"".join(bytes(piece["data"]) for piece in found)


@overload
def to_micros(at: datetime) -> int: ...
@overload
def to_micros(at: datetime | None) -> int | None: ...
def to_micros(at: datetime | None) -> int | None:
    """A time as a document has it."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


@overload
def to_time(micros: int) -> datetime: ...
@overload
def to_time(micros: int | None) -> datetime | None: ...
def to_time(micros: int | None) -> datetime | None:
    """The time that a document has."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)
