"""`afl check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from afl.cli import exit_codes
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.reports import Format, render, say_summary
from afl.cli.sources import Input, compile_inputs, read_inputs
from afl.cli.terminal import Terminal, count
from afl.lang.api import Compilation
from afl.lang.diagnostics.edits import apply_safe

#: Mending one mistake may uncover the next; a program that needs more rounds is not getting better.
_MAX_ROUNDS = 10


@click.command("check", cls=Command)
@click.argument("paths", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([format.value for format in Format]),
    help="How to write what was found.  [default: full]",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended safely, in the files.")
@click.option(
    "--warnings-as-errors", "--strict", "strict", is_flag=True, help="Fail on warnings too."
)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    format_name: str | None,
    fix: bool,
    strict: bool,
) -> None:
    """Find mistakes in AFL sources.

    PATHS are files, folders to search for .afl files and YAML pipelines, or - for standard input;
    without any, the current folder is searched. All of them are checked together, as one program.
    """
    terminal = ctx.ensure_object(Terminal)
    format = _format(as_json, format_name)
    if fix and "-" in paths:
        raise click.UsageError("--fix needs files, and standard input is none.", ctx)
    inputs = read_inputs(paths)
    compilation = compile_inputs(inputs)
    if fix:
        inputs, compilation, fixed = _fix(inputs, compilation)
        terminal.say(f"fixed {count(fixed, 'problem')}")
    terminal.data(render(compilation.diagnostics, format, terminal))
    if not format.for_machines:
        if compilation.diagnostics and format is Format.FULL:
            terminal.say("")
        say_summary(compilation.diagnostics, len(inputs), terminal)
    if compilation.errors or (strict and compilation.diagnostics):
        ctx.exit(exit_codes.FAILED)


def _format(as_json: bool, name: str | None) -> Format:
    if as_json and name not in (None, Format.JSON):
        raise click.UsageError(f"--json and --format {name} contradict each other.")
    return Format.JSON if as_json else Format(name or Format.FULL)


def _fix(inputs: Sequence[Input], compilation: Compilation) -> tuple[list[Input], Compilation, int]:
    """Apply safe suggestions until there are none left, then write the files that changed."""
    texts = [each.text for each in inputs]
    current = list(inputs)
    total = 0
    for _ in range(_MAX_ROUNDS):
        fixed = 0
        for position, file in enumerate(compilation.files):
            text, applied = apply_safe(file.source, compilation.diagnostics)
            if applied:
                old = current[position]
                current[position] = replace(old, text=text)
                fixed += applied
        if not fixed:
            break
        total += fixed
        compilation = compile_inputs(current)
    for before, each in zip(texts, current, strict=True):
        if each.text != before and each.path is not None:
            write_text(each.path, each.text)
    return current, compilation, total
