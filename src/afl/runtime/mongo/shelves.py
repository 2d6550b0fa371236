"""Programs and memos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pymongo import InsertOne, UpdateOne

from afl.ir.codec import loads
from afl.ir.digest import program_hash
from afl.kernel.errors import NotFound
from afl.kernel.model import Json
from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.runtime.mongo.core import MongoCore, changed_to
from afl.runtime.run_values import map_in


class MongoPrograms(MongoCore):
    """See `persistence.Programs` for what each method promises."""

    def save_program(self, text: str) -> str:
        name = program_hash(loads(text))
        kept = self._pack(text)

        def work(transaction: MongoTransaction) -> None:
            saved = {
                "$set": {"text": kept},
                "$setOnInsert": {"saved_at": to_micros(transaction.now)},
            }
            transaction.write("program", UpdateOne({"_id": name}, saved, upsert=True))

        self._write(work)
        return name

    def get_program(self, program: str) -> str | None:
        found = self._database.find_one("program", {"_id": program})
        return None if found is None else str(self._values.unpack(found["text"]))

    def deploy(self, name: str, program: str) -> None:
        number = self._database.take_numbers("deployment_version", 1)

        def work(transaction: MongoTransaction) -> None:
            if transaction.find_one("program", {"_id": program}, fields={"_id": 1}) is None:
                raise NotFound(f"there is no program {program}; save it before it is deployed")
            current = transaction.find_one("deployment", {"_id": name})
            made = {"program": program, "deployed_at": to_micros(transaction.now)}
            transaction.write("deployment", UpdateOne({"_id": name}, {"$set": made}, upsert=True))
            if current is None or current["program"] != program:
                version = {"_id": number, "name": name, **made}
                transaction.write("deployment_version", InsertOne(version))

        self._write(work)

    def deployed(self, name: str = "default") -> str | None:
        found = self._database.find_one("deployment", {"_id": name})
        return None if found is None else found["program"]

    def deployments(self) -> Mapping[str, str]:
        found = self._database.find("deployment", {}, sort=[("_id", 1)])
        return {each["_id"]: each["program"] for each in found}

    def newest_programs(self, limit: int) -> Sequence[str]:
        newest = [("saved_at", -1), ("_id", 1)]
        found = self._database.find("program", {}, fields={"_id": 1}, sort=newest, limit=limit)
        return [each["_id"] for each in found]


class MongoMemos(MongoCore):
    """See `persistence.Memos` for what each method promises."""

    def get_memo(self, facet: str, key: str) -> Mapping[str, Json] | None:
        found = self._database.find_one("memo", {"_id": _memo(facet, key)})
        if found is None:
            return None
        until = found.get("expires_at")
        if until is not None and until <= to_micros(self._database.now()):
            return None
        return self._unpack_map(found["returns"])

    def put_memo(
        self, facet: str, key: str, returns: Mapping[str, Json], ttl: timedelta | None
    ) -> None:
        kept = self._pack(map_in(returns, "the returns"))

        def work(transaction: MongoTransaction) -> None:
            now = transaction.now
            memo = {
                "returns": kept,
                "made_at": to_micros(now),
                "expires_at": None if ttl is None else to_micros(now + ttl),
            }
            by_id = {"_id": _memo(facet, key)}
            transaction.write("memo", UpdateOne(by_id, changed_to(memo), upsert=True))

        self._write(work)


def _memo(facet: str, key: str) -> str:
    # no name has this letter
    return f"{facet}\0{key}"
