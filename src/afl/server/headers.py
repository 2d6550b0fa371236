"""What browsers are told to keep to, and which requests of theirs are refused."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import threading
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afl.server.errors import CrossSite, WrongHost
from afl.server.problems import problem_of

log = logging.getLogger(__name__)

REPORTS = "/api/v1/csp-report"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
#: The key of the nonce in the state of a request, for the one page that has one.
NONCE = "afl_nonce"

_SAME_SITE = ("same-origin", "none")
_PLAIN = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_TWO_YEARS = "max-age=63072000"


def policy(nonce: str | None = None) -> str:
    """The content security policy. Only style sheets that bear the nonce may stand in a page."""
    styles = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    parts = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": styles,
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "worker-src": "'self'",
        "manifest-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "report-uri": REPORTS,
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def new_nonce() -> str:
    return secrets.token_urlsafe(18)


class SecurityHeaders:
    """Adds them to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                nonce = scope.get("state", {}).get(NONCE)
                for name, value in _PLAIN.items():
                    headers[name] = value
                headers["Content-Security-Policy"] = policy(nonce)
                if scope.get("scheme") == "https":
                    headers["Strict-Transport-Security"] = _TWO_YEARS
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)


class LocalOnly:
    """For a server that asks nobody who they are. What keeps others out is that it can be reached
    from this machine alone; a page of another site, in a browser here, must not undo that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not is_loopback(_host(headers.get("host", ""))):
                await problem_of(WrongHost())(scope, receive, send)
                return
            if scope["method"] not in SAFE_METHODS and _is_cross_site(headers):
                await problem_of(CrossSite())(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is that of the machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_cross_site(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in _SAME_SITE
    # old browsers say only this; what is no browser says nothing
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


class CspReports:
    """Counts what browsers report as against the policy. Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def add(self) -> None:
        with self._lock:
            self._count += 1
        log.warning("a browser reports something against the content security policy")
