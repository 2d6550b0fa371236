"""`Run`: one run, as somebody who has submitted it sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from afl.base.durations import parse_duration
from afl.kernel.model import Json
from afl.runtime import entities
from afl.runtime.operations import Operations
from afl.runtime.reasons import Why
from afl.runtime.step import ROOT
from afl.runtime.views import Tree, state_word


class Run:
    """A handle on a run. What it answers is read when it is asked."""

    def __init__(self, operations: Operations, id: str) -> None:
        self._operations = operations
        self.id = id

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def state(self) -> str:
        """created, running, paused, completed, failed or canceled."""
        return state_word(self.get())

    def get(self) -> entities.Run:
        """Everything that is kept of the run itself."""
        return self._operations.get(self.id)

    def result(self, timeout: str | timedelta | None = None) -> Mapping[str, Json]:
        """The outputs, once the run has ended; `timeout` such as `10m` says how long to wait.

        Raises:
            RunFailed, RunCanceled: it has ended otherwise. StillRunning: it has not, in that time.
        """
        return self._operations.result(self.id, span_of(timeout))

    def wait(self, timeout: str | timedelta | None = None) -> str:
        """Waits until the run has ended, and answers its state.

        Raises:
            StillRunning: it has not ended in that time; the message says what it waits for.
        """
        return self._operations.wait(self.id, span_of(timeout)).state

    def cancel(self, *, force: bool = False, reason: str = "") -> None:
        """Stops the run, and what it has called."""
        self._operations.cancel(self.id, force=force, reason=reason)

    def pause(self) -> None:
        """Lets nothing more start. What has begun goes on."""
        self._operations.pause(self.id)

    def resume(self) -> None:
        """Lets a paused run go on."""
        self._operations.resume(self.id)

    def retry(self, step: str | None = None, *, force: bool = False) -> Run:
        """A new run that does again what failed, and takes over what is finished."""
        return self._other(self._operations.retry(self.id, step, force=force))

    def fork(
        self,
        step: str = ROOT,
        inputs: Mapping[str, Json] | None = None,
        *,
        force: bool = False,
    ) -> Run:
        """A new run from a step on, whose inputs may be edited."""
        return self._other(self._operations.fork(self.id, step, inputs, force=force))

    def rerun(self) -> Run:
        """A fresh run with the same inputs."""
        return self._other(self._operations.rerun(self.id))

    def why(self, step: str | None = None) -> Why:
        """Why the run, or a step of it, is where it is."""
        return self._operations.why(self.id, step)

    def tree(self, *, after: str | None = None, limit: int = 200) -> Tree:
        """A page of the steps, nested."""
        return self._operations.tree(self.id, after=after, limit=limit)

    def _other(self, run: entities.Run) -> Run:
        return Run(self._operations, run.id)


def span_of(timeout: str | timedelta | None) -> timedelta | None:
    """A written duration, such as `10m`, as a distance in time."""
    if isinstance(timeout, str):
        return timedelta(milliseconds=parse_duration(timeout))
    return timeout
