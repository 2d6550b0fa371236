"""The databases that flows are broken on: each with its own way to lose its server, and its own
evidence of what has happened, which does not go through the code that is judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import psycopg
from pymongo import MongoClient

from afl.kernel.model import TaskId
from afl.kernel.mongo.database import Database
from afl.runtime.mongo.migrate import migrate as migrate_mongo
from afl.runtime.mongo_store import MongoStore
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.postgres.migrate import migrate as migrate_postgres
from afl.runtime.postgres_store import PostgresPersistence
from tests.chaos.evidence import Note, audit_of, install_audit, read_audit
from tests.chaos.flow_judge import End, FlowEvidence
from tests.chaos.mongo_server import PrivateMongo
from tests.chaos.server import PrivatePostgres

_ENDED = ("completed", "failed", "canceled")


class FlowStore(Protocol):
    """A database of one's own, with the schema."""

    @property
    def url(self) -> str: ...
    def connect(self) -> PersistenceAPI: ...
    def count_ended(self) -> int:
        """How many of the runs that were submitted have ended."""
        ...

    def lose_server(self, number: int) -> bool:
        """Takes the server away for a moment, one way or another; False if that is not done."""
        ...

    def evidence(self) -> FlowEvidence: ...
    def close(self) -> None: ...


#: What tells why a task has not ended.
OPEN_TASK = ("run", "name", "state", "run_at", "worker", "fence", "crashes", "reason_code")


class OnPostgres:
    def __init__(self, binaries: Path, folder: Path) -> None:
        self._server = PrivatePostgres(binaries, folder)
        migrate_postgres(self.url)
        install_audit(self.url)

    @property
    def url(self) -> str:
        return self._server.url

    def connect(self) -> PersistenceAPI:
        return PostgresPersistence.connect(self.url, max_size=2)

    def count_ended(self) -> int:
        where = "key is not null and state = any(%s)"
        return int(self._ask(f"select count(*) from afl.run where {where}", list(_ENDED))[0][0])

    def lose_server(self, number: int) -> bool:
        return False

    def evidence(self) -> FlowEvidence:
        ends: dict[str, list[End]] = defaultdict(list)
        for key, *end in self._ask(
            "select key, state, outputs, error from afl.run where key is not null"
        ):
            ends[key].append(tuple(end))
        with psycopg.connect(self.url, autocommit=True) as connection:
            audit = read_audit(connection)
        succeeded = self._ask("select id::text from afl.task where outcome = 'success'")
        still_open = [
            dict(zip(OPEN_TASK, row, strict=True))
            for row in self._ask(
                f"select {', '.join(OPEN_TASK)} from afl.task where state <> 'closed'"
            )
        ]
        return FlowEvidence(audit, ends, {row[0] for row in succeeded}, still_open)

    def close(self) -> None:
        self._server.close()

    def _ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()


class OnMongo:
    """A replica set of three. Its own log of writes is the evidence."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._server = PrivateMongo(program, folder, members=3)
        with closing(Database(self.url)) as database:
            migrate_mongo(database)
        self._client: MongoClient[dict[str, Any]] = MongoClient(self.url)
        self._database = self._client.get_default_database()

    @property
    def url(self) -> str:
        return self._server.url

    def connect(self) -> PersistenceAPI:
        return MongoStore.connect(self.url, max_size=4)

    def count_ended(self) -> int:
        ended = {"key": {"$ne": None}, "state": {"$in": list(_ENDED)}}
        return self._database["run"].count_documents(ended)

    def lose_server(self, number: int) -> bool:
        if number % 2:
            self._server.step_down()
        else:
            self._server.kill()
        self._server.wait_until_writable()
        return True

    def evidence(self) -> FlowEvidence:
        ends: dict[str, list[End]] = defaultdict(list)
        with closing(MongoStore.connect(self.url)) as store:
            for row in self._database["run"].find({"key": {"$ne": None}}, {"key": 1}):
                run = store.get_run(row["_id"])
                assert run is not None
                ends[row["key"]].append((run.state, run.outputs, run.error))
        tasks = self._database["task"]
        succeeded = {TaskId(row["_id"]) for row in tasks.find({"outcome": "success"}, {"_id": 1})}
        still_open = list(
            tasks.find({"state": {"$ne": "closed"}}, {"_id": 0, **dict.fromkeys(OPEN_TASK, 1)})
        )
        return FlowEvidence(audit_of(self._notes()), ends, succeeded, still_open)

    def close(self) -> None:
        self._client.close()
        self._server.close()

    def _notes(self) -> Iterator[Note]:
        """The changes of tasks, from the log by which the members of the set follow each other."""
        rows: dict[str, dict[str, Any]] = {}
        for change in self._changes(f"{self._database.name}.task"):
            task, new = _applied(rows, change)
            if new is None:
                continue
            old = rows.get(task, {})
            rows[task] = old | new
            before, after = _watched(old), _watched(rows[task])
            if before != after:
                yield _note(TaskId(task), before, after, is_new=not old)

    def _changes(self, namespace: str) -> Iterator[dict[str, Any]]:
        log = self._client["local"]["oplog.rs"]
        for entry in log.find({}, sort=[("$natural", 1)]):
            parts = entry["o"].get("applyOps", [entry]) if entry["op"] == "c" else [entry]
            yield from (part for part in parts if part.get("ns") == namespace)


#: What a task is, as far as fences and ends go; counts of its calls may change after its end.
_WATCHED = ("fence", "committed_fence", "commits", "crashes", "state")


def _watched(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in _WATCHED}


def _applied(
    rows: dict[str, dict[str, Any]], change: dict[str, Any]
) -> tuple[str, dict[str, Any] | None]:
    """Which task a change is about, and what it sets there; None if the task is removed."""
    if change["op"] == "i":
        return change["o"]["_id"], change["o"]
    if change["op"] == "d":
        rows.pop(change["o"]["_id"], None)
        return change["o"]["_id"], None
    assert change["op"] == "u", change
    diff = change["o"].get("diff")
    if diff is None:
        return change["o2"]["_id"], change["o"]
    return change["o2"]["_id"], {**diff.get("i", {}), **diff.get("u", {})}


def _note(task: TaskId, old: dict[str, Any], new: dict[str, Any], *, is_new: bool) -> Note:
    committed = new["committed_fence"], new["commits"]
    is_commit = not is_new and (old["committed_fence"], old["commits"]) != committed
    is_crash = not is_new and new["crashes"] > old["crashes"]
    is_late = old["state"] == "closed"
    return (task, old["fence"], new["fence"], *committed, is_commit, is_crash, is_late)
