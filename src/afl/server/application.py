"""The application: all routes under `/api/v1`, and around them what every request goes through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from types import ModuleType
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from afl import __version__
from afl.server import health
from afl.server.backend import Backend
from afl.server.files import Dashboard
from afl.server.guarding import Guard, doors
from afl.server.headers import CspReports, LocalOnly, SecurityHeaders
from afl.server.limits import BodyLimit, Limits
from afl.server.models.base import Problem
from afl.server.problems import MEDIA_TYPE, Unexpected, add_problems
from afl.server.routes import (
    actions,
    agents,
    dev,
    hooks,
    inbox,
    logs,
    mail,
    metrics,
    programs,
    record_logs,
    records,
    reports,
    run_steps,
    runs,
    schedules,
    settings,
    sign_in,
    stream,
    tasks,
)

API = "/api/v1"
_MODULES: tuple[ModuleType, ...] = (
    runs,
    run_steps,
    actions,
    programs,
    records,
    record_logs,
    tasks,
    schedules,
    inbox,
    agents,
    mail,
    logs,
    settings,
    hooks,
    stream,
    metrics,
    dev,
    reports,
)
_PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {"description": "What went wrong.", "model": Problem}
}
_PROBLEM_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


class _App(FastAPI):
    """Describes problems as what they are sent as."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            for path in super().openapi()["paths"].values():
                for operation in path.values():
                    operation["responses"]["default"]["content"] = _PROBLEM_CONTENT
        return super().openapi()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with actions.bulk_runner(app):
        yield
        await stream.end_listening(app)


@cache
def _router() -> APIRouter:
    """All routes. They know no application, and it takes a while to find out what each of them
    takes and answers: applications in one process share them."""
    api = APIRouter(prefix=API, responses=_PROBLEM)
    for module in _MODULES:
        api.include_router(module.router)
    router = APIRouter()
    for each in (api, health.router, sign_in.router):
        router.include_router(each)
    return router


def create_app(backend: Backend, limits: Limits | None = None) -> FastAPI:
    """The application on a backend, which stays the caller's to close."""
    limits = limits or Limits()
    app = _App(
        title="AgentFlow",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.backend = backend
    app.state.csp_reports = CspReports()
    app.router.routes += [*_router().routes, Dashboard()]
    add_problems(app)
    # from the inside to the outside
    routes = [each for module in _MODULES for each in module.router.routes]
    app.add_middleware(Guard, backend=backend, prefix=API, doors=doors(routes), limits=limits)
    app.add_middleware(BodyLimit, limits=limits, log_path=f"{API}/logs")
    if not backend.auth:
        app.add_middleware(LocalOnly)
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)
    app.add_middleware(Unexpected)
    app.add_middleware(SecurityHeaders)
    return app
