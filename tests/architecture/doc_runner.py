"""Runs the code of one documentation page, block after block, in one directory of its own.

    python          runs; the blocks of a page share their names, as if typed into one session
    console, sh     each line that starts with `$ ` runs in bash; the lines under it must be what it
                    prints (a line `...` stands for any lines); if there are none, it must succeed
    afl             must check clean; `afl wrong` must have a finding, and every code that follows
                    must be among them; `afl fragment` is not checked
    json, toml      must parse
    mermaid         must say which kind of diagram it is
    text            is free

A comment `<!-- file: NAME -->` just before a block writes it to NAME first. AFL blocks that are
files of one folder are checked together, as the compiler would see them. `no-run` and a reason in
the info string leaves a block out. Any other language is a mistake.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.architecture.markdown import Block, blocks
from tests.architecture.repository import ROOT

_SENTINEL = "--- end of command ---"
_TIMEOUT_SECONDS = 60
_DIAGRAMS = ("erDiagram", "flowchart", "sequenceDiagram", "stateDiagram-v2")


class BlockError(Exception):
    """A block does not do what the page says."""


@dataclass(slots=True)
class Page:
    """A page that is being run."""

    name: str
    folder: Path
    cwd: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    output: tuple[str, ...]


def run_page(name: str, text: str, folder: Path) -> list[str]:
    """What is wrong with the code of a page, as `page:line: what`. The folder must be empty."""
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    page = Page(name, folder, folder)
    problems = []
    for block in blocks(text):
        try:
            run_block(page, block)
        except BlockError as error:
            problems.append(f"{name}:{block.line}: {error}")
    return problems


def run_block(page: Page, block: Block) -> None:
    if block.file:
        path = page.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    if "no-run" in block.words:
        if block.words[-1] == "no-run":
            raise BlockError("`no-run` needs a reason after it")
        return
    if block.language not in _RUNNERS:
        known = ", ".join(_RUNNERS)
        raise BlockError(f"'{block.language}' is not a language of these docs; use one of {known}")
    _RUNNERS[block.language](page, block)


def _run_python(page: Page, block: Block) -> None:
    # The empty lines put the lines of a traceback where they stand on the page.
    source = "\n" * block.line + block.text
    before = Path.cwd()
    os.chdir(page.cwd)
    try:
        code = compile(source, page.name, "exec", dont_inherit=True)
        exec(code, page.names)  # noqa: S102 - running the page is the point
    except Exception as error:
        raise BlockError(f"the Python code raises {type(error).__name__}: {error}") from error
    finally:
        os.chdir(before)


def _run_console(page: Page, block: Block) -> None:
    commands = list(_commands(block.text))
    mark = f'__status=$?; printf "\\n{_SENTINEL} %s %s\\n" "$__status" "$PWD"; (exit "$__status")'
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{command.text}\n{mark}" for command in commands)],
        cwd=page.cwd,
        env=_environment(page.folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    results = re.findall(rf"(.*?)\n{_SENTINEL} (\d+) ([^\n]*)\n", done.stdout, re.DOTALL)
    if len(results) != len(commands):
        raise BlockError(f"the shell stopped early; it printed\n{done.stdout}")
    for command, (output, status, cwd) in zip(commands, results, strict=True):
        page.cwd = Path(cwd)
        _judge(command, output, int(status))


def _commands(text: str) -> Iterator[Command]:
    """The commands of a block with the output that the page shows under each."""
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        if not lines[position].startswith("$ "):
            raise BlockError(f"'{lines[position]}' is no command; commands start with '$ '")
        command = [lines[position].removeprefix("$ ")]
        while command[-1].endswith("\\") and position + 1 < len(lines):
            position += 1
            command.append(lines[position])
        position += 1
        start = position
        while position < len(lines) and not lines[position].startswith("$ "):
            position += 1
        yield Command("\n".join(command), tuple(lines[start:position]))


def _judge(command: Command, output: str, status: int) -> None:
    shown = "\n".join(line.rstrip() for line in command.output).strip("\n")
    real = "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")
    if not shown:
        if status != 0:
            raise BlockError(f"'{command.text}' ends with status {status} and prints\n{real}")
        return
    parts = (
        r"(?:.*\n)*?" if line == "..." else re.escape(f"{line}\n") for line in shown.split("\n")
    )
    if not re.fullmatch("".join(parts), f"{real}\n"):
        raise BlockError(f"'{command.text}' prints\n{real}\nbut the page shows\n{shown}")


def _environment(folder: Path) -> dict[str, str]:
    """A plain terminal: this environment's commands first, and none of the developer's settings."""
    scripts = str(Path(sys.executable).parent)
    return {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }


def _check_afl(page: Page, block: Block) -> None:
    if "fragment" in block.words:
        return
    from afl.lang.api import compile_sources  # noqa: PLC0415 - pages without AFL need no compiler

    name = block.file or f"{PurePosixPath(page.name).stem}.afl"
    neighbours = {
        other: text
        for other, text in page.programs.items()
        if block.file and PurePosixPath(other).parent == PurePosixPath(name).parent
    }
    sources = {**neighbours, name: block.text}
    diagnostics = compile_sources(list(sources.items())).diagnostics
    codes = [diagnostic.code for diagnostic in diagnostics]
    if block.words[:1] == ("wrong",):
        missing = [code for code in block.words[1:] if code not in codes]
        if missing or not codes:
            raise BlockError(f"the program should have {missing or 'a finding'}, but has {codes}")
        return
    if codes:
        found = ", ".join(f"{each.severity} {each.code}" for each in diagnostics)
        raise BlockError(f"the program does not check clean: {found}")
    if block.file:
        page.programs[name] = block.text


def _parse_json(_page: Page, block: Block) -> None:
    try:
        json.loads(block.text)
    except json.JSONDecodeError as error:
        raise BlockError(f"the JSON does not parse: {error}") from error


def _parse_toml(_page: Page, block: Block) -> None:
    try:
        tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        raise BlockError(f"the TOML does not parse: {error}") from error


def _check_mermaid(_page: Page, block: Block) -> None:
    kind = block.text.split(maxsplit=1)[:1]
    if kind not in [[known] for known in _DIAGRAMS]:
        raise BlockError(f"a diagram starts with its kind, one of {', '.join(_DIAGRAMS)}")


def _accept(_page: Page, _block: Block) -> None:
    """Free text has nothing to run."""


_RUNNERS: dict[str, Callable[[Page, Block], None]] = {
    "afl": _check_afl,
    "console": _run_console,
    "json": _parse_json,
    "mermaid": _check_mermaid,
    "python": _run_python,
    "sh": _run_console,
    "text": _accept,
    "toml": _parse_toml,
}
