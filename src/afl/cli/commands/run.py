"""`afl run`: a workflow in this process, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from afl.app.app import App
from afl.app.services import Services, connect
from afl.app.serving import AppWorker
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
from afl.cli.running.serving import Need, is_for_a_person, lists_of, load_app, missing_from
from afl.cli.running.workflows import choose, read_values
from afl.cli.sources import read_inputs
from afl.cli.terminal import Terminal
from afl.ir.model import Program
from afl.kernel.model import Json
from afl.lang.api import compile_files
from afl.lang.diagnostics.suggest import nearest
from afl.runtime.handler_table import HandlerTable
from afl.runtime.states import RunState
from afl.runtime.worker import WorkerConfig

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
    "--slots", type=click.IntRange(min=1), default=8, metavar="N", help="How many at once."
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
    slots: int,
    timeout: timedelta | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run a workflow here and now, without a database.

    FLOW is a file, a folder to search for .afl files, or - for standard input. WORKFLOW is its full
    or short name; it is not needed if there is only one. The outputs are printed as JSON. What
    handlers print goes to standard error. Nothing is kept.
    """
    terminal = ctx.ensure_object(Terminal)
    program = _compile(ctx, flow, as_json=as_json)
    facet = choose(program, workflow)
    values = read_values(facet, pairs, inputs_file)
    with terminal.others_talk():
        app = None if handlers is None else load_app(handlers)
    missing = missing_from(app, program, facet.name)
    if missing:
        raise _missing(missing, app, handlers)
    view = view_for(terminal, quiet=as_json)
    with refusals(), connect("memory:") as services:
        local = _Local(services, program, app, slots)
        with terminal.others_talk(), shown_logs("info" if verbose else None):
            ending = local.run(facet.name, values, view, timeout, terminal)
    _finish(ctx, ending, as_json=as_json)


def _compile(ctx: click.Context, flow: str, *, as_json: bool) -> Program:
    terminal = ctx.ensure_object(Terminal)
    inputs = read_inputs([flow])
    compilation = compile_files([each.parse() for each in inputs])
    if not as_json and compilation.diagnostics:
        say_diagnostics(compilation.diagnostics, len(inputs), terminal)
    if compilation.program is None:
        if as_json:
            terminal.data(render(compilation.diagnostics, Format.JSON, terminal))
        ctx.exit(exit_codes.FAILED)
    return compilation.program


class _Local:
    """A store, a worker and a program, for one run."""

    def __init__(self, services: Services, program: Program, app: App | None, slots: int) -> None:
        self._services = services
        plans = services.evaluator.plans
        self._program = plans.add(program)
        table = HandlerTable() if app is None else app.table(plans.get(self._program), plans)
        name = "afl-run" if app is None else app.name
        lists = lists_of(program)
        config = WorkerConfig(slots=slots, lists=lists, group=name, service=name)
        self._worker = AppWorker(services, table, config)

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
        try:
            self._worker.start()
            found = follow(operations, run.id, view, timeout=timeout, poll=LOCAL)
            if found.state == RunState.COMPLETED:
                patience = _DRAIN
        except KeyboardInterrupt:
            operations.cancel(run.id, force=True, reason="It was interrupted.")
            terminal.say("the run was canceled")
            raise
        finally:
            self._worker.stop(patience)
        return ending_of(operations, found)


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
    first = needs[0].facet.name
    where = "a module, and name it with --handlers" if handlers is None else handlers
    return CommandError(
        "\n       ".join(lines), help=f'put `@app.handler("{first}")` before a function in {where}'
    )
