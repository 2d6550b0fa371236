"""The HTTP client under a connection: what went wrong with a request is noted for whoever made it.

The SDK's transport answers a bad status with a bare "error response", and a lost connection ends it
with all that is under way. Here a request that fails harms no other, and its caller can tell what
was never sent from what may have been done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

#: No answer is longer: the rest of it is not read.
MAX_BODY_BYTES = 16 * 1024 * 1024

_CONNECT_SECONDS = 30.0
#: What is raised before the first byte of a request has left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


@dataclass(slots=True)
class HttpReport:
    """How the last HTTP request of a call went."""

    status: int | None = None
    error: httpx2.TransportError | None = None

    @property
    def was_sent(self) -> bool:
        return not isinstance(self.error, _NOT_SENT)


#: The report of the call that is being made; the SDK carries the context along to its requests.
report_of_call: ContextVar[HttpReport | None] = ContextVar("report_of_call", default=None)


class ReportingClient(httpx2.AsyncClient):
    """An HTTP client that fails with answers, and reports them."""

    def __init__(self, headers: dict[str, str]) -> None:
        # an answer may take as long as its call; the time of calls is kept above
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        super().__init__(headers=headers, timeout=timeout)

    async def send(
        self,
        request: httpx2.Request,
        **kwargs: Any,  # noqa: ANN401  (handed on)
    ) -> httpx2.Response:
        report = report_of_call.get() or HttpReport()
        try:
            response = await super().send(request, **kwargs)
        except httpx2.TransportError as error:
            report.status, report.error = None, error
            # a session that cannot be ended is over all the same: not worth the SDK's warning
            return httpx2.Response(405 if request.method == "DELETE" else 503, request=request)
        report.status, report.error = response.status_code, None
        if response.headers.get("content-type", "").startswith("application/json"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body that breaks off where it becomes too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise httpx2.StreamError(f"an answer is longer than {MAX_BODY_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
