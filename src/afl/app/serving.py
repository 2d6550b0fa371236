"""The worker of an app: a `Worker` with its handlers, one for turns if there are models, and mail
if flows or agents use it."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from threading import Timer
from types import TracebackType
from typing import Protocol, Self, cast

from afl.app.breakers import WorkerGuard
from afl.app.errors import ExtraMissing
from afl.app.extras import mail_part
from afl.app.services import Services
from afl.app.tracing_use import traced_table
from afl.base.log_fields import log_fields
from afl.base.settings import Settings
from afl.ir.model import Facet
from afl.kernel.working.task_fields import task_fields
from afl.runtime.calls import MAIL_TASKS
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.handler_table import Handler, HandlerTable
from afl.runtime.scheduling.loop import SchedulerLoop
from afl.runtime.worker import Worker, WorkerConfig

DRAIN = LEASE = timedelta(seconds=30)
RENEWALS_PER_LEASE = 3
#: How many turns a worker takes at once: most of the time each waits for a model.
TURNS = 50
#: How long commands that are killed may take to be gone.
_END_SECONDS = 2.0


class Turns(Protocol):
    """What serves turns beside the handlers."""

    def facets(self) -> Collection[str]:
        """The facets that models answer."""
        ...

    def start(self) -> None: ...
    def stop(self, timeout: timedelta) -> bool: ...


class Mail(Protocol):
    """What sends and receives the messages of flows and turns."""

    @property
    def desk(self) -> object:
        """What serves their tasks, for a worker of turns."""
        ...

    def start(self) -> None: ...
    def stop(self, timeout: timedelta) -> bool: ...


class Commands(Protocol):
    """The commands that handlers run."""

    def end(self) -> None:
        """Kills all of them, and lets no more start."""
        ...


@dataclass(frozen=True, slots=True)
class TurnWish:
    """Which turns a worker is to serve beside its handlers."""

    #: how many at once; None is: `TURNS` if there is a model, else none
    slots: int | None = None
    #: the models to ask instead of those that prompts name and settings say
    models: tuple[str, ...] = ()
    #: which agents take their turns here
    targets: tuple[str, ...] = ("default",)

    def is_wanted(self, facets: Sequence[Facet], settings: Settings) -> bool:
        """Whether turns are to be served: as was said, else if some prompt has a model."""
        if self.slots is not None:
            return self.slots > 0
        return any(self.answers(facet, settings) for facet in facets)

    def answers(self, facet: Facet, settings: Settings) -> bool:
        """Whether there is a model for a facet with a prompt."""
        return facet.prompt is not None and bool(
            self.models or settings.models or facet.prompt.model
        )


def serve_beside(
    services: Services,
    wish: TurnWish,
    settings: Settings,
    config: WorkerConfig,
    table: HandlerTable,
    facets: Sequence[Facet],
) -> tuple[Turns | None, Mail | None]:
    """What is to be served beside the handlers of a program with these facets: turns and mail.

    Raises:
        ExtraMissing: a library that it needs is not installed.
        AflError: a script of a model or the file of MCP servers cannot be read.
    """
    with_turns = wish.is_wanted(facets, settings)
    mail = serve_mail(services, wish if with_turns else None, settings, config, facets)
    turns = serve_turns(services, wish, settings, config, table, mail) if with_turns else None
    return turns, mail


def serve_mail(
    services: Services,
    wish: TurnWish | None,
    settings: Settings,
    config: WorkerConfig,
    facets: Sequence[Facet],
) -> Mail | None:
    """What has to do with mail: where flows send messages, or where agents take turns.

    Args:
        wish: which turns are served here; None for none.

    Raises:
        ExtraMissing: flows send messages, and the library is not installed.
    """
    plans, deployed = services.evaluator.plans, services.persistence.deployments()
    programs = (plans.get(program).program for program in dict.fromkeys(deployed.values()))
    known = chain(facets, chain.from_iterable(program.facets for program in programs))
    is_used = any(facet.name in MAIL_TASKS for facet in known)
    if not is_used and wish is None:
        return None
    try:
        mailroom = mail_part("afl.app.mailroom")
    except ExtraMissing:
        if is_used:
            raise
        return None
    options = mailroom.MailOptions(
        targets=None if wish is None else wish.targets,
        lists=config.lists,
        lease=timedelta(seconds=config.lease_seconds),
        name=config.service,
    )
    return cast("Mail", mailroom.Mailroom(services, settings, options))


def serve_turns(
    services: Services,
    wish: TurnWish,
    settings: Settings,
    config: WorkerConfig,
    table: HandlerTable,
    mail: Mail | None = None,
) -> Turns:
    """What serves turns as it is wished, on the lists of a worker, but for what handlers serve.

    Raises:
        ExtraMissing: a library that it needs is not installed.
        AflError: a script of a model or the file of MCP servers cannot be read.
    """
    try:
        turning = importlib.import_module("afl.app.turning")
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"Models are asked with the help of {error.name}, which is not installed: "
            "`pip install 'afl-agentflow[agents]'`."
        ) from error
    options = turning.TurnOptions(
        models=wish.models or settings.models,
        overrides=bool(wish.models),
        without=tuple(table.names()),
        slots=wish.slots or TURNS,
        targets=wish.targets,
        lists=config.lists,
        lease=timedelta(seconds=config.lease_seconds),
        name=config.service,
        mcp_file=settings.mcp_file,
        redis_url=settings.redis_url,
    )
    attendants = () if mail is None else (mail.desk,)
    return cast("Turns", turning.Turning(services, options, attendants))


def _told(handler: Handler) -> Handler:
    """The handler whose log lines say which task they are about."""
    return handler.within(lambda invocation: log_fields(task_fields(invocation.task)))


class AppWorker:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        services: Services,
        table: HandlerTable,
        config: WorkerConfig,
        turns: Turns | None = None,
        mail: Mail | None = None,
        *,
        schedules: bool = True,
        commands: Commands | None = None,
        asked: Asked | None = None,
    ) -> None:
        """`schedules` is whether it fires what is due, as any number of workers may; `asked` gets a
        word when somebody wants it to end."""
        self._asked = asked = asked or Asked()
        self._guard = WorkerGuard(services, Settings.load())
        self.worker = Worker(
            services.evaluator,
            traced_table(table.changed(_told)),
            config,
            doorbell=services.doorbell,
            guard=self._guard,
            asked=lambda: asked.put(signal.SIGTERM),
        )
        self.turns = turns
        self.mail = mail
        self._commands = commands
        scheduler = services.operations.schedules.scheduler
        self.schedules = SchedulerLoop(scheduler, services.doorbell) if schedules else None

    def start(self) -> None:
        """Makes the worker known and starts to serve."""
        self.worker.start()
        # turns send through it
        for beside in (self.mail, self.turns, self.schedules):
            if beside is not None:
                beside.start()

    def stop(self, timeout: timedelta = DRAIN) -> bool:
        """Claims nothing more and lets handlers finish; tells whether all did in that time."""
        if self.schedules is not None:
            self.schedules.stop()
        if self.turns is None and self.mail is None:
            return self._drain(timeout)
        with ThreadPoolExecutor(1, "afl-stop") as pool:
            beside = pool.submit(self._stop_beside, timeout)
            handled = self._drain(timeout)
            return beside.result() and handled

    def _drain(self, timeout: timedelta) -> bool:
        seconds = timeout.total_seconds()
        if self._commands is None:
            handled = self.worker.drain(seconds)
        else:
            # before they are handed back: nobody else is to begin while they still run
            timer = Timer(seconds, self._commands.end)
            timer.start()
            handled = self.worker.drain(seconds + _END_SECONDS)
            timer.cancel()
        self._guard.close()
        return handled

    def _stop_beside(self, timeout: timedelta) -> bool:
        turned = self.turns is None or self.turns.stop(timeout)
        mailed = self.mail is None or self.mail.stop(timeout)
        return turned and mailed

    def serve(self) -> None:
        """Serves until SIGTERM or SIGINT comes, or somebody drains it; a second signal does not let
        handlers finish. Only the main thread can do this."""
        with asked_by_signals(self._asked), self:
            self._asked.get()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
