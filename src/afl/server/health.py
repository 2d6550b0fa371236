"""Whether the server lives, whether it is fit for requests, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from afl import __version__
from afl.app import migrating
from afl.app.engines import known_engine
from afl.base.errors import AflError
from afl.server.access import EVERY_TENANT, Caller
from afl.server.backend import Backend, Work
from afl.server.checks.findings import Finding, Grade, ok
from afl.server.checks.tenants import check_tenants
from afl.server.checks.workings import WAITING, check_workings
from afl.server.models.system import Check, Health
from afl.server.problems import ProblemResponse, problem

router = APIRouter(include_in_schema=False)


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
        steps = migrating.status(backend.database)
    except AflError:
        return "The database cannot be reached, or is of another version. `afl doctor` says more."
    pending = sum(step.applied_at is None for step in steps)
    if pending:
        return f"The database has {pending} pending migrations. Run `afl db migrate`."
    return None


def health_of(backend: Backend, caller: Caller) -> Health:
    """What `afl doctor` says of this server."""
    return Health(
        version=__version__,
        database="memory" if backend.database is None else known_engine(backend.database).name,
        mode="serve" if backend.dev is None else "dev",
        auth=backend.auth,
        checks=list(_checks(backend, caller)),
    )


def _checks(backend: Backend, caller: Caller) -> Iterator[Check]:
    reason = unready(backend)
    if reason is not None:
        first, _, rest = reason.partition(". ")
        yield Check(name="database", ok=False, sentence=f"{first}.", hint=rest or None)
        return
    yield _check(ok("database", "the database answers, and its schema is up to date"))
    has_walls = backend.database is not None and known_engine(backend.database).has_walls
    if caller.tenant == EVERY_TENANT and has_walls:
        yield _check(check_tenants(backend.store))
    for finding in check_workings(backend.client.operations):
        # which names work waits for is told to those who may see all of it
        if finding.check != WAITING or caller.tenant == EVERY_TENANT:
            yield _check(finding)


def _check(finding: Finding) -> Check:
    """A finding as a sentence."""
    text = finding.text
    return Check(
        name=finding.check,
        ok=finding.grade is Grade.OK,
        sentence=f"{text[:1].upper()}{text[1:]}.",
        hint=finding.fix or None,
    )
