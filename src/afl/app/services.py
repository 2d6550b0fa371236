"""The composition root: from settings to a store, a doorbell and what works on them.

Nothing else constructs a driver. A database is named by a URL:

    postgresql://host/name   PostgreSQL; needs the extra `postgres`
    memory:                  this process's memory, for this connection alone
    memory:name              the same, shared by all in this process that use the name
    https://host:7400        a server that works on its database; needs the extra `server`
"""

from __future__ import annotations

import importlib
import types
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Self, cast

from afl.app.errors import BadDatabase
from afl.app.remote.addresses import is_server
from afl.base.settings import Settings
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.runtime.evaluator import Evaluator
from afl.runtime.memory_store import MemoryStore
from afl.runtime.operations import Operations
from afl.runtime.persistence import PersistenceAPI

_MEMORY = "memory:"
_POSTGRES = ("postgresql://", "postgres://")


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

    @classmethod
    def on(
        cls, persistence: PersistenceAPI, doorbell: Doorbell, *, is_shared: bool = False
    ) -> Services:
        evaluator = Evaluator(persistence)
        operations = Operations(persistence, evaluator, doorbell=doorbell)
        return cls(persistence, doorbell, evaluator, operations, is_shared)

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
        return _in_memory(url)
    if url.startswith(_POSTGRES):
        return _on_postgres(url, settings)
    if is_server(url):
        return _on_server(url, token or settings.token)
    raise BadDatabase(
        f"There is no store for the database `{_without_secrets(url)}`. Use postgresql://host/name "
        "or `memory:`, or the URL of a server, such as https://host:7400."
    )


def _in_memory(url: str) -> Services:
    if url == _MEMORY:
        return Services.on(MemoryStore(), LocalDoorbell())
    with _lock:
        found = _shared.get(url)
        if found is None:
            found = Services.on(MemoryStore(), LocalDoorbell(), is_shared=True)
            _shared[url] = found
        return found


def _on_postgres(url: str, settings: Settings) -> Services:
    # the drivers are extras: they are imported when somebody wants them
    store = _extra("afl.runtime.postgres_store", "postgres").PostgresPersistence
    persistence = store.connect(url, prepare_threshold=settings.prepare_threshold)
    if settings.nats_url is not None:
        doorbell = _extra("afl.kernel.nats_doorbell", "nats").NatsDoorbell(settings.nats_url)
    else:
        doorbell = _extra("afl.kernel.postgres.doorbell", "postgres").PostgresDoorbell(url)
    return Services.on(cast("PersistenceAPI", persistence), cast("Doorbell", doorbell))


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
