"""`afl doc`."""

from __future__ import annotations

import os

import click

from afl.cli import exit_codes
from afl.cli.catalogue.json_form import to_json
from afl.cli.catalogue.markdown import INDEX, to_document, to_pages
from afl.cli.catalogue.model import build_catalogue
from afl.cli.errors import cannot
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.reports import say_diagnostics
from afl.cli.sources import read_afl_inputs
from afl.cli.terminal import Terminal, count
from afl.lang.api import compile_files


@click.command("doc", cls=Command)
@click.argument("paths", nargs=-1)
@click.option(
    "-o", "--output", metavar="DIR", help="Write an index and a page per namespace to a folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print the catalogue as a JSON object.")
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """Write a catalogue of what AFL sources declare.

    The catalogue is Markdown, made of signatures and doc comments: parameters with their types and
    meanings, policies, and who uses what. Without -o all of it goes to standard output.
    """
    terminal = ctx.ensure_object(Terminal)
    if as_json and output is not None:
        raise click.UsageError("--json and -o contradict each other.", ctx)
    inputs = read_afl_inputs(paths)
    compilation = compile_files([each.parse() for each in inputs])
    if compilation.program is None:
        say_diagnostics(compilation.errors, len(inputs), terminal)
        ctx.exit(exit_codes.FAILED)
    catalogue = build_catalogue(compilation.program, compilation.files)
    if as_json:
        terminal.json(to_json(catalogue))
    elif output is None:
        terminal.data(to_document(catalogue))
    else:
        _write(output, to_pages(catalogue), terminal)


def _write(folder: str, pages: dict[str, str], terminal: Terminal) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise cannot("make the folder", folder, error) from error
    for name, text in pages.items():
        write_text(os.path.join(folder, name), text)
    terminal.say(f"wrote {count(len(pages), 'page')} to {folder}; start with {INDEX}")
