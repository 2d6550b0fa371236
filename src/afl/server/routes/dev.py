"""What `afl dev` has found in the project that it watches."""

from __future__ import annotations

from fastapi import APIRouter

from afl.server.access import Viewer
from afl.server.backend import Work
from afl.server.dev_state import dev_mark
from afl.server.models.dev import DevView

router = APIRouter(tags=["dev"])


@router.get("/dev")
def get_dev(backend: Work, caller: Viewer) -> DevView:
    """The mistakes in the sources and handlers that are being edited; `enabled` in `afl dev`
    alone."""
    state = backend.dev
    if state is None:
        return DevView(enabled=False)
    report = state.report
    return DevView(
        enabled=True,
        diagnostics=list(report.diagnostics),
        files=list(report.files),
        reloaded_at=report.reloaded_at,
        error=report.error,
        mark=dev_mark(state),
    )
