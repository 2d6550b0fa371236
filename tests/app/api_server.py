"""A server of the API on a free port, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from afl.server.tokens import new_token


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A server that runs."""

    url: str
    backend: Backend

    def token(self, role: str, tenant: str = "*") -> str:
        """The secret of a new token."""
        now = self.backend.services.persistence.now()
        token, secret = new_token(f"{role} of {tenant}", role, tenant, now)
        self.backend.store.add_token(token)
        return secret


@contextmanager
def api_server(database: str, *, auth: bool = False) -> Iterator[ApiServer]:
    """A server on a database, until the block ends."""
    with open_backend(database, Settings(), auth=auth) as backend:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(create_app(backend), log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield ApiServer(url, backend)
        finally:
            server.should_exit = True
            thread.join()
            listener.close()
