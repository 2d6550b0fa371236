"""What the server keeps, for the commands that look after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from afl.app.extras import extra_part
from afl.cli.running.connection import database_url, refusals, refuse_pending
from afl.server.store import ServerStore


@contextmanager
def server_store(database: str | None, who: str) -> Iterator[ServerStore]:
    """What the server keeps; `who` begins the sentence if a library is missing. Nothing is
    prepared, so that a pooler may stand before it."""
    url = database_url(database)
    with refusals():
        refuse_pending(url)
        module = extra_part("afl.server.postgres_store", "postgres", who)
        with module.PostgresServerStore.connect(url, max_size=1, prepare_threshold=None) as store:
            yield cast("ServerStore", store)
