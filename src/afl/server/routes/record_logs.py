"""Log lines as they are stored, for clients that read them as they would from the database."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, cast

from fastapi import APIRouter, Query

from afl.app.remote.records import encode
from afl.logs.model import ChunkHead
from afl.logs.store import LogStore
from afl.server.access import Caller, Viewer
from afl.server.backend import Backend, Work
from afl.server.errors import BadForm
from afl.server.log_views import NoLogStore
from afl.server.models.base import JsonMap
from afl.server.seeing import seen_run

router = APIRouter(prefix="/records/runs/{run}", tags=["records"])

Since = Annotated[list[str], Query(description="`STREAM:LINE`: a stream, and from which line on.")]


@router.get("/talk")
def talk(
    backend: Work,
    caller: Viewer,
    run: str,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> list[JsonMap]:
    """The lines of `sys.log`."""
    found = backend.services.persistence.get_logs(seen_run(backend, caller, run).id, limit)
    return cast("list[JsonMap]", encode(found))


@router.get("/streams")
def streams(
    backend: Work,
    caller: Viewer,
    run: str,
) -> JsonMap:
    """The streams of lines of a run, and the time by the clock of their store."""
    store = _store(backend)
    found = store.streams(seen_run(backend, caller, run).id)
    return cast("JsonMap", {"now_us": store.now_us(), "streams": encode(found)})


@router.get("/chunks")
def chunks(
    backend: Work,
    caller: Viewer,
    run: str,
    since: Since,
) -> list[JsonMap]:
    """Which chunks of lines streams of the run have, each from a line on."""
    return cast("list[JsonMap]", encode(_heads(backend, caller, run, since)))


@router.get("/chunks/bodies")
def bodies(
    backend: Work,
    caller: Viewer,
    run: str,
    chunk: Annotated[list[str], Query(description="`STREAM:LINE`: a stream and a first line.")],
) -> dict[str, str]:
    """The lines of chunks, packed as they are stored, in base 64."""
    wanted = dict.fromkeys(map(_place, chunk))
    first = {stream: min(line for each, line in wanted if each == stream) for stream, _ in wanted}
    since = [f"{stream}:{line}" for stream, line in first.items()]
    heads = {(head.stream, head.first): head for head in _heads(backend, caller, run, since)}
    found = [heads[each] for each in wanted if each in heads]
    return {
        f"{each.head.stream}:{each.head.first}": b64encode(each.body).decode()
        for each in _store(backend).bodies(found)
    }


def _heads(backend: Backend, caller: Caller, run: str, since: list[str]) -> list[ChunkHead]:
    store = _store(backend)
    # a stream of another run is as if it were not there
    known = {stream.id for stream in store.streams(seen_run(backend, caller, run).id)}
    wanted = {stream: line for stream, line in map(_place, since) if stream in known}
    return store.heads(wanted) if wanted else []


def _place(text: str) -> tuple[str, int]:
    stream, _, line = text.partition(":")
    if not line.isdigit():
        raise BadForm(f"`{text}` is no place in a stream; write it as `STREAM:LINE`.")
    return stream, int(line)


def _store(backend: Backend) -> LogStore:
    if backend.logs is None:
        raise NoLogStore
    return backend.logs
