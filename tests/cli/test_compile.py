"""`afl compile`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afl.cli import exit_codes
from afl.ir.codec import loads
from afl.ir.digest import program_hash
from tests.cli.programs import EVERYTHING, GOOD, UNKNOWN_TYPE, WARNING
from tests.cli.runner import run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.afl"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_the_program_goes_to_standard_output(file: Path) -> None:
    result = run("compile", file)
    assert result.exit_code == exit_codes.OK
    assert result.stdout.count("\n") == 1
    program = loads(result.stdout)
    assert [facet.name for facet in program.facets] == ["demo.Greet", "demo.Hello"]
    assert result.stderr == (
        f"{program_hash(program)}: 1 workflow, 1 event facet\n"
        f"help: `afl graph {file} --workflow demo.Hello` draws its steps\n"
    )


def test_pretty_is_the_same_program(file: Path) -> None:
    plain, pretty = run("compile", file), run("compile", "--pretty", file)
    assert pretty.stdout.count("\n") > 10
    assert json.loads(pretty.stdout) == json.loads(plain.stdout)
    assert loads(pretty.stdout) == loads(plain.stdout)


def test_the_program_goes_to_a_file(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "program.json"
    result = run("compile", file, "-o", output)
    assert result.exit_code == exit_codes.OK
    assert result.stdout == ""
    assert output.read_text(encoding="utf-8") == run("compile", file).stdout


def test_a_file_that_cannot_be_written(file: Path, tmp_path: Path) -> None:
    result = run("compile", file, "-o", tmp_path / "missing" / "program.json")
    assert result.exit_code == exit_codes.UNREADABLE
    assert "error: cannot write" in result.stderr


def test_json_with_a_file_is_a_summary(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "program.json"
    result = run("compile", file, "-o", output, "--json")
    assert result.stderr == ""
    data = json.loads(result.stdout)
    assert data["hash"] == json.loads(output.read_text(encoding="utf-8"))["hash"]
    assert data["output"] == str(output)
    assert data["files"] == [str(file)]
    assert data["declarations"]["workflows"] == 1
    assert data["declarations"]["event_facets"] == 1


def test_errors_leave_standard_output_empty(file: Path, tmp_path: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    output = tmp_path / "program.json"
    result = run("compile", file, "-o", output)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout == ""
    assert "error[AFL1007]" in result.stderr
    assert "1 error in 1 file" in result.stderr
    assert not output.exists()


def test_errors_as_json(file: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = run("compile", file, "--json")
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == ""
    assert json.loads(result.stdout)["diagnostics"][0]["code"] == "AFL1007"


def test_warnings_are_told_but_do_not_stop(file: Path) -> None:
    file.write_text(WARNING, encoding="utf-8")
    result = run("compile", file)
    assert result.exit_code == exit_codes.OK
    assert "warning[AFL1002]" in result.stderr
    assert loads(result.stdout).schemas[0].name == "other.Thing"


def test_standard_input() -> None:
    result = run("compile", "-", input=EVERYTHING)
    assert result.exit_code == exit_codes.OK
    assert "2 workflows, 4 event facets, 2 facets, 1 schema, 1 enum, 2 schedules" in result.stderr
    assert "help:" not in result.stderr


def test_an_empty_program() -> None:
    result = run("compile", "-", input="namespace demo {}\n")
    assert result.exit_code == exit_codes.OK
    assert result.stderr.endswith(": no declarations\n")
