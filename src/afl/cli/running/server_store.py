"""What the server keeps, for the commands that look after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from afl.app.engines import known_engine
from afl.cli.running.connection import database_url, refusals, refuse_pending
from afl.server.store import ServerStore


@contextmanager
def server_store(database: str | None) -> Iterator[ServerStore]:
    """What the server keeps."""
    url = database_url(database)
    with refusals():
        refuse_pending(url)
        engine = known_engine(url)
        with engine.connect(engine.server, url, max_size=1) as store:
            yield cast("ServerStore", store)
