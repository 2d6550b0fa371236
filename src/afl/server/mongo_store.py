"""What the server keeps for itself, in MongoDB. Needs the extra `mongo`.

Each write is one document, so each is done or not; a job is taken in a transaction. JSON stands as
its text, with everything in it that JSON may have.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson.binary import Binary
from pymongo import DeleteMany, DeleteOne, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError

from afl.kernel.model import Json
from afl.kernel.mongo.migrated import MigratedStore
from afl.kernel.mongo.refusals import is_duplicate
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.server.mongo.rows import entry_of, hook_of, job_of, text_of, token_of
from afl.server.store import KEPT, AuditEntry, Job, SavedFilter, Token, WebHook

_MINUTE = timedelta(minutes=1)


class MongoServerStore(MigratedStore):
    """Threads may share one. See `ServerStore` for what each method promises.

    It has connections of its own: who asks is found out, and what they do is written down, also
    while long queries have all the others.
    """

    _MIGRATION = 501
    _MISSING = "the database has no collections of the server yet; `afl db migrate` makes them"

    def add_token(self, token: Token) -> bool:
        return self._insert(
            "server_token",
            {
                "_id": token.id,
                "name": token.name,
                "role": token.role,
                "tenant": token.tenant,
                "digest": Binary(token.digest),
                "created_at": to_micros(token.created_at),
                "expires_at": to_micros(token.expires_at),
                "last_used_at": None,
            },
            its_own="name",
        )

    def find_token(self, digest: bytes) -> Token | None:
        found = self._database.find_one("server_token", {"digest": Binary(digest)})
        return None if found is None else token_of(found)

    def tokens(self) -> Sequence[Token]:
        order = [("created_at", 1), ("_id", 1)]
        return [token_of(each) for each in self._database.find("server_token", {}, sort=order)]

    def revoke_token(self, id: str) -> bool:
        return self._delete("server_token", {"_id": id})

    def note_use(self, id: str, at: datetime) -> None:
        long_ago = {"last_used_at": {"$lte": to_micros(at - _MINUTE)}}
        due = {"_id": id, "$or": [{"last_used_at": None}, long_ago]}
        self._update("server_token", due, {"$set": {"last_used_at": to_micros(at)}})

    def begin_audit(self, entry: AuditEntry) -> int:
        id_ = self._database.take_numbers("server_audit", 1)
        document: Document = {
            "_id": id_,
            "at": to_micros(entry.at or self._database.now()),
            "subject": entry.subject,
            "role": entry.role,
            "tenant": entry.tenant,
            "action": entry.action,
            "target": entry.target,
            "status": entry.status,
            "details": [text_of(dict(entry.detail))],
        }
        self._database.write("server_audit", [InsertOne(document)])
        return id_

    def end_audit(self, id: int, status: int, detail: Mapping[str, Json]) -> None:
        changes = {"$set": {"status": status}, "$push": {"details": text_of(dict(detail))}}
        self._update("server_audit", {"_id": id}, changes)

    def audit(
        self, *, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditEntry]:
        where: Document = {} if tenant is None else {"tenant": tenant}
        if before is not None:
            where["_id"] = {"$lt": before}
        found = self._database.find("server_audit", where, sort=[("_id", -1)], limit=limit)
        return [entry_of(each) for each in found]

    def rotate_audit(self, older_than: timedelta, limit: int = 1000) -> int:
        before = to_micros(self._database.now() - older_than)
        oldest = self._database.find(
            "server_audit", {}, fields={"at": 1}, sort=[("_id", 1)], limit=limit
        )
        old = {"_id": {"$in": [each["_id"] for each in oldest if each["at"] < before]}}
        return self._database.write("server_audit", [DeleteMany(old)]).deleted_count

    def save_view(self, view: SavedFilter) -> None:
        changes = {
            "$set": {
                "name": view.name,
                "page": view.page,
                "query": view.query,
                "shared": view.shared,
            },
            "$setOnInsert": {"owner": view.owner, "tenant": view.tenant},
        }
        self._update("server_view", {"_id": view.id}, changes, upsert=True)

    def views(self, owner: str, tenant: str) -> Sequence[SavedFilter]:
        where = {"tenant": tenant, "$or": [{"owner": owner}, {"shared": True}]}
        found = self._database.find("server_view", where, sort=[("name", 1), ("_id", 1)])
        return [SavedFilter(id=each.pop("_id"), **each) for each in found]

    def delete_view(self, id: str, owner: str) -> bool:
        return self._delete("server_view", {"_id": id, "owner": owner})

    def add_hook(self, hook: WebHook) -> bool:
        document = {
            "_id": hook.name,
            "workflow": hook.workflow,
            "program": hook.program,
            "secret": hook.secret,
        }
        return self._insert("server_hook", document, its_own="_id")

    def hook(self, name: str) -> WebHook | None:
        found = self._database.find_one("server_hook", {"_id": name})
        return None if found is None else hook_of(found)

    def hooks(self) -> Sequence[WebHook]:
        return [hook_of(each) for each in self._database.find("server_hook", {}, sort=[("_id", 1)])]

    def delete_hook(self, name: str) -> bool:
        return self._delete("server_hook", {"_id": name})

    def put_job(self, job: Job) -> None:
        changes = {
            "$set": {
                "state": job.state,
                "total": job.total,
                "done": job.done,
                "failures": text_of([dict(each) for each in job.failures]),
                "finished_at": to_micros(job.finished_at),
                "cursor": job.cursor,
            },
            "$setOnInsert": {
                "verb": job.verb,
                "form": text_of(dict(job.form)),
                "by": job.by,
                "tenant": job.tenant,
                "created_at": to_micros(job.created_at),
                "taken_by": None,
                "taken_until": None,
            },
        }
        self._update("server_job", {"_id": job.id}, changes, upsert=True)

    def job(self, id: str) -> Job | None:
        found = self._database.find_one("server_job", {"_id": id})
        return None if found is None else job_of(found)

    def jobs(self, *, before: str | None = None, limit: int = 100) -> Sequence[Job]:
        where = {} if before is None else {"_id": {"$lt": before}}
        found = self._database.find("server_job", where, sort=[("_id", -1)], limit=limit)
        return [job_of(each) for each in found]

    def take_job(self, by: str, seconds: float) -> Job | None:
        def work(transaction: MongoTransaction) -> Job | None:
            now = transaction.now
            over = {"taken_until": {"$lte": to_micros(now)}}
            free = {"state": "running", "$or": [{"taken_until": None}, over]}
            found = transaction.find_one("server_job", free, sort=[("_id", 1)])
            if found is None:
                return None
            transaction.write("server_job", _taken({"_id": found["_id"]}, by, now, seconds))
            return job_of(found)

        return self._database.transact(work)

    def renew_job(self, id: str, by: str, seconds: float) -> bool:
        ours = {"_id": id, "state": "running", "taken_by": by}
        renewal = _taken(ours, by, self._database.now(), seconds)
        return self._database.write("server_job", [renewal]).matched_count > 0

    def secret(self) -> bytes:
        found = self._database.find_one("server_secret", {})
        if found is None:
            made = {"$setOnInsert": {"key": Binary(secrets.token_bytes(32))}}
            self._update("server_secret", {"_id": "key"}, made, upsert=True)
            found = self._database.find_one("server_secret", {})  # another may have been first
            assert found is not None
        return bytes(found["key"])

    def recall(self, key: str) -> Json | None:
        oldest = to_micros(self._database.now() - KEPT)
        found = self._database.find_one("server_answer", {"_id": key, "kept_at": {"$gt": oldest}})
        answer: Json = None if found is None else json.loads(found["answer"])
        return answer

    def remember(self, key: str, answer: Json) -> Json:
        now = self._database.now()
        old = {"kept_at": {"$lte": to_micros(now - KEPT)}}
        self._database.write("server_answer", [DeleteMany(old)])
        # by itself: such a write is repeated by the driver when its connection breaks
        kept = {"$setOnInsert": {"answer": text_of(answer), "kept_at": to_micros(now)}}
        self._update("server_answer", {"_id": key}, kept, upsert=True)
        found = self._database.find_one("server_answer", {"_id": key})
        first: Json = answer if found is None else json.loads(found["answer"])
        return first

    def missing_wall(self) -> str | None:
        # MongoDB has no rules for single documents
        return None

    def _insert(self, collection: str, document: Document, *, its_own: str) -> bool:
        """False if another document has what must be its own."""
        try:
            self._database.write(collection, [InsertOne(document)])
        except BulkWriteError as error:
            refused: Mapping[str, Any] = (error.details or {})["writeErrors"][0]
            if not is_duplicate(error) or refused.get("keyPattern") != {its_own: 1}:
                raise
            return False
        return True

    def _update(
        self,
        collection: str,
        where: Mapping[str, object],
        changes: Mapping[str, object],
        *,
        upsert: bool = False,
    ) -> None:
        self._database.write(collection, [UpdateOne(where, changes, upsert=upsert)])

    def _delete(self, collection: str, where: Mapping[str, object]) -> bool:
        return self._database.write(collection, [DeleteOne(where)]).deleted_count > 0


def _taken(where: Document, by: str, now: datetime, seconds: float) -> UpdateOne:
    until = to_micros(now + timedelta(seconds=seconds))
    return UpdateOne(where, {"$set": {"taken_by": by, "taken_until": until}})
