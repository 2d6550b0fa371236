"""What routes work on: one store, one client on it, and the settings of the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from afl.app.client import Client
from afl.app.services import Services
from afl.base.settings import Settings
from afl.logs.store import LogStore
from afl.server.dev_state import DevState
from afl.server.store import ServerStore


@dataclass(frozen=True, slots=True)
class Backend:
    """Made once for a server; threads share it."""

    services: Services
    client: Client
    store: ServerStore
    settings: Settings
    #: the URL of the database; None if everything is in memory
    database: str | None = None
    #: whether callers have to say who they are
    auth: bool = True
    #: the log lines of handlers and commands; a store in memory keeps none
    logs: LogStore | None = None
    #: what `afl dev` tells; other servers have nothing to tell
    dev: DevState | None = None


def _backend(request: Request) -> Backend:
    return cast("Backend", request.app.state.backend)


Work = Annotated[Backend, Depends(_backend)]
