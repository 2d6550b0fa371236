"""The road over HTTP, for workers that reach neither NATS nor the store of log lines itself: an
AgentFlow server takes their slices. Needs the extra `server`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import httpx

from afl.kernel.errors import StoreUnavailable
from afl.logs.codec import pack_slice
from afl.logs.model import Slice

_API = "api/v1/logs"
_TIMEOUT_SECONDS = 20.0
_SLICE = "application/octet-stream"


class LogsRefused(StoreUnavailable):
    """The server does not take log lines from here. A worker keeps them and asks again: whoever
    runs the server may give it a token."""

    code = "logs.refused"


class HttpLogs:
    """The server as a road, and as what knows how far spools are stored."""

    def __init__(self, url: str, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._url = url.rstrip("/")
        self._client = httpx.Client(
            base_url=f"{self._url}/{_API}/", headers=headers, timeout=_TIMEOUT_SECONDS
        )

    def home(self) -> str:
        """The id of the store behind the server.

        Raises:
            LogsRefused: the server does not take lines from here; the message says why.
            StoreUnavailable: it cannot be reached.
        """
        return str(self._ask("GET", "store")["id"])

    def position(self, spool: str) -> int:
        return int(str(self._ask("GET", f"spools/{quote(spool, safe='')}")["position"]))

    def heard(self, spool: str, worker: str) -> None:
        self._ask("POST", f"spools/{quote(spool, safe='')}/heard", params={"worker": worker})

    def send(self, slices: Sequence[Slice], again: int) -> None:
        for part in slices:
            self._ask("POST", "slices", content=pack_slice(part))

    def close(self) -> None:
        self._client.close()

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> dict[str, object]:
        headers = {} if content is None else {"Content-Type": _SLICE}
        try:
            answer = self._client.request(
                method, path, params=params, content=content, headers=headers
            )
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"The server {self._url} does not answer: {error}.") from error
        # a server that is busy, or whose database is away, may take it later
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS or answer.is_server_error:
            raise StoreUnavailable(f"The server {self._url} cannot take log lines now.")
        if answer.is_error:
            raise LogsRefused(
                f"The server {self._url} does not take log lines from here: {_why(answer)}"
            )
        told = answer.json()
        assert isinstance(told, dict)
        return told


def _why(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict) and problem.get("detail"):
        return str(problem["detail"])
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return "set AFL_TOKEN to a token with the role operator."
    return f"it answered {answer.status_code}."
