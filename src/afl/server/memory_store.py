"""What the server keeps for itself, in memory: for tests, and for servers on memory."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.kernel.model import Json
from afl.server.store import KEPT, AuditEntry, Job, SavedFilter, Token, WebHook

_MINUTE = timedelta(minutes=1)


class MemoryServerStore:
    """Threads may share one. See `ServerStore` for what each method promises."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._tokens: dict[str, Token] = {}
        self._audit: dict[int, AuditEntry] = {}
        self._audited = count(1)
        self._views: dict[str, SavedFilter] = {}
        self._hooks: dict[str, WebHook] = {}
        self._jobs: dict[str, Job] = {}
        #: who is at a job, and until when
        self._taken: dict[str, tuple[str, datetime]] = {}
        self._answers: dict[str, tuple[Json, datetime]] = {}
        self._secret = secrets.token_bytes(32)

    def close(self) -> None:
        """There is nothing to give back."""

    def add_token(self, token: Token) -> bool:
        with self._lock:
            if any(each.name == token.name for each in self._tokens.values()):
                return False
            self._tokens[token.id] = token
            return True

    def find_token(self, digest: bytes) -> Token | None:
        with self._lock:
            found = (each for each in self._tokens.values() if each.digest == digest)
            return next(found, None)

    def tokens(self) -> Sequence[Token]:
        with self._lock:
            return sorted(self._tokens.values(), key=lambda each: (each.created_at, each.id))

    def revoke_token(self, id: str) -> bool:
        with self._lock:
            return self._tokens.pop(id, None) is not None

    def note_use(self, id: str, at: datetime) -> None:
        with self._lock:
            token = self._tokens.get(id)
            if token is not None and (
                token.last_used_at is None or token.last_used_at <= at - _MINUTE
            ):
                self._tokens[id] = replace(token, last_used_at=at)

    def begin_audit(self, entry: AuditEntry) -> int:
        with self._lock:
            id_ = next(self._audited)
            self._audit[id_] = replace(entry, id=id_, at=entry.at or self._clock.now())
            return id_

    def end_audit(self, id: int, status: int, detail: Mapping[str, Json]) -> None:
        with self._lock:
            entry = self._audit[id]
            self._audit[id] = replace(entry, status=status, detail={**entry.detail, **detail})

    def audit(
        self, *, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditEntry]:
        with self._lock:
            found = [
                each
                for each in reversed(self._audit.values())
                if tenant in (None, each.tenant) and (before is None or each.id < before)
            ]
            return found[:limit]

    def rotate_audit(self, older_than: timedelta, limit: int = 1000) -> int:
        oldest = self._clock.now() - older_than
        with self._lock:
            old = [each.id for each in self._audit.values() if each.at and each.at < oldest]
            for id_ in old[:limit]:
                del self._audit[id_]
        return len(old[:limit])

    def save_view(self, view: SavedFilter) -> None:
        with self._lock:
            self._views[view.id] = view

    def views(self, owner: str, tenant: str) -> Sequence[SavedFilter]:
        with self._lock:
            found = [
                each
                for each in self._views.values()
                if each.tenant == tenant and (each.shared or each.owner == owner)
            ]
        return sorted(found, key=lambda each: (each.name, each.id))

    def delete_view(self, id: str, owner: str) -> bool:
        with self._lock:
            view = self._views.get(id)
            if view is None or view.owner != owner:
                return False
            del self._views[id]
            return True

    def add_hook(self, hook: WebHook) -> bool:
        with self._lock:
            return self._hooks.setdefault(hook.name, hook) is hook

    def hook(self, name: str) -> WebHook | None:
        with self._lock:
            return self._hooks.get(name)

    def hooks(self) -> Sequence[WebHook]:
        with self._lock:
            return sorted(self._hooks.values(), key=lambda each: each.name)

    def delete_hook(self, name: str) -> bool:
        with self._lock:
            return self._hooks.pop(name, None) is not None

    def put_job(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.id] = job

    def job(self, id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(id)

    def jobs(self, *, before: str | None = None, limit: int = 100) -> Sequence[Job]:
        with self._lock:
            found = [each for each in self._jobs.values() if before is None or each.id < before]
        return sorted(found, key=lambda each: each.id, reverse=True)[:limit]

    def take_job(self, by: str, seconds: float) -> Job | None:
        with self._lock:
            now = self._clock.now()
            for id_, job in sorted(self._jobs.items()):
                taken = self._taken.get(id_)
                if job.state == "running" and (taken is None or taken[1] <= now):
                    self._taken[id_] = (by, now + timedelta(seconds=seconds))
                    return job
            return None

    def renew_job(self, id: str, by: str, seconds: float) -> bool:
        with self._lock:
            job, taken = self._jobs.get(id), self._taken.get(id)
            if job is None or job.state != "running" or taken is None or taken[0] != by:
                return False
            self._taken[id] = (by, self._clock.now() + timedelta(seconds=seconds))
            return True

    def secret(self) -> bytes:
        return self._secret

    def recall(self, key: str) -> Json | None:
        with self._lock:
            self._forget_answers()
            return self._answers[key][0] if key in self._answers else None

    def remember(self, key: str, answer: Json) -> Json:
        with self._lock:
            self._forget_answers()
            return self._answers.setdefault(key, (answer, self._clock.now()))[0]

    def missing_wall(self) -> str | None:
        return None

    def _forget_answers(self) -> None:
        oldest = self._clock.now() - KEPT
        self._answers = {key: each for key, each in self._answers.items() if each[1] > oldest}
