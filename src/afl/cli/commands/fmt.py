"""`afl fmt`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

import click

from afl.cli import exit_codes
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.reports import say_diagnostics
from afl.cli.sources import STDIN, STDIN_NAME, Input, read_afl_inputs
from afl.cli.terminal import Terminal, count
from afl.lang.diagnostics.display import safe, without_surrogates
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.render_json import to_json
from afl.lang.formatter import format_file


@dataclass(frozen=True, slots=True)
class _Formatted:
    """A file and its text in the one style; None if syntax errors stand in the way."""

    input: Input
    text: str | None
    errors: tuple[Diagnostic, ...] = ()

    @property
    def changed(self) -> bool:
        return self.text is not None and self.text != self.input.text

    @property
    def status(self) -> str:
        return "failed" if self.text is None else "changed" if self.changed else "unchanged"


@click.command("fmt", cls=Command)
@click.argument("paths", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; list what would change and fail.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print what happened as a JSON object.")
@click.option(
    "--stdin-filename", metavar="NAME", help="The name for standard input in messages and diffs."
)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    check: bool,
    diff: bool,
    as_json: bool,
    stdin_filename: str | None,
) -> None:
    """Lay out AFL sources in the one style.

    PATHS are files, folders to search for .afl files, or - to format standard input to standard
    output; without any, the current folder is searched. A file with syntax errors stays as it is.
    """
    terminal = ctx.ensure_object(Terminal)
    if as_json and diff:
        raise click.UsageError("--json and --diff contradict each other.", ctx)
    if stdin_filename is not None and not paths:
        paths = (STDIN,)
    if as_json and STDIN in paths and not check:
        raise click.UsageError("--json with standard input needs --check.", ctx)
    results = [
        _format(each) for each in read_afl_inputs(paths, stdin_name=stdin_filename or STDIN_NAME)
    ]
    if diff:
        terminal.data("".join(line for result in results for line in _diff(result)))
    if not check and not diff:
        _write(results, terminal)
    elif check and not diff and not as_json:
        terminal.data("".join(f"{safe(each.input.name)}\n" for each in results if each.changed))
    if as_json:
        terminal.json(_to_json(results))
    else:
        _say(results, writes=not check and not diff, terminal=terminal)
    failed = any(result.text is None for result in results)
    if failed or (check and any(result.changed for result in results)):
        ctx.exit(exit_codes.FAILED)


def _format(input: Input) -> _Formatted:
    file = input.parse()
    errors = tuple(diagnostic for diagnostic in file.diagnostics if diagnostic.is_error)
    return _Formatted(input, None, errors) if errors else _Formatted(input, format_file(file))


def _write(results: Sequence[_Formatted], terminal: Terminal) -> None:
    for result in results:
        if result.text is None:
            continue
        if result.input.path is None:
            terminal.data(result.text)
        elif result.changed:
            write_text(result.input.path, result.text)
            terminal.say(f"formatted {safe(result.input.name)}")


def _diff(result: _Formatted) -> Iterator[str]:
    if result.text is None:
        return
    name = safe(result.input.name)
    before = result.input.text.splitlines(keepends=True)
    after = result.text.splitlines(keepends=True)
    for line in unified_diff(before, after, name, f"{name} (formatted)"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _say(results: Sequence[_Formatted], *, writes: bool, terminal: Terminal) -> None:
    errors = [error for result in results for error in result.errors]
    if errors:
        say_diagnostics(errors, len(results), terminal)
    if all(result.input.path is None for result in results):
        return
    changed = sum(result.changed for result in results)
    unchanged = sum(result.status == "unchanged" for result in results)
    parts = [f"{count(changed, 'file')} {'formatted' if writes else 'would be formatted'}"]
    if unchanged:
        parts.append(f"{unchanged} unchanged")
    terminal.say(", ".join(parts))


def _to_json(results: Sequence[_Formatted]) -> dict[str, object]:
    errors = [error for result in results for error in result.errors]
    return {
        "version": 1,
        "files": [
            {"file": without_surrogates(each.input.name), "status": each.status} for each in results
        ],
        "diagnostics": to_json(errors)["diagnostics"],
    }
