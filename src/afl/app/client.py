"""`Client`: submits runs and looks after them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from afl.app.compiling import Source, compile_program
from afl.app.run import Run, span_of
from afl.app.services import Services, connect
from afl.kernel.model import Json
from afl.runtime.operations import Operations


class Client:
    """Works on one store, and connects when it is made. Threads may share one."""

    def __init__(self, database: str | None = None, *, services: Services | None = None) -> None:
        """
        Args:
            database: the URL of the store; else that of AFL_DATABASE_URL.
            services: what to work on instead; it stays the caller's to close.
        """
        self._owned = connect(database) if services is None else None
        self._services = services or self._owned

    @classmethod
    def from_env(cls) -> Self:
        """A client on the database of AFL_DATABASE_URL."""
        return cls()

    @property
    def operations(self) -> Operations:
        """All that can be done to runs, for what is not here."""
        assert self._services is not None
        return self._services.operations

    def deploy(self, source: Source, name: str = "default") -> str:
        """Makes a program the current one under a name, and answers its hash.

        Args:
            source: a folder or files with flows, their text, or a compiled program.

        Raises:
            BadProgram: it does not compile; the message is what `afl check` says.
        """
        program = self.operations.evaluator.plans.add(compile_program(source))
        self.operations.persistence.deploy(name, program)
        return program

    def submit(
        self,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
        *,
        program: str = "default",
        key: str | None = None,
        conflict: str = "attach",
        labels: Mapping[str, str] | None = None,
        priority: int | None = None,
        deadline: str | timedelta | datetime | None = None,
    ) -> Run:
        """Starts a run of a deployed program. With a key, submitting again finds the same run.

        Args:
            program: the name of a deployment, or a hash.
            conflict: what to do when a run has the key: `attach`, `reject` or `replace`.
            deadline: when the run is given up: a time, or how long it may take, such as `2h`.
        """
        run = self.operations.submit(
            workflow,
            inputs,
            program=program,
            key=key,
            conflict=conflict,
            labels=labels,
            priority=priority,
            deadline=deadline if isinstance(deadline, datetime) else span_of(deadline),
        )
        return self.run(run.id)

    def run(self, id: str) -> Run:
        """The run with this id."""
        return Run(self.operations, self.operations.get(id).id)

    def runs(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """Runs, the newest first."""
        found = self.operations.list(state=state, workflow=workflow, labels=labels, limit=limit)
        return [Run(self.operations, run.id) for run in found]

    def emit(
        self, name: str, key: str = "", payload: Json = None, *, id: str | None = None
    ) -> bool:
        """Gives an event to the first that waits, or will wait, for this name and key."""
        return self.operations.emit(name, key, payload, id=id)

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
