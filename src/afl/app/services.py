"""The composition root: from settings to a store, a doorbell and what works on them.

Nothing else constructs a driver. A database is named by a URL:

    postgresql://host/name   PostgreSQL; needs the extra `postgres`
    mongodb://host/name      MongoDB, a replica set; needs the extra `mongo`
    memory:                  this process's memory, for this connection alone
    memory:name              the same, shared by all in this process that use the name
    https://host:7400        a server that works on its database; needs the extra `server`
"""

from __future__ import annotations

import importlib
import types
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import Self, cast

from afl.app.engines import MONGO, Engine, engine_of
from afl.app.errors import BadDatabase, ExtraMissing
from afl.app.live import Live
from afl.app.remote.addresses import is_server
from afl.base.settings import Settings
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.runtime.evaluator import Evaluator
from afl.runtime.memory_store import MemoryStore
from afl.runtime.operations import Operations
from afl.runtime.persistence import PersistenceAPI

_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class Services:
    """What works on one store."""

    persistence: PersistenceAPI
    doorbell: Doorbell
    evaluator: Evaluator
    operations: Operations
    #: whether others in this process use the same store
    is_shared: bool = False
    #: whether all that is there are the operations, done by a server
    is_remote: bool = False
    #: which way what models say goes to those who watch
    live: Live = field(default_factory=Live.within)

    @classmethod
    def on(
        cls,
        persistence: PersistenceAPI,
        doorbell: Doorbell,
        *,
        is_shared: bool = False,
        live: Live | None = None,
    ) -> Services:
        evaluator = Evaluator(persistence)
        operations = Operations(persistence, evaluator, doorbell=doorbell)
        return cls(
            persistence,
            doorbell,
            evaluator,
            operations,
            is_shared,
            live=live or Live.within(),
        )

    def refuse_server(self, what: str) -> None:
        """
        Raises:
            BadDatabase: these are the services of a server, and `what` needs its database.
        """
        if self.is_remote:
            raise BadDatabase(
                f"{what} the database itself. Give its URL, such as postgresql://host/name, "
                "instead of that of a server."
            )

    def close(self) -> None:
        """Gives connections back. What others use stays open."""
        if not self.is_shared:
            self.doorbell.close()
            self.persistence.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


_shared: dict[str, Services] = {}
_lock = Lock()


def connect(
    database: str | None = None, settings: Settings | None = None, *, token: str | None = None
) -> Services:
    """Services on the database of this URL, else on that of the settings.

    Args:
        token: for a server; else that of the settings.

    Raises:
        BadDatabase: there is no URL, or no store for it; the message says what to do.
    """
    settings = settings or Settings.load()
    url = database or settings.database_url
    if url is None:
        raise BadDatabase(
            "There is no database. Set AFL_DATABASE_URL, such as postgresql://host/name, or give "
            "the URL; `memory:` keeps everything in this process."
        )
    if url.startswith(_MEMORY):
        return _in_memory(url, settings)
    if (engine := engine_of(url)) is not None:
        return _on_database(engine, url, settings)
    if is_server(url):
        return _on_server(url, token or settings.token)
    raise BadDatabase(
        f"There is no store for the database `{_without_secrets(url)}`. Use "
        "postgresql://host/name, mongodb://host/name or `memory:`, or the URL of a server, such as "
        "https://host:7400."
    )


def _in_memory(url: str, settings: Settings) -> Services:
    nats = settings.nats_url
    live = Live.within() if nats is None else Live.through_nats(nats)
    if url == _MEMORY:
        return Services.on(MemoryStore(), LocalDoorbell(), live=live)
    with _lock:
        found = _shared.get(url)
        if found is None:
            found = Services.on(MemoryStore(), LocalDoorbell(), is_shared=True, live=live)
            _shared[url] = found
        return found


def _on_database(engine: Engine, url: str, settings: Settings) -> Services:
    try:
        persistence = engine.connect(
            engine.persistence,
            url,
            prepare_threshold=settings.prepare_threshold,
        )
        if settings.nats_url is not None:
            doorbell = _extra("afl.kernel.nats_doorbell", "nats").NatsDoorbell(settings.nats_url)
        else:
            doorbell = engine.load(engine.doorbell)(url)
    except ExtraMissing as error:
        raise BadDatabase(error.message) from error
    return Services.on(
        cast("PersistenceAPI", persistence),
        cast("Doorbell", doorbell),
        live=_live(engine, url, settings),
    )


def _live(engine: Engine, url: str, settings: Settings) -> Live:
    if settings.nats_url is not None:
        return Live.through_nats(settings.nats_url)
    return Live.through_mongo(url) if engine is MONGO else Live.through_postgres(url)


def _on_server(url: str, token: str | None) -> Services:
    connection = _extra("afl.app.remote.http", "server").Connection(url, token)
    operations = _extra("afl.app.remote.operations", "server").RemoteOperations(connection)
    return Services(
        cast("PersistenceAPI", operations.persistence),
        LocalDoorbell(),
        cast("Evaluator", operations.evaluator),
        cast("Operations", operations),
        is_remote=True,
    )


def _extra(module: str, extra: str) -> types.ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise BadDatabase(
            f"This needs {error.name}, which is not installed: "
            f"`pip install 'afl-agentflow[{extra}]'`."
        ) from error


def _without_secrets(url: str) -> str:
    scheme, slashes, rest = url.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"
