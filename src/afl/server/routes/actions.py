"""What people do to runs, one by one or many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.concurrency import run_in_threadpool

from afl.kernel.model import Json
from afl.server.access import Operator
from afl.server.acting import doing
from afl.server.acting.once import Repeatable, once
from afl.server.backend import Work
from afl.server.bulk import jobs
from afl.server.bulk.runner import BulkRunner
from afl.server.models.base import Page
from afl.server.models.bulk import BulkForm, BulkJob, BulkLine, BulkPreview
from afl.server.models.runs import ActionForm, ActionResult


@asynccontextmanager
async def bulk_runner(app: FastAPI) -> AsyncIterator[None]:
    """Bulk jobs are carried out as long as the server is there."""
    runner = BulkRunner(app.state.backend)
    runner.start()
    app.state.bulk_runner = runner
    try:
        yield
    finally:
        await run_in_threadpool(runner.stop)


router = APIRouter(prefix="", tags=["actions"])


@router.post("/runs/{run}/actions/{verb}")
def act(
    backend: Work,
    caller: Operator,
    run: str,
    verb: Literal[
        "cancel", "pause", "resume", "retry", "rerun", "fork", "skip", "continue", "fail"
    ],
    form: ActionForm,
    dry_run: bool = False,
    idempotency_key: Annotated[
        str | None, Header(description="The same key again gives the same answer.")
    ] = None,
) -> ActionResult:
    """Does something to a run or a step of it; a dry run only says what would happen."""

    def do() -> ActionResult:
        return doing.act(backend, caller, run, verb, form, dry_run=dry_run)

    request: Json = ["act", run, verb, form.model_dump(mode="json")]
    return once(
        backend,
        caller,
        None if dry_run else idempotency_key,
        Repeatable(request, ActionResult, do),
    )


@router.post("/bulk/preview")
def preview(
    backend: Work,
    caller: Operator,
    form: BulkForm,
) -> BulkPreview:
    """Which runs an action would be done to."""
    return jobs.preview(backend, caller, form)


@router.post("/bulk", status_code=202)
def start_bulk(
    request: Request,
    backend: Work,
    caller: Operator,
    form: BulkForm,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> BulkJob:
    """Does an action to every run that matches, in the background."""
    given: Json = ["bulk", form.model_dump(mode="json")]
    wanted = Repeatable(given, BulkJob, lambda: jobs.start(backend, caller, form))
    job = once(backend, caller, idempotency_key, wanted)
    runner: BulkRunner | None = getattr(request.app.state, "bulk_runner", None)
    if runner is not None:
        runner.ring()
    return job


@router.get("/bulk")
def list_bulk(
    backend: Work,
    caller: Operator,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[BulkLine]:
    """The actions on many runs, the newest first."""
    return jobs.listed(backend, caller, cursor, limit)


@router.get("/bulk/{job}")
def get_bulk(
    backend: Work,
    caller: Operator,
    job: str,
) -> BulkJob:
    """How far a job is."""
    return jobs.get(backend, caller, job)
