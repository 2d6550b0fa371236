"""Forms and views of actions on many runs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from afl.server.models.base import Form, View
from afl.server.models.runs import RunLine, RunWord


class BulkFilter(Form):
    """Which runs: those that fit everything that is set."""

    state: RunWord | None = None
    workflow: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: only runs that nobody called
    top_only: bool = False


class BulkForm(BulkFilter):
    """An action for every run that matches."""

    verb: Literal["cancel", "pause", "resume", "retry", "rerun"]
    #: instead of a filter
    runs: list[str] | None = None
    reason: str = ""


class BulkPreview(View):
    """What a bulk action would do."""

    matching: int
    exact: bool
    sample: list[RunLine]
    sentence: str


class BulkFailure(View):
    """A run that an action was refused for."""

    run: str
    code: str
    message: str


class BulkLine(View):
    """An action on many runs, done in the background, as a list tells it."""

    id: str
    verb: str
    #: running, done or failed
    state: str
    #: which runs were asked for; None if they were named one by one
    filter: BulkFilter | None
    #: how many were named
    named: int
    reason: str
    total: int
    #: how many were changed
    done: int
    #: how many it was refused for
    failed: int
    by: str
    created_at: datetime
    finished_at: datetime | None


class BulkJob(BulkLine):
    """An action on many runs, with the runs that were named and those it was refused for."""

    #: the first of those that were named
    runs: list[str]
    failures: list[BulkFailure]
