"""Bodies that are taken as they are: what was signed must be checked byte by byte."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request


async def _raw(request: Request) -> bytes:
    return await request.body()


RawBody = Annotated[bytes, Depends(_raw)]


def takes(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """What the OpenAPI document says of a raw body; for `openapi_extra` of a route."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}
