"""What changes, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, cast

from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from afl.server.access import Viewer
from afl.server.backend import Work
from afl.server.errors import TooMany
from afl.server.watching.marks import Marks
from afl.server.watching.topics import Topic, topics_of
from afl.server.watching.watcher import Watcher, known_marks

router = APIRouter(tags=["stream"])

#: How often a stream on which nothing happens gives a sign of life.
HEARTBEAT_SECONDS = 15.0
#: How long a stream lasts. Whoever comes again is asked again who they are, and misses nothing.
_LASTS_SECONDS = (600.0, 720.0)
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get("/stream", response_class=StreamingResponse, response_model=None)
async def stream(
    request: Request,
    backend: Work,
    caller: Viewer,
    topic: Annotated[
        list[str],
        Query(description="`home`, `runs`, `inbox`, `workers`, `run:ID`, `turn:ID` or `dev`."),
    ],
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Tells when what a page shows has changed.

    Each event has the topic and its mark, a name of the state that it is in now. Data is read by
    the other routes: a page that was cut off reads again what has another mark, so nothing can be
    missing or doubled. The first events tell the marks of all topics, but for those that
    `Last-Event-ID` says are known.
    """
    topics = await run_in_threadpool(topics_of, backend, caller, topic)
    watcher = _watcher(request.app)
    if watcher.is_full:
        raise TooMany("Too many watch this server already. Try again later.", retry_after=10.0)
    return StreamingResponse(
        _events(watcher, topics, last_event_id),
        media_type="text/event-stream",
        headers=_HEADERS,
    )


async def _events(
    watcher: Watcher, topics: Sequence[Topic], last_event_id: str | None
) -> AsyncIterator[str]:
    now = asyncio.get_running_loop().time
    end = now() + random.uniform(*_LASTS_SECONDS)
    with watcher.listening(topics, known_marks(last_event_id)) as listener:
        yield "retry: 1000\n\n"
        while now() < end and (news := await listener.news(HEARTBEAT_SECONDS)) is not None:
            yield "".join(_event(*each) for each in news) or ":\n\n"


def _event(topic: str, mark: str, id: str) -> str:
    data = json.dumps({"topic": topic, "mark": mark})
    return f"event: mark\nid: {id}\ndata: {data}\n\n"


def _watcher(app: FastAPI) -> Watcher:
    """The one of this server, made when somebody first watches."""
    if not hasattr(app.state, "watcher"):
        app.state.watcher = Watcher(Marks(app.state.backend))
    return cast("Watcher", app.state.watcher)


def end_streams(app: FastAPI) -> None:
    """Ends all streams, so that a server that ends need not wait for them."""
    _watcher(app).end()
