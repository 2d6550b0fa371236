"""Requests to the API of a server: with a token, tried again where that is safe, errors as errors.

A read may be repeated. An action has a key, so the server does it once however often it is asked.
Anything else is tried again only if it cannot have arrived.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus

import httpx

from afl.app.remote.errors import RemoteError, ServerUnavailable, error_of
from afl.base.errors import AflError
from afl.kernel.model import Json

API = "/api/v1"

#: Values of a query: None is left out.
Query = Mapping[str, str | int | bool | list[str] | None]

_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
#: Shorter than servers keep a connection that is not used, so that none is found closed.
_LIMITS = httpx.Limits(keepalive_expiry=2.0)


class Connection:
    """One server. Threads may share one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._client = httpx.Client(
            base_url=self.url + API, headers=headers, timeout=_TIMEOUT, limits=_LIMITS
        )

    def get(self, path: str, /, **query: str | int | bool | list[str] | None) -> Json:
        """What there is at a path."""
        return self._asked("GET", path, query, None, {}, is_safe=True)

    def post(
        self,
        path: str,
        body: Mapping[str, Json] | None = None,
        /,
        *,
        is_keyed: bool = False,
        **query: str | int | bool | list[str] | None,
    ) -> Json:
        """What became of a request. `is_keyed` is for what the server does once for each key."""
        headers = {"idempotency-key": secrets.token_hex(16)} if is_keyed else {}
        return self._asked("POST", path, query, dict(body or {}), headers, is_safe=is_keyed)

    def delete(self, path: str) -> None:
        """Removes what there is at a path."""
        self._asked("DELETE", path, {}, None, {}, is_safe=False)

    def close(self) -> None:
        self._client.close()

    def _asked(
        self,
        method: str,
        path: str,
        query: Query,
        body: dict[str, Json] | None,
        headers: Mapping[str, str],
        *,
        is_safe: bool,
    ) -> Json:
        given = {name: value for name, value in query.items() if value is not None}
        pause = _FIRST_PAUSE_SECONDS
        for left in reversed(range(_TRIES)):
            try:
                answer = self._client.request(
                    method, path, params=given, json=body, headers=dict(headers)
                )
            except httpx.InvalidURL as error:
                raise RemoteError(f"`{self.url}` is no URL of a server: {error}.") from error
            except httpx.TransportError as error:
                if not left or not (is_safe or isinstance(error, httpx.ConnectError)):
                    raise self._unavailable(error) from error
            else:
                if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS or not left:
                    return _told(answer)
                pause = max(pause, _after(answer))
            time.sleep(min(pause, _LONGEST_PAUSE_SECONDS))
            pause *= 2
        raise AssertionError("the last try answers or raises")

    def _unavailable(self, error: httpx.TransportError) -> AflError:
        why = str(error) or type(error).__name__
        return ServerUnavailable(
            f"The server {self.url} cannot be reached: {why}. Is `afl serve` running there?"
        )


def _after(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdigit() else _FIRST_PAUSE_SECONDS


def _told(answer: httpx.Response) -> Json:
    if answer.status_code == HTTPStatus.NO_CONTENT:
        return None
    try:
        value: Json = answer.json()
    except ValueError as error:
        raise RemoteError(
            f"{answer.url} has answered with the status {answer.status_code} and something that "
            "is not JSON. Is it the URL of an AgentFlow server?"
        ) from error
    if answer.is_success:
        return value
    raise _problem(value if isinstance(value, dict) else {}, answer)


def _problem(problem: Mapping[str, Json], answer: httpx.Response) -> AflError:
    code, detail, hint = (problem.get(name) for name in ("code", "detail", "hint"))
    if not isinstance(code, str) or not isinstance(detail, str):
        return RemoteError(f"{answer.url} has answered with the status {answer.status_code}.")
    errors = problem.get("errors")
    for each in errors if isinstance(errors, list) else ():
        if isinstance(each, dict):
            detail += f" {each.get('where')}: {each.get('message')}."
    # the hint is what followed in the message, or only repeats a command of it
    is_new = isinstance(hint, str) and hint.removeprefix("Run ").rstrip(".") not in detail
    return error_of(code, f"{detail} {hint}" if is_new else detail)
