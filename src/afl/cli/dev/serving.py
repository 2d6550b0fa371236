"""The worker of a project, and how another one takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from queue import Empty
from threading import Thread

from afl.app.app import App
from afl.app.errors import ExtraMissing
from afl.app.executing import EXEC_SLOTS, Executing, ExecWish
from afl.app.log_keeping import LogKeeping
from afl.app.needs import lists_of, unserved
from afl.app.services import Services
from afl.app.serving import (
    DRAIN,
    RENEWALS_PER_LEASE,
    TURNS,
    AppWorker,
    Mail,
    Turns,
    TurnWish,
    serve_beside,
    serve_mail,
)
from afl.base.settings import Settings
from afl.bridges.processes import no_log
from afl.cli.dev.handlers import Loaded, joined
from afl.cli.dev.project import SCRIPT
from afl.exec.errors import CannotExecute
from afl.ir.model import Program
from afl.runtime.ending import Asked
from afl.runtime.handler_table import HandlerTable
from afl.runtime.worker import WorkerConfig

_SLOTS = 8
#: Short, so that after a crash the next start soon goes on with what was in hand.
_LEASE = timedelta(seconds=10)
_LOOK_SECONDS = 0.01
_SCRIPTED = "scripted:"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a worker of a project serves, and what is missing."""

    facets: tuple[str, ...]
    models: tuple[str, ...]
    unserved: tuple[str, ...]
    #: what is not served although it is asked for, and how to have it
    missing: tuple[str, ...]


class Serving:
    """Serves a project by one worker at a time."""

    def __init__(self, services: Services, settings: Settings, logs: LogKeeping | None) -> None:
        self._services = services
        self._settings = settings
        self._logs = logs
        self._asked = Asked()
        self._worker: AppWorker | None = None
        self._leaving: list[Thread] = []

    @property
    def is_on(self) -> bool:
        return self._worker is not None

    def was_asked(self) -> bool:
        """Whether somebody has drained the worker since this was last asked."""
        try:
            self._asked.get_nowait()
        except Empty:
            return False
        return True

    def renew(self, loaded: Loaded, program: str, script: str | None) -> Offer:
        """Has a new worker serve what was loaded; the one before finishes what it has.

        Raises:
            BadHandler: a handler does not fit the program; the worker before goes on.
            AflError: a script of a model, or the file of MCP servers, cannot be read; the same.
        """
        apps, plans = loaded.apps, self._services.evaluator.plans
        plan = plans.get(program)
        table = joined(apps, plan, plans)
        executing, missing = self._commands()
        if executing is not None:
            executing.add_to(table)
        config = self._config(apps, plan.program, executing)
        settings = self._settings_for(plan.program, script)
        if self._logs is not None:
            table = self._logs.kept(table)
        beside, more = self._beside(settings, config, table, plan.program)
        # each has its own: the one before may hear of its own leaving
        asked = Asked()
        worker = AppWorker(self._services, table, config, *beside, commands=executing, asked=asked)
        self._leave()
        loaded.install()
        worker.start()
        self._worker, self._asked = worker, asked
        answered = [] if worker.turns is None else sorted(worker.turns.facets())
        waiting = unserved(plan.program, [*table.names(), *answered])
        return Offer(
            tuple(facet for app in apps for facet in app.facets),
            settings.models if answered else (),
            tuple(waiting),
            (*missing, *more, *_models_wanted(plan.program, waiting)),
        )

    def stop(self) -> bool:
        """Lets handlers finish; whether all did."""
        finished = True
        if self._worker is not None:
            finished = self._worker.stop(DRAIN)
        for thread in self._leaving:
            thread.join()
        return finished

    def _leave(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            thread = Thread(target=worker.stop, args=(DRAIN,), name="afl-dev-leave")
            thread.start()
            # what is begun from now on is the new one's
            while thread.is_alive() and not worker.worker.is_draining:
                thread.join(_LOOK_SECONDS)
            self._leaving = [each for each in self._leaving if each.is_alive()] + [thread]

    def _commands(self) -> tuple[Executing | None, tuple[str, ...]]:
        lines = no_log if self._logs is None else self._logs.lines
        try:
            return Executing(ExecWish(EXEC_SLOTS), lines), ()
        except CannotExecute as error:
            return None, (error.message,)

    def _config(
        self, apps: Sequence[App], program: Program, executing: Executing | None
    ) -> WorkerConfig:
        name = apps[0].name if len(apps) == 1 else "afl-dev"
        seconds = _LEASE.total_seconds()
        return WorkerConfig(
            slots=_SLOTS,
            lists=lists_of(program),
            lease_seconds=seconds,
            renew_seconds=seconds / RENEWALS_PER_LEASE,
            group=name,
            service=name,
            bounded=() if executing is None else tuple(executing.facets),
            bound=0 if executing is None else executing.slots,
            spool=None if self._logs is None else self._logs.results,
        )

    def _settings_for(self, program: Program, script: str | None) -> Settings:
        """The settings, with the script in the place of a model where prompts have none."""
        asks = any(each.prompt is not None and not each.prompt.model for each in program.facets)
        if self._settings.models or script is None or not asks:
            return self._settings
        return replace(self._settings, models=(f"{_SCRIPTED}{script}",))

    def _beside(
        self, settings: Settings, config: WorkerConfig, table: HandlerTable, program: Program
    ) -> tuple[tuple[Turns | None, Mail | None], tuple[str, ...]]:
        # with a model, agents without a prompt in the program may take turns too
        wish = TurnWish(TURNS if self._settings.models else None)
        try:
            return serve_beside(self._services, wish, settings, config, table, program.facets), ()
        except ExtraMissing as error:
            missing = [error.message]
        try:
            mail = serve_mail(self._services, None, settings, config, program.facets)
        except ExtraMissing as error:
            mail = None
            missing.append(error.message)
        return (None, mail), tuple(dict.fromkeys(missing))


def _models_wanted(program: Program, waiting: Sequence[str]) -> list[str]:
    prompts = [each.name for each in program.facets if each.prompt and each.name in waiting]
    if not prompts:
        return []
    return [
        f"a model for {', '.join(prompts)}: set AFL_MODEL, such as anthropic:claude-sonnet-5, or "
        f"write what it says to {SCRIPT}"
    ]
