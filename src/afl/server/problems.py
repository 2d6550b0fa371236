"""What went wrong, as `application/problem+json` (RFC 9457).

Every error that AgentFlow raises on purpose has its status in one table, by its code. One that is
not there has the status of the kind that it belongs to.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from math import ceil

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afl.base.errors import AflError
from afl.base.log_fields import current_log_fields
from afl.kernel.errors import StoreUnavailable
from afl.server.models.base import JsonMap, Problem

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger(__name__)

STATUS: Mapping[str, int] = {
    "error": 500,
    # what a request names is not there
    "kernel.not_found": 404,
    "runtime.unknown_facet": 404,
    "runtime.unknown_item": 404,
    "runtime.unknown_program": 404,
    "runtime.unknown_run": 404,
    "runtime.unknown_schedule": 404,
    "runtime.unknown_step": 404,
    "runtime.unknown_worker": 404,
    "server.bad_link": 404,
    "server.missing": 404,
    "turns.mcp_unknown": 404,
    "turns.unknown_agent": 404,
    # it is not in a state for this
    "kernel.fenced": 409,
    "messaging.not_the_owner": 409,
    "runtime.already_answered": 409,
    "runtime.not_forkable": 409,
    "runtime.not_skippable": 409,
    "runtime.run_canceled": 409,
    "runtime.run_conflict": 409,
    "runtime.run_ended": 409,
    "runtime.run_failed": 409,
    "runtime.still_running": 409,
    "server.taken": 409,
    "turns.budget": 409,
    "turns.mcp_changed": 409,
    "turns.refused": 409,
    "server.old_link": 410,
    # what a request says is wrong
    "app.bad_program": 422,
    "duration": 422,
    "kernel.bad_request": 422,
    "logs.bad_bytes": 422,
    "logs.bad_cursor": 422,
    "kernel.lane_cycle": 422,
    "kernel.refused": 422,
    "kernel.too_deep": 422,
    "messaging.refused": 422,
    "program-format": 422,
    "program-hash": 422,
    "program-version": 422,
    "runtime.bad_inputs": 422,
    "runtime.bad_schedule": 422,
    "runtime.evaluation": 422,
    "runtime.wrong_value": 422,
    "server.bad_form": 422,
    "turns.bad_brief": 422,
    # who asks, and how
    "server.not_signed_in": 401,
    "server.cross_site": 403,
    "server.not_allowed": 403,
    "server.too_large": 413,
    "server.wrong_host": 421,
    "server.too_many": 429,
    # something else does not answer; the same again may succeed
    "app.retry": 503,
    "exec.keeper_lost": 503,
    "exec.worker_ends": 503,
    "kernel.migration": 503,
    "kernel.store_unavailable": 503,
    "logs.spool_closed": 503,
    "messaging": 503,
    "messaging.breaker_open": 503,
    "messaging.breaker_unavailable": 503,
    "messaging.registry": 503,
    "server.issuer_away": 503,
    "server.no_trace": 503,
    "turns.mcp_gone": 503,
    "turns.mcp_unreachable": 503,
    "turns.model_busy": 503,
    "turns.provider_down": 503,
    # another server has answered wrongly, or not in time
    "app.remote": 502,
    "turns.mcp": 502,
    "turns.mcp_protocol": 502,
    "turns.mcp_timeout": 504,
    "turns.model": 502,
    "turns.model_refused": 502,
    # this installation is not fit for it
    "app.extra_missing": 501,
    "exec.cannot_execute": 501,
    "exec.sandbox_missing": 501,
    "app.needs_database": 501,
    "runtime.scheduling_missing": 501,
    # mistakes of ours, or of whoever has set the server up
    "app": 500,
    "app.bad_database": 500,
    "app.bad_handler": 500,
    "app.cannot_keep_logs": 500,
    "app.postgres_failed": 500,
    "app.skip": 500,
    "config": 500,
    "exec": 500,
    "exec.bad_artifact": 500,
    "exec.cannot_start": 500,
    "kernel": 500,
    "kernel.not_plain": 500,
    "kernel.not_replicated": 500,
    "mail": 500,
    "runtime": 500,
    "runtime.permanent": 500,
    "server": 500,
    "server.cannot_serve": 500,
    "turns": 500,
}
"""The status of every code, or of the kind that it belongs to."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'])")
_COMMAND = re.compile(r"`(afl [^`]+)`")
_RETRY_SECONDS = 1
_AWAY = "The database cannot be reached. Try again in a moment; the log of the server says more."


class ProblemResponse(JSONResponse):
    """A problem as an answer."""

    media_type = MEDIA_TYPE


def status_of(kind: type[AflError]) -> int:
    """The status that errors of a kind are answered with."""
    kinds = (each for each in kind.__mro__ if issubclass(each, AflError))
    return next(STATUS[each.code] for each in kinds if each.code in STATUS)


def problem(
    status: int,
    code: str,
    message: str,
    *,
    errors: Sequence[JsonMap] = (),
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """An answer that says what went wrong."""
    detail, hint = _split(message)
    body = Problem(
        type=f"urn:afl:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        hint=hint,
        errors=list(errors),
    )
    return ProblemResponse(body.model_dump(mode="json"), status, headers=dict(headers or {}))


def problem_of(error: AflError) -> ProblemResponse:
    """The answer to a request that was refused."""
    status = status_of(type(error))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("a request failed: %s", error, exc_info=error)
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        after = getattr(error, "retry_after", _RETRY_SECONDS)
        headers["Retry-After"] = str(max(_RETRY_SECONDS, ceil(after)))
    # where the database is, and how it is reached, is for the log alone
    message = _AWAY if isinstance(error, StoreUnavailable) else error.message
    if message == inspect.getdoc(type(error)):
        message = " ".join(message.split())  # its lines end where those of the source do
    return problem(status, error.code, message, headers=headers)


class Unexpected:
    """Answers when we made a mistake. What it was is for the log alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watching(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watching)
        except Exception:
            if started or scope["type"] != "http":
                raise
            # the route, and not the path: that may have the secret of a link in it
            request = current_log_fields().get("request", scope["method"])
            log.exception("a request has failed: %s", request)
            message = "AgentFlow made a mistake. The log of the server shows where."
            await problem(500, "server.internal", message)(scope, receive, send)


def _split(message: str) -> tuple[str, str | None]:
    """What happened, and what to do: the first sentence, and the others or a command in it."""
    if "\n" in message:  # such as what the compiler says: it is of one piece
        return message, None
    first, *rest = _SENTENCE_END.split(message, maxsplit=1)
    if rest:
        return first, rest[0]
    command = _COMMAND.search(message)
    return message, f"Run `{command[1]}`." if command else None


_CODES = {
    400: "server.bad_form",
    401: "server.not_signed_in",
    403: "server.not_allowed",
    404: "server.missing",
    405: "server.method",
    409: "server.taken",
    413: "server.too_large",
    422: "server.bad_form",
    429: "server.too_many",
    503: "server.unavailable",
}
_WORDS = {
    404: "There is nothing here. The document `openapi.json` names all that there is.",
    405: "This cannot be done here with this method.",
}


async def _refused(_request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, AflError)
    return problem_of(error)


async def _invalid(_request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    errors: list[JsonMap] = [
        {"where": ".".join(map(str, each["loc"])), "message": str(each["msg"])}
        for each in error.errors()
    ]
    first = f"{errors[0]['where']}: {errors[0]['message']}" if errors else "The request is wrong"
    return problem(422, "server.invalid", first, errors=errors)


async def _stopped(_request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)
    status = error.status_code
    phrase = HTTPStatus(status).phrase
    said = error.detail if error.detail and error.detail != phrase else None
    message = said or _WORDS.get(status, phrase)
    code = _CODES.get(status, f"server.http_{status}")
    return problem(status, code, message, headers=error.headers)


def add_problems(app: FastAPI) -> None:
    """Has everything that goes wrong answered as a problem."""
    app.add_exception_handler(AflError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _stopped)
