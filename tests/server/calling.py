"""Tokens for tests, and what the server has kept of them."""

from __future__ import annotations

import psycopg

from afl.server.backend import Backend
from afl.server.store import AuditEntry
from afl.server.tokens import new_token

_TABLES = "server_token server_audit server_view server_hook server_job server_answer server_secret"


def token_for(
    backend: Backend, role: str, tenant: str = "*", name: str | None = None
) -> dict[str, str]:
    """The headers of a caller with a new token."""
    now = backend.services.persistence.now()
    token, secret = new_token(name or f"{role} of {tenant}", role, tenant, now)
    assert backend.store.add_token(token)
    return {"Authorization": f"Bearer {secret}"}


def last_entry(backend: Backend) -> AuditEntry:
    """The last entry of the audit trail."""
    return backend.store.audit(limit=1)[0]


def clear_server(url: str) -> None:
    """Removes everything that a server keeps for itself."""
    with psycopg.connect(url) as connection:
        for table in _TABLES.split():
            connection.execute(f"delete from afl.{table}".encode())
