"""Which servers are there to measure on."""

from __future__ import annotations

import socket
from functools import cache

import pytest

from tests.kernel.postgres.databases import server_is_there, url_of

NATS = "nats://127.0.0.1:4222"
SERVER = url_of("postgres")


@cache
def nats_is_there() -> bool:
    try:
        socket.create_connection(("127.0.0.1", 4222), timeout=1).close()
    except OSError:
        return False
    return True


needs_postgres = pytest.mark.skipif(
    not server_is_there(), reason="there is no PostgreSQL to measure on"
)
needs_nats = pytest.mark.skipif(not nats_is_there(), reason="there is no NATS to measure with")
