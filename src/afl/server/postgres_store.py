"""What the server keeps for itself, in PostgreSQL. Needs the extra `postgres`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Self, TypeVar

import psycopg
from psycopg import Cursor
from psycopg.types.json import Json as AsJson
from psycopg.types.json import Jsonb

from afl.base.closable import Closable
from afl.kernel.errors import BadRequest
from afl.kernel.model import Json
from afl.kernel.postgres.database import Database, Row
from afl.server.postgres.statements import SQL
from afl.server.store import AuditEntry, Job, SavedFilter, Token, WebHook

T = TypeVar("T")
_NOT_MIGRATED = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


class PostgresServerStore(Closable):
    """Threads may share one. See `ServerStore` for what each method promises.

    It has connections of its own: who asks is found out, and what they do is written down, also
    while long queries have all the others.
    """

    def __init__(self, database: Database) -> None:
        """The database is closed with it."""
        self._database = database

    @classmethod
    def connect(cls, url: str, *, max_size: int = 4, prepare_threshold: int | None = 1) -> Self:
        return cls(Database(url, max_size=max_size, prepare_threshold=prepare_threshold))

    def close(self) -> None:
        self._database.close()

    def add_token(self, token: Token) -> bool:
        return bool(self._ask("add_token", asdict(token)))

    def find_token(self, digest: bytes) -> Token | None:
        rows = self._ask("find_token", {"digest": digest})
        return _token(rows[0]) if rows else None

    def tokens(self) -> Sequence[Token]:
        return [_token(row) for row in self._ask("tokens", {})]

    def revoke_token(self, id: str) -> bool:
        return bool(self._ask("revoke_token", {"id": id}))

    def note_use(self, id: str, at: datetime) -> None:
        self._ask("note_use", {"id": id, "at": at})

    def begin_audit(self, entry: AuditEntry) -> int:
        row = {**asdict(entry), "detail": Jsonb(dict(entry.detail))}
        ((id_,),) = self._ask("begin_audit", row)
        return int(id_)

    def end_audit(self, id: int, status: int, detail: Mapping[str, Json]) -> None:
        self._ask("end_audit", {"id": id, "status": status, "detail": Jsonb(dict(detail))})

    def audit(
        self, *, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditEntry]:
        rows = self._ask("audit", {"tenant": tenant, "before": before, "limit": limit})
        return [AuditEntry(*row) for row in rows]

    def rotate_audit(self, older_than: timedelta, limit: int = 1000) -> int:
        return len(self._ask("rotate_audit", {"older_than": older_than, "limit": limit}))

    def save_view(self, view: SavedFilter) -> None:
        self._ask("save_view", asdict(view))

    def views(self, owner: str, tenant: str) -> Sequence[SavedFilter]:
        rows = self._ask("views", {"owner": owner, "tenant": tenant})
        return [SavedFilter(*row) for row in rows]

    def delete_view(self, id: str, owner: str) -> bool:
        return bool(self._ask("delete_view", {"id": id, "owner": owner}))

    def add_hook(self, hook: WebHook) -> bool:
        return bool(self._ask("add_hook", asdict(hook)))

    def hook(self, name: str) -> WebHook | None:
        rows = self._ask("hook", {"name": name})
        return WebHook(*rows[0]) if rows else None

    def hooks(self) -> Sequence[WebHook]:
        return [WebHook(*row) for row in self._ask("hooks", {})]

    def delete_hook(self, name: str) -> bool:
        return bool(self._ask("delete_hook", {"name": name}))

    def put_job(self, job: Job) -> None:
        row = {
            **asdict(job),
            "form": Jsonb(dict(job.form)),
            "failures": Jsonb([dict(each) for each in job.failures]),
        }
        self._ask("put_job", row)

    def job(self, id: str) -> Job | None:
        rows = self._ask("job", {"id": id})
        return Job(*rows[0]) if rows else None

    def jobs(self, *, before: str | None = None, limit: int = 100) -> Sequence[Job]:
        return [Job(*row) for row in self._ask("jobs", {"before": before, "limit": limit})]

    def take_job(self, by: str, seconds: float) -> Job | None:
        rows = self._ask("take_job", {"by": by, "seconds": seconds})
        return Job(*rows[0]) if rows else None

    def renew_job(self, id: str, by: str, seconds: float) -> bool:
        return bool(self._ask("renew_job", {"id": id, "by": by, "seconds": seconds}))

    def secret(self) -> bytes:
        def work(cursor: Cursor[Row]) -> bytes:
            row = cursor.execute(SQL["secret"]).fetchone()
            if row is None:
                cursor.execute(SQL["make_secret"], {"key": secrets.token_bytes(32)})
                row = cursor.execute(SQL["secret"]).fetchone()  # another may have been first
            assert row is not None
            return bytes(row[0])

        return self._do(work)

    def recall(self, key: str) -> Json | None:
        row = self._do(lambda cursor: cursor.execute(SQL["recall"], {"key": key}).fetchone())
        answer: Json = None if row is None else row[0]
        return answer

    def remember(self, key: str, answer: Json) -> Json:
        def work(cursor: Cursor[Row]) -> Json:
            cursor.execute(SQL["forget_answers"])
            cursor.execute(SQL["remember"], {"key": key, "answer": AsJson(answer)})
            row = cursor.execute(SQL["recall"], {"key": key}).fetchone()
            kept: Json = answer if row is None else row[0]
            return kept

        return self._do(work, transaction=True)

    def missing_wall(self) -> str | None:
        ((role, is_built, is_ours, user),) = self._ask("wall", {})
        if not is_built:
            return "select afl.part_tenants_v1()"
        return None if is_ours else f"grant {_quoted(role)} to {_quoted(user)}"

    def _ask(self, name: str, parameters: Mapping[str, object]) -> list[Row]:
        with _migrated():
            return self._database.rows(SQL[name], parameters)

    def _do(self, work: Callable[[Cursor[Row]], T], *, transaction: bool = False) -> T:
        with _migrated():
            return self._database.run(work, transaction=transaction)


@contextmanager
def _migrated() -> Iterator[None]:
    try:
        yield
    except _NOT_MIGRATED as error:
        raise BadRequest(
            "the database has no tables of the server yet; `afl db migrate` makes them"
        ) from error


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _token(row: Row) -> Token:
    id_, name, role, tenant, digest, *times = row
    return Token(id_, name, role, tenant, bytes(digest), *times)
