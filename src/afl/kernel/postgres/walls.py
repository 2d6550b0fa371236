"""The wall between tenants: reads for one of them are made as a role that PostgreSQL shows no
other rows. A migration of the server builds it, where the database lets it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from psycopg import Connection

from afl.kernel.confining import confined_to
from afl.kernel.postgres.statements import SQL, Hot, Parameters, hot

_BE_TENANT = hot("be_tenant")
#: What changes something or is held until the end, and all functions that are transactions; those
#: that are named here only read.
_WRITES = re.compile(
    rb"\b(insert|update|delete|nextval|listen|set_config|pg_\w*lock\w*|pg_notify)\b"
    rb"|\bfor\s+(no\s+key\s+update|share|key\s+share)\b"
    rb"|\bafl\.(?!told_|kept_)\w+_v\d+\("
)
_READS = re.compile(rb"\s*(\(\s*)?(select|with)\b")
_NOTE = re.compile(rb"--[^\n]*")


@lru_cache(maxsize=2048)
def only_reads(statement: bytes) -> bool:
    """Whether a statement changes nothing. One that may change something does not, so that it is
    never made as a role that cannot."""
    text = _NOTE.sub(b"", statement)
    return _READS.match(text) is not None and _WRITES.search(text) is None


class Wall:
    """The wall of one database, which is looked for when it is first needed. Threads may share
    one."""

    def __init__(self) -> None:
        self._role: str | None = None
        self._sought = False

    def before(self, session: Connection[tuple[object, ...]]) -> Sequence[tuple[Hot, Parameters]]:
        """What has to come first in a transaction that reads now: nothing if the rows of all
        tenants may be read, or if there is no wall."""
        tenant = confined_to()
        if tenant is None:
            return ()
        if not self._sought:
            row = session.execute(SQL["find_tenant_role"]).fetchone()
            self._role = None if row is None else str(row[0])
            self._sought = True
        return () if self._role is None else ((_BE_TENANT, _names(self._role, tenant)),)


def _names(role: str, tenant: str) -> Parameters:
    return {"role": role, "tenant": tenant}
