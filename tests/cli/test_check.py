"""`afl check`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from afl.cli import exit_codes
from tests.architecture.repository import ROOT
from tests.cli.programs import GOOD, UNKNOWN_TYPE, WARNING
from tests.cli.runner import run

FIXABLE = """\
namespace demo {
  # a comment of another language
  event facet Greet(name: String) => (text: String)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "flow.afl"


def test_a_clean_program_prints_nothing(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    result = run("check", file)
    assert result.exit_code == exit_codes.OK
    assert result.stdout == ""
    assert result.stderr == "no problems in 1 file\n"


def test_diagnostics_are_data_and_the_summary_is_talk(file: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = run("check", file)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout.startswith("error[AFL1007]: ")
    assert f" --> {file}:2:27\n" in result.stdout
    assert "1 error in 1 file" in result.stderr
    assert "help: `afl explain AFL1007` shows an example" in result.stderr


def test_files_are_checked_together(tmp_path: Path) -> None:
    (tmp_path / "a.afl").write_text("namespace a { schema S { x: Int } }", encoding="utf-8")
    (tmp_path / "b.afl").write_text("namespace b { facet F(s: a.S) }", encoding="utf-8")
    assert run("check", tmp_path).exit_code == exit_codes.OK
    assert run("check", tmp_path / "b.afl").exit_code == exit_codes.FAILED


@pytest.mark.parametrize("args", [["--json"], ["--format", "json"], ["--json", "--format", "json"]])
def test_json(file: Path, args: list[str]) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = run("check", file, *args)
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == ""
    data = json.loads(result.stdout)
    schema = json.loads(
        (ROOT / "docs/reference/schemas/diagnostics.schema.json").read_text(encoding="utf-8")
    )
    Draft202012Validator(schema).validate(data)
    assert [each["code"] for each in data["diagnostics"]] == ["AFL1007"]
    assert data["summary"] == {"errors": 1, "warnings": 0}


def test_json_of_a_clean_program(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    data = json.loads(run("check", file, "--json").stdout)
    assert data["diagnostics"] == []


def test_concise(file: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    line = run("check", file, "--format", "concise").stdout
    assert line.startswith(f"{file}:2:27: error[AFL1007] ")
    assert line.count("\n") == 1


def test_sarif(file: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = run("check", file, "--format", "sarif")
    assert result.stderr == ""
    data = json.loads(result.stdout)
    assert data["version"] == "2.1.0"
    assert [each["ruleId"] for each in data["runs"][0]["results"]] == ["AFL1007"]


def test_github(tmp_path: Path) -> None:
    file = tmp_path / "a,b:c.afl"
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    line = run("check", file, "--format", "github").stdout
    assert line.startswith("::error file=")
    assert (
        "a%2Cb%3Ac.afl,line=2,col=27,endColumn=32,endLine=2,title=AFL1007%3A unknown type::" in line
    )
    assert line.count("\n") == 1
    assert "%0Ahelp: " in line


def test_formats_that_contradict(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    result = run("check", file, "--json", "--format", "sarif")
    assert result.exit_code == exit_codes.USAGE
    assert "--json and --format sarif contradict each other" in result.stderr


@pytest.mark.parametrize("flag", ["--strict", "--warnings-as-errors"])
def test_warnings_can_fail(file: Path, flag: str) -> None:
    file.write_text(WARNING, encoding="utf-8")
    relaxed = run("check", file)
    assert relaxed.exit_code == exit_codes.OK
    assert "warning[AFL1002]" in relaxed.stdout
    assert "1 warning in 1 file" in relaxed.stderr
    assert run("check", file, flag).exit_code == exit_codes.FAILED
    file.write_text(GOOD, encoding="utf-8")
    assert run("check", file, flag).exit_code == exit_codes.OK


def test_what_can_be_fixed_is_announced_and_fixed(file: Path) -> None:
    file.write_text(FIXABLE, encoding="utf-8")
    file.chmod(0o640)
    assert "help: `afl check --fix` mends 1 of them" in run("check", file).stderr
    result = run("check", "--fix", file)
    assert result.exit_code == exit_codes.OK
    assert result.stdout == ""
    assert result.stderr == "fixed 1 problem\nno problems in 1 file\n"
    assert file.read_text(encoding="utf-8") == FIXABLE.replace("#", "//")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["flow.afl"]


def test_what_cannot_be_fixed_is_still_reported(file: Path) -> None:
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = run("check", "--fix", file)
    assert result.exit_code == exit_codes.FAILED
    assert "fixed 0 problems" in result.stderr
    assert file.read_text(encoding="utf-8") == UNKNOWN_TYPE


def test_standard_input_cannot_be_fixed() -> None:
    result = run("check", "--fix", "-", input=FIXABLE)
    assert result.exit_code == exit_codes.USAGE
    assert "--fix needs files" in result.stderr
