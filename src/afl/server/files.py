"""The dashboard: the files that `make ui` has put beside this module."""

from __future__ import annotations

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from afl.server.headers import NONCE, new_nonce
from afl.server.problems import problem

STATIC = Path(__file__).parent / "static"
_METHODS = ("GET", "HEAD")
#: The names of these have a digest of what is in them.
_HASHED = "assets/"
_FOREVER = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"
_PAGE = "index.html"
_HEAD = "<head>"
_NOT_BUILT = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>AgentFlow</title></head>
<body>
<h1>AgentFlow is here, its dashboard is not</h1>
<p>This server was started from sources in which the dashboard has not been built. Build it:</p>
<pre>make ui</pre>
<p>Then load this page again. The HTTP API works without it; it is described in
<a href="/api/v1/openapi.json">openapi.json</a>.</p>
</body>
</html>
"""


class Dashboard(BaseRoute):
    """Answers every path that is not of the API: with a file, or with the page that shows it."""

    def __init__(self) -> None:
        self._folder = STATIC.resolve()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_ours = (
            scope["type"] == "http"
            and scope["method"] in _METHODS
            and not f"{scope['path']}/".startswith("/api/")
        )
        return (Match.FULL if is_ours else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: object) -> URL:  # type: ignore[override]
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await run_in_threadpool(self._respond, Request(scope))
        await response(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        name = request.url.path.lstrip("/")
        file = self._file(name)
        if file is not None:
            caching = _FOREVER if name.startswith(_HASHED) else _ASK_FIRST
            return FileResponse(file, headers={"Cache-Control": caching})
        # names of workflows have dots too: only these two places have files
        is_file = "." in name and ("/" not in name or name.startswith((_HASHED, "..")))
        if name != _PAGE and is_file:
            return problem(404, "server.missing", f"There is no file {name[:200]} here.")
        return self._page(request)

    def _file(self, name: str) -> Path | None:
        if not name or "\0" in name or name == _PAGE:
            return None
        path = (self._folder / name).resolve()
        return path if path.is_relative_to(self._folder) and path.is_file() else None

    def _page(self, request: Request) -> Response:
        """The page, with a nonce that style sheets made in it may bear."""
        try:
            text = (self._folder / _PAGE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return HTMLResponse(_NOT_BUILT, 503, headers={"Cache-Control": "no-store"})
        nonce = new_nonce()
        setattr(request.state, NONCE, nonce)
        meta = f'{_HEAD}\n    <meta name="csp-nonce" content="{nonce}" />'
        return HTMLResponse(text.replace(_HEAD, meta, 1), headers={"Cache-Control": "no-store"})
