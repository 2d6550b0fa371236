"""What a list of runs is asked for, and whether a run is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from afl.runtime.entities import Run
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

#: The states of runs as people read them, the living first.
STATE_WORDS = (
    RunState.CREATED,
    RunState.RUNNING,
    RunState.PAUSED,
    RunState.COMPLETED,
    RunState.FAILED,
    RunState.CANCELED,
)


def state_word(run: Run) -> str:
    """The state of a run as people read it: one that was asked to pause is paused."""
    if run.pause_requested and not RunState.is_terminal(run.state):
        return RunState.PAUSED
    return run.state


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted: those that fit everything that is set."""

    #: a word of `RunState`; `paused` is a run that was asked to pause and has not ended
    state: str | None = None
    workflow: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: the beginning of the id, or a part of the key, the workflow or the message of the error, in
    #: small letters or capitals; never a pattern
    text: str | None = None
    #: made at this time or later
    since: datetime | None = None
    #: made before this time
    until: datetime | None = None
    parent: WorkflowId | None = None
    #: only runs that nobody called
    top_only: bool = False
    tenant: str | None = None

    def fits(self, run: Run) -> bool:
        """Whether a run is wanted."""
        return (
            (self.state is None or state_word(run) == self.state)
            and (self.workflow is None or run.workflow == self.workflow)
            and (self.tenant is None or run.tenant == self.tenant)
            and (self.parent is None or run.parent == self.parent)
            and (not self.top_only or run.parent is None)
            and self.labels.items() <= run.labels.items()
            and self._fits_time(run)
            and (not self.text or _has_text(run, self.text.lower()))
        )

    def _fits_time(self, run: Run) -> bool:
        made = run.created_at
        if made is None:
            return self.since is None and self.until is None
        return (self.since is None or made >= self.since) and (
            self.until is None or made < self.until
        )


def _has_text(run: Run, text: str) -> bool:
    message = None if run.error is None else run.error.get("message")
    return (
        run.id.startswith(text)
        or text in run.workflow.lower()
        or (run.key is not None and text in run.key.lower())
        or (isinstance(message, str) and text in message.lower())
    )
