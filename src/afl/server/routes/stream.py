"""What changes, and what models say, as server-sent events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, cast

from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from afl.server.access import Viewer
from afl.server.backend import Work
from afl.server.errors import TooMany
from afl.server.models.agents import ChunkEvent
from afl.server.models.base import MarkEvent
from afl.server.watching.marks import Marks
from afl.server.watching.speaking import Speech
from afl.server.watching.topics import CHUNKS, Topic, topics_of
from afl.server.watching.watcher import Watcher, known_marks

router = APIRouter(tags=["stream"])

#: How often a stream on which nothing happens gives a sign of life.
HEARTBEAT_SECONDS = 15.0
#: How long a stream lasts. Whoever comes again is asked again who they are, and misses nothing.
_LASTS_SECONDS = (600.0, 720.0)
#: How long what models say is put together before it is told.
_BEAT_SECONDS = 0.05
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Events as they come."""

    media_type = "text/event-stream"


@router.get(
    "/stream",
    response_class=EventStream,
    response_model=None,
    responses={200: {"model": MarkEvent | ChunkEvent}},
)
async def stream(
    request: Request,
    backend: Work,
    caller: Viewer,
    topic: Annotated[
        list[str],
        Query(
            description="`home`, `runs`, `inbox`, `workers`, `run:ID`, `turn:ID`, `chunks:ID` or "
            "`dev`."
        ),
    ],
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventStream:
    """Tells when what a page shows has changed, and what models say.

    Each event `mark` has the topic and its mark, a name of the state that it is in now. Data is
    read by the other routes: a page that was cut off reads again what has another mark, so nothing
    can be missing or doubled. The first events tell the marks of all topics, but for those that
    `Last-Event-ID` says are known.

    The topic `chunks:ID` has no mark. Its events `chunk` carry what the model of a turn says, while
    it says it: first everything so far, then what follows. Nothing depends on them. What is lost on
    the way is a gap, and the whole answer is in the transcript as soon as it is committed.
    """
    topics = await run_in_threadpool(topics_of, backend, caller, topic)
    watcher = _watcher(request.app)
    if watcher.is_full:
        raise TooMany("Too many watch this server already. Try again later.", retry_after=10.0)
    events = _events(watcher, _speech(request.app), topics, last_event_id)
    return EventStream(events, headers=_HEADERS)


async def _events(
    watcher: Watcher, speech: Speech, topics: Sequence[Topic], last_event_id: str | None
) -> AsyncIterator[str]:
    marked = [each for each in topics if each.kind != CHUNKS]
    spoken = [each for each in topics if each.kind == CHUNKS]
    now = asyncio.get_running_loop().time
    end = now() + random.uniform(*_LASTS_SECONDS)
    with (
        watcher.listening(marked, known_marks(last_event_id)) as listener,
        speech.following(spoken, listener.ring) as follower,
    ):
        yield "retry: 1000\n\n"
        while now() < end and (news := await listener.news(HEARTBEAT_SECONDS)) is not None:
            said = speech.news(spoken, follower)
            events = [_mark(*each) for each in news] + [_chunk(each) for each in said]
            yield "".join(events) or ":\n\n"
            if said:
                await asyncio.sleep(_BEAT_SECONDS)


def _mark(topic: str, mark: str, id: str) -> str:
    event = MarkEvent(topic=topic, mark=mark)
    return f"event: mark\nid: {id}\ndata: {event.model_dump_json()}\n\n"


def _chunk(event: ChunkEvent) -> str:
    return f"event: chunk\ndata: {event.model_dump_json()}\n\n"


def _watcher(app: FastAPI) -> Watcher:
    """The one of this server, made when somebody first watches."""
    if not hasattr(app.state, "watcher"):
        app.state.watcher = Watcher(Marks(app.state.backend))
    return cast("Watcher", app.state.watcher)


def _speech(app: FastAPI) -> Speech:
    """The same, of what models say."""
    if not hasattr(app.state, "speech"):
        app.state.speech = Speech(app.state.backend.services.live.ear)
    return cast("Speech", app.state.speech)


async def end_listening(app: FastAPI) -> None:
    """Hears nothing more of what models say."""
    await _speech(app).end()


def end_streams(app: FastAPI) -> None:
    """Ends all streams, so that a server that ends need not wait for them."""
    _watcher(app).end()
