"""The files that programs were made of, and what was deployed before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pymongo import DeleteMany, InsertOne

from afl.kernel.mongo.transaction import MongoTransaction
from afl.kernel.mongo.values import to_time
from afl.runtime.deployments import DeployedVersion
from afl.runtime.mongo.core import MongoCore


class MongoSources(MongoCore):
    """See `deployments.Sources` for what each method promises."""

    def save_sources(self, program: str, files: Mapping[str, str]) -> None:
        kept = [
            {"_id": f"{program}:{name}", "program": program, "name": name, "text": self._pack(text)}
            for name, text in files.items()
        ]

        def work(transaction: MongoTransaction) -> None:
            if transaction.find_one("program", {"_id": program}, fields={"_id": 1}) is None:
                return
            transaction.write("program_source", DeleteMany({"program": program}))
            transaction.write("program_source", *map(InsertOne, kept))

        self._write(work)

    def get_sources(self, program: str) -> Mapping[str, str]:
        found = self._database.find("program_source", {"program": program}, sort=[("name", 1)])
        return {each["name"]: str(self._values.unpack(each["text"])) for each in found}

    def deployment_history(self, name: str, limit: int = 100) -> Sequence[DeployedVersion]:
        found = self._database.find(
            "deployment_version", {"name": name}, sort=[("_id", -1)], limit=limit
        )
        return [
            DeployedVersion(name, each["program"], to_time(each["deployed_at"])) for each in found
        ]
