"""A server as a process: it binds first, says where it is, and ends when it is told to."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import cast

import uvicorn
from fastapi import FastAPI

from afl.app.client import Client
from afl.app.engines import known_engine
from afl.app.log_reading import stored_logs
from afl.app.services import connect
from afl.base.settings import Settings
from afl.server.backend import Backend
from afl.server.checks.findings import Grade
from afl.server.checks.tenants import check_tenants
from afl.server.errors import CannotServe
from afl.server.headers import is_loopback
from afl.server.memory_store import MemoryServerStore
from afl.server.routes.stream import end_streams
from afl.server.store import ServerStore

_log = logging.getLogger("afl.server")
_MEMORY = "memory:"
_STOP_SECONDS = 10
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def open_backend(
    database: str | None = None, settings: Settings | None = None, *, auth: bool = True
) -> Iterator[Backend]:
    """A backend on the database of this URL, else on that of the settings; closed afterwards.

    Raises:
        BadDatabase: there is no URL, or no store for it; the message says what to do.
    """
    settings = settings or Settings.load()
    url = database or settings.database_url
    with ExitStack() as stack:
        services = stack.enter_context(connect(url, settings))
        assert url is not None  # or there would be no services
        is_memory = url.startswith(_MEMORY)
        store = MemoryServerStore() if is_memory else _kept(url, settings)
        stack.callback(store.close)
        client = stack.enter_context(Client(services=services))
        logs = None if is_memory else stack.enter_context(stored_logs(url))
        where = None if is_memory else url
        yield Backend(services, client, store, settings, logs=logs, database=where, auth=auth)


def _kept(url: str, settings: Settings) -> ServerStore:
    engine = known_engine(url)
    store = engine.connect(engine.server, url, prepare_threshold=settings.prepare_threshold)
    return cast("ServerStore", store)


def refuse_open_doors(host: str, backend: Backend) -> None:
    """
    Raises:
        CannotServe: others could do anything here, or nobody could do anything.
    """
    if is_loopback(host):
        return
    if not backend.auth:
        raise CannotServe(
            f"With --no-auth everybody who reaches the server may do everything, and {host} is not "
            "this machine alone. Leave out --no-auth and make a token with "
            "`afl tokens create admin --role admin`, or use --host 127.0.0.1."
        )
    if lacks_callers(backend):
        raise CannotServe(
            f"There is no token yet, so nobody could sign in at {host}. First make one: "
            "`afl tokens create admin --role admin`."
        )


def warn_of_missing_wall(backend: Backend) -> None:
    """Says in the log what the database lacks, where callers may be of one tenant alone."""
    finding = check_tenants(backend.store)
    if backend.auth and finding.grade is not Grade.OK:
        _log.warning("%s; %s", finding.text, finding.fix)


def lacks_callers(backend: Backend) -> bool:
    """Whether nobody can sign in: there is no token, and no identity provider."""
    return backend.settings.oidc_issuer is None and not backend.store.tokens()


def run_server(
    app: FastAPI, host: str, port: int, *, on_started: Callable[[str], None] | None = None
) -> None:
    """Serves until the process is told to end; requests that are under way are finished.

    Args:
        on_started: called with the URL as soon as requests are answered.

    Raises:
        CannotServe: the address is taken, or is not one of this machine.
    """
    with closing(_bound(host, port)) as listener:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            timeout_graceful_shutdown=_STOP_SECONDS,
            lifespan="on",
        )
        server = _Server(config, app, lambda: on_started(url) if on_started else None)
        with _calm_end():
            server.run(sockets=[listener])


@contextmanager
def _calm_end() -> Iterator[None]:
    """When it has ended, the server raises again the signal that told it to. It has done what the
    signal wants, so that must not end the process as if it had not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda *_: None) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Server(uvicorn.Server):
    """Tells when it answers, and those who watch that it ends."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end_streams(self._app)
        await super().shutdown(sockets)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise CannotServe(f"{host} is no address of this machine: {error.strerror}.") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CannotServe(
            f"The server cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}. "
            "Choose another one with --port."
        ) from error
    return listener
