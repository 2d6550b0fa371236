"""What the server keeps for itself: tokens, the audit trail, views, web hooks, bulk jobs, and
answers to requests that may be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from afl.kernel.model import Json

#: How long answers to requests that may be repeated are kept.
KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Token:
    """An API token. Its secret is kept as a digest alone."""

    id: str
    name: str
    role: str
    tenant: str
    digest: bytes
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that somebody does. Written before it is done, with the status 0; the status is
    that of the answer afterwards. So even a server that dies does nothing without a trace."""

    subject: str
    role: str
    tenant: str
    action: str
    target: str
    status: int = 0
    detail: Mapping[str, Json] = field(default_factory=dict)
    at: datetime | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """A filter with a name."""

    id: str
    name: str
    page: str
    query: str
    shared: bool
    owner: str
    tenant: str


@dataclass(frozen=True, slots=True)
class WebHook:
    """A web hook; the secret is needed to check signatures."""

    name: str
    workflow: str
    program: str
    secret: str


@dataclass(frozen=True, slots=True)
class Job:
    """A bulk action. `state` is running, done or failed."""

    id: str
    verb: str
    #: the form that it was started with
    form: Mapping[str, Json]
    by: str
    tenant: str
    state: str
    total: int
    done: int
    failures: Sequence[Mapping[str, Json]]
    created_at: datetime
    finished_at: datetime | None = None
    #: the id of the run that it has come to
    cursor: str | None = None


class ServerStore(Protocol):
    """On one database, or in memory. Threads may share one."""

    def add_token(self, token: Token) -> bool:
        """False if the name is taken."""
        ...

    def find_token(self, digest: bytes) -> Token | None:
        """The token with this digest, also one that has expired."""
        ...

    def tokens(self) -> Sequence[Token]: ...
    def revoke_token(self, id: str) -> bool: ...

    def note_use(self, id: str, at: datetime) -> None:
        """Notes when a token was last used; calls within a minute of each other are one."""
        ...

    def begin_audit(self, entry: AuditEntry) -> int:
        """Writes what is about to be done, and answers its id."""
        ...

    def end_audit(self, id: int, status: int, detail: Mapping[str, Json]) -> None: ...

    def audit(
        self, *, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditEntry]:
        """What was done, of a tenant or of all, the newest first."""
        ...

    def rotate_audit(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes what is that old, up to so many entries; answers how many have gone."""
        ...

    def save_view(self, view: SavedFilter) -> None: ...
    def views(self, owner: str, tenant: str) -> Sequence[SavedFilter]: ...
    def delete_view(self, id: str, owner: str) -> bool: ...

    def add_hook(self, hook: WebHook) -> bool:
        """False if the name is taken."""
        ...

    def hook(self, name: str) -> WebHook | None: ...
    def hooks(self) -> Sequence[WebHook]: ...
    def delete_hook(self, name: str) -> bool: ...

    def put_job(self, job: Job) -> None:
        """Writes a job, new or changed."""
        ...

    def job(self, id: str) -> Job | None: ...
    def jobs(self, *, before: str | None = None, limit: int = 100) -> Sequence[Job]: ...

    def take_job(self, by: str, seconds: float) -> Job | None:
        """A running job that no live server is at, for this server, for so long."""
        ...

    def renew_job(self, id: str, by: str, seconds: float) -> bool:
        """Keeps a job for so long from now on; False if it has ended or is another server's."""
        ...

    def secret(self) -> bytes:
        """A key of this installation alone, made at the first use; for signatures."""
        ...

    def recall(self, key: str) -> Json | None:
        """The answer that was given to a request with this key."""
        ...

    def remember(self, key: str, answer: Json) -> Json:
        """Keeps an answer for a day, and answers the one that is kept: the first."""
        ...

    def missing_wall(self) -> str | None:
        """The statement by which an administrator has the database keep tenants apart by itself;
        None if it does, or has nothing to be asked."""
        ...

    def close(self) -> None: ...
