"""How much anybody may send, and how often."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afl.server.errors import TooLarge, TooMany
from afl.server.problems import problem_of

_MIB = 1024 * 1024
#: Of so many callers it is remembered how often they asked; the rest has not asked for longest.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes."""

    body_bytes: int = _MIB
    #: of log lines, which workers send in bulk
    log_bytes: int = 16 * _MIB
    requests_per_second: float = 50.0
    burst: int = 200


class RateLimit:
    """A bucket for every caller: each request takes one out, and time fills it again."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self._rate = limits.requests_per_second
        self._burst = float(limits.burst)
        self._clock = clock
        self._lock = threading.Lock()
        #: what is in a bucket, and when that was so
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """
        Raises:
            TooMany: the bucket is empty.
        """
        with self._lock:
            now = self._clock()
            level, then = self._buckets.get(caller, (self._burst, now))
            level = min(self._burst, level + (now - then) * self._rate)
            if level < 1:
                raise TooMany(retry_after=(1 - level) / self._rate)
            self._buckets[caller] = (level - 1, now)
            self._buckets.move_to_end(caller)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)


class BodyLimit:
    """Refuses bodies that are too large: at once if they say so, else as soon as they are."""

    def __init__(self, app: ASGIApp, limits: Limits, log_path: str) -> None:
        self._app = app
        self._limits = limits
        self._log_path = log_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_logs = scope["path"].startswith(self._log_path)
        most = self._limits.log_bytes if is_logs else self._limits.body_bytes
        error = TooLarge(f"The body is larger than {most} bytes. Send less at once.")
        told = Headers(scope=scope).get("content-length", "")
        if told.isdigit() and int(told) > most:
            await problem_of(error)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, error.message)
            return message

        await self._app(scope, counted, send)
