"""`afl run`: a workflow in this process, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING

import click

from afl.app.app import App
from afl.app.needs import Need, is_for_a_person, lists_of, missing_from
from afl.app.services import Services, connect
from afl.app.serving import AppWorker, TurnWish, serve_beside
from afl.base.settings import Settings
from afl.cli import exit_codes
from afl.cli.errors import CommandError, NotEndedError
from afl.cli.framework import Command
from afl.cli.live.following import LOCAL, follow
from afl.cli.live.views import View, view_for
from afl.cli.reports import Format, render, say_diagnostics
from afl.cli.running.connection import refusals
from afl.cli.running.logs import shown_logs
from afl.cli.running.options import input_options, json_option, timeout_option
from afl.cli.running.outcomes import Ending, ending_of, exit_code, say_ending
from afl.cli.running.serving import load_app
from afl.cli.running.workflows import choose, read_values
from afl.cli.sources import compile_inputs, read_inputs
from afl.cli.terminal import Terminal
from afl.ir.model import Program
from afl.kernel.model import Json
from afl.lang.diagnostics.suggest import nearest
from afl.runtime.calls import PEOPLE
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.handler_table import HandlerFunction, HandlerTable
from afl.runtime.inbox import APPROVE
from afl.runtime.states import RunState
from afl.runtime.worker import WorkerConfig

if TYPE_CHECKING:
    from afl.app.executing import Executing

#: The facets that run commands.
_COMMANDS = "afl.exec."
_DRAIN = timedelta(seconds=5)


@click.command("run", cls=Command)
@click.argument("flow")
@click.argument("workflow", required=False)
@input_options
@click.option(
    "--handlers",
    metavar="MODULE[:APP]",
    help="Where the app with the handlers is: a module, or a file such as handlers.py.",
)
@click.option(
    "--exec",
    "executes",
    is_flag=True,
    help="Run the commands of the flow on this machine, and show what they print.",
)
@click.option(
    "--slots", type=click.IntRange(min=1), default=8, metavar="N", help="How many at once."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="The model that answers all prompts, such as scripted:replies.json; else the one that a "
    "prompt names, else AFL_MODEL.",
)
@click.option(
    "--approve",
    is_flag=True,
    help="Agree to every tool call that a person would have to agree to; without it they are "
    "refused.",
)
@timeout_option
@click.option(
    "-v", "--verbose", is_flag=True, help="Show all that is logged from info on, by anything."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    flow: str,
    workflow: str | None,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    handlers: str | None,
    executes: bool,
    slots: int,
    models: tuple[str, ...],
    approve: bool,
    timeout: timedelta | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run a workflow here and now, without a database.

    FLOW is a file, a folder to search for .afl files and YAML pipelines, or - for standard input.
    WORKFLOW is its full or short name; it is not needed if there is only one. The outputs are
    printed as JSON. What handlers print goes to standard error. Nothing is kept.
    """
    terminal = ctx.ensure_object(Terminal)
    program = _compile(ctx, flow, as_json=as_json)
    facet = choose(program, workflow)
    values = read_values(facet, pairs, inputs_file)
    with terminal.others_talk():
        app = None if handlers is None else load_app(handlers)
    settings, wish = Settings.load(), TurnWish(models=models)
    missing = missing_from(app, program, facet.name, lambda each: wish.answers(each, settings))
    if executes:
        missing = [need for need in missing if not _is_command(need)]
    if missing:
        raise _missing(missing, app, handlers)
    view = view_for(terminal, quiet=as_json)
    with refusals(), connect("memory:") as services:
        executing = _executing() if executes else None
        local = _Local(services, program, app, slots, wish, settings, executing, approve=approve)
        with terminal.others_talk(), shown_logs("info" if verbose else None):
            ending = local.run(facet.name, values, view, timeout, terminal)
    _finish(ctx, ending, as_json=as_json)


def _compile(ctx: click.Context, flow: str, *, as_json: bool) -> Program:
    terminal = ctx.ensure_object(Terminal)
    inputs = read_inputs([flow])
    compilation = compile_inputs(inputs)
    if not as_json and compilation.diagnostics:
        say_diagnostics(compilation.diagnostics, len(inputs), terminal)
    if compilation.program is None:
        if as_json:
            terminal.data(render(compilation.diagnostics, Format.JSON, terminal))
        ctx.exit(exit_codes.FAILED)
    return compilation.program


def _executing() -> Executing:
    # few flows have commands, and what runs them takes a while to load
    from afl.cli.running.commands import shown_commands

    return shown_commands()


class _Local:
    """A store, a worker and a program, for one run."""

    def __init__(
        self,
        services: Services,
        program: Program,
        app: App | None,
        slots: int,
        wish: TurnWish,
        settings: Settings,
        executing: Executing | None,
        *,
        approve: bool,
    ) -> None:
        self._services = services
        plans = services.evaluator.plans
        self._program = plans.add(program)
        table = HandlerTable() if app is None else app.table(plans.get(self._program), plans)
        if executing is not None:
            executing.add_to(table)
        name = "afl-run" if app is None else app.name
        # there is no inbox without a database: what people are asked for, handlers do
        lists = (*lists_of(program), PEOPLE)
        config = WorkerConfig(slots=slots, lists=lists, group=name, service=name)
        turns, mail = serve_beside(services, wish, settings, config, table, program.facets)
        if turns is not None:
            table.register(APPROVE, _approving(approve))
        self._worker = AppWorker(
            services, table, config, turns, mail, schedules=False, commands=executing
        )

    def run(
        self,
        workflow: str,
        values: dict[str, Json],
        view: View,
        timeout: timedelta | None,
        terminal: Terminal,
    ) -> Ending:
        """Runs the workflow to its end, or until the time is up. Ctrl-C cancels it."""
        operations = self._services.operations
        run = operations.submit(workflow, values, program=self._program)
        patience = timedelta(0)
        asked = Asked()
        try:
            self._worker.start()
            # an interrupt in the middle of the store could leave its lock held for ever
            with asked_by_signals(asked):
                pause = partial(_pause, asked)
                found = follow(operations, run.id, view, timeout=timeout, poll=LOCAL, pause=pause)
            if found.state == RunState.COMPLETED:
                patience = _DRAIN
        except KeyboardInterrupt:
            operations.cancel(run.id, force=True, reason="It was interrupted.")
            terminal.say("the run was canceled")
            raise
        finally:
            self._worker.stop(patience)
        return ending_of(operations, found)


def _approving(approve: bool) -> HandlerFunction:
    """Answers in place of the person who would be asked."""
    if approve:
        return lambda _: {"approved": True}
    reason = "nobody can be asked in `afl run`; with --approve all such calls are agreed to"
    return lambda _: {"approved": False, "reason": reason}


def _pause(asked: Asked, seconds: float) -> None:
    """Waits, unless somebody asks for the end."""
    with suppress(Empty):
        asked.get(timeout=seconds)
        raise KeyboardInterrupt


def _finish(ctx: click.Context, ending: Ending, *, as_json: bool) -> None:
    terminal = ctx.ensure_object(Terminal)
    run = ending.run
    if as_json:
        terminal.json(ending.as_json())
    elif run.state == RunState.COMPLETED:
        terminal.json(run.outputs or {})
    elif RunState.is_terminal(run.state):
        say_ending(ending, terminal, kept=False)
    else:
        raise NotEndedError(f"{run.workflow} has not ended in time, and was given up")
    ctx.exit(exit_code(run))


def _is_command(need: Need) -> bool:
    return need.facet.name.startswith(_COMMANDS)


def _missing(needs: Sequence[Need], app: App | None, handlers: str | None) -> CommandError:
    """Says which facets nobody would serve, where each is called, and what to write."""
    names = [] if app is None else app.facets
    lines = []
    for need in needs:
        name = need.facet.name
        at = "" if need.place is None else f" ({need.place.file}:{need.place.line})"
        guess = nearest(name, names)
        hint = f"; did you mean it by `{guess}`?" if guess else ""
        person = ", which a person does," if is_for_a_person(need.facet) else ""
        lines.append(f"no handler serves {name}{person} that {need.step}{at} calls{hint}")
    if all(map(_is_command, needs)):
        help = "`--exec` runs the commands of a flow that you trust"
        return CommandError("\n       ".join(lines), help=help)
    first = needs[0].facet.name
    where = "a module, and name it with --handlers" if handlers is None else handlers
    return CommandError(
        "\n       ".join(lines), help=f'put `@app.handler("{first}")` before a function in {where}'
    )
