"""`afl graph`."""

from __future__ import annotations

from collections.abc import Callable

import click

from afl.cli import exit_codes
from afl.cli.errors import CommandError
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.graph.dot import to_dot
from afl.cli.graph.json_form import to_json_text
from afl.cli.graph.mermaid import to_mermaid
from afl.cli.graph.model import Graph, build_graph
from afl.cli.graph.svg import to_svg
from afl.cli.graph.text import to_text
from afl.cli.reports import say_diagnostics
from afl.cli.sources import compile_inputs, read_inputs
from afl.cli.terminal import Terminal
from afl.ir.model import Facet, Program
from afl.lang.diagnostics.suggest import nearest

_FORMATS: dict[str, Callable[[Graph], str]] = {
    "text": to_text,
    "mermaid": to_mermaid,
    "dot": to_dot,
    "svg": to_svg,
    "json": to_json_text,
}


@click.command("graph", cls=Command)
@click.argument("paths", nargs=-1)
@click.option("--workflow", "name", metavar="NAME", help="Which one; needed if there are many.")
@click.option("--format", "format_name", type=click.Choice(list(_FORMATS)), help="[default: text]")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    name: str | None,
    format_name: str | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Draw the steps of a workflow.

    PATHS are files, folders to search for .afl files and YAML pipelines, or - for standard input;
    without any, the current folder is searched. Arrows lead from a step to those that wait for it:
    solid ones carry data, dashed ones come from `after`, dotted ones lead to a `catch`.
    """
    terminal = ctx.ensure_object(Terminal)
    if as_json and format_name not in (None, "json"):
        raise click.UsageError(f"--json and --format {format_name} contradict each other.", ctx)
    inputs = read_inputs(paths)
    compilation = compile_inputs(inputs)
    program = compilation.program
    if program is None:
        say_diagnostics(compilation.errors, len(inputs), terminal)
        ctx.exit(exit_codes.FAILED)
    workflow = _choose(program, name, paths)
    write = _FORMATS["json" if as_json else format_name or "text"]
    text = write(build_graph(program, workflow))
    if output is None or output == "-":
        terminal.data(text)
    else:
        write_text(output, text)
        terminal.say(f"wrote {workflow.name} to {output}")


def _choose(program: Program, name: str | None, paths: tuple[str, ...]) -> Facet:
    """The workflow that is meant, by its full or short name, or because it is the only one."""
    workflows = {facet.name: facet for facet in program.facets if facet.kind == "workflow"}
    if not workflows:
        raise CommandError("there is no workflow to draw", help="declare one with `workflow`")
    if name is None:
        if len(workflows) == 1:
            return next(iter(workflows.values()))
        raise CommandError(
            f"there are {len(workflows)} workflows: {', '.join(workflows)}",
            help=f"`{_command_line(paths, next(iter(workflows)))}` draws the first one",
        )
    found = [full for full in workflows if name in (full, full.rpartition(".")[2])]
    if len(found) == 1:
        return workflows[found[0]]
    if found:
        raise CommandError(
            f"'{name}' can be {' or '.join(found)}",
            help=f"`{_command_line(paths, found[0])}` draws the first one",
        )
    guess = nearest(name, [*workflows, *(full.rpartition(".")[2] for full in workflows)])
    raise CommandError(
        f"there is no workflow '{name}'",
        help=f"did you mean `{guess}`?" if guess else f"the workflows are {', '.join(workflows)}",
    )


def _command_line(paths: tuple[str, ...], name: str) -> str:
    return " ".join(["afl graph", *paths, "--workflow", name])
