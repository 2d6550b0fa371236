"""`afl version`."""

from __future__ import annotations

import json
import platform

from afl import __version__
from afl.cli import exit_codes
from afl.ir.model import FORMAT_VERSION
from tests.architecture.repository import ROOT
from tests.cli.runner import run


def test_text() -> None:
    result = run("version")
    assert result.exit_code == exit_codes.OK
    rows = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert rows["afl"].strip() == __version__
    assert rows["program format"].strip() == str(FORMAT_VERSION)
    assert list(rows) == ["afl", "language", "program format", "python", "platform"]


def test_json() -> None:
    data = json.loads(run("version", "--json").stdout)
    assert data["afl"] == __version__
    assert data["program_format"] == FORMAT_VERSION
    assert data["python"] == platform.python_version()


def test_the_language_version_is_that_of_the_grammar() -> None:
    grammar = (ROOT / "docs/reference/grammar.ebnf").read_text(encoding="utf-8")
    language = json.loads(run("version", "--json").stdout)["language"]
    assert grammar.startswith(f"(* AFL {language}. ")


def test_an_argument_is_wrong_usage() -> None:
    assert run("version", "now").exit_code == exit_codes.USAGE
