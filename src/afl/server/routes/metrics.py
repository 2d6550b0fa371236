"""Metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from afl.server.access import EveryViewer
from afl.server.backend import Work
from afl.server.metrics import exposition

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(backend: Work, caller: EveryViewer) -> PlainTextResponse:
    """What a Prometheus server asks for; it needs a token like everybody else."""
    return PlainTextResponse(exposition(backend), media_type=CONTENT_TYPE_LATEST)
