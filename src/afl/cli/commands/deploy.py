"""`afl deploy`."""

from __future__ import annotations

import click

from afl.cli import exit_codes
from afl.cli.framework import Command
from afl.cli.reports import Format, render, say_diagnostics
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, json_option
from afl.cli.running.workflows import example_inputs
from afl.cli.sources import read_inputs
from afl.cli.terminal import Terminal, count
from afl.ir.model import Program
from afl.lang.api import compile_files


@click.command("deploy", cls=Command)
@click.argument("paths", nargs=-1)
@click.option(
    "--name", default="default", show_default=True, metavar="NAME", help="Deploy it as this."
)
@database_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[str, ...], name: str, database: str | None, as_json: bool
) -> None:
    """Make AFL sources the program that new runs use.

    PATHS are files, folders to search for .afl files, or - for standard input; without any, the
    current folder is searched. The program is checked, and kept by its hash, which is printed. Runs
    that have begun keep the program that they began with.
    """
    terminal = ctx.ensure_object(Terminal)
    inputs = read_inputs(paths)
    compilation = compile_files([each.parse() for each in inputs])
    if not as_json and compilation.diagnostics:
        say_diagnostics(compilation.diagnostics, len(inputs), terminal)
    program = compilation.program
    if program is None:
        if as_json:
            terminal.data(render(compilation.diagnostics, Format.JSON, terminal))
        ctx.exit(exit_codes.FAILED)
    with opened(database) as operations:
        before = operations.persistence.deployed(name)
        digest = operations.evaluator.plans.add(program)
        operations.persistence.deploy(name, digest)
    workflows = [facet.name for facet in program.facets if facet.kind == "workflow"]
    if as_json:
        terminal.json(
            {
                "version": 1,
                "name": name,
                "hash": digest,
                "before": before,
                "workflows": workflows,
            }
        )
        return
    terminal.data(f"{digest}\n")
    if before == digest:
        terminal.say(f"this is what is deployed as `{name}` already")
    else:
        instead = "" if before is None else f" instead of {before}"
        terminal.say(f"deployed as `{name}`{instead}: {count(len(workflows), 'workflow')}")
    _say_next(program, name, terminal)


def _say_next(program: Program, name: str, terminal: Terminal) -> None:
    workflow = next((facet for facet in program.facets if facet.kind == "workflow"), None)
    if workflow is not None:
        which = "" if name == "default" else f" --program {name}"
        call = f"afl submit {workflow.name}{example_inputs(workflow)}{which}"
        terminal.help(f"`{call}` starts a run")
