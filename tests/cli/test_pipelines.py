"""Commands on YAML pipelines: alone, in folders, and beside AFL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afl.app.compiling import compile_program
from afl.app.errors import BadProgram
from afl.cli import exit_codes
from tests.cli.programs import GOOD
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.pipelines.compiled import pipeline

TWO = pipeline({"fetch": [], "load": ["fetch"]})
BAD = TWO.replace("depends", "dependencies")
HANDLERS = """\
from datetime import timedelta

import afl

app = afl.App("commands")


@app.handler("afl.exec.Command")
def command(argv, **_others):
    if argv[1] == "bad":
        raise afl.Permanent("exit code 1")
    zeros = {name: 0 for name in ("exit_code", "stdout_cut", "stderr_cut", "max_rss")}
    times = {"duration": timedelta(0), "cpu": timedelta(0)}
    return {**zeros, **times, "signal": None, "stdout": "", "stderr": "", "artifacts": []}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pipelines in folders, AFL, and YAML that is something else."""
    (tmp_path / "etl").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "etl" / "daily.yml").write_text(TWO, encoding="utf-8")
    (tmp_path / "hello.afl").write_text(GOOD, encoding="utf-8")
    (tmp_path / "compose.yaml").write_text("services: {a: {image: b}}\n", encoding="utf-8")
    (tmp_path / "Taskfile.yml").write_text("version: '3'\ntasks: {a: {cmds: [b]}}\n", "utf-8")
    (tmp_path / ".hidden" / "x.yaml").write_text(BAD, encoding="utf-8")
    return tmp_path


def test_a_folder_is_searched_for_pipelines_and_afl(folder: Path) -> None:
    result = run("check", folder)
    assert (result.exit_code, result.stderr) == (exit_codes.OK, "no problems in 2 files\n")
    compiled = run("compile", folder)
    facets = json.loads(compiled.stdout)["program"]["facets"]
    workflows = [facet["name"] for facet in facets if facet["kind"] == "workflow"]
    assert workflows == ["demo.Hello", "etl.daily"]


def test_a_file_that_is_named_is_a_pipeline_whatever_it_looks_like(folder: Path) -> None:
    result = run("check", folder / "compose.yaml", "--format", "concise")
    assert result.exit_code == exit_codes.FAILED
    assert "compose.yaml:1:1: error[AFL5002] a pipeline has no key `services`" in result.stdout


def test_a_pipeline_that_is_named_has_the_name_of_its_file(folder: Path) -> None:
    drawn = run("graph", folder / "etl" / "daily.yml")
    assert drawn.stdout.startswith("workflow daily\n")
    assert "load   event  afl.exec.Command  after fetch" in drawn.stdout


@pytest.mark.parametrize("format", ["mermaid", "dot", "svg", "json"])
def test_a_pipeline_can_be_drawn(folder: Path, format: str) -> None:
    drawn = run("graph", folder, "--workflow", "daily", "--format", format)
    assert drawn.exit_code == exit_codes.OK
    assert "fetch" in drawn.stdout


def test_a_mistake_is_shown_like_one_of_afl(tmp_path: Path) -> None:
    (tmp_path / "daily.yaml").write_text(BAD, encoding="utf-8")
    result = run("check", tmp_path / "daily.yaml")
    assert result.exit_code == exit_codes.FAILED
    assert "error[AFL5002]: the task `load` has no key `dependencies`" in result.stdout
    assert "10 |     dependencies: [fetch]" in result.stdout
    assert "= help: here it is called `depends`" in result.stdout
    told = run("check", tmp_path / "daily.yaml", "--json")
    validate(told.stdout, "diagnostics")
    assert json.loads(told.stdout)["diagnostics"][0]["range"]["start"]["line"] == 10


def test_numbers_are_put_into_quotes(tmp_path: Path) -> None:
    path = tmp_path / "daily.yaml"
    path.write_text(TWO.replace("[fetch]\n  load", "[1, true]\n  load"), encoding="utf-8")
    result = run("check", path, "--fix")
    assert (result.exit_code, result.stderr) == (
        exit_codes.OK,
        "fixed 2 problems\nno problems in 1 file\n",
    )
    assert '      args: ["1", "true"]\n' in path.read_text(encoding="utf-8")


def test_a_pipeline_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "daily.yaml"
    path.write_bytes(TWO.replace("Tasks", "täglich").encode("latin-1"))
    result = run("check", path)
    assert result.exit_code == exit_codes.FAILED
    assert "error[AFL0001]" in result.stdout


def test_fmt_and_doc_are_for_afl(folder: Path) -> None:
    for name in ("fmt", "doc"):
        result = run(name, folder / "etl" / "daily.yml")
        assert result.exit_code == exit_codes.UNREADABLE
        assert "is a pipeline, and this command reads AFL" in result.stderr
        assert run(name, folder).exit_code == exit_codes.OK


def test_a_pipeline_runs_with_handlers_for_commands(tmp_path: Path) -> None:
    (tmp_path / "daily.yaml").write_text(TWO, encoding="utf-8")
    (tmp_path / "commands.py").write_text(HANDLERS, encoding="utf-8")
    result = run("run", tmp_path / "daily.yaml", "--handlers", tmp_path / "commands.py")
    assert (result.exit_code, result.stdout) == (exit_codes.OK, "{}\n"), result.stderr
    assert "✓ load afl.exec.Command done" in result.stderr


def test_a_failure_names_the_line_of_the_pipeline(tmp_path: Path) -> None:
    text = pipeline({"bad": [], "load": ["bad"], "other": []})
    (tmp_path / "daily.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "commands.py").write_text(HANDLERS, encoding="utf-8")
    result = run("run", tmp_path / "daily.yaml", "--handlers", tmp_path / "commands.py")
    assert result.exit_code == exit_codes.RUN_FAILED
    assert "✓ other afl.exec.Command done" in result.stderr
    assert "- load afl.exec.Command skipped because of 0/bad" in result.stderr
    assert "daily.yaml:3:3" in result.stderr


def test_the_sdk_reads_pipelines_too(folder: Path) -> None:
    program = compile_program(folder)
    assert {"demo.Hello", "etl.daily"} <= {facet.name for facet in program.facets}
    (folder / "etl" / "daily.yml").write_text(BAD, encoding="utf-8")
    with pytest.raises(BadProgram, match="AFL5002"):
        compile_program(folder)
    assert compile_program(folder / "hello.afl").schedules == ()


COMMANDS = """\
name: Commands
tasks:
  make:
    name: Make
    config: !Subprocess {cmd: sh, args: [-c, "echo made; exit 3"]}
  use:
    name: Use
    depends: [make]
    config: !Subprocess {cmd: echo, args: [never]}
  other:
    name: Other
    config: !Subprocess {cmd: printf, args: ["%s|", $HOME, "*"]}
"""


def test_commands_are_run_if_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "commands.yaml").write_text(COMMANDS, encoding="utf-8")
    refused = run("run", tmp_path / "commands.yaml")
    assert refused.exit_code == exit_codes.FAILED
    assert "no handler serves afl.exec.Command that commands/0/make" in refused.stderr
    assert "help: `--exec` runs the commands of a flow that you trust\n" in refused.stderr
    result = run("run", tmp_path / "commands.yaml", "--exec")
    assert result.exit_code == exit_codes.RUN_FAILED
    assert "make: made\n" in result.stderr
    assert "other: $HOME|*|\n" in result.stderr, "there is no shell"
    assert "✗ make afl.exec.Command failed afl.exec.ExitCode" in result.stderr
    assert "- use afl.exec.Command skipped because of 0/make" in result.stderr
