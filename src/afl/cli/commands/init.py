"""`afl init`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

import click

from afl.cli.errors import InputError, cannot
from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.terminal import Terminal, count

#: Files that tools would take for code of ours have this after their names.
_SUFFIX = ".tmpl"
_IGNORED = "# The database and the logs of `afl dev`\n.afl/\n\n__pycache__/\n.pytest_cache/\n"


@dataclass(frozen=True, slots=True)
class _Template:
    """A project to begin with: the extra it needs, and a module that comes with that."""

    extra: str | None = None
    module: str = ""


#: The projects to begin with.
TEMPLATES = {
    "hello": _Template(),
    "agent": _Template("agents", "pydantic_ai"),
    "approval": _Template(),
    "pipeline": _Template("pipelines", "yaml"),
}


@click.command("init", cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="hello",
    show_default=True,
    help="What the project shows: the least, a model with a tool, a person who decides, or "
    "commands in YAML.",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def command(terminal: Terminal, folder: str, template: str, force: bool, as_json: bool) -> None:
    """Write a small project to begin with.

    DIR is made if it is not there. The project has a flow, the work in Python, tests and a README.
    """
    texts = {**dict(_read(files("afl") / "templates" / template)), ".gitignore": _IGNORED}
    taken = [name for name in texts if (Path(folder) / name).exists()]
    if taken and not force:
        raise InputError(
            f"{folder} has {', '.join(taken)} already; nothing was written",
            help="name another folder, or write over them with `--force`",
        )
    for name, text in texts.items():
        path = Path(folder) / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot("make the folder", str(path.parent), error) from error
        write_text(str(path), text)
    if as_json:
        terminal.json({"version": 1, "folder": folder, "template": template, "files": list(texts)})
        return
    for name in texts:
        terminal.data(f"{Path(folder) / name}\n")
    terminal.say(f"wrote {count(len(texts), 'file')}: the project `{template}`")
    _say_next(folder, TEMPLATES[template], terminal)


def _read(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """The files of a template by the names that they are to have."""
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        name = above + each.name
        if each.is_dir():
            yield from _read(each, f"{name}/")
        else:
            yield name.removesuffix(_SUFFIX), each.read_text(encoding="utf-8")


def _say_next(folder: str, template: _Template, terminal: Terminal) -> None:
    if template.extra is not None and find_spec(template.module) is None:
        terminal.help(f"it needs an extra: `pip install 'afl-agentflow[{template.extra}]'`")
    if os.path.realpath(folder) != os.getcwd():
        terminal.help(f"`cd {shlex.quote(folder)}` goes there")
    terminal.help("`afl dev` runs it and shows it in the browser; `pytest` tests it")
