"""What every request to the API goes through before its body is read: who asks, may they, do they
ask too often, and is it written down."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from anyio import CancelScope
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afl.base.errors import AflError
from afl.base.log_fields import add_log_fields
from afl.kernel.confining import confined
from afl.kernel.model import Json
from afl.server.access import CALLER, Access, Caller, Needs
from afl.server.auditing import Deed, Trail, printable, taking_notes
from afl.server.backend import Backend
from afl.server.errors import CrossSite, NotAllowed, NotSignedIn
from afl.server.headers import SAFE_METHODS
from afl.server.limits import Limits, RateLimit
from afl.server.problems import problem_of, status_of

log = logging.getLogger(__name__)

#: Requests with a body that change nothing, and log lines: those are work, not deeds of people.
_NOT_AUDITED = frozenset(
    {"/check", "/check/graph", "/try", "/schedules/preview", "/bulk/preview", "/csp-report"}
)
_LOGS = "/logs"
#: What a path can name that log lines are about.
_ABOUT = ("run", "task", "worker")
_bool = TypeAdapter(bool)


@dataclass(frozen=True, slots=True)
class Door:
    """A route, and what it wants of its caller; None if it is open on purpose."""

    path: str
    regex: re.Pattern[str]
    methods: frozenset[str]
    needs: Needs | None
    #: whether it has the parameter `dry_run`; elsewhere it means nothing
    has_dry_run: bool = False

    def is_audited(self, scope: Scope) -> bool:
        """Whether a request is a deed."""
        if scope["method"] in SAFE_METHODS or self.path in _NOT_AUDITED:
            return False
        if self.path.startswith(_LOGS):
            return False
        return not (self.has_dry_run and _is_dry_run(scope))


def doors(routes: Iterable[APIRoute]) -> list[Door]:
    """The doors of routes, in their order."""
    found = []
    for route in routes:
        needs = [each.call for each in route.dependant.dependencies if isinstance(each.call, Needs)]
        door = Door(
            path=route.path,
            regex=compile_path(route.path)[0],
            methods=frozenset(route.methods or ()),
            needs=needs[0] if needs else None,
            has_dry_run=any(each.name == "dry_run" for each in route.dependant.query_params),
        )
        found.append(door)
    return found


class Guard:
    """Stands before the routes of the API."""

    def __init__(
        self, app: ASGIApp, backend: Backend, prefix: str, doors: Sequence[Door], limits: Limits
    ) -> None:
        self._app = app
        self._prefix = prefix
        self._doors = doors
        self._access = Access(backend)
        self._trail = Trail(backend.store)
        self._rate = RateLimit(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        door, deed = found
        try:
            caller, audited = await run_in_threadpool(self._admit, scope, door, deed)
        except AflError as error:
            await problem_of(error)(scope, receive, send)
            return
        scope.setdefault("state", {})[CALLER] = caller
        add_log_fields(_fields(deed, caller))
        send = _logged(deed, send)
        # also where a route forgets to ask whose something is
        with confined(None if caller is None else caller.only_tenant):
            if audited is None:
                await self._app(scope, receive, send)
            else:
                await self._watched(audited, scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Door, Deed] | None:
        if scope["type"] != "http" or not scope["path"].startswith(self._prefix):
            return None
        path = scope["path"][len(self._prefix) :]
        for door in self._doors:
            if scope["method"] in door.methods and (match := door.regex.match(path)):
                return door, Deed(scope["method"], door.path, match.groupdict())
        return None

    def _admit(self, scope: Scope, door: Door, deed: Deed) -> tuple[Caller | None, int | None]:
        """Who asks, and the number of the entry that says so."""
        caller = self._identify(scope, door, deed)
        self._rate.take(_address(scope) if caller is None else caller.subject)
        return caller, self._trail.begin(deed, caller) if door.is_audited(scope) else None

    def _identify(self, scope: Scope, door: Door, deed: Deed) -> Caller | None:
        """Who asks; None where nobody is asked who they are."""
        if door.needs is None:
            return None
        caller = None
        try:
            caller = self._access.identify(Headers(scope=scope), scope["method"])
            door.needs.check(caller)
        except (NotSignedIn, NotAllowed, CrossSite) as error:
            # also those who are refused have to wait, or they could fill the trail
            self._rate.take(_address(scope) if caller is None else caller.subject)
            self._trail.refuse(deed, caller, status_of(type(error)))
            raise
        return caller

    async def _watched(self, audited: int, scope: Scope, receive: Receive, send: Send) -> None:
        open_ = True

        async def end(status: int) -> None:
            nonlocal open_
            open_ = False
            with CancelScope(shield=True):
                await run_in_threadpool(self._end, audited, status, dict(notes))

        async def watching(message: Message) -> None:
            # before the caller hears of it: who then looks at the trail finds it there
            if message["type"] == "http.response.start":
                await end(message["status"])
            await send(message)

        with taking_notes() as notes:
            try:
                await self._app(scope, receive, watching)
            finally:
                if open_:
                    await end(500)

    def _end(self, audited: int, status: int, notes: Mapping[str, Json]) -> None:
        try:
            self._trail.end(audited, status, notes)
        except AflError as error:
            log.warning("how a request ended could not be written down: %s", error)


def _fields(deed: Deed, caller: Caller | None) -> dict[str, str]:
    """What the lines that are logged for a request say: what it is about, and who asks."""
    about = {name: printable(deed.names[name]) for name in _ABOUT if name in deed.names}
    about["request"] = f"{deed.method} {deed.route}"
    if caller is None:
        return about
    return {**about, "subject": caller.subject, "tenant": caller.tenant}


def _logged(deed: Deed, send: Send) -> Send:
    """Logs how a request is answered, for those who want to see all of them."""
    if not log.isEnabledFor(logging.INFO):
        return send
    began = monotonic()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            took_ms = round((monotonic() - began) * 1000)
            about = {"status": message["status"], "took_ms": took_ms}
            log.info("%s %s", deed.method, deed.route, extra=about)
        await send(message)

    return sending


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"address:{client[0] if client else ''}"


def _is_dry_run(scope: Scope) -> bool:
    told = QueryParams(scope["query_string"]).get("dry_run")
    try:
        return told is not None and _bool.validate_python(told)
    except ValidationError:
        return False
