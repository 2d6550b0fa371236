"""The shape of what `afl dev` tells."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from afl.server.models.base import View
from afl.server.models.system import Diagnostic

__all__ = ["DevView"]


class DevView(View):
    """What was found in the project that is watched."""

    enabled: Annotated[bool, Field(description="Whether the server is that of `afl dev`.")]
    diagnostics: list[Diagnostic] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    reloaded_at: datetime | None = None
    error: Annotated[
        str | None, Field(description="Why the handlers could not be loaded, with the traceback.")
    ] = None
    mark: Annotated[str, Field(description="That of the topic `dev` of the stream.")] = ""
