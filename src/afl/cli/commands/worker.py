"""`afl worker`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from afl.app.app import App
from afl.app.log_keeping import LogKeeping, keep_logs
from afl.app.needs import lists_of, unserved
from afl.app.services import Services, connect
from afl.app.serving import DRAIN, LEASE, RENEWALS_PER_LEASE, AppWorker, TurnWish, serve_beside
from afl.app.tracing_use import traced_if_wanted
from afl.base.settings import LOG_LEVELS, LogFormat, Settings, environment
from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.connection import database_url, refusals, refuse_pending
from afl.cli.running.logs import process_logs
from afl.cli.running.options import database_option, span
from afl.cli.running.serving import load_app
from afl.cli.terminal import Terminal, count
from afl.runtime.calls import SCRIPT
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.handler_table import HandlerFunction
from afl.runtime.worker import WorkerConfig

if TYPE_CHECKING:
    from afl.app.executing import Executing

_SHORTEST_LEASE = timedelta(seconds=1)


def lease_span(text: str) -> timedelta:
    """The type of a lease: too short a one is lost to a hiccup."""
    found = span(text)
    if found < _SHORTEST_LEASE:
        raise click.BadParameter(f"'{text}' is too short for a lease; 1s is the shortest")
    return found


@click.command("worker", cls=Command)
@click.option(
    "--handlers",
    metavar="MODULE[:APP]",
    help="Where the app with the handlers is: a module, or a file such as handlers.py. Without it, "
    "only runs are advanced and scripts are run.",
)
@click.option("--slots", type=click.IntRange(min=1), default=8, show_default=True, metavar="N")
@click.option(
    "--list",
    "lists",
    multiple=True,
    default=("default",),
    show_default=True,
    metavar="LIST",
    help="A list of tasks to serve; may be given several times.",
)
@click.option(
    "--program",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The deployment whose facets the handlers serve.",
)
@click.option(
    "--drain",
    type=span,
    metavar="DURATION",
    help="How long handlers may take to finish when it is told to stop.  [default: 30s]",
)
@click.option(
    "--lease",
    type=lease_span,
    metavar="DURATION",
    help="After how long without a sign of life others take over its work.  [default: 30s]",
)
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many turns of models run at once.  [default: 50 if AFL_MODEL or a prompt of the "
    "program names a model, else none]",
)
@click.option("--no-turns", is_flag=True, help="Ask no models, whatever the settings say.")
@click.option("--no-schedules", is_flag=True, help="Fire no schedules; other workers do.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Take the turns of agents with this target; repeat it for several.  [default: default]",
)
@click.option(
    "--exec",
    "executes",
    is_flag=True,
    help="Run the commands of programs: serve the facets of afl.exec. Only for programs you trust.",
)
@click.option(
    "--exec-slots",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many commands run at once, within the slots.  [default: 5]",
)
@click.option(
    "--exec-env",
    multiple=True,
    metavar="NAME",
    help="A variable of the environment that commands get too; repeat it for several.",
)
@click.option(
    "--artifacts",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where the files are kept that commands declare as artifacts.",
)
@click.option("--sandbox", is_flag=True, help="Run scripts in the sandbox, or refuse to start.")
@click.option(
    "--spool",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where log lines are kept until the database has them, and results while it is away.  "
    "[default: afl/spool in the state folder of the user]",
)
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    help="Show what is logged from this level on; else AFL_LOG_LEVEL, else what handlers log "
    "through their context from info on, and everything else from warning on.",
)
@click.option("--nats", metavar="URL", help="Hear of work through NATS; else AFL_NATS_URL.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each thing to tell.")
@click.pass_obj
def command(
    terminal: Terminal,
    handlers: str | None,
    slots: int,
    lists: tuple[str, ...],
    program: str,
    drain: timedelta | None,
    lease: timedelta | None,
    turns: int | None,
    no_turns: bool,
    no_schedules: bool,
    targets: tuple[str, ...],
    executes: bool,
    exec_slots: int | None,
    exec_env: tuple[str, ...],
    artifacts: str | None,
    sandbox: bool,
    spool: str | None,
    log_level: str | None,
    nats: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Serve facets and advance runs until told to stop.

    SIGTERM or Ctrl-C lets handlers finish first. A second one does not: other workers get what was
    in hand when its lease ends.
    """
    if no_turns and turns is not None:
        raise RequestError("use --turns or --no-turns, not both")
    if not executes and (exec_slots or exec_env or artifacts):
        raise RequestError("--exec-slots, --exec-env and --artifacts are for --exec")
    url = database_url(database)
    settings = replace(Settings.load(), database_url=url)
    if nats is not None:
        settings = replace(settings, nats_url=nats)
    # whoever reads lines as JSON is not to find others between them
    talk = _Talk(terminal, as_json=as_json or settings.log_format is LogFormat.JSON)
    with (
        refusals(),
        terminal.others_talk(),
        process_logs("worker", settings, log_level) as fields,
    ):
        app = App("afl-worker") if handlers is None else load_app(handlers)
        scripts = _scripts() if sandbox else None
        refuse_pending(url)
        asked = Asked()
        with (
            connect(url, settings) as services,
            asked_by_signals(asked),
            keep_logs(url, services, settings, spool, app.name) as logs,
            traced_if_wanted(services, app.name, environment()),
        ):
            size = _Size(slots, lists, lease or LEASE, schedules=not no_schedules)
            wish = TurnWish(0 if no_turns else turns, targets=targets or ("default",))
            executing = _executing(exec_slots, exec_env, artifacts, logs) if executes else None
            worker = _worker(
                services, app, program, size, wish, settings, executing, scripts, logs, asked
            )
            fields.add({"worker": worker.worker.id})
            worker.start()
            finished = False
            try:
                talk.started(worker, services, app, settings, program, executing)
                asked.get()
                talk.stopping(worker)
            finally:
                finished = worker.stop(DRAIN if drain is None else drain)
            talk.stopped(worker, finished)


@dataclass(frozen=True, slots=True)
class _Size:
    """How much a worker takes on, and how long it is believed to be alive."""

    slots: int
    lists: tuple[str, ...]
    lease: timedelta
    schedules: bool


def _scripts() -> HandlerFunction:
    """What runs scripts in the sandbox; if there is none, nothing is to start."""
    from afl.app.executing import script_handler

    return script_handler()


def _executing(
    slots: int | None, env: tuple[str, ...], artifacts: str | None, logs: LogKeeping
) -> Executing:
    from afl.app.executing import EXEC_SLOTS, Executing, ExecWish

    return Executing(ExecWish(slots or EXEC_SLOTS, env, artifacts), logs.lines)


def _worker(
    services: Services,
    app: App,
    program: str,
    size: _Size,
    wish: TurnWish,
    settings: Settings,
    executing: Executing | None,
    scripts: HandlerFunction | None,
    logs: LogKeeping,
    asked: Asked,
) -> AppWorker:
    plans = services.evaluator.plans
    plan = plans.get(services.operations.program(program))
    seconds = size.lease.total_seconds()
    config = WorkerConfig(
        slots=size.slots,
        lists=size.lists,
        lease_seconds=seconds,
        renew_seconds=seconds / RENEWALS_PER_LEASE,
        group=app.name,
        service=app.name,
        bounded=() if executing is None else tuple(executing.facets),
        bound=0 if executing is None else executing.slots,
        spool=logs.results,
    )
    table = app.table(plan, plans)
    if executing is not None:
        executing.add_to(table)
    if scripts is not None:
        table.register(SCRIPT, scripts)
    table = logs.kept(table)
    beside = serve_beside(services, wish, settings, config, table, plan.program.facets)
    return AppWorker(
        services,
        table,
        config,
        *beside,
        schedules=size.schedules,
        commands=executing,
        asked=asked,
    )


class _Talk:
    """What a worker tells: lines for people on standard error, or JSON lines as data."""

    def __init__(self, terminal: Terminal, *, as_json: bool) -> None:
        self._terminal = terminal
        self._as_json = as_json

    def started(
        self,
        worker: AppWorker,
        services: Services,
        app: App,
        settings: Settings,
        program: str,
        executing: Executing | None,
    ) -> None:
        config = worker.worker.config
        digest = services.operations.program(program)
        flows = services.evaluator.plans.get(digest).program
        answered = [] if worker.turns is None else sorted(worker.turns.facets())
        serves = [*app.facets, *(() if executing is None else executing.facets)]
        needs = unserved(flows, [*serves, *answered])
        lists = [f"the list {name}" for name in lists_of(flows) if name not in config.lists]
        if self._as_json:
            self._json(
                "started",
                worker=worker.worker.id,
                app=app.name,
                program=digest,
                serves=serves,
                answers=answered,
                not_served=needs,
                lists=list(config.lists),
                slots=config.slots,
                exec_slots=config.bound,
            )
            return
        say = self._terminal.say
        hears = "NATS" if settings.nats_url is not None else "the database"
        say(f"worker {worker.worker.id}")
        say(f"  program  {program} {digest}")
        say(f"  serves   {', '.join(serves) or 'no facets: it advances runs and runs scripts'}")
        if worker.turns is not None:
            say(f"  asks     models for {', '.join(answered) or 'what agents are to do'}")
        say(f"  lists    {', '.join(config.lists)}, {count(config.slots, 'slot')}")
        if executing is not None:
            say(f"  runs     {count(executing.slots, 'command')} at once")
            if executing.problem is not None:
                say(f"  no       sandbox: {executing.problem}")
        say(f"  hears    of work through {hears}")
        if needs or lists:
            say(f"  but not  {', '.join([*needs, *lists])}")
        self._terminal.help("Ctrl-C lets handlers finish, then stops; `afl workers list` shows it")

    def stopping(self, worker: AppWorker) -> None:
        held = worker.worker.counters.in_flight
        if self._as_json:
            self._json("stopping", worker=worker.worker.id, in_flight=held)
        else:
            self._terminal.say(f"stopping: {count(held, 'handler')} to finish")

    def stopped(self, worker: AppWorker, finished: bool) -> None:
        if self._as_json:
            self._json("stopped", worker=worker.worker.id, finished=finished)
        elif finished:
            self._terminal.say("stopped: everything is finished")
        else:
            self._terminal.say("stopped: what was not finished was handed back")

    def _json(self, event: str, **values: object) -> None:
        line = {"version": 1, "event": event, **values}
        self._terminal.data_now(json.dumps(line, ensure_ascii=False) + "\n")
