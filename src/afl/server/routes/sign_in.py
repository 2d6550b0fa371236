"""Signing in and out with a browser. Not a part of the API: these are pages that browsers go to."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from typing import Annotated, cast

from fastapi import APIRouter, Cookie, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from afl.base.errors import AflError
from afl.server.access import caller_of
from afl.server.backend import Work
from afl.server.errors import CrossSite, Missing, NotSignedIn
from afl.server.problems import status_of
from afl.server.sessions import CSRF, LASTS, SESSION, Sessions
from afl.server.signing_in import BEGUN_LASTS, SignIn, sign_in_of

router = APIRouter(prefix="/auth", include_in_schema=False)

_BEGUN = "afl_sign_in"
_BEGUN_PATH = "/auth"
_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>AgentFlow</title></head>
<body>
<h1>Signing in did not work</h1>
<p>{sentence}</p>
<p><a href="/auth/login">Sign in again</a></p>
</body>
</html>
"""


@router.get("/offer")
def offer(request: Request, backend: Work) -> JSONResponse:
    """Whether browsers can sign in, and whether this one has."""
    try:
        known = Sessions(backend.store).whose(request.headers, request.method) is not None
    except NotSignedIn:
        known = False
    return JSONResponse({"sign_in": _sign_in(request) is not None, "signed_in": known})


@router.get("/login")
def login(request: Request, back: str = "/") -> Response:
    """Sends the browser to the identity provider."""
    sign_in = _sign_in(request)
    if sign_in is None:
        return _failed(Missing("This server has no identity provider to sign in at."))
    try:
        begun = sign_in.begin(_redirect(request), back)
    except AflError as error:
        return _failed(error)
    answer = RedirectResponse(begun.url, status_code=302)
    _set(request, answer, _BEGUN, begun.kept, lasts=BEGUN_LASTS, path=_BEGUN_PATH)
    return answer


@router.get("/callback")
def callback(
    request: Request,
    backend: Work,
    state: str = "",
    code: str = "",
    error: str = "",
    afl_sign_in: Annotated[str | None, Cookie()] = None,
) -> Response:
    """Where the identity provider sends the browser back to."""
    sign_in = _sign_in(request)
    try:
        if sign_in is None:
            raise Missing("This server has no identity provider to sign in at.")
        if error or not code:
            raise NotSignedIn(f"The identity provider says no: {error or 'there is no code'}.")
        signed_in = sign_in.end(afl_sign_in, state, code, _redirect(request))
        caller = caller_of(signed_in.claims)
    except AflError as problem:
        answer: Response = _failed(problem)
    else:
        sessions = Sessions(backend.store)
        session = sessions.begin(caller.subject, caller.role.word, caller.tenant)
        answer = RedirectResponse(signed_in.back, status_code=302)
        _set(request, answer, SESSION, session, lasts=LASTS)
        _set(request, answer, CSRF, sessions.csrf(session), lasts=LASTS, is_hidden=False)
    # a code is good for one try
    answer.delete_cookie(_BEGUN, path=_BEGUN_PATH)
    return answer


@router.post("/logout", status_code=204)
def logout(request: Request, backend: Work) -> Response:
    """Ends the session in this browser."""
    try:
        Sessions(backend.store).whose(request.headers, request.method)
    except CrossSite:
        raise
    except NotSignedIn:
        pass  # nothing is left of it
    answer = Response(status_code=204)
    for name in (SESSION, CSRF):
        answer.delete_cookie(name)
    return answer


def _sign_in(request: Request) -> SignIn | None:
    """The one of this server, made at its first use."""
    state = request.app.state
    if not hasattr(state, "sign_in"):
        backend = state.backend
        state.sign_in = sign_in_of(backend.settings, backend.store) if backend.auth else None
    return cast("SignIn | None", state.sign_in)


def _redirect(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}/auth/callback"


def _set(
    request: Request,
    answer: Response,
    name: str,
    value: str,
    *,
    lasts: timedelta,
    path: str = "/",
    is_hidden: bool = True,
) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=int(lasts.total_seconds()),
        path=path,
        secure=request.url.scheme == "https",
        httponly=is_hidden,
        samesite="lax",
    )


def _failed(error: AflError) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(sentence=escape(error.message)), status_of(type(error)))
