"""`afl worker`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta

import click

from afl.app.app import App
from afl.app.services import Services, connect
from afl.app.serving import DRAIN, LEASE, RENEWALS_PER_LEASE, AppWorker
from afl.base.settings import Settings
from afl.cli.framework import Command
from afl.cli.running.connection import database_url, refusals, refuse_pending
from afl.cli.running.logs import LEVELS, shown_logs
from afl.cli.running.options import database_option, span
from afl.cli.running.serving import lists_of, load_app, unserved
from afl.cli.terminal import Terminal, count
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.worker import WorkerConfig

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
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Show what is logged from this level on; else what handlers log through their context "
    "from info on, and everything else from warning on.",
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
    log_level: str | None,
    nats: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Serve facets and advance runs until told to stop.

    SIGTERM or Ctrl-C lets handlers finish first. A second one does not: other workers get what was
    in hand when its lease ends.
    """
    url = database_url(database)
    settings = Settings.load()
    if nats is not None:
        settings = replace(settings, nats_url=nats)
    talk = _Talk(terminal, as_json=as_json)
    with refusals(), terminal.others_talk(), shown_logs(log_level):
        app = App("afl-worker") if handlers is None else load_app(handlers)
        refuse_pending(url)
        asked = Asked()
        with connect(url, settings) as services, asked_by_signals(asked):
            worker = _worker(services, app, program, _Size(slots, lists, lease or LEASE))
            worker.start()
            finished = False
            try:
                talk.started(worker, services, app, settings, program)
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


def _worker(services: Services, app: App, program: str, size: _Size) -> AppWorker:
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
    )
    return AppWorker(services, app.table(plan, plans), config)


class _Talk:
    """What a worker tells: lines for people on standard error, or JSON lines as data."""

    def __init__(self, terminal: Terminal, *, as_json: bool) -> None:
        self._terminal = terminal
        self._as_json = as_json

    def started(
        self, worker: AppWorker, services: Services, app: App, settings: Settings, program: str
    ) -> None:
        config = worker.worker.config
        digest = services.operations.program(program)
        flows = services.evaluator.plans.get(digest).program
        needs = unserved(flows, app.facets)
        lists = [f"the list {name}" for name in lists_of(flows) if name not in config.lists]
        if self._as_json:
            self._json(
                "started",
                worker=worker.worker.id,
                app=app.name,
                program=digest,
                serves=app.facets,
                not_served=needs,
                lists=list(config.lists),
                slots=config.slots,
            )
            return
        say = self._terminal.say
        hears = "NATS" if settings.nats_url is not None else "the database"
        say(f"worker {worker.worker.id}")
        say(f"  program  {program} {digest}")
        say(f"  serves   {', '.join(app.facets) or 'no facets: it advances runs and runs scripts'}")
        say(f"  lists    {', '.join(config.lists)}, {count(config.slots, 'slot')}")
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
