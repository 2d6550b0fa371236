"""Whether the database keeps tenants apart by itself, behind the checks of the server."""

from __future__ import annotations

from afl.server.checks.findings import Finding, ok, warn
from afl.server.store import ServerStore

MISSING = "only the server keeps tenants apart: the database lets it read the rows of all"


def check_tenants(store: ServerStore) -> Finding:
    """Whether there is a second wall between tenants."""
    statement = store.missing_wall()
    if statement is None:
        return ok("tenants", "the database keeps tenants apart, behind the checks of the server")
    return warn("tenants", MISSING, f"have an administrator of the database run `{statement};`")
