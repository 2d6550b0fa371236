"""`Client`: submits runs and looks after them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self, cast

from afl.app.compiling import Source, compile_with_sources
from afl.app.costs import Costs
from afl.app.extras import agents_part
from afl.app.run import Run, span_of
from afl.app.schedules import Schedules
from afl.app.services import Services, connect
from afl.base.closable import Closable
from afl.kernel.model import Json
from afl.runtime.inbox import Inbox
from afl.runtime.operations import Operations
from afl.turns.model import UsageSum

if TYPE_CHECKING:
    from afl.app.agents import Agents
    from afl.app.transcripts import Transcript


class Client(Closable):
    """Works on one store, and connects when it is made. Threads may share one."""

    def __init__(
        self,
        database: str | None = None,
        *,
        token: str | None = None,
        services: Services | None = None,
    ) -> None:
        """
        Args:
            database: the URL of the store, or of a server; else that of AFL_DATABASE_URL.
            token: for a server, else that of AFL_TOKEN.
            services: what to work on instead; it stays the caller's to close.
        """
        self._owned = connect(database, token=token) if services is None else None
        self._services = services or self._owned

    @classmethod
    def from_env(cls) -> Self:
        """A client on the database of AFL_DATABASE_URL."""
        return cls()

    @property
    def operations(self) -> Operations:
        """All that can be done to runs, for what is not here."""
        return self._on().operations

    def deploy(self, source: Source, name: str = "default") -> str:
        """Makes a program the current one under a name, and answers its hash.

        Args:
            source: a folder or files with flows, their text, or a compiled program.

        Raises:
            BadProgram: it does not compile; the message is what `afl check` says.
            BadSchedule: a schedule that it declares is not possible.
        """
        compiled = compile_with_sources(source)
        return self.operations.deploy(compiled.program, name, sources=compiled.sources).program

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

    def inbox(self) -> Inbox:
        """What waits for people: `list`, `get`, `answer` and `reject` it.

        client.inbox().answer(task, {"approved": True}, by="ada")
        """
        return self.operations.inbox

    @property
    def schedules(self) -> Schedules:
        """What starts runs at its times: `create`, `list`, `next`, `pause`, `resume`, `trigger`,
        `backfill` and `delete` it.

        client.schedules.create("nightly", "demo.Report", cron="0 3 * * *", zone="Europe/Berlin")
        """
        return Schedules(self.operations)

    @property
    def agents(self) -> Agents:
        """The agents: `list`, `get`, `set` and `delete` them, `send` them turns, `wait` for what
        they deliver, `stop` them.

        turn = client.agents.send("reviewer", "Look at this.")
        print(client.agents.wait(turn, "10m").fields["text"])

        Raises:
            ExtraMissing: the extra `agents` is not installed.
        """
        part = agents_part("afl.app.agents")
        return cast("Agents", part.Agents(self._on_database()))

    def transcript(self, run: str, step: str | None = None) -> Transcript:
        """A turn of a run as it went: of a step, of a turn's id, or the only one.

        Raises:
            UnknownRun, UnknownStep: there is no such turn, or more than one.
            ExtraMissing: the extra `agents` is not installed.
        """
        part = agents_part("afl.app.transcripts")
        return cast("Transcript", part.Transcripts(self._on_database()).get(run, step))

    def cost(
        self,
        by: str = "run",
        *,
        run: str | None = None,
        since: str | timedelta | datetime | None = None,
        limit: int = 100,
    ) -> list[UsageSum]:
        """What models have cost, added up by `run`, `agent`, `facet`, `step`, `model` or `day`,
        the most expensive first; `since` is a time, or how long ago, such as `7d`."""
        return self.costs.usage(by, run=run, since=since, limit=limit)

    @property
    def costs(self) -> Costs:
        """The accounts and the budgets: `usage`, `budgets`, `budget`, `set_budget`."""
        return Costs(self._on_database())

    def emit(
        self, name: str, key: str = "", payload: Json = None, *, id: str | None = None
    ) -> bool:
        """Gives an event to the first that waits, or will wait, for this name and key."""
        return self.operations.emit(name, key, payload, id=id)

    def _on(self) -> Services:
        assert self._services is not None
        return self._services

    def _on_database(self) -> Services:
        services = self._on()
        services.refuse_server("Agents, transcripts and costs need")
        return services

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()
