"""Runs the code of one documentation page, block after block, in one directory of its own.

    python          runs; the blocks of a page share their names, as if typed into one session
    console, sh     each line that starts with `$ ` is typed into bash, one session for a page; the
                    lines under it must be what it prints (a line `...` stands for any lines, and
                    `…` for anything in a line); if there are none, it must succeed
    afl, yaml       must check clean, YAML as a pipeline; `afl wrong` must have a finding, and every
                    code that follows must be among them; `afl fragment` is not checked
    json, toml      must parse
    mermaid         must say which kind of diagram it is
    text            is free

A comment `<!-- file: NAME -->` just before a block writes it to NAME first. AFL blocks that are
files of one folder are checked together, as the compiler would see them. `no-run` and a reason in
the info string leaves a block out. Any other language is a mistake.

A comment `<!-- database -->` gives the page an empty PostgreSQL database of its own, as
AFL_DATABASE_URL, `<!-- mongodb -->` one of a MongoDB under the same name, and `<!-- redis -->` an
empty Redis of its own, as AFL_REDIS_URL. What a page leaves running in the background is killed at
its end; it must print to a file, such as `afl worker > worker.log 2>&1 &`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, TemporaryDirectory

from psycopg.conninfo import conninfo_to_dict

from afl.lang.diagnostics.model import Diagnostic
from tests.architecture.markdown import Block, blocks
from tests.architecture.repository import ROOT
from tests.architecture.shell import Ended, Shell, ShellEnded
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.messaging.redis_servers import server

_TIMEOUT_SECONDS = 90
_DATABASE = re.compile(r"^<!-- database -->$", re.MULTILINE)
_MONGODB = re.compile(r"^<!-- mongodb -->$", re.MULTILINE)
_REDIS = re.compile(r"^<!-- redis -->$", re.MULTILINE)
_URLS = ("AFL_DATABASE_URL", "AFL_REDIS_URL")
_DIAGRAMS = ("erDiagram", "flowchart", "sequenceDiagram", "stateDiagram-v2")


class BlockError(Exception):
    """A block does not do what the page says."""


@dataclass(slots=True)
class Page:
    """A page that is being run."""

    name: str
    folder: Path
    cwd: Path
    environment: Mapping[str, str]
    shell: Shell
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    output: tuple[str, ...]


def needs_database(text: str) -> bool:
    """Whether a page asks for a database."""
    return _DATABASE.search(text) is not None


def needs_mongodb(text: str) -> bool:
    """Whether a page asks for a database of a MongoDB."""
    return _MONGODB.search(text) is not None


def needs_redis(text: str) -> bool:
    """Whether a page asks for a Redis."""
    return _REDIS.search(text) is not None


def missing_server(text: str) -> str | None:
    """What a page asks for and this machine does not have."""
    if needs_database(text) and not server_is_there():
        return "there is no PostgreSQL"
    if needs_mongodb(text) and not mongo.server_is_there():
        return "there is no MongoDB"
    if needs_redis(text) and shutil.which("redis-server") is None:
        return "there is no redis-server to start"
    return None


def run_page(name: str, text: str, folder: Path) -> list[str]:
    """What is wrong with the code of a page, as `page:line: what`. The folder must be empty."""
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    problems = []
    with _opened(name, text, folder) as page:
        for block in blocks(text):
            try:
                run_block(page, block)
            except BlockError as error:
                problems.append(f"{name}:{block.line}: {error}")
            except ShellEnded as error:
                return [*problems, f"{name}:{block.line}: {error}"]
    return problems


@contextmanager
def _opened(name: str, text: str, folder: Path) -> Iterator[Page]:
    """A page with its session, and the servers that it wants."""
    with ExitStack() as stack:
        environment = _environment(folder)
        if needs_database(text):
            parts = conninfo_to_dict(stack.enter_context(empty_database()))
            url = f"postgresql://{parts['host']}/{parts['dbname']}"
            environment["AFL_DATABASE_URL"] = url
        if needs_mongodb(text):
            environment["AFL_DATABASE_URL"] = stack.enter_context(mongo.empty_database())
        if needs_redis(text):
            place = Path(stack.enter_context(TemporaryDirectory()))
            environment["AFL_REDIS_URL"] = stack.enter_context(server(place)).url
        printed = Path(stack.enter_context(NamedTemporaryFile()).name)
        shell = stack.enter_context(closing(Shell(folder, environment, printed)))
        yield Page(name, folder, folder, environment, shell)


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
    with ExitStack() as stack:
        stack.callback(os.chdir, before)
        for name in _URLS:
            if name in page.environment:
                os.environ[name] = page.environment[name]
                stack.callback(os.environ.pop, name)
        try:
            code = compile(source, page.name, "exec", dont_inherit=True)
            exec(code, page.names)  # noqa: S102 - running the page is the point
        except Exception as error:
            raise BlockError(f"the Python code raises {type(error).__name__}: {error}") from error


def _run_console(page: Page, block: Block) -> None:
    for command in _commands(block.text):
        try:
            ended = page.shell.run(command.text, _TIMEOUT_SECONDS)
        except ShellEnded as error:
            raise ShellEnded(f"'{command.text}' {error}") from error
        page.cwd = ended.cwd
        _judge(command, ended)


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


def _judge(command: Command, ended: Ended) -> None:
    shown = "\n".join(line.rstrip() for line in command.output).strip("\n")
    real = "\n".join(line.rstrip() for line in ended.output.splitlines()).strip("\n")
    if not shown:
        if ended.status != 0:
            raise BlockError(f"'{command.text}' ends with status {ended.status} and prints\n{real}")
        return
    parts = (
        r"(?:.*\n)*?" if line == "..." else f"{re.escape(line).replace('…', '.*')}\n"
        for line in shown.split("\n")
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
    _judge_findings(block, diagnostics)
    if block.file and block.words[:1] != ("wrong",):
        page.programs[name] = block.text


def _check_yaml(page: Page, block: Block) -> None:
    if "fragment" in block.words:
        return
    # pages without pipelines need no compiler
    from afl.app.front_ends import read_pipeline, workflow_of  # noqa: PLC0415
    from afl.lang.source import Source  # noqa: PLC0415

    name = block.file or f"{PurePosixPath(page.name).stem}.yaml"
    file = read_pipeline(Source(name, block.text), workflow_of(PurePosixPath(name)))
    _judge_findings(block, file.diagnostics)


def _judge_findings(block: Block, diagnostics: Sequence[Diagnostic]) -> None:
    codes = [diagnostic.code for diagnostic in diagnostics]
    if block.words[:1] == ("wrong",):
        missing = [code for code in block.words[1:] if code not in codes]
        if missing or not codes:
            raise BlockError(f"the program should have {missing or 'a finding'}, but has {codes}")
        return
    if codes:
        found = ", ".join(f"{each.severity} {each.code}" for each in diagnostics)
        raise BlockError(f"the program does not check clean: {found}")


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
    "yaml": _check_yaml,
}
