"""Log lines: of a run, or of all; and their way in for workers without NATS."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from afl.logs.codec import unpack_slice
from afl.logs.store import LogStore
from afl.server import log_views as views
from afl.server.access import EveryOperator, EveryViewer, Viewer
from afl.server.backend import Backend, Work
from afl.server.bodies import RawBody, takes
from afl.server.models.agents import LogPage, LogStoreView, SpoolView
from afl.server.seeing import seen_run

router = APIRouter(prefix="", tags=["logs"])

#: The media type of a slice of a spool.
SLICE = "application/octet-stream"


@router.get("/runs/{run}/logs")
def run_logs(
    backend: Work,
    caller: Viewer,
    run: str,
    step: Annotated[str | None, Query(description="This step, and those below it.")] = None,
    level: Annotated[str | None, Query(description="This level, or a higher one.")] = None,
    stream: str | None = None,
    grep: Annotated[str | None, Query(description="A text in the line, in any case.")] = None,
    since: datetime | None = None,
    after: Annotated[str | None, Query(description="Behind this cursor.")] = None,
    before: Annotated[str | None, Query(description="Before this cursor.")] = None,
    tail: Annotated[bool, Query(description="The last lines instead of the first.")] = False,
    limit: Annotated[int, Query(ge=1, le=2000)] = 100,
) -> LogPage:
    """A window of the log of a run."""
    found = seen_run(backend, caller, run)
    which = views.wanted(step=step, stream=stream, level=level, grep=grep, since=since)
    windows = views.windows(backend, found, which)
    if before is not None:
        return views.page(windows.earlier(before, limit))
    if tail and after is None:
        return views.page(windows.tail(limit))
    return views.page(windows.later(after, limit))


@router.get("/logs")
def all_logs(
    backend: Work,
    caller: EveryViewer,
    run: str | None = None,
    level: str | None = None,
    grep: str | None = None,
    since: datetime | None = None,
    before: str | None = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 100,
) -> LogPage:
    """Log lines of all runs, the last ones."""
    found = None if run is None else seen_run(backend, caller, run)
    windows = views.windows(backend, found, views.wanted(level=level, grep=grep, since=since))
    window = windows.tail(limit) if before is None else windows.earlier(before, limit)
    return views.page(window)


@router.get("/logs/store")
def log_store(backend: Work, caller: EveryOperator) -> LogStoreView:
    """The store of log lines, for workers that ship theirs over HTTP."""
    return LogStoreView(id=_store(backend).home())


@router.get("/logs/spools/{spool}")
def spool_position(backend: Work, caller: EveryOperator, spool: str) -> SpoolView:
    """Up to where a spool is stored."""
    return SpoolView(spool=spool, position=_store(backend).position(spool))


@router.post("/logs/spools/{spool}/heard")
def spool_heard(backend: Work, caller: EveryOperator, spool: str, worker: str) -> SpoolView:
    """Notes that the worker of a spool is alive."""
    store = _store(backend)
    store.heard(spool, worker)
    return SpoolView(spool=spool, position=store.position(spool))


@router.post("/logs/slices", openapi_extra=takes(SLICE, {"type": "string", "format": "binary"}))
def append_slice(backend: Work, caller: EveryOperator, body: RawBody) -> SpoolView:
    """Takes a slice of a spool, if it is the next one; the same again does no harm."""
    part = unpack_slice(body)
    return SpoolView(spool=part.spool, position=_store(backend).append([part])[part.spool])


def _store(backend: Backend) -> LogStore:
    if backend.logs is None:
        raise views.NoLogStore
    return backend.logs
