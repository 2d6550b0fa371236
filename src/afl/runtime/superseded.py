"""Results that came too late: a worker was cut off, somebody else was given its work meanwhile, and
then it came back with an outcome of its own. The first counts; both are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from afl.kernel.model import CallStatus, Json
from afl.runtime.step import WorkflowId


@dataclass(frozen=True, slots=True)
class Superseded:
    """What a worker came to that no longer had the work."""

    run: WorkflowId
    #: of the step
    path: str
    worker: str
    status: CallStatus
    #: the result, or the error
    body: Json
    #: when the store was told
    noted_at: datetime | None = None

    def as_json(self) -> dict[str, Json]:
        return {
            "step": self.path,
            "worker": self.worker,
            "status": self.status.value,
            "body": self.body,
            "noted_at": None if self.noted_at is None else self.noted_at.isoformat(),
        }
