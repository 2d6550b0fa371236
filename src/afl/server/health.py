"""Whether the server lives, whether it is fit for requests, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from afl import __version__
from afl.app.extras import extra_part
from afl.base.errors import AflError
from afl.kernel.model import State
from afl.runtime.calls import EXECUTE
from afl.server.backend import Backend, Work
from afl.server.models.system import Check, Health
from afl.server.problems import ProblemResponse, problem
from afl.server.store_reads.port import FOR_NO_WORKER

router = APIRouter(include_in_schema=False)

_LOOKED_AT = 1000
_OLD = timedelta(minutes=1)


@router.get("/livez")
def livez() -> JSONResponse:
    """Says that the process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=None)
def readyz(backend: Work) -> JSONResponse | ProblemResponse:
    """Says whether requests can be served."""
    reason = unready(backend)
    if reason is not None:
        return problem(503, "server.not_ready", reason)
    return JSONResponse({"status": "ok"})


def unready(backend: Backend) -> str | None:
    """Why requests cannot be served now."""
    if backend.database is None:
        return None
    try:
        steps = extra_part("afl.app.migrating", "postgres", "This needs").status(backend.database)
    except AflError:
        return "The database cannot be reached, or is of another version. `afl doctor` says more."
    pending = sum(step.applied_at is None for step in steps)
    if pending:
        return f"The database has {pending} pending migrations. Run `afl db migrate`."
    return None


def health_of(backend: Backend) -> Health:
    """What an admin has to know of this server."""
    return Health(
        version=__version__,
        database="memory" if backend.database is None else "PostgreSQL",
        mode="serve" if backend.dev is None else "dev",
        auth=backend.auth,
        checks=list(_checks(backend)),
    )


def _checks(backend: Backend) -> Iterator[Check]:
    reason = unready(backend)
    if reason is not None:
        first, _, rest = reason.partition(". ")
        yield Check(name="database", ok=False, sentence=f"{first}.", hint=rest or None)
        return
    yield _ok("database", "The database answers, and its schema is up to date.")
    yield _deployed(backend)
    yield _workers(backend)
    yield _dead_letters(backend)
    yield _oldest(backend)


def _deployed(backend: Backend) -> Check:
    names = backend.services.persistence.deployments()
    if not names:
        return _bad("deployed", "No program is deployed.", "afl deploy FLOWS")
    return _ok("deployed", f"Deployed: {', '.join(names)}.")


def _workers(backend: Backend) -> Check:
    workers = backend.client.operations.workers()
    if not workers:
        return _bad("workers", "No worker is there.", "afl worker --handlers MODULE")
    if not any(EXECUTE in worker.handlers for worker in workers):
        return _bad("workers", "No worker advances runs.", "afl worker")
    return _ok("workers", f"Workers: {len(workers)}.")


def _dead_letters(backend: Backend) -> Check:
    found = len(backend.client.operations.dead_letters(limit=_LOOKED_AT))
    if not found:
        return _ok("dead letters", "No work was given up.")
    told = f"{_LOOKED_AT} or more" if found == _LOOKED_AT else str(found)
    return _bad("dead letters", f"Dead letters: {told}.", "afl dlq list")


def _oldest(backend: Backend) -> Check:
    """How long the oldest task waits that any worker may take."""
    now: datetime = backend.services.persistence.now()
    waits = [
        now - task.run_at
        for task in backend.client.operations.tasks(state=State.READY, limit=_LOOKED_AT)
        if task.run_at <= now and task.list not in FOR_NO_WORKER
    ]
    if not waits or max(waits) < _OLD:
        return _ok("oldest task", "Nothing waits long for a worker.")
    minutes = int(max(waits) / _OLD)
    sentence = f"The oldest task for workers waits {minutes} min."
    return _bad("oldest task", sentence, "afl tasks list --state ready")


def _ok(name: str, sentence: str) -> Check:
    return Check(name=name, ok=True, sentence=sentence, hint=None)


def _bad(name: str, sentence: str, hint: str) -> Check:
    return Check(name=name, ok=False, sentence=sentence, hint=hint)
