"""`afl compile`."""

from __future__ import annotations

import json

import click

from afl.cli import exit_codes
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.reports import Format, render, say_diagnostics
from afl.cli.sources import compile_inputs, read_inputs
from afl.cli.terminal import Terminal, count
from afl.ir.codec import dumps, encode
from afl.ir.digest import program_hash
from afl.ir.model import Program
from afl.lang.api import Compilation


@click.command("compile", cls=Command)
@click.argument("paths", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print diagnostics, or with -o a summary, as a JSON object.",
)
@click.option("--pretty", is_flag=True, help="Indent the program for reading.")
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[str, ...], output: str | None, as_json: bool, pretty: bool
) -> None:
    """Turn AFL sources into a program.

    PATHS are files, folders to search for .afl files and YAML pipelines, or - for standard input;
    without any, the current folder is searched. The program is JSON, named by a hash of what it
    does.
    """
    terminal = ctx.ensure_object(Terminal)
    inputs = read_inputs(paths)
    compilation = compile_inputs(inputs)
    if not as_json and compilation.diagnostics:
        say_diagnostics(compilation.diagnostics, len(inputs), terminal)
    program = compilation.program
    if program is None:
        if as_json:
            terminal.data(render(compilation.diagnostics, Format.JSON, terminal))
        ctx.exit(exit_codes.FAILED)
    text = _text(program, pretty)
    if output is None or output == "-":
        terminal.data(text)
    else:
        write_text(output, text)
        if as_json:
            terminal.json(_summary(program, compilation, output))
    if not as_json:
        _say(program, paths, terminal)


def _text(program: Program, pretty: bool) -> str:
    if not pretty:
        return f"{dumps(program)}\n"
    return json.dumps(encode(program), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _counts(program: Program) -> dict[str, int]:
    kinds = [facet.kind for facet in program.facets]
    return {
        "workflows": kinds.count("workflow"),
        "event_facets": kinds.count("event"),
        "facets": kinds.count("facet"),
        "schemas": len(program.schemas),
        "enums": len(program.enums),
        "schedules": len(program.schedules),
    }


def _summary(program: Program, compilation: Compilation, output: str) -> dict[str, object]:
    return {
        "version": 1,
        "hash": program_hash(program),
        "output": output,
        "files": [file.source.name for file in compilation.files],
        "declarations": _counts(program),
        "warnings": len(compilation.warnings),
    }


def _say(program: Program, paths: tuple[str, ...], terminal: Terminal) -> None:
    counts = [
        count(number, name.replace("_", " ").removesuffix("s"))
        for name, number in _counts(program).items()
        if number
    ]
    terminal.say(f"{program_hash(program)}: {', '.join(counts) or 'no declarations'}")
    workflow = next((facet.name for facet in program.facets if facet.kind == "workflow"), None)
    if workflow is not None and "-" not in paths:
        call = " ".join(["afl graph", *paths, "--workflow", workflow])
        terminal.help(f"`{call}` draws its steps")
