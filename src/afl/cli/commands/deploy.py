"""`afl deploy`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from queue import Empty

import click

from afl.cli import exit_codes
from afl.cli.errors import CommandError
from afl.cli.framework import Command
from afl.cli.reports import Format, render, say_diagnostics
from afl.cli.running.connection import opened, store_url
from afl.cli.running.options import database_option, json_option
from afl.cli.running.watching import Change, Watched, say_change
from afl.cli.running.workflows import example_inputs
from afl.cli.sources import STDIN, compile_inputs, read_inputs
from afl.cli.terminal import Terminal, count
from afl.ir.model import Program
from afl.lang.diagnostics.render_json import to_json
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.scheduling.service import Synced

_POLL_SECONDS = 1.0


@click.command("deploy", cls=Command)
@click.argument("paths", nargs=-1)
@click.option(
    "--name", default="default", show_default=True, metavar="NAME", help="Deploy it as this."
)
@click.option(
    "--watch",
    is_flag=True,
    help="Go on until told to stop, and deploy again whenever the files change.",
)
@database_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    name: str,
    watch: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Make AFL sources the program that new runs use.

    PATHS are files, folders to search for .afl files and YAML pipelines, or - for standard input;
    without any, the current folder is searched. The program is checked, and kept by its hash, which
    is printed. Runs that have begun keep the program that they began with. The schedules that it
    declares are created or changed, and those that it declares no more are deleted.
    """
    terminal = ctx.ensure_object(Terminal)
    if watch:
        if STDIN in paths:
            raise click.UsageError("--watch needs files, and standard input is none.", ctx)
        _watch(paths, name, database, _Talk(terminal, as_json=as_json))
        return
    inputs = read_inputs(paths)
    compilation = compile_inputs(inputs)
    if not as_json and compilation.diagnostics:
        say_diagnostics(compilation.diagnostics, len(inputs), terminal)
    program = compilation.program
    if program is None:
        if as_json:
            terminal.data(render(compilation.diagnostics, Format.JSON, terminal))
        ctx.exit(exit_codes.FAILED)
    sources = {each.name: each.text for each in inputs}
    deployed = _deploy(program, sources, name, database)
    if as_json:
        terminal.json(deployed.as_json())
        return
    _say(deployed, terminal)
    _say_next(program, name, terminal)


@dataclass(frozen=True, slots=True)
class _Deployed:
    name: str
    digest: str
    before: str | None
    workflows: tuple[str, ...]
    schedules: Synced

    def as_json(self) -> dict[str, object]:
        return {
            "version": 1,
            "name": self.name,
            "hash": self.digest,
            "before": self.before,
            "workflows": list(self.workflows),
            "schedules": asdict(self.schedules),
        }


def _deploy(
    program: Program, sources: Mapping[str, str], name: str, database: str | None
) -> _Deployed:
    with opened(database) as operations:
        done = operations.deploy(program, name, sources=sources)
    workflows = tuple(facet.name for facet in program.facets if facet.kind == "workflow")
    return _Deployed(name, done.program, done.before, workflows, done.schedules)


def _watch(paths: tuple[str, ...], name: str, database: str | None, talk: _Talk) -> None:
    """Deploys what changes, until it is told to stop. What fails is tried again."""
    store_url(database)  # without any, trying again is of no use
    watched = Watched(paths)
    asked = Asked()
    with asked_by_signals(asked):
        waiting: Change | None = None
        while True:
            change = watched.look()
            if change is not None:
                talk.changed(change)
                waiting = waiting if change.program is None else change
            if waiting is not None and waiting.program is not None:
                try:
                    done = _deploy(waiting.program, waiting.sources, name, database)
                    talk.deployed(done)
                    waiting = None
                except CommandError as error:
                    talk.failed(error)
            try:
                asked.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            break
    talk.stopped()


class _Talk:
    """What a watch tells: lines for people, or JSON lines as data."""

    def __init__(self, terminal: Terminal, *, as_json: bool) -> None:
        self._terminal = terminal
        self._as_json = as_json
        self._workflows: tuple[str, ...] = ()
        self._failure = ""

    def changed(self, change: Change) -> None:
        if self._as_json:
            if change.diagnostics:
                self._json(to_json(change.diagnostics))
            return
        say_change(change, self._terminal)

    def deployed(self, deployed: _Deployed) -> None:
        gone = [name for name in self._workflows if name not in deployed.workflows]
        self._workflows, self._failure = deployed.workflows, ""
        if self._as_json:
            self._json(deployed.as_json())
            return
        _say(deployed, self._terminal)
        if gone:
            self._terminal.say(f"no longer there: {', '.join(gone)}; runs that have begun go on")

    def failed(self, error: CommandError) -> None:
        """Said once, however often it is tried in vain."""
        if error.message != self._failure:
            self._failure = error.message
            self._terminal.error(f"{error.message}; it is tried again")
            if error.help:
                self._terminal.help(error.help)

    def stopped(self) -> None:
        if not self._as_json:
            self._terminal.say("stopped watching")

    def _json(self, value: object) -> None:
        self._terminal.data_now(json.dumps(value, ensure_ascii=False) + "\n")


def _say(deployed: _Deployed, terminal: Terminal) -> None:
    terminal.data_now(f"{deployed.digest}\n")
    if deployed.before == deployed.digest:
        terminal.say(f"this is what is deployed as `{deployed.name}` already")
        return
    instead = "" if deployed.before is None else f" instead of {deployed.before}"
    what = count(len(deployed.workflows), "workflow")
    terminal.say(f"deployed as `{deployed.name}`{instead}: {what}")
    for verb, names in asdict(deployed.schedules).items():
        if names:
            terminal.say(f"schedules {verb}: {', '.join(names)}")


def _say_next(program: Program, name: str, terminal: Terminal) -> None:
    workflow = next((facet for facet in program.facets if facet.kind == "workflow"), None)
    if workflow is not None:
        which = "" if name == "default" else f" --program {name}"
        call = f"afl submit {workflow.name}{example_inputs(workflow)}{which}"
        terminal.help(f"`{call}` starts a run")
