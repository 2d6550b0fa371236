"""What every part of the MongoDB store shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from afl.base.closable import Closable
from afl.kernel.errors import BadRequest
from afl.kernel.model import Json
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.mongo.values import Packed, Values
from afl.runtime.kernel_queue import KernelQueue

T = TypeVar("T")


class MongoCore(KernelQueue[MongoStore], Closable):
    """The kernel's database, and values in its documents."""

    def __init__(self, kernel: MongoStore) -> None:
        super().__init__(kernel)
        self._values = Values(kernel.database)

    @property
    def _database(self) -> Database:
        return self._kernel.database

    def _write(self, work: Callable[[MongoTransaction], T]) -> T:
        """Work in a transaction of its own; it may be done several times."""
        return self._database.transact(work)

    def _pack(self, value: Json | Mapping[str, Json]) -> Packed:
        return packed(self._values, value)

    def _unpack_map(self, value: Packed) -> dict[str, Json]:
        return unpacked_map(self._values, value)

    def close(self) -> None:
        """Gives all connections back, those of the kernel's store too."""
        self._kernel.close()


def packed(values: Values, value: Json | Mapping[str, Json]) -> Packed:
    """What a document has of a value. Refuses with `BadRequest` what JSON cannot express."""
    try:
        return values.pack(value)  # type: ignore[arg-type]  # a map is as good as a dict here
    except (TypeError, ValueError) as error:
        raise BadRequest(f"JSON cannot express this: {error}") from error


def unpacked_map(values: Values, value: Packed) -> dict[str, Json]:
    """A map that a document has; empty if it has none."""
    found = values.unpack(value)
    return found if isinstance(found, dict) else {}


def of_run(run: str) -> dict[str, Any]:
    """The ids of everything that belongs to a run."""
    # the letter after the colon ends the ids that begin with it
    return {"$gte": f"{run}:", "$lt": f"{run};"}


def changed_to(document: Mapping[str, Any]) -> dict[str, Any]:
    """The update that gives fields these values, and removes those without one."""
    update: dict[str, Any] = {"$set": {k: v for k, v in document.items() if v is not None}}
    if gone := {k: "" for k, v in document.items() if v is None}:
        update["$unset"] = gone
    return update


def without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without the fields that have no value: indexes of what is there leave it out."""
    return {k: v for k, v in document.items() if v is not None}
