"""Log lines of runs, for whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from afl.app.engines import known_engine
from afl.app.extras import extra_part
from afl.app.remote.addresses import is_server
from afl.base.settings import Settings
from afl.logs.store import LogStore


@contextmanager
def stored_logs(database: str) -> Iterator[LogStore]:
    """The log lines of a database, or of a server. Nothing is prepared, so that a pooler may stand
    before it."""
    if is_server(database):
        remote = extra_part("afl.app.remote.logs", "server", "Servers are asked through")
        with remote.RemoteLogs.connect(database, Settings.load().token) as lines:
            yield cast("LogStore", lines)
        return
    engine = known_engine(database)
    with engine.connect(engine.logs, database) as store:
        yield cast("LogStore", store)
